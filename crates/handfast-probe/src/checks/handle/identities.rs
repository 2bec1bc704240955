//! Control 0: does the server tell A and B apart at all? If it does not, possession is all that it has, and B's use of A's
//! handle says nothing. Over stdio, where the specification defines no principal, that is the usual case.

use std::collections::BTreeMap;

use super::handles::{Handles, Manner, in_order, mint, use_handle};
use crate::{
    arguments::{self, Wish},
    checks::apart,
    discovery::{self, Kind},
    disposition::Disposition,
    identity::Who,
    marker::Naming,
    trial::Trial,
    verdict::{Halt, Reason},
};

/// How the server names A and B, if it names them; `None` when it tells them apart by refusing everybody else.
///
/// # Errors
/// [`Reason::IdentitiesNotDistinguished`] when nothing shows that A and B are two callers to this server.
pub(in crate::checks) async fn told_apart(
    trial: &mut Trial<'_, '_>,
    kind: &Kind,
    handles: &Handles,
) -> Result<Option<(String, String)>, Halt> {
    let mut alike = None;
    match apart::named(trial, &handles.a.answer, &handles.b.answer) {
        Naming::Apart { at, a, b } => {
            // A name that changes with every object is none.
            let again = mint(trial, Who::A, kind).await??.answer;
            if apart::keeps(&again, &at, &a) {
                return Ok(Some((a, b)));
            }
        }
        Naming::Alike(name) => alike = Some(name),
        Naming::Silent => {}
    }
    match apart::who_am_i(trial).await? {
        Naming::Apart { a, b, .. } => return Ok(Some((a, b))),
        Naming::Alike(name) => alike = Some(name),
        Naming::Silent => {}
    }
    let harmless = in_order(trial, kind, &mut Vec::new()).into_iter().filter(|(manner, _)| *manner != Manner::Ends);
    for (_, entry) in harmless.take(ENTRIES_ASKED) {
        let Ok((a, _)) = use_handle(trial, "owner-use", Who::A, &entry, &handles.a.handle).await else { continue };
        let Ok((b, _)) = use_handle(trial, "stranger-own-use", Who::B, &entry, &handles.b.handle).await else {
            continue;
        };
        match apart::named(trial, &a, &b) {
            Naming::Apart { at, a, b } => {
                let (again, _) = use_handle(trial, "owner-use", Who::A, &entry, &handles.a.handle).await?;
                if apart::keeps(&again, &at, &a) {
                    return Ok(Some((a, b)));
                }
            }
            Naming::Alike(name) => alike = Some(name),
            Naming::Silent => {}
        }
    }
    if let Some(name) = alike {
        let detail = format!("the server names both A and B `{}`: to it they are one caller", trial.clean(&name));
        return Err(Halt::skipped(Reason::IdentitiesNotDistinguished, detail));
    }
    if refuses_others(trial, kind).await? {
        return Ok(None);
    }
    let hint = match (trial.session.target.transport(), trial.session.target.identities().given()) {
        ("stdio", _) => "over stdio there is no principal unless the server reads one from `_meta` and names it",
        (_, false) => "give two real credentials with --identity-a and --identity-b",
        (_, true) => "calls without a credential, or with one that nobody issued, are answered as well",
    };
    Err(Halt::skipped(
        Reason::IdentitiesNotDistinguished,
        format!("nothing shows that the server tells A and B apart: {hint}"),
    ))
}

/// Whether the minting call is refused to nobody and to an impostor, and the very same call does for A: then the server knows the
/// credentials that it takes, and the operator's word is that they belong to two users.
async fn refuses_others(trial: &mut Trial<'_, '_>, kind: &Kind) -> Result<bool, Halt> {
    if !trial.session.target.identities().given() {
        return Ok(false);
    }
    let Some(tool) = trial.session.surface.tool(&kind.mint).cloned() else { return Ok(false) };
    for who in [Who::Nobody, Who::Impostor] {
        let canary = trial.canary(who);
        // A's own handles: what is refused must be refused for the credential alone.
        let fixed = discovery::supply(trial, Who::A, &tool, &BTreeMap::new()).await?;
        let wish = Wish { canary: Some(&canary), fixed, optional_text: true };
        let Ok(arguments) = arguments::synthesise(&tool.input, &wish) else { return Ok(false) };
        let call = discovery::tool_call(&tool, arguments);
        let answer = trial.call("without-identity", who, &call).await?;
        if !matches!(answer.disposition, Disposition::Refused(_)) {
            return Ok(false);
        }
        let own = trial.call("with-identity", Who::A, &call).await?;
        if matches!(own.disposition, Disposition::Refused(_)) {
            return Ok(false);
        }
    }
    Ok(true)
}

const ENTRIES_ASKED: usize = 4;
