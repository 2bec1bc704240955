//! What a token says of itself, where it is a JSON Web Token. Nobody verifies it here: it is only asked whether a token is what
//! the profile says that it is.

use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};
use serde_json::{Map, Value};

use crate::{identity::Who, trial::Trial};

/// The claims of a caller's credential, where it is a JSON Web Token.
pub(super) fn claims(trial: &Trial<'_, '_>, who: Who) -> Option<Map<String, Value>> {
    let credential = trial.session.target.identities().of(who).credential()?;
    let part = credential.split('.').nth(1)?;
    let bytes = URL_SAFE_NO_PAD.decode(part.trim_end_matches('=')).ok()?;
    serde_json::from_slice(&bytes).ok()
}

/// For how many seconds this caller's credential has been over, by its own word; `None` where it says nothing.
pub(super) fn seconds_since_expiry(trial: &Trial<'_, '_>, who: Who) -> Option<i64> {
    let ends = claims(trial, who)?.get("exp")?.as_f64()?;
    let now = i64::try_from(crate::clock::unix_seconds()).unwrap_or(i64::MAX);
    #[expect(clippy::cast_possible_truncation, reason = "a conversion of floats saturates")]
    Some(now.saturating_sub(ends as i64))
}

/// Whether this caller's credential says of itself that its time is over; `None` where it says nothing.
pub(super) fn says_expired(trial: &Trial<'_, '_>, who: Who) -> Option<bool> {
    seconds_since_expiry(trial, who).map(|over| over >= 0)
}

/// The audiences that a caller's credential says of itself.
pub(super) fn audiences(trial: &Trial<'_, '_>, who: Who) -> Option<Vec<String>> {
    match claims(trial, who)?.get("aud")? {
        Value::String(one) => Some(vec![one.clone()]),
        Value::Array(all) => Some(all.iter().filter_map(Value::as_str).map(str::to_owned).collect()),
        _ => None,
    }
}
