//! Who is served with what is A's, a handle, a session, a task: everybody whom the run knows, in one grid. A picture of what the checks prove one by one;
//! it judges nothing.

use serde::Serialize;

use crate::{
    checks::{handle, session, task},
    identity::Who,
    trial::Trial,
    verdict::Halt,
};

/// One way in, and what each caller met there with what is A's.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Access {
    /// For example `tools/call read_basket#basket_id`, `POST under the id of a session`, or `tasks/get of export_basket`.
    pub entry: String,
    /// Each caller, A first.
    pub callers: Vec<Met>,
}

/// What one caller met.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Met {
    /// As reports name the caller.
    pub who: &'static str,
    /// `served` with what A planted, `accepted` without it, `refused`, `unclear`, or `not live`: this caller can mint none of
    /// its own either, and a refusal would say nothing.
    pub outcome: &'static str,
}

/// Asks everybody about what the checks of these families are about. What cannot be asked is left out.
///
/// # Errors
/// A [`Halt`] when the run's bounds are reached or the server is gone.
pub async fn look(trial: &mut Trial<'_, '_>, tries: impl Fn(&str) -> bool) -> Result<Vec<Access>, Halt> {
    let named = [Who::NewToken, Who::B, Who::OtherClient, Who::OtherTenant, Who::Anonymous];
    let identities = trial.session.target.identities();
    let known = named.into_iter().filter(|who| identities.has(*who));
    let callers: Vec<Who> = std::iter::once(Who::A).chain(known).chain([Who::Nobody]).collect();
    let mut grid = Vec::new();
    let kinds = trial.session.map.kinds.clone();
    for kind in kinds.into_iter().take(MOST_KINDS).filter(|_| tries("handle-")) {
        grid.extend(handle::who_is_served(trial, &kind, &callers).await?);
    }
    if tries("task-") {
        grid.extend(task::who_is_served(trial, &callers).await?);
    }
    if tries("session-") {
        grid.extend(session::who_is_served(trial, &callers).await?);
    }
    Ok(grid)
}

/// Whether a refusal of this caller tells nothing unless they can have something of their own.
pub(crate) fn must_be_live(who: Who) -> bool {
    ![Who::A, Who::Nobody, Who::Anonymous].contains(&who)
}

const MOST_KINDS: usize = 10;
