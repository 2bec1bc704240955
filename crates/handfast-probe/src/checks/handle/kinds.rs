//! Each kind of handle on its own: one that cannot be tested does not hide another that can.

use serde_json::Value;

use crate::{
    discovery::{Kind, names},
    trial::Trial,
    verdict::{Halt, Observation, Reason, Row},
};

/// Judges every kind of handle that was found: a row for each that halts, and the rows of those that do not.
///
/// # Errors
/// A [`Halt`] where no handle was found.
pub(in crate::checks) async fn of_each(
    trial: &mut Trial<'_, '_>,
    judge: impl AsyncFn(&mut Trial<'_, '_>, &Kind, &mut Vec<Observation>) -> Result<Vec<Row>, Halt>,
) -> Result<(Vec<Row>, Vec<Observation>), Halt> {
    let kinds = trial.session.map.kinds.clone();
    if kinds.is_empty() {
        return Err(nothing_to_test(trial));
    }
    let (mut rows, mut observations) = (trial.unlisted_rows(), Vec::new());
    for kind in &kinds {
        match judge(trial, kind, &mut observations).await {
            Ok(found) => rows.extend(found),
            Err(halt) => {
                let over = halt.is_final();
                rows.push(Row::halted(&format!("tools/call {}", kind.mint), halt));
                if over {
                    break;
                }
            }
        }
    }
    Ok((rows, observations))
}

fn nothing_to_test(trial: &Trial<'_, '_>) -> Halt {
    let surface = &trial.session.surface;
    let arguments = surface.tools.iter().flat_map(|tool| {
        tool.input.get("properties").and_then(Value::as_object).into_iter().flat_map(|properties| properties.keys())
    });
    let consumes = arguments.into_iter().any(|name| names::names_a_handle(name));
    let map = &trial.session.map;
    if let Some((tool, halt)) = &map.unclear {
        // What might have minted a handle was not answered: that nothing mints one is not known.
        return Halt { detail: format!("{tool}: {}", halt.detail), ..halt.clone() };
    }
    let left_out = map.left_out_text();
    let called = map.barren.len() + map.without_arguments.len();
    if consumes {
        let detail = format!(
            "{called} of {} tools were tried, and none hands out a value that another accepts{left_out}",
            surface.tools.len()
        );
        Halt::skipped(Reason::NoToolMintsAHandle, detail)
    } else {
        let detail = format!("none of {} tools takes an argument that names a handle{left_out}", surface.tools.len());
        Halt::skipped(Reason::NoToolConsumesAHandle, detail)
    }
}
