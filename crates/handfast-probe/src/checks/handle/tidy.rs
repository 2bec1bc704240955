//! A run leaves as little behind as it can: what it minted it ends, where the server has a tool for that which may be called.

use super::{endings, handles::use_handle};
use crate::{disposition::Disposition, trial::Trial};

/// Ends what the run minted, each by whoever minted it. Says what is left, or nothing where nothing was minted.
pub async fn tidy(trial: &mut Trial<'_, '_>) -> Option<String> {
    let minted = std::mem::take(&mut trial.session.minted);
    let kinds = trial.session.map.kinds.clone();
    let enders: Vec<_> = kinds.iter().map(|kind| endings::tool_that_ends(trial, kind)).collect();
    let (mut ended, mut refused, mut left) = (0_usize, 0_usize, 0_usize);
    for (who, kind, handle) in minted {
        let Some(Ok(ender)) = enders.get(kind) else {
            left += 1;
            continue;
        };
        match use_handle(trial, "tidy", who, ender, &handle).await {
            Ok((answer, _)) if answer.disposition == Disposition::Accepted => ended += 1,
            // It may have ended before, or its minter may be gone.
            Ok(_) => refused += 1,
            Err(halt) if halt.is_final() => {
                return Some(format!("what the run minted could not be ended: {}", halt.detail));
            }
            Err(_) => refused += 1,
        }
    }
    let mut parts = Vec::new();
    if ended + refused > 0 {
        parts.push(format!("{ended} ended, {refused} no longer there"));
    }
    if left > 0 {
        let why =
            enders.iter().find_map(|ender| ender.as_ref().err()).map(|halt| halt.detail.clone()).unwrap_or_default();
        parts.push(format!("{left} left behind ({why})"));
    }
    (!parts.is_empty()).then(|| format!("of what the run minted: {}", parts.join("; ")))
}
