//! What a state is bound to, as bytes that stand inside the envelope: whom it was made for, at which server, for which
//! request.

use super::{StateDenial, request::RequestDigest};
use crate::caller::{Audience, Caller};

/// What stands before a part that is not there, instead of its length.
const ABSENT: u32 = u32::MAX;

/// Writes the binding of this caller and this request at this server.
pub(super) fn write(out: &mut Vec<u8>, audience: &Audience, caller: &Caller, request: &RequestDigest<'_>) {
    for (part, _) in parts(audience, caller, request) {
        match part {
            Some(part) => {
                // No part is longer than `u32`: they are identifiers and a name of a request that was read.
                out.extend_from_slice(&u32::try_from(part.len()).unwrap_or(ABSENT - 1).to_be_bytes());
                out.extend_from_slice(part);
            }
            None => out.extend_from_slice(&ABSENT.to_be_bytes()),
        }
    }
}

/// Whether the state that has this binding is for them, and if not, what the first difference is.
pub(super) fn check(
    sealed: &[u8],
    audience: &Audience,
    caller: &Caller,
    request: &RequestDigest<'_>,
) -> Result<(), StateDenial> {
    let mut rest = sealed;
    for (part, denial) in parts(audience, caller, request) {
        if take(&mut rest) != Some(part) {
            return Err(denial);
        }
    }
    if rest.is_empty() { Ok(()) } else { Err(StateDenial::Forged) }
}

/// The parts, in order, each with what it means when it differs.
fn parts<'p>(
    audience: &'p Audience,
    caller: &'p Caller,
    request: &'p RequestDigest<'_>,
) -> [(Option<&'p [u8]>, StateDenial); 8] {
    let principal = caller.principal();
    [
        (Some(audience.as_str().as_bytes()), StateDenial::ForeignAudience),
        (principal.map(|principal| principal.issuer().as_str().as_bytes()), StateDenial::ForeignPrincipal),
        (principal.map(|principal| principal.subject().expose().as_bytes()), StateDenial::ForeignPrincipal),
        (caller.tenant().map(|tenant| tenant.as_str().as_bytes()), StateDenial::ForeignTenant),
        (caller.client().map(|client| client.as_str().as_bytes()), StateDenial::ForeignClient),
        (Some(request.method.name().as_bytes()), StateDenial::OtherRequest),
        (Some(request.name.as_bytes()), StateDenial::OtherRequest),
        (Some(&request.arguments), StateDenial::OtherArguments),
    ]
}

/// The next part of a binding; `None` where there is none.
#[expect(clippy::option_option, reason = "a part may be absent, and it may not be there at all")]
fn take<'s>(rest: &mut &'s [u8]) -> Option<Option<&'s [u8]>> {
    let (length, after) = rest.split_first_chunk::<4>()?;
    let length = u32::from_be_bytes(*length);
    if length == ABSENT {
        *rest = after;
        return Some(None);
    }
    let (part, after) = after.split_at_checked(usize::try_from(length).ok()?)?;
    *rest = after;
    Some(Some(part))
}
