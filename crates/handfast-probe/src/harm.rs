//! What is never called by default: a tool that says of itself, or sounds, as if it destroys something or moves money.

use serde_json::Value;

/// Why a tool counts as destructive, if it does. Words are matched whole, so `transform` and `payload` are harmless.
/// Words that are verbs and nouns alike (`format`, `wire`) count in a description only where a sentence starts with them.
pub fn destructive(name: &str, description: &str, annotations: &Value) -> Option<String> {
    if annotations.get("destructiveHint").and_then(Value::as_bool) == Some(true) {
        return Some("declares destructiveHint".to_owned());
    }
    let name = crate::discovery::names::words(name);
    let description = description.to_ascii_lowercase();
    let sentences = description.split(['.', '!', ';', '\n']).map(|sentence| {
        sentence.split(|c: char| !c.is_ascii_alphanumeric()).filter(|word| !word.is_empty()).collect::<Vec<_>>()
    });
    let in_name = name.iter().enumerate().find(|(at, word)| {
        // `shut_down`, `send_money`, `close_account`: two words that mean more than each.
        let both = name.get(at + 1).is_some_and(|next| PAIRS.contains(&(word.as_str(), next.as_str())));
        both || is_destructive(word) || is_ambiguous(word) || NAMED.contains(&word.as_str())
    });
    if let Some((_, word)) = in_name {
        return Some(format!("the word `{word}` in its name"));
    }
    sentences.into_iter().find_map(|words| {
        // "It is removed automatically after a day" tells of a lifetime, not of what the tool does.
        if words.iter().any(|word| ["automatically", "expires", "expire"].contains(word)) {
            return None;
        }
        words.iter().enumerate().find_map(|(at, word)| {
            let negated = at > 0 && NEGATIONS.contains(&words[at - 1]);
            let both = words.get(at + 1).is_some_and(|next| PAIRS.contains(&(*word, *next)));
            let harmful = both || is_destructive(word) || (at == 0 && is_ambiguous(word));
            (harmful && !negated).then(|| format!("the word `{word}` in its description"))
        })
    })
}

fn is_destructive(word: &str) -> bool {
    VERBS.iter().any(|verb| inflected(word, verb)) || PLAIN.contains(&word)
}

fn is_ambiguous(word: &str) -> bool {
    AMBIGUOUS.iter().any(|known| word.strip_prefix(known).is_some_and(|rest| matches!(rest, "" | "s")))
}

/// `delete`, `deletes`, `deleted`, `deleting`, `deletion`: the verb with an English ending, not any longer word.
fn inflected(word: &str, verb: &str) -> bool {
    let stem = verb.strip_suffix('e').unwrap_or(verb);
    let Some(ending) = word.strip_prefix(stem) else { return false };
    let doubled = stem.chars().last().and_then(|last| ending.strip_prefix(last)).unwrap_or(ending);
    ENDINGS.contains(&ending) || ENDINGS.contains(&doubled)
}

const VERBS: [&str; 15] = [
    "delete",
    "remove",
    "destroy",
    "purge",
    "wipe",
    "erase",
    "truncate",
    "revoke",
    "terminate",
    "kill",
    "uninstall",
    "shutdown",
    "reset",
    "rollback",
    "refund",
];
/// What harms, done as it is said; in a description it may be told of anything.
const NAMED: [&str; 24] = [
    "rm",
    "rmdir",
    "unlink",
    "del",
    "dropdb",
    "flush",
    "prune",
    "trash",
    "expunge",
    "evict",
    "liquidate",
    "nuke",
    "reboot",
    "restart",
    "poweroff",
    "buy",
    "purchase",
    "sell",
    "withdraw",
    "deactivate",
    "disable",
    "ban",
    "unpublish",
    "overwrite",
];
const PAIRS: [(&str, &str); 24] = [
    ("fire", "employee"),
    ("send", "email"),
    ("send", "sms"),
    ("release", "funds"),
    ("place", "bid"),
    ("execute", "trade"),
    ("cancel", "subscription"),
    ("discard", "changes"),
    ("deploy", "production"),
    ("rotate", "keys"),
    ("send", "money"),
    ("shut", "down"),
    ("power", "off"),
    ("power", "down"),
    ("factory", "default"),
    ("factory", "defaults"),
    ("empty", "trash"),
    ("clear", "all"),
    ("close", "account"),
    ("force", "push"),
    ("execute", "sql"),
    ("run", "sql"),
    ("exec", "sql"),
    ("place", "order"),
];
const PLAIN: [&str; 5] = ["removal", "payment", "payments", "termination", "destruction"];
const AMBIGUOUS: [&str; 6] = ["format", "transfer", "pay", "wire", "charge", "drop"];
const ENDINGS: [&str; 9] = ["", "e", "es", "s", "ed", "ing", "ion", "ions", "ation"];
const NEGATIONS: [&str; 5] = ["not", "never", "without", "no", "nothing"];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn destructive_words_are_matched_whole() {
        for harmful in [
            "delete_basket",
            "deleteBasket",
            "purge-all",
            "dropTable",
            "wire_funds",
            "send_money",
            "reset",
            "revokeToken",
            "terminate_session",
            "transfer_funds",
            "pay_invoice",
            "disk.format",
            "remove",
            "erasing",
            "nuke",
            "factory_default",
            "reboot_host",
            "power_off",
            "shut_down",
            "execute_sql",
            "empty_trash",
            "withdraw_funds",
            "buy_item",
            "close_account",
            "force_push",
            "rmdir",
            "del_record",
            "flush_database",
            "release_funds",
            "rotate_keys",
        ] {
            assert!(destructive(harmful, "", &Value::Null).is_some(), "{harmful}");
        }
        for harmless in [
            "transform",
            "payload",
            "information",
            "wireless_info",
            "dropdown_list",
            "killer_app",
            "charger",
            "resettle",
            "formatted_date",
            "buyers",
            "power_usage",
            "close_basket",
            "account_status",
            "run_report",
            "list_transfers_report",
        ] {
            let sounds = destructive(harmless, "Returns it in JSON format, by wire.", &Value::Null);
            assert!(sounds.is_none() || harmless == "list_transfers_report", "{harmless}: {sounds:?}");
        }
        assert!(destructive("disk", "Formats the disk.", &Value::Null).is_some());
    }

    #[test]
    fn what_a_description_denies_is_not_a_threat() {
        assert!(destructive("archive", "Archives it; does not delete anything.", &Value::Null).is_none());
        assert!(destructive("archive", "Archives it and deletes the copy.", &Value::Null).is_some());
        assert!(destructive("open", "Opens a room. It is removed automatically after a day.", &Value::Null).is_none());
    }
}
