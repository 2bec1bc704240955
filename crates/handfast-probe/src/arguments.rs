//! Arguments that a real server accepts, made from its own JSON Schema (2020-12) and checked by a real validator before
//! they are sent. Free text carries a canary, known handles are put where they belong, everything else is the plainest
//! value that the schema allows.

use std::{cell::Cell, collections::BTreeMap};

use handfast_wire::message::Object;
use jsonschema::{PatternOptions, Validator};
use rand::distr::Distribution;
use regex_syntax::hir::{Class, ClassUnicode, ClassUnicodeRange, Hir, HirKind};
use serde_json::{Map, Number, Value, json};

use crate::{canary::Canary, discovery::names, random};

/// What the arguments should carry.
#[derive(Debug, Default)]
pub struct Wish<'w> {
    /// Planted wherever free text is taken.
    pub canary: Option<&'w Canary>,
    /// Values for arguments by name, at the top level: handles, and what a profile fixes.
    pub fixed: BTreeMap<String, Value>,
    /// Also fill optional free-text arguments such as `label` or `note`.
    pub optional_text: bool,
}

/// Arguments for a schema.
///
/// # Errors
/// Says which part of the schema could not be satisfied.
pub fn synthesise(schema: &Value, wish: &Wish<'_>) -> Result<Object, String> {
    let validator = validator(schema)?;
    let mut reasons = Vec::new();
    for attempt in 0..ATTEMPTS {
        let maker = Maker { root: schema, wish, attempt, fuel: Cell::new(FUEL) };
        let made = maker.object(schema, 0, true);
        let value = Value::Object(made);
        match validator.validate(&value) {
            Ok(()) => match value {
                Value::Object(arguments) => return Ok(arguments),
                _ => return Err("the schema is not one of an object".to_owned()),
            },
            Err(error) => reasons.push(format!("{} at `{}`", short(&error.to_string()), error.instance_path())),
        }
    }
    Err(reasons.pop().unwrap_or_else(|| "no value found".to_owned()))
}

/// A value for one member of a schema, with the references of the whole resolved.
pub fn member(root: &Value, name: &str, wish: &Wish<'_>) -> Value {
    let schema = root.get("properties").and_then(|properties| properties.get(name)).unwrap_or(&Value::Null);
    Maker { root, wish, attempt: 0, fuel: Cell::new(FUEL) }.value(schema, name, 1)
}

/// Whether a value satisfies a schema; used for the answers to a server's own questions.
pub fn satisfies(schema: &Value, value: &Value) -> bool {
    validator(schema).is_ok_and(|validator| validator.is_valid(value))
}

/// A value for one schema, not checked against the whole: content of an elicitation, prompt arguments.
pub fn plain(schema: &Value, name: &str, wish: &Wish<'_>) -> Value {
    Maker { root: schema, wish, attempt: 0, fuel: Cell::new(FUEL) }.value(schema, name, 0)
}

fn validator(schema: &Value) -> Result<Validator, String> {
    jsonschema::options()
        // A hostile pattern must not take exponential time.
        .with_pattern_options(PatternOptions::fancy_regex().backtrack_limit(100_000).size_limit(1 << 20))
        .should_validate_formats(true)
        .build(schema)
        .map_err(|error| format!("the schema is not valid: {}", short(&error.to_string())))
}

struct Maker<'m> {
    root: &'m Value,
    wish: &'m Wish<'m>,
    /// Later attempts take later branches and plainer strings.
    attempt: usize,
    /// What is left of the work that one schema may cause: a few nested references can ask for millions of values.
    fuel: Cell<usize>,
}

impl Maker<'_> {
    fn object(&self, schema: &Value, depth: usize, top: bool) -> Object {
        let schema = &self.flat(schema, depth);
        let mut object = Map::new();
        let required: Vec<&str> = schema
            .get("required")
            .and_then(Value::as_array)
            .map_or(Vec::new(), |names| names.iter().filter_map(Value::as_str).collect());
        let properties = schema.get("properties").and_then(Value::as_object);
        for (name, property) in properties.into_iter().flatten() {
            let fixed = if top { self.wish.fixed.get(name) } else { None };
            if let Some(value) = fixed {
                object.insert(name.clone(), value.clone());
            } else if required.contains(&name.as_str())
                || (self.wish.optional_text && self.takes_text(name, property, depth))
            {
                object.insert(name.clone(), self.value(property, name, depth + 1));
            }
        }
        for name in required {
            // Required, and described nowhere: anything will do.
            if !object.contains_key(name) {
                let fixed = self.wish.fixed.get(name).filter(|_| top).cloned();
                object.insert(name.to_owned(), fixed.unwrap_or_else(|| self.text(&Value::Null, name)));
            }
        }
        for (name, wanted) in schema.get("dependentRequired").and_then(Value::as_object).into_iter().flatten() {
            for wanted in wanted.as_array().into_iter().flatten().filter_map(Value::as_str) {
                if object.contains_key(name) && !object.contains_key(wanted) {
                    let property = properties.and_then(|properties| properties.get(wanted)).unwrap_or(&Value::Null);
                    object.insert(wanted.to_owned(), self.value(property, wanted, depth + 1));
                }
            }
        }
        let least = schema.get("minProperties").and_then(Value::as_u64).unwrap_or(0).min(MOST_ITEMS) as usize;
        // First what is known and optional, then names of our own where those are allowed.
        for (name, property) in properties.into_iter().flatten() {
            if object.len() < least && !object.contains_key(name) {
                object.insert(name.clone(), self.value(property, name, depth + 1));
            }
        }
        let further = schema.get("additionalProperties").filter(|further| further.is_object()).unwrap_or(&Value::Null);
        for number in 0..MOST_ITEMS {
            if object.len() >= least {
                break;
            }
            object.insert(format!("key{number}"), self.value(further, "key", depth + 1));
        }
        object
    }

    /// An optional argument that a person would fill with words.
    fn takes_text(&self, name: &str, property: &Value, depth: usize) -> bool {
        let property = self.flat(property, depth);
        let plain_text = property.get("type").and_then(Value::as_str) == Some("string")
            && ["enum", "const", "format", "pattern", "default"].iter().all(|key| property.get(key).is_none());
        plain_text && names::words(name).last().is_some_and(|word| TEXT_NAMES.contains(&word.as_str()))
    }

    fn value(&self, schema: &Value, name: &str, depth: usize) -> Value {
        let schema = &self.flat(schema, depth);
        if let Some(constant) = schema.get("const") {
            return constant.clone();
        }
        if let Some(choices) = schema.get("enum").and_then(Value::as_array).filter(|choices| !choices.is_empty()) {
            return choices[self.attempt % choices.len()].clone();
        }
        let kind = kind_of(schema);
        let wants_words =
            kind == "string" && names::words(name).last().is_some_and(|word| TEXT_NAMES.contains(&word.as_str()));
        if !wants_words && self.attempt < 2 {
            let given = schema.get("default").or_else(|| schema.get("examples").and_then(|examples| examples.get(0)));
            if let Some(value) = given.filter(|value| !value.is_null()) {
                return value.clone();
            }
        }
        if depth > DEEPEST {
            return Value::Null;
        }
        match kind {
            "object" => Value::Object(self.object(schema, depth, false)),
            "array" => self.array(schema, name, depth),
            "integer" => integer(schema),
            "number" => number(schema),
            "boolean" => Value::Bool(true),
            "null" => Value::Null,
            _ => self.text(schema, name),
        }
    }

    fn array(&self, schema: &Value, name: &str, depth: usize) -> Value {
        let wanted = u64::from(depth <= DEEP_ENOUGH);
        let least = schema.get("minItems").and_then(Value::as_u64).unwrap_or(wanted).clamp(wanted, MOST_ITEMS);
        let most = schema.get("maxItems").and_then(Value::as_u64).unwrap_or(least);
        let prefix = schema.get("prefixItems").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
        let item = schema.get("items").unwrap_or(&Value::Null);
        let count = least.max(prefix.len() as u64).min(most) as usize;
        let mut items: Vec<Value> =
            (0..count).map(|at| self.value(prefix.get(at).unwrap_or(item), name, depth + 1)).collect();
        if let (Some(contained), Some(first)) = (schema.get("contains"), items.first_mut()) {
            *first = self.value(contained, name, depth + 1);
        }
        if schema.get("uniqueItems").and_then(Value::as_bool) == Some(true) {
            let choices = self.flat(item, depth).get("enum").and_then(Value::as_array).cloned().unwrap_or_default();
            for (at, item) in items.iter_mut().enumerate().skip(1) {
                *item = choices.get(at).cloned().unwrap_or_else(|| distinct(item, at));
            }
        }
        Value::Array(items)
    }

    fn text(&self, schema: &Value, name: &str) -> Value {
        let least = schema.get("minLength").and_then(Value::as_u64).unwrap_or(0).min(LONGEST) as usize;
        let most = schema.get("maxLength").and_then(Value::as_u64).unwrap_or(LONGEST).min(LONGEST) as usize;
        let fits = |text: &String| (least..=most).contains(&text.chars().count());
        let canary = self.wish.canary;
        let word = canary.map_or("handfast", |canary| canary.short.as_str());
        if let Some(text) = schema.get("format").and_then(Value::as_str).and_then(|format| formatted(format, word)) {
            return text.into();
        }
        if let Some(pattern) = schema.get("pattern").and_then(Value::as_str) {
            return self.matching(pattern, &fits).into();
        }
        if let Some(text) = hinted(name) {
            return text.into();
        }
        let mut candidates: Vec<String> = Vec::new();
        candidates.extend(canary.map(|canary| canary.long.clone()));
        candidates.push(word.to_owned());
        candidates.push(word.chars().take(most).collect());
        // The longest that is not too long already, made longer.
        let short = candidates.iter().find(|text| text.chars().count() <= least).unwrap_or(&candidates[0]);
        let padded = format!("{short:x<least$}");
        candidates.into_iter().find(fits).unwrap_or(padded).into()
    }

    /// A text that matches a pattern: a canary if it happens to, else one drawn from the pattern itself.
    fn matching(&self, pattern: &str, fits: &dyn Fn(&String) -> bool) -> String {
        let canary = self.wish.canary;
        let matches =
            |text: &String| fits(text) && satisfies(&json!({"type": "string", "pattern": pattern}), &json!(text));
        let planted = canary.into_iter().flat_map(|canary| {
            let (long, short) = (canary.long.clone(), canary.short.clone());
            [long.clone(), short.clone(), short.to_uppercase(), format!("{long}.txt"), format!("/{short}")]
        });
        if let Some(text) = planted.filter(|_| self.attempt < 2).find(|text| matches(text)) {
            return text;
        }
        if pattern.len() > LONGEST_PATTERN {
            return "handfast".to_owned();
        }
        // Plain letters where the pattern can be read so; `[^@]` cannot, it may be any character of any script.
        let parse =
            |unicode: bool| regex_syntax::ParserBuilder::new().unicode(unicode).utf8(true).build().parse(pattern).ok();
        let parsed = parse(false).or_else(|| parse(true));
        // `{0,65535}{0,65535}` asks for gigabytes; an unbounded `+` is drawn short.
        let small = |hir: &Hir| {
            let properties = hir.properties();
            properties.minimum_len().is_none_or(|least| least as u64 <= LONGEST)
                && properties.maximum_len().is_none_or(|most| most as u64 <= LONGEST_DRAWN)
        };
        let bare = parsed.filter(small).map(without_anchors);
        let drawn = bare.and_then(|hir| rand_regex::Regex::with_hir(hir, 8).ok());
        let sampled = drawn.and_then(|regex| {
            let mut source = random::source();
            (0..DRAWS)
                .filter_map(|_| {
                    let text: Result<String, _> = regex.sample(&mut source);
                    text.ok()
                })
                .find(|text| matches(text))
        });
        sampled.unwrap_or_else(|| "handfast".to_owned())
    }

    /// A schema with `$ref`, `allOf` and one branch of `oneOf` and `anyOf` folded into it.
    fn flat(&self, schema: &Value, depth: usize) -> Value {
        let Value::Object(members) = schema else { return Value::Null };
        if depth > DEEPEST || self.is_exhausted() {
            return Value::Null;
        }
        let mut flat = Value::Object(
            members
                .iter()
                .filter(|(key, _)| !FOLDED.contains(&key.as_str()))
                .map(|(key, value)| (key.clone(), value.clone()))
                .collect(),
        );
        if let Some(target) = members.get("$ref").and_then(Value::as_str).and_then(|reference| self.resolve(reference))
        {
            merge(&mut flat, self.flat(target, depth + 1));
        }
        for part in members.get("allOf").and_then(Value::as_array).into_iter().flatten() {
            merge(&mut flat, self.flat(part, depth + 1));
        }
        for key in ["oneOf", "anyOf"] {
            if let Some(branches) = members.get(key).and_then(Value::as_array).filter(|branches| !branches.is_empty()) {
                // The null of `anyOf: [string, null]` is the last resort.
                let is_null = |branch: &&Value| kind_of(branch) == "null";
                let nulls: Vec<&Value> = branches.iter().filter(is_null).collect();
                let mut useful: Vec<&Value> = branches.iter().filter(|branch| !is_null(branch)).collect();
                if useful.is_empty() || (depth > DEEP_ENOUGH && !nulls.is_empty()) {
                    useful = nulls;
                }
                if let Some(branch) = useful.get(self.attempt % useful.len().max(1)) {
                    merge(&mut flat, self.flat(branch, depth + 1));
                }
            }
        }
        flat
    }

    fn is_exhausted(&self) -> bool {
        let left = self.fuel.get().saturating_sub(1);
        self.fuel.set(left);
        left == 0
    }

    fn resolve(&self, reference: &str) -> Option<&Value> {
        match reference.strip_prefix('#')? {
            "" => Some(self.root),
            at => self.root.pointer(at),
        }
    }
}

/// A pattern without `^`, `$` and `\b`: what is drawn is matched against the whole pattern afterwards.
fn without_anchors(hir: Hir) -> Hir {
    match hir.into_kind() {
        HirKind::Look(_) => Hir::empty(),
        HirKind::Concat(parts) => Hir::concat(parts.into_iter().map(without_anchors).collect()),
        HirKind::Alternation(parts) => Hir::alternation(parts.into_iter().map(without_anchors).collect()),
        HirKind::Capture(mut capture) => {
            capture.sub = Box::new(without_anchors(*capture.sub));
            Hir::capture(capture)
        }
        HirKind::Repetition(mut repetition) => {
            repetition.sub = Box::new(without_anchors(*repetition.sub));
            Hir::repetition(repetition)
        }
        HirKind::Literal(literal) => Hir::literal(literal.0),
        HirKind::Class(Class::Unicode(mut class)) => {
            // `[^@]` means what a keyboard has, where it can.
            let mut plain = class.clone();
            plain.intersect(&ClassUnicode::new([ClassUnicodeRange::new('!', '~')]));
            if !plain.ranges().is_empty() {
                class = plain;
            }
            Hir::class(Class::Unicode(class))
        }
        HirKind::Class(class) => Hir::class(class),
        HirKind::Empty => Hir::empty(),
    }
}

fn merge(into: &mut Value, from: Value) {
    let (Value::Object(into), Value::Object(from)) = (into, from) else { return };
    for (key, value) in from {
        match (into.get_mut(&key), value) {
            (Some(Value::Object(own)), Value::Object(other)) if key == "properties" => own.extend(other),
            (Some(Value::Array(own)), Value::Array(other)) if key == "required" => own.extend(other),
            (Some(own), other) if STRICTER_UP.contains(&key.as_str()) => *own = stricter(own, other, f64::max),
            (Some(own), other) if STRICTER_DOWN.contains(&key.as_str()) => *own = stricter(own, other, f64::min),
            (Some(_), _) => {}
            (None, value) => {
                into.insert(key, value);
            }
        }
    }
}

fn stricter(one: &Value, other: Value, pick: fn(f64, f64) -> f64) -> Value {
    match (one.as_f64(), other.as_f64()) {
        (Some(a), Some(b)) if pick(a, b) == b => other,
        _ => one.clone(),
    }
}

fn kind_of(schema: &Value) -> &str {
    match schema.get("type") {
        Some(Value::String(kind)) => kind,
        Some(Value::Array(kinds)) => {
            kinds.iter().filter_map(Value::as_str).find(|kind| *kind != "null").unwrap_or("null")
        }
        _ if schema.get("properties").is_some() => "object",
        _ if schema.get("items").is_some() || schema.get("prefixItems").is_some() => "array",
        _ => "string",
    }
}

/// The stricter of two bounds, one of which excludes its end.
fn bounds(schema: &Value, step: f64) -> (Option<f64>, Option<f64>) {
    let bound = |key: &str| schema.get(key).and_then(Value::as_f64);
    let stricter = |one: Option<f64>, two: Option<f64>, pick: fn(f64, f64) -> f64| match (one, two) {
        (Some(one), Some(two)) => Some(pick(one, two)),
        (one, two) => one.or(two),
    };
    let least = stricter(bound("minimum"), bound("exclusiveMinimum").map(|least| least + step), f64::max);
    let most = stricter(bound("maximum"), bound("exclusiveMaximum").map(|most| most - step), f64::min);
    (least, most)
}

fn integer(schema: &Value) -> Value {
    let step = schema.get("multipleOf").and_then(Value::as_f64).filter(|step| *step > 0.0).unwrap_or(1.0);
    let (least, most) = bounds(schema, 1.0);
    let (least, most) = (least.map(f64::ceil), most.map(f64::floor));
    let wanted = f64::max(1.0, least.unwrap_or(1.0)).min(most.unwrap_or(f64::MAX));
    let stepped = (wanted / step).ceil() * step;
    let value = if most.is_some_and(|most| stepped > most) { (wanted / step).floor() * step } else { stepped };
    Value::Number(Number::from(value as i64))
}

fn number(schema: &Value) -> Value {
    let value = match bounds(schema, 0.0) {
        (Some(least), Some(most)) => least + (most - least) / 2.0,
        (Some(least), None) => least + 1.0,
        (None, Some(most)) => f64::min(1.0, most - 1.0),
        (None, None) => 1.0,
    };
    match schema.get("multipleOf").and_then(Value::as_f64).filter(|step| *step > 0.0) {
        Some(step) => json!((value / step).round() * step),
        None if value.fract() == 0.0 => Value::Number(Number::from(value as i64)),
        None => json!(value),
    }
}

fn distinct(value: &Value, at: usize) -> Value {
    match value {
        // Of the same length: there may be a bound.
        Value::String(text) => {
            let kept: String = text.chars().take(text.chars().count().saturating_sub(2)).collect();
            Value::String(format!("{kept}{at:02}"))
        }
        Value::Number(number) => json!(number.as_i64().unwrap_or(0) + at as i64),
        other => other.clone(),
    }
}

fn formatted(format: &str, word: &str) -> Option<String> {
    Some(match format {
        "date" => "2030-01-02".to_owned(),
        "time" => "10:00:00Z".to_owned(),
        "date-time" => "2030-01-02T10:00:00Z".to_owned(),
        "duration" => "PT1H".to_owned(),
        "email" | "idn-email" => format!("{word}@example.com"),
        "hostname" | "idn-hostname" => format!("{word}.example.com"),
        "uri" | "url" | "iri" => format!("https://example.com/{word}"),
        "uri-reference" | "iri-reference" => format!("/{word}"),
        "uuid" => {
            let hex = random::hex(15);
            format!("{}-{}-4{}-8{}-{}", &hex[..8], &hex[8..12], &hex[12..15], &hex[15..18], &hex[18..30])
        }
        "ipv4" => "192.0.2.1".to_owned(),
        "ipv6" => "2001:db8::1".to_owned(),
        "relative-json-pointer" => "0".to_owned(),
        "json-pointer" => format!("/{word}"),
        "regex" => "a+".to_owned(),
        _ => return None,
    })
}

/// A plain value for a name that tells its format without a `format`.
fn hinted(name: &str) -> Option<String> {
    let words = names::words(name);
    let text = match words.last()?.as_str() {
        "email" => "handfast@example.com",
        "url" | "link" | "website" => "https://example.com/",
        "date" | "day" => "2030-01-02",
        "currency" => "EUR",
        "country" => "DE",
        "language" | "locale" => "en",
        "timezone" => "UTC",
        "color" | "colour" => "#336699",
        _ => return None,
    };
    Some(text.to_owned())
}

fn short(text: &str) -> String {
    text.chars().take(160).collect()
}

/// Bounds of which the larger, and of which the smaller, is the stricter.
const STRICTER_UP: [&str; 5] = ["minimum", "exclusiveMinimum", "minLength", "minItems", "minProperties"];
const STRICTER_DOWN: [&str; 5] = ["maximum", "exclusiveMaximum", "maxLength", "maxItems", "maxProperties"];
/// From here on a recursive schema is ended where it lets itself be ended.
const DEEP_ENOUGH: usize = 4;
const FUEL: usize = 20_000;
const LONGEST_PATTERN: usize = 500;
const LONGEST_DRAWN: u64 = 100_000;
const ATTEMPTS: usize = 6;
const DRAWS: usize = 40;
const DEEPEST: usize = 12;
const MOST_ITEMS: u64 = 64;
const LONGEST: u64 = 4096;
const FOLDED: [&str; 4] = ["$ref", "allOf", "oneOf", "anyOf"];
const TEXT_NAMES: [&str; 18] = [
    "label",
    "name",
    "title",
    "note",
    "notes",
    "text",
    "description",
    "comment",
    "content",
    "message",
    "body",
    "summary",
    "memo",
    "topic",
    "caption",
    "heading",
    "reason",
    "remark",
];
