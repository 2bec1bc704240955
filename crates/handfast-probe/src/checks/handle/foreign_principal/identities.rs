//! Control 0: does the server tell A and B apart at all? If it does not, possession is all that it has, and B's use of A's
//! handle says nothing. Over stdio, where the specification defines no principal, that is the usual case.

use std::collections::BTreeMap;

use serde_json::Value;

use super::handles::{Handles, Manner, in_order, mint, use_handle};
use crate::{
    arguments::{self, Wish},
    discovery::{self, Kind},
    disposition::Disposition,
    errand,
    identity::Who,
    marker::{self, Naming},
    trial::{Answer, Trial},
    verdict::{Halt, Reason},
};

/// How the server names A and B, if it names them; `None` when it tells them apart by refusing everybody else.
///
/// # Errors
/// [`Reason::IdentitiesNotDistinguished`] when nothing shows that A and B are two callers to this server.
pub(super) async fn told_apart(
    trial: &mut Trial<'_, '_>,
    kind: &Kind,
    handles: &Handles,
) -> Result<Option<(String, String)>, Halt> {
    let mut alike = None;
    match named(trial, &handles.a.answer, &handles.b.answer) {
        Naming::Apart { at, a, b } => {
            // A name that changes with every object is none.
            let again = mint(trial, Who::A, kind).await??.answer;
            if keeps(&again, &at, &a) {
                return Ok(Some((a, b)));
            }
        }
        Naming::Alike(name) => alike = Some(name),
        Naming::Silent => {}
    }
    let session = &trial.session;
    let asks = errand::who_am_i(&session.surface.tools, |tool| session.may_call(tool));
    if let Some(call) = asks {
        let a = trial.call("who-am-i", Who::A, &call).await?;
        let b = trial.call("who-am-i", Who::B, &call).await?;
        let again = trial.call("who-am-i", Who::A, &call).await?;
        match named_or_whole(trial, &a, &b) {
            Naming::Apart { at, a: name, b } if keeps(&again, &at, &name) => {
                return Ok(Some((name, b)));
            }
            Naming::Alike(name) => alike = Some(name),
            _ => {}
        }
    }
    let harmless = in_order(trial, kind, &mut Vec::new()).into_iter().filter(|(manner, _)| *manner != Manner::Ends);
    for (_, entry) in harmless.take(ENTRIES_ASKED) {
        let Ok((a, _)) = use_handle(trial, "owner-use", Who::A, &entry, &handles.a.handle).await else { continue };
        let Ok((b, _)) = use_handle(trial, "stranger-own-use", Who::B, &entry, &handles.b.handle).await else {
            continue;
        };
        match named(trial, &a, &b) {
            Naming::Apart { at, a, b } => {
                let (again, _) = use_handle(trial, "owner-use", Who::A, &entry, &handles.a.handle).await?;
                if keeps(&again, &at, &a) {
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

fn named(trial: &Trial<'_, '_>, a: &Answer, b: &Answer) -> Naming {
    let accepted = |answer: &Answer| answer.disposition == Disposition::Accepted;
    match (a.result(), b.result()) {
        (Some(for_a), Some(for_b)) if accepted(a) && accepted(b) => {
            let sent: Vec<String> = a.sent.iter().chain(&b.sent).cloned().collect();
            match marker::compare(for_a, for_b, &sent) {
                Naming::Silent => by_credential(trial, for_a, for_b),
                naming => naming,
            }
        }
        _ => Naming::Silent,
    }
}

/// A principal that a caller gives by name (over stdio, or a token that is a name) may come back anywhere in prose.
fn by_credential(trial: &Trial<'_, '_>, for_a: &Value, for_b: &Value) -> Naming {
    let identities = trial.session.target.identities();
    let (Some(a), Some(b)) = (identities.of(Who::A).credential(), identities.of(Who::B).credential()) else {
        return Naming::Silent;
    };
    let holds =
        |result: &Value, name: &str| name.len() >= SHORTEST_NAME && marker::find_name(result, name, &[]).is_some();
    if holds(for_a, a) && holds(for_b, b) && !holds(for_a, b) && !holds(for_b, a) {
        Naming::Apart { at: String::new(), a: a.to_owned(), b: b.to_owned() }
    } else {
        Naming::Silent
    }
}

/// Whether an answer gives the same name once more: at the same place, or, where no place says so, anywhere.
fn keeps(answer: &Answer, at: &str, name: &str) -> bool {
    answer.result().is_some_and(|result| match at {
        "" => marker::find_name(result, name, &[]).is_some(),
        at => marker::names_given(result).get(at).is_some_and(|given| given == name),
    })
}

/// The names in two answers; the whole answer is the name where no field says so.
fn named_or_whole(trial: &Trial<'_, '_>, a: &Answer, b: &Answer) -> Naming {
    match (named(trial, a, b), whole(a), whole(b)) {
        (Naming::Silent, Some(a), Some(b)) if a != b => Naming::Apart { at: String::new(), a, b },
        (Naming::Silent, Some(a), Some(_)) => Naming::Alike(a),
        (naming, ..) => naming,
    }
}

fn whole(answer: &Answer) -> Option<String> {
    let text = answer.result().map(marker::visible_text)?.trim().to_owned();
    let is_name = !text.is_empty() && text.len() <= 200 && !text.contains(char::is_whitespace);
    (answer.disposition == Disposition::Accepted && is_name).then_some(text)
}

/// Whether the minting call is refused to nobody and to an impostor: then the server knows the credentials that it takes, and
/// the operator's word is that they belong to two users.
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
        let answer = trial.call("without-identity", who, &discovery::tool_call(&tool, arguments)).await?;
        if !matches!(answer.disposition, Disposition::Refused(_)) {
            return Ok(false);
        }
    }
    Ok(true)
}

const SHORTEST_NAME: usize = 3;
const ENTRIES_ASKED: usize = 4;
