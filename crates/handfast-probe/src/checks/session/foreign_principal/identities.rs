//! Control 0: does the server tell A and B apart at all? If it does not, B's use of A's session says nothing.

use std::collections::BTreeMap;

use crate::{
    disposition::Disposition,
    errand::Errand,
    identity::Who,
    marker,
    target::Call,
    trial::{Answer, Trial},
    verdict::{Halt, Reason},
};

use super::scene;

/// How the server names A and B.
pub(super) struct Names {
    a: String,
    b: String,
}

impl Names {
    pub(super) fn is_a(&self, answer: &Answer) -> bool {
        names(answer, &self.a) && !(self.b.contains(&self.a) && names(answer, &self.b))
    }

    /// A name that stands in the other's, as `test` in `test-2`, is not read out of it.
    pub(super) fn is_b(&self, answer: &Answer) -> bool {
        names(answer, &self.b) && !(self.a.contains(&self.b) && names(answer, &self.a))
    }
}

fn names(answer: &Answer, name: &str) -> bool {
    let accepted = answer.disposition == Disposition::Accepted;
    accepted && answer.result().is_some_and(|result| marker::find_name(result, name, &answer.sent).is_some())
}

/// How the server names A and B in sessions of their own; `None` where it tells them apart by refusing everybody else.
///
/// # Errors
/// [`Reason::IdentitiesNotDistinguished`] when nothing shows that A and B are two callers to this server.
pub(super) async fn told_apart(trial: &mut Trial<'_, '_>, errand: &Errand) -> Result<Option<Names>, Halt> {
    let mut alike = None;
    if let Some(call) = &errand.who_am_i {
        let a = names_of(trial, Who::A, errand, call).await?;
        let b = names_of(trial, Who::B, errand, call).await?;
        let again = names_of(trial, Who::A, errand, call).await?;
        // One place of several may be the same for both, such as the account that they belong to.
        let apart = a.iter().find_map(|(at, a)| {
            let b = b.get(at).filter(|b| *b != a && again.get(at) == Some(a))?;
            Some(Names { a: a.clone(), b: b.clone() })
        });
        if apart.is_some() {
            return Ok(apart);
        }
        alike = a.into_iter().find(|(at, a)| b.get(at) == Some(a)).map(|(_, a)| a);
    }
    trial.session.target.end_visits().await;
    if let Some(name) = alike {
        let detail = format!("the server names both A and B `{}`: to it they are one caller", trial.clean(&name));
        return Err(Halt::skipped(Reason::IdentitiesNotDistinguished, detail));
    }
    if trial.session.target.identities().given() && refuses_others(trial).await? {
        return Ok(None);
    }
    let hint = match trial.session.target.identities().given() {
        false => "give two real credentials with --identity-a and --identity-b",
        true => "sessions are opened without a credential, or with one that nobody issued, as well",
    };
    let detail = format!("nothing shows that the server tells A and B apart: {hint}");
    Err(Halt::skipped(Reason::IdentitiesNotDistinguished, detail))
}

/// Whom the server takes a caller for, in a session of that caller's own: names, by their place.
async fn names_of(
    trial: &mut Trial<'_, '_>,
    who: Who,
    errand: &Errand,
    call: &Call,
) -> Result<BTreeMap<String, String>, Halt> {
    let own = scene::live(trial, who, errand).await?;
    let answer = scene::post(trial, "who-am-i", who, Some(&own.id), call).await?;
    let Some(result) = answer.result().filter(|_| answer.disposition == Disposition::Accepted) else {
        return Ok(BTreeMap::new());
    };
    let mut names = marker::names_given(result);
    let whole = marker::visible_text(result).trim().to_owned();
    if names.is_empty() && !whole.is_empty() && whole.len() <= 200 && !whole.contains(char::is_whitespace) {
        names.insert("the whole answer".to_owned(), whole);
    }
    // Shorter ones stand in any text.
    names.retain(|_, name| name.chars().count() >= SHORTEST_NAME);
    Ok(names)
}

/// Whether no session is opened for nobody and for an impostor: then the server knows the credentials that it takes, and
/// the operator's word is that they belong to two users.
async fn refuses_others(trial: &mut Trial<'_, '_>) -> Result<bool, Halt> {
    for who in [Who::Nobody, Who::Impostor] {
        let opening = trial.session.target.opening();
        let answer = scene::post(trial, "without-identity", who, None, &opening).await?;
        if !matches!(answer.disposition, Disposition::Refused(_)) {
            return Ok(false);
        }
    }
    Ok(true)
}

const SHORTEST_NAME: usize = 3;
