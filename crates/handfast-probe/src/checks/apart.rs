//! Whether a server tells A and B apart: by what it calls them.

use serde_json::Value;

use crate::{
    disposition::Disposition,
    errand,
    identity::Who,
    marker::{self, Naming},
    target::Call,
    trial::{Answer, Trial},
    verdict::{Halt, Reason},
};

/// How a tool that tells its caller who it is names A and B; silent where there is none, or where it does not keep to it.
pub(super) async fn who_am_i(trial: &mut Trial<'_, '_>) -> Result<Naming, Halt> {
    let session = &trial.session;
    let Some(call) = errand::who_am_i(&session.surface.tools, |tool| session.may_call(tool)) else {
        return Ok(Naming::Silent);
    };
    let a = trial.call("who-am-i", Who::A, &call).await?;
    let b = trial.call("who-am-i", Who::B, &call).await?;
    let again = trial.call("who-am-i", Who::A, &call).await?;
    Ok(match named_or_whole(trial, &a, &b) {
        Naming::Apart { at, a: name, .. } if !keeps(&again, &at, &name) => Naming::Silent,
        naming => naming,
    })
}

/// Whether anything shows that the server tells A and B apart: by what it calls them, here or where it is asked who they are,
/// or by refusing this call to callers that nobody knows.
///
/// # Errors
/// [`Reason::IdentitiesNotDistinguished`] where nothing does.
pub(super) async fn are_two(trial: &mut Trial<'_, '_>, call: &Call, answers: [&Answer; 2]) -> Result<(), Halt> {
    let [a, b] = answers;
    let mut alike = None;
    for naming in [named(trial, a, b), who_am_i(trial).await?] {
        match naming {
            Naming::Apart { .. } => return Ok(()),
            Naming::Alike(name) => alike = Some(name),
            Naming::Silent => {}
        }
    }
    if let Some(name) = alike {
        let detail = format!("the server names both A and B `{}`: to it they are one caller", trial.clean(&name));
        return Err(Halt::skipped(Reason::IdentitiesNotDistinguished, detail));
    }
    if trial.session.target.identities().given() {
        let mut refused = true;
        for who in [Who::Nobody, Who::Impostor] {
            let answer = trial.call("without-identity", who, call).await?;
            refused &= matches!(answer.disposition, Disposition::Refused(_));
        }
        if refused {
            return Ok(());
        }
    }
    let detail =
        "nothing shows that the server tells A and B apart: it names neither, and answers callers that nobody knows";
    Err(Halt::skipped(Reason::IdentitiesNotDistinguished, detail))
}

/// How two answers, one to A and one to B, name their callers.
pub(super) fn named(trial: &Trial<'_, '_>, a: &Answer, b: &Answer) -> Naming {
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
pub(super) fn keeps(answer: &Answer, at: &str, name: &str) -> bool {
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

const SHORTEST_NAME: usize = 3;
