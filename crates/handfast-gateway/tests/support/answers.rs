//! Random answers of a server behind, written piece by piece, so that it is known to the byte how a client is to read them.

use proptest::prelude::*;

/// A piece of a text.
#[derive(Debug, Clone)]
pub(crate) enum Piece {
    /// Stays as it is.
    Plain(String),
    /// A name of the server behind, in some spelling.
    Name {
        /// Which of the names.
        which: usize,
        /// As the server writes it.
        theirs: String,
        /// What stands before and after the handle of ours.
        around: [String; 2],
    },
}

/// A text of the server behind.
pub(crate) type Pieces = Vec<Piece>;

/// As the server behind sends it.
pub(crate) fn theirs(pieces: &[Piece]) -> String {
    let text = |piece: &Piece| match piece {
        Piece::Plain(text) | Piece::Name { theirs: text, .. } => text.clone(),
    };
    pieces.iter().map(text).collect()
}

/// As a client is to read it, to whom the names are called like this.
pub(crate) fn ours(pieces: &[Piece], outers: &[String]) -> String {
    let text = |piece: &Piece| match piece {
        Piece::Plain(text) => text.clone(),
        Piece::Name { which, around: [before, after], .. } => format!("{before}{}{after}", outers[*which]),
    };
    pieces.iter().map(text).collect()
}

pub(crate) fn plain(text: impl Into<String>) -> Pieces {
    vec![Piece::Plain(text.into())]
}

/// A name where nothing else stands, in JSON: a number or a string.
pub(crate) fn alone(which: usize, name: &str) -> Pieces {
    let theirs = if is_number(name) { name.to_owned() } else { quoted(name) };
    vec![Piece::Name { which, theirs, around: ["\"".to_owned(), "\"".to_owned()] }]
}

fn is_number(name: &str) -> bool {
    name.bytes().all(|byte| byte.is_ascii_digit())
}

fn quoted(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

fn escaped(text: &str) -> String {
    let quoted = quoted(text);
    quoted[1..quoted.len() - 1].to_owned()
}

/// A text as the value of a JSON string.
fn in_string(pieces: Pieces) -> Pieces {
    let inner = pieces.into_iter().map(|piece| match piece {
        Piece::Plain(text) => Piece::Plain(escaped(&text)),
        Piece::Name { which, theirs, around: [before, after] } => {
            Piece::Name { which, theirs: escaped(&theirs), around: [escaped(&before), escaped(&after)] }
        }
    });
    plain("\"").into_iter().chain(inner).chain(plain("\"")).collect()
}

/// Whether a text in a string is read as JSON, and is no sentence.
fn is_json(pieces: &[Piece]) -> bool {
    theirs(pieces).starts_with(['{', '[', '"'])
}

/// In a sentence a number is not made a string.
fn as_words(pieces: Pieces) -> Pieces {
    let bare = |piece| match piece {
        Piece::Name { which, theirs, .. } => Piece::Name { which, theirs, around: [String::new(), String::new()] },
        plain => plain,
    };
    pieces.into_iter().map(bare).collect()
}

/// How a name may be written among other words.
fn spellings(name: &str) -> Vec<String> {
    let unicode = |text: &str| text.bytes().map(|byte| format!("\\u{byte:04x}")).collect::<String>();
    let percent = |text: &str| text.bytes().map(|byte| format!("%{byte:02X}")).collect::<String>();
    let (first, rest) = name.split_at(1);
    let mut spelled = vec![
        format!("{}{rest}", unicode(first)),
        unicode(name),
        format!("{}{rest}", percent(first)),
        percent(name).to_lowercase(),
        percent(&percent(name)),
        unicode(&percent(first)) + rest,
    ];
    // The last digit of an escape may be the first of a number.
    spelled.retain(|spelled| !spelled.contains(name));
    spelled.push(name.to_owned());
    spelled
}

/// Words that mean nothing, with all that has to be escaped.
fn words() -> BoxedStrategy<Pieces> {
    "[a-y é\u{1F600}\"\\\\/%\\n\u{7}<:?-]{0,8}".prop_map(|text| plain(text.trim_end_matches('\\'))).boxed()
}

/// A name among other words, or inside of one.
fn named(names: Vec<String>) -> BoxedStrategy<Pieces> {
    let spelled = (0..names.len()).prop_flat_map(move |which| {
        prop::sample::select(spellings(&names[which]))
            .prop_map(move |theirs| vec![Piece::Name { which, theirs, around: [String::new(), String::new()] }])
    });
    (words(), spelled, words()).prop_map(|(before, name, after)| [before, name, after].concat()).boxed()
}

/// White space, of which JSON allows much.
fn blank() -> BoxedStrategy<Pieces> {
    prop::sample::select(vec!["", "", " ", "\n", "\t  "]).prop_map(plain).boxed()
}

/// A value in JSON, in which these names stand anywhere.
pub(crate) fn value(names: &[String]) -> BoxedStrategy<Pieces> {
    let text = prop_oneof![words(), named(names.to_vec())];
    let numbers = vec!["1.0e2", "12345678901234567890", "-0.0", "1E+40", "0.1000", "true", "null", "[]", "{ }"];
    let numbered: Vec<(usize, String)> =
        names.iter().cloned().enumerate().filter(|(_, name)| is_number(name)).collect();
    let leaf = prop_oneof![
        3 => text.clone().prop_map(in_string),
        1 => prop::sample::select(numbers).prop_map(plain),
        1 => r#""(\\u00e9|\\/|\\t|[a-y]){0,4}""#.prop_map(plain),
        1 => prop::sample::select(numbered).prop_map(|(which, name)| alone(which, &name)),
    ];
    leaf.prop_recursive(4, 24, 4, move |inner| {
        prop_oneof![
            2 => (prop::collection::vec((text.clone(), inner.clone()), 0..4), blank()).prop_map(|(members, blank)| {
                let members = members.into_iter().enumerate().map(|(at, (name, value))| {
                    let name = in_string([plain(format!("{at} ")), name].concat());
                    [name, plain(":"), blank.clone(), value].concat()
                });
                listed("{", members.collect(), "}", &blank)
            }),
            1 => (prop::collection::vec(inner.clone(), 0..4), blank())
                .prop_map(|(items, blank)| listed("[", items, "]", &blank)),
            2 => inner.clone().prop_map(|json| in_string(if is_json(&json) { json } else { as_words(json) })),
            1 => inner.prop_map(|json| in_string([plain("Done: "), as_words(json)].concat())),
        ]
    })
    .boxed()
}

fn listed(open: &str, items: Vec<Pieces>, close: &str, blank: &Pieces) -> Pieces {
    let mut pieces = [plain(open), blank.clone()].concat();
    for (at, item) in items.into_iter().enumerate() {
        if at > 0 {
            pieces.extend([blank.clone(), plain(",")].concat());
        }
        pieces.extend(item);
    }
    [pieces, blank.clone(), plain(close)].concat()
}
