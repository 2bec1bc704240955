//! The object that a flow is about, as a tool shows it that only reads: what was done stands there, also where the answer to
//! the doing says nothing.

use serde_json::Value;

use super::loan::soft;
use crate::{
    checks::handle::handles::{Manner, in_order, use_handle},
    discovery::{Entry, emitted},
    disposition::Disposition,
    identity::Who,
    target::Call,
    trial::{Trial, strings_in},
    verdict::Halt,
};

/// One of A's objects, and where it is shown.
pub(super) struct View {
    entry: Entry,
    handle: Value,
}

impl View {
    /// Where the object is shown that this call of A's is about, if it is about one.
    pub(super) fn of(trial: &Trial<'_, '_>, call: &Call) -> Option<Self> {
        let sent = strings_in(&Value::Object(call.params.clone()));
        let own = trial.session.purse.iter().filter(|((letter, _), _)| *letter == Who::A.letter());
        let mut about = own.filter(|(_, handle)| sent.contains(&emitted::text_of(handle)));
        about.find_map(|((_, kind), handle)| {
            let entries = in_order(trial, trial.session.map.kinds.get(*kind)?, &mut Vec::new());
            let (_, entry) = entries.into_iter().find(|(manner, _)| *manner == Manner::Reads)?;
            Some(Self { entry, handle: handle.clone() })
        })
    }

    /// What it shows now; nothing where it shows nothing, or another thing each time.
    pub(super) async fn look(&self, trial: &mut Trial<'_, '_>) -> Result<Option<Value>, Halt> {
        let mut seen = Vec::new();
        for _ in 0..2 {
            let Some((answer, _)) = soft(use_handle(trial, "view", Who::A, &self.entry, &self.handle).await)? else {
                return Ok(None);
            };
            seen.extend(answer.result().filter(|_| answer.disposition == Disposition::Accepted).cloned());
        }
        Ok(match &seen[..] {
            [one, again] if one == again => seen.pop(),
            _ => None,
        })
    }
}
