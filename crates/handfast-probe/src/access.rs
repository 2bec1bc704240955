//! Who is served with A's handle: everybody whom the run knows, in one grid. A picture of what the checks prove one by one;
//! it judges nothing.

use serde::Serialize;

use crate::{checks::handle, identity::Who, trial::Trial, verdict::Halt};

/// One way in, and what each caller met there with A's handle.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Access {
    /// For example `tools/call read_basket#basket_id`.
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

/// Asks everybody. What cannot be asked is left out.
///
/// # Errors
/// A [`Halt`] when the run's bounds are reached or the server is gone.
pub async fn look(trial: &mut Trial<'_, '_>) -> Result<Vec<Access>, Halt> {
    let named = [Who::NewToken, Who::B, Who::OtherClient, Who::OtherTenant, Who::Anonymous];
    let identities = trial.session.target.identities();
    let known = named.into_iter().filter(|who| identities.has(*who));
    let callers: Vec<Who> = std::iter::once(Who::A).chain(known).chain([Who::Nobody]).collect();
    let mut grid = Vec::new();
    for kind in trial.session.map.kinds.clone().into_iter().take(MOST_KINDS) {
        grid.extend(handle::who_is_served(trial, &kind, &callers).await?);
    }
    Ok(grid)
}

const MOST_KINDS: usize = 10;
