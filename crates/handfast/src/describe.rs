//! What a server says about its handles: how long they live, and their place in schemas.

use std::time::Duration;

use serde_json::{Value, json};

use crate::{handle::text, policy::Rules};

impl Rules {
    /// How long handles live, for the description of the tool that makes them: "state the retention policy in the
    /// creation tool's description".
    ///
    /// `noun` is what people call the object, in the singular: `basket`.
    #[must_use]
    pub fn retention_sentence(&self, noun: &str) -> String {
        let (nouns, life) = (plural(noun), words(self.lifetime));
        let mut sentence = match self.idle {
            Some(idle) if idle < self.lifetime => {
                format!("{nouns} expire after {} of inactivity, and after {life} in any case.", words(idle))
            }
            _ => format!("{nouns} expire after {life}."),
        };
        if let Some(first) = sentence.get(..1).map(str::to_uppercase) {
            sentence.replace_range(..1, &first);
        }
        sentence
    }

    /// The argument that takes a handle, as a property of a tool's `inputSchema`.
    #[must_use]
    pub fn input_schema(&self) -> Value {
        let description = format!("The {}, as `{}` gave it.", self.object, self.created_by);
        json!({"type": "string", "pattern": text::pattern(self.prefix.as_ref()), "description": description})
    }

    /// The `outputSchema` of the tool that makes a handle, for
    /// [`Minted::structured_content`](crate::Minted::structured_content).
    #[must_use]
    pub fn output_schema(&self) -> Value {
        let argument = self.argument.as_str();
        json!({
            "type": "object",
            "properties": {
                argument: {"type": "string", "pattern": text::pattern(self.prefix.as_ref())},
                "expires_at": {"type": "string", "format": "date-time"},
            },
            "required": [argument, "expires_at"],
        })
    }
}

fn plural(noun: &str) -> String {
    let sibilant = ["s", "x", "z", "ch", "sh"].iter().any(|end| noun.ends_with(end));
    let stem = noun.strip_suffix('y').filter(|stem| !stem.ends_with(['a', 'e', 'i', 'o', 'u']));
    match stem {
        Some(stem) => format!("{stem}ies"),
        None if sibilant => format!("{noun}es"),
        None => format!("{noun}s"),
    }
}

/// A duration in the largest unit that tells it exactly and at least twice: 24 hours, 7 days, 90 minutes.
fn words(duration: Duration) -> String {
    let seconds = duration.as_secs();
    let units = [(24 * 3600, "day"), (3600, "hour"), (60, "minute"), (1, "second")];
    let exact = |(size, _): &&(u64, &str)| seconds.is_multiple_of(*size) && seconds >= *size;
    let twice = units.iter().find(|unit| exact(unit) && seconds / unit.0 > 1);
    let (size, unit) = *twice.or_else(|| units.iter().find(exact)).unwrap_or(&(1, "second"));
    let count = seconds / size;
    if count == 1 { format!("1 {unit}") } else { format!("{count} {unit}s") }
}

#[cfg(test)]
mod tests {
    use crate::policy::Policy;

    fn sentence(lifetime: &str, idle: Option<&str>, noun: &str) -> String {
        let idle = idle.map(|idle| format!("idle = \"{idle}\"")).unwrap_or_default();
        let text = format!(
            "version = \"1\"\n[objects.o]\nlifetime = \"{lifetime}\"\n{idle}\nscopes = [\"r\"]\ncreated_by = \"make\""
        );
        Policy::from_toml(&text).expect("a policy").rules_for("o").expect("rules").retention_sentence(noun)
    }

    #[test]
    fn the_sentence_says_what_the_policy_says() {
        for (lifetime, idle, noun, expected) in [
            ("7d", Some("24h"), "basket", "Baskets expire after 24 hours of inactivity, and after 7 days in any case."),
            ("7d", None, "box", "Boxes expire after 7 days."),
            ("1h", Some("1h"), "query", "Queries expire after 60 minutes."),
            ("90m", Some("1s"), "key", "Keys expire after 1 second of inactivity, and after 90 minutes in any case."),
            ("1d", None, "browser context", "Browser contexts expire after 24 hours."),
            ("36h", None, "batch", "Batches expire after 36 hours."),
            ("61s", None, "éclair", "éclairs expire after 61 seconds."),
        ] {
            assert_eq!(sentence(lifetime, idle, noun), expected);
        }
    }
}
