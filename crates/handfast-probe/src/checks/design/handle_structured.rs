//! `design-handle-structured`: can something be read out of a handle?

use base64::{
    Engine,
    engine::general_purpose::{STANDARD_NO_PAD, URL_SAFE_NO_PAD},
};
use serde_json::Value;

use super::{ADVICE, Advice, Seen, of_each};
use crate::{
    check::{Check, Level, Running},
    checks, cvss,
    discovery::{emitted, names},
    identity::Who,
    marker, owasp,
    trial::Trial,
    verdict::{Halt, Severity},
};

/// The check.
pub(super) static CHECK: Check = Check {
    id: "design-handle-structured",
    title: "Handles tell what is inside",
    claim: "A handle encodes something of the server's inside: it decodes to readable text, names its owner, or is a path.",
    spec: "Handles that encode internal structure invite parsing or guessing; opaque identifiers do not.",
    spec_url: ADVICE,
    help: include_str!("handle_structured.md"),
    level: Level::Hardening,
    severity: Severity::Info,
    cwe: &[201],
    cvss: &[cvss::NOTHING],
    owasp: &[owasp::API8],
    run,
};

fn run<'r>(trial: &'r mut Trial<'_, '_>) -> Running<'r> {
    Box::pin(async move {
        let outcome = of_each(trial, look).await;
        checks::finish(trial, &CHECK, outcome).await
    })
}

fn look(trial: &Trial<'_, '_>, seen: &Seen<'_>) -> Result<Advice, Halt> {
    let handle = emitted::text_of(&seen.minted.handle);
    let given = seen.minted.answer.result().map(marker::names_given).unwrap_or_default();
    let credential = trial.session.target.identities().of(Who::A).credential().map(str::to_owned);
    let called: Vec<String> =
        given.into_values().chain(credential).filter(|name| name.len() >= SHORTEST_NAME).collect();
    Ok(match told_by(&handle, &called) {
        Some(what) => Advice::NotFollowed(format!("a handle that {} mints {what}", seen.tool.name)),
        None => Advice::Followed("nothing can be read out of the handle".to_owned()),
    })
}

/// What can be read out of a handle.
fn told_by(handle: &str, called: &[String]) -> Option<String> {
    let names_somebody = |text: &str| {
        let words = names::words(text);
        called.iter().any(|name| words.contains(&name.to_lowercase()))
    };
    if names_somebody(handle) {
        return Some("names its owner".to_owned());
    }
    if handle.trim_matches('/').matches('/').count() >= 2 || handle.contains('\\') || handle.starts_with("file:") {
        return Some("is a path".to_owned());
    }
    decoded(handle).find_map(|text| match serde_json::from_str::<Value>(&text) {
        Ok(json) if json.is_object() || json.is_array() => Some("decodes to JSON".to_owned()),
        _ if names_somebody(&text) => Some("decodes to a text that names its owner".to_owned()),
        _ if text.len() >= SHORTEST_TEXT => Some("decodes to a readable text".to_owned()),
        _ => None,
    })
}

/// What the handle, or what comes after any of its separators, decodes to, where that is readable.
fn decoded(handle: &str) -> impl Iterator<Item = String> + '_ {
    let starts = handle.char_indices().filter(|(_, c)| "-_:.~".contains(*c)).map(|(at, c)| at + c.len_utf8());
    let parts = [0].into_iter().chain(starts).flat_map(|at| {
        let rest = &handle[at..];
        let first = rest.split('.').next().unwrap_or(rest);
        [rest, first]
    });
    parts.flat_map(|part| {
        let part = part.trim_end_matches('=');
        let hex = (part.len() % 2 == 0).then(|| {
            (0..part.len())
                .step_by(2)
                .map(|at| u8::from_str_radix(part.get(at..at + 2)?, 16).ok())
                .collect::<Option<Vec<u8>>>()
        });
        let all = [URL_SAFE_NO_PAD.decode(part).ok(), STANDARD_NO_PAD.decode(part).ok(), hex.flatten()];
        all.into_iter().flatten().filter_map(|bytes| {
            let text = String::from_utf8(bytes).ok()?;
            let readable = text.bytes().all(|byte| (b' '..=b'~').contains(&byte));
            (readable && !text.is_empty()).then_some(text)
        })
    })
}

const SHORTEST_NAME: usize = 3;
/// Random bytes of this number are not readable by chance.
const SHORTEST_TEXT: usize = 12;

#[cfg(test)]
mod tests {
    use super::*;

    fn told(handle: &str) -> Option<String> {
        told_by(handle, &["alice".to_owned()])
    }

    #[test]
    fn what_can_be_read_is_told() {
        let record = URL_SAFE_NO_PAD.encode(r#"{"owner":"bob","row":17}"#);
        for handle in [
            format!("ws-{record}"),
            format!("{record}.c2lnbmF0dXJl"),
            "ws_alice_17".to_owned(),
            "projects/7/baskets/17".to_owned(),
            format!("b:{}", STANDARD_NO_PAD.encode("baskets?row=17")),
            "6261736b6574732f726f772f3137".to_owned(),
            URL_SAFE_NO_PAD.encode("alice:17"),
        ] {
            assert!(told(&handle).is_some(), "{handle}");
        }
    }

    #[test]
    fn opaque_handles_tell_nothing() {
        for handle in [
            "ws-4f9d1c7a0b2e4c6d8f1a3b5c7d9e0f12",
            "3f2b8c1e-5d4a-4b7c-9e6f-1a2b3c4d5e6f",
            "1001",
            "bsk_a1b2c3",
            "presentation_1",
            "01ARZ3NDEKTSV4RRFFQ69G5FAV",
        ] {
            assert_eq!(told(handle), None, "{handle}");
        }
    }
}
