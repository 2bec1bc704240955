//! Where in a result a minted handle stands.

use handfast_wire::pointer;
use serde_json::Value;

use crate::{
    checks::handle::handles::Minted,
    discovery::emitted,
    verdict::{Halt, Reason},
};

/// Where it stands.
pub(super) struct Places {
    pub(super) in_text: bool,
    pub(super) in_structured: bool,
}

/// Looks for the handle in the text blocks and links, and in the structured content.
///
/// # Errors
/// Where it stands in neither: a profile may say so.
pub(super) fn places(minted: &Minted) -> Result<Places, Halt> {
    let handle = emitted::text_of(&minted.handle);
    let result = minted.answer.result().cloned().unwrap_or_default();
    let shows = |at: &str| result.get(at).is_some_and(|part| holds(part, &handle));
    let places = Places { in_text: shows("content"), in_structured: shows("structuredContent") };
    match (places.in_text, places.in_structured) {
        (false, false) => {
            let text = "the handle stands neither in the text nor in the structured content";
            Err(Halt::skipped(Reason::HandleWitnessUnusable, text))
        }
        _ => Ok(places),
    }
}

fn holds(part: &Value, handle: &str) -> bool {
    let scalars = pointer::scalars(part, MOST_SCALARS);
    scalars.into_iter().any(|(_, value)| match value {
        Value::String(text) => holds_word(text, handle),
        Value::Number(number) => number.to_string() == handle,
        _ => false,
    })
}

/// As a word of its own: `17` does not stand in `2017`.
fn holds_word(text: &str, handle: &str) -> bool {
    let boundary = |c: Option<char>| c.is_none_or(|c| !c.is_alphanumeric());
    let mut found = text.match_indices(handle);
    found.any(|(at, _)| boundary(text[..at].chars().next_back()) && boundary(text[at + handle.len()..].chars().next()))
}

const MOST_SCALARS: usize = 4000;
