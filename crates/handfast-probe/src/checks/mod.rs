//! The catalogue.

pub mod ambient;
mod apart;
pub mod approval;
pub mod cursor;
pub mod design;
pub mod handle;
pub mod response;
pub mod session;
pub mod state;
pub mod task;
pub mod token;

use crate::{
    check::Check,
    trial::Trial,
    verdict::{Halt, Judgement},
};

/// Every check, family by family.
pub fn all() -> impl Iterator<Item = &'static Check> {
    let families = [
        handle::CHECKS,
        state::CHECKS,
        approval::CHECKS,
        task::CHECKS,
        cursor::CHECKS,
        session::CHECKS,
        token::CHECKS,
        ambient::CHECKS,
        response::CHECKS,
        design::CHECKS,
    ];
    families.into_iter().flatten().copied()
}

/// The check with this id.
pub fn find(id: &str) -> Option<&'static Check> {
    all().find(|check| check.id == id)
}

/// The judgement with its evidence, and every session ended.
async fn finish(trial: &mut Trial<'_, '_>, check: &'static Check, outcome: Result<Judgement, Halt>) -> Judgement {
    let mut judgement = outcome.unwrap_or_else(Judgement::halted);
    trial.session.target.end_visits().await;
    judgement.cwe = check.cwe.to_vec();
    judgement.steps = trial.finish();
    judgement
}
