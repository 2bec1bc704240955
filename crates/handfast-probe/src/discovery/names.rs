//! Names that mean the same thing: `basketId`, `basket_id`, `basket-id`; `id` of `create_basket`; `basket_ref`.

/// A name in lower-case words: camelCase, snake_case, kebab-case and dots alike.
pub fn words(name: &str) -> Vec<String> {
    let mut words: Vec<String> = Vec::new();
    let mut before: Option<char> = None;
    let characters: Vec<char> = name.chars().collect();
    for (at, &character) in characters.iter().enumerate() {
        if !character.is_alphanumeric() {
            before = None;
            continue;
        }
        let after = characters.get(at + 1);
        let starts = match before {
            None => true,
            Some(previous) => {
                let hump = character.is_uppercase() && !previous.is_uppercase();
                // `HTTPServer`: the S starts a word, because a small letter follows.
                let acronym_ends = character.is_uppercase() && after.is_some_and(|next| next.is_lowercase());
                hump || acronym_ends
            }
        };
        if starts {
            words.push(String::new());
        }
        if let Some(word) = words.last_mut() {
            word.extend(character.to_lowercase());
        }
        before = Some(character);
    }
    words
}

/// The noun of a handle's name: `basket` of `basket_id`, nothing of `id`.
pub fn noun(name: &str) -> Vec<String> {
    let mut words = words(name);
    // `basket_a` and `basket_b`, `basket_from` and `basket_to`: which of several it is says nothing of what it is.
    while words.last().is_some_and(|word| is_suffix(word) || (words.len() > 1 && names_a_side(word))) {
        words.pop();
    }
    words
}

/// Whether a word says which of several it is.
pub fn names_a_side(word: &str) -> bool {
    SIDES.contains(&word)
}

/// Whether a name ends like that of a handle: `..._id`, `handle`, `token`, ...
pub fn names_a_handle(name: &str) -> bool {
    words(name).last().is_some_and(|word| is_suffix(word))
}

fn is_suffix(word: &str) -> bool {
    SUFFIXES.contains(&word) || word.strip_suffix('s').is_some_and(|single| SUFFIXES.contains(&single))
}

/// Whether a name is of a place in a list: `cursor`, `nextCursor`, `page_token`, `continuation`.
pub fn names_a_cursor(name: &str) -> bool {
    let words = words(name);
    let last = words.last().map(String::as_str).unwrap_or_default();
    let of_a_page = words.iter().any(|word| ["next", "page", "continuation"].contains(&word.as_str()));
    ["cursor", "continuation"].contains(&last) || (last == "token" && of_a_page)
}

/// Whether a tool of this name seems to end what it is given: a basket that was checked out is no basket any more.
pub fn names_an_end(name: &str) -> bool {
    words(name).iter().any(|word| ENDERS.contains(&word.as_str()))
}

/// Whether a name is of something that looks like a handle and is none.
pub fn names_no_handle(name: &str) -> bool {
    let words = words(name);
    let compact = words.join("_");
    let tracing =
        ["request_id", "trace_id", "span_id", "correlation_id", "jsonrpc", "message_id", "event_id", "client_id"];
    let last = words.last().map(String::as_str).unwrap_or_default();
    tracing.contains(&compact.as_str())
        || [
            "at",
            "time",
            "timestamp",
            "date",
            "url",
            "href",
            "link",
            "expires",
            "exp",
            "ttl",
            "ttlms",
            "version",
            "etag",
        ]
        .contains(&last)
        || compact.ends_with("ttl_ms")
}

/// Whether a noun stands in a text, in singular or plural.
pub fn mentions(text: &str, noun: &[String]) -> bool {
    let Some(head) = noun.last() else { return false };
    words(text).iter().any(|word| same_noun(word, head))
}

/// `basket` and `baskets`, `entry` and `entries`.
pub fn same_noun(one: &str, other: &str) -> bool {
    let singular = |word: &str| -> String {
        if let Some(stem) = word.strip_suffix("ies") {
            return format!("{stem}y");
        }
        word.strip_suffix('s').filter(|stem| stem.len() > 2 && !stem.ends_with('s')).unwrap_or(word).to_owned()
    };
    one == other || singular(one) == singular(other)
}

/// Whether a prefix such as `bsk` abbreviates a noun such as `basket`: its letters in order, the first one the same.
pub fn abbreviates(prefix: &str, noun: &str) -> bool {
    let mut letters = noun.chars();
    prefix.chars().next() == noun.chars().next()
        && prefix.len() >= 2
        && prefix.chars().all(|letter| letters.any(|candidate| candidate == letter))
}

const SIDES: [&str; 22] = [
    "a", "b", "c", "1", "2", "3", "one", "two", "first", "second", "left", "right", "from", "to", "source", "target",
    "src", "dst", "dest", "old", "new", "other",
];
const ENDERS: [&str; 22] = [
    "close",
    "end",
    "finish",
    "release",
    "complete",
    "archive",
    "submit",
    "checkout",
    "cancel",
    "stop",
    "leave",
    "finalize",
    "finalise",
    "abort",
    "expire",
    "discard",
    "void",
    "dispose",
    "terminate",
    "withdraw",
    "retire",
    "settle",
];
const SUFFIXES: [&str; 13] = [
    "id",
    "handle",
    "token",
    "ref",
    "reference",
    "key",
    "session",
    "ticket",
    "cursor",
    "uri",
    "uuid",
    "number",
    "identifier",
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cursors_are_known_by_their_names() {
        for name in ["cursor", "nextCursor", "next_cursor", "page_token", "nextPageToken", "continuation"] {
            assert!(names_a_cursor(name), "{name}");
        }
        for name in ["token", "share_token", "page", "next", "workspace_id", "cursor_style"] {
            assert!(!names_a_cursor(name), "{name}");
        }
    }

    #[test]
    fn spelling_does_not_matter() {
        for spelling in ["basket_id", "basketId", "basket-id", "BasketID", "basket.id"] {
            assert_eq!(words(spelling), ["basket", "id"], "{spelling}");
        }
        assert_eq!(words("HTTPServerId"), ["http", "server", "id"]);
        assert_eq!(noun("basket_session_id"), ["basket"]);
        assert!(noun("id").is_empty());
        for side in ["basket_a", "basketB", "basket_1", "basket_id_2", "basket_from", "source_basket_id"] {
            assert_eq!(noun(side).last().map(String::as_str), Some("basket"), "{side}");
        }
        assert_eq!(noun("to"), ["to"]);
    }

    #[test]
    fn nouns_are_matched_in_plural_and_by_abbreviation() {
        assert!(same_noun("baskets", "basket") && same_noun("entries", "entry") && !same_noun("bass", "ba"));
        assert!(abbreviates("bsk", "basket") && abbreviates("ws", "workspace") && !abbreviates("sk", "basket"));
        assert!(mentions("Created baskets today", &["basket".to_owned()]));
    }
}
