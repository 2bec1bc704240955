//! What a run has tested: every property, on every surface that it may stand on. Never to be confused: could not be tested,
//! does not apply, and is safe.

use std::collections::BTreeSet;

use serde::Serialize;

use crate::{
    report::{CheckReport, HandshakeReport, is_absence},
    verdict::Verdict,
};

/// Where a property may stand.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Surface {
    /// `tools/call`.
    Tools,
    /// `prompts/get`.
    Prompts,
    /// `resources/read`.
    Resources,
    /// The requests themselves: sessions, tokens, headers, lists.
    Requests,
}

/// Whether a property was tested there.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum State {
    /// Confirmed or refuted.
    Tested,
    /// The server has nothing of the kind.
    NotApplicable,
    /// There may be something, and it was not tested: it could not be, or what it takes was not given.
    NotTested,
}

/// One property on one surface.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Cell {
    /// The check.
    pub check: &'static str,
    /// Where.
    pub surface: Surface,
    /// Whether.
    pub state: State,
    /// The reasons, as slugs, where it was not tested everywhere.
    pub why: Vec<&'static str>,
}

/// Every property on every surface.
pub fn of(checks: &[CheckReport], handshake: Option<&HandshakeReport>) -> Vec<Cell> {
    checks
        .iter()
        .flat_map(|check| surfaces(check, handshake).into_iter().map(|surface| cell(check, surface, handshake)))
        .collect()
}

/// The surfaces on which a check has a row; those of its family where it has none.
fn surfaces(check: &CheckReport, handshake: Option<&HandshakeReport>) -> BTreeSet<Surface> {
    let seen: BTreeSet<Surface> = check.evidence.entry_points.iter().map(|point| surface(&point.row.entry)).collect();
    let on_requests =
        ["session-", "token-", "challenge-", "task-", "cursor-"].iter().any(|start| check.id.starts_with(start));
    if on_requests {
        return BTreeSet::from([Surface::Requests]);
    }
    let listed = handshake.map(|handshake| (handshake.prompts > 0, handshake.resources > 0)).unwrap_or_default();
    let mut all = BTreeSet::from([Surface::Tools]);
    if check.id.starts_with("handle-") || check.id.starts_with("state-") {
        all.extend(listed.0.then_some(Surface::Prompts));
        all.extend(listed.1.then_some(Surface::Resources));
    }
    all.extend(seen);
    all
}

fn surface(entry: &str) -> Surface {
    let known =
        [("tools/call", Surface::Tools), ("prompts/get", Surface::Prompts), ("resources/read", Surface::Resources)];
    known.into_iter().find(|(method, _)| entry.starts_with(method)).map_or(Surface::Requests, |(_, surface)| surface)
}

fn cell(check: &CheckReport, at: Surface, handshake: Option<&HandshakeReport>) -> Cell {
    let rows = || {
        check.evidence.entry_points.iter().filter(|point| surface(&point.row.entry) == at || at == Surface::Requests)
    };
    let is_tested = |verdict| matches!(verdict, Verdict::Confirmed | Verdict::Refuted);
    let idle = rows().filter(|point| !is_tested(point.row.verdict));
    let mut why: BTreeSet<&str> = idle.map(|point| point.row.reason.slug()).collect();
    let state = match (rows().count(), is_tested(check.verdict)) {
        _ if rows().any(|point| is_tested(point.row.verdict)) => State::Tested,
        // Nothing of the kind stands here, and elsewhere there is.
        (0, true) => State::NotApplicable,
        (0, false) => {
            why.insert(check.reason.slug());
            if is_absence(check.verdict, check.reason, handshake) { State::NotApplicable } else { State::NotTested }
        }
        _ if rows().all(|point| is_absence(point.row.verdict, point.row.reason, handshake)) => State::NotApplicable,
        _ => State::NotTested,
    };
    Cell { check: check.id, surface: at, state, why: why.into_iter().collect() }
}
