//! Design: what the specification advises to whoever gives out handles. None of it is a weakness by itself.

mod error_is_protocol_error;
mod handle_only_in_structured;
mod handle_only_in_text;
mod handle_structured;
mod no_way_to_end;
mod places;
mod retention_unstated;

use crate::{
    check::Check,
    checks::handle::{
        handles::{Minted, mint},
        kinds,
    },
    discovery::Kind,
    identity::Who,
    surface::Tool,
    target::Era,
    trial::Trial,
    verdict::{ControlPlan, Controls, Halt, Judgement, Reason, Row, Severity},
};

/// The checks of this family.
pub const CHECKS: &[&Check] = &[
    &error_is_protocol_error::CHECK,
    &handle_only_in_text::CHECK,
    &handle_only_in_structured::CHECK,
    &retention_unstated::CHECK,
    &handle_structured::CHECK,
    &no_way_to_end::CHECK,
];

/// Where the advice stands.
const ADVICE: &str = "https://modelcontextprotocol.io/specification/2026-07-28/server/tools";

/// A kind of handle to be looked at: the tool that mints it, and what A was given by it.
struct Seen<'k> {
    kind: &'k Kind,
    tool: Tool,
    minted: Minted,
}

/// What is to be said of a kind.
enum Advice {
    Followed(String),
    NotFollowed(String),
}

/// Looks at one minted handle of each kind.
async fn of_each(
    trial: &mut Trial<'_, '_>,
    look: impl Fn(&Trial<'_, '_>, &Seen<'_>) -> Result<Advice, Halt>,
) -> Result<Judgement, Halt> {
    let (rows, observations) = kinds::of_each(trial, async |trial, kind, _| {
        stateless(trial)?;
        let minted = mint(trial, Who::A, kind).await??;
        // That a handle was minted is all that has to work: what is looked at is what the server says.
        let mut plan = ControlPlan::default();
        plan.accepts(&minted.answer, |said| Halt::errored(Reason::ControlFailed, said))?;
        plan.refused_in_words("nothing was presented");
        let Some(tool) = trial.session.surface.tool(&kind.mint).cloned() else {
            return Err(Halt::errored(Reason::ControlFailed, format!("the server lists no tool `{}`", kind.mint)));
        };
        let seen = Seen { kind, tool, minted };
        let advice = look(trial, &seen)?;
        Ok(vec![row(trial, &plan.hold()?, &format!("tools/call {}", kind.mint), advice, vec![seen.minted.answer.step])])
    })
    .await?;
    Ok(Judgement::over(rows, observations))
}

fn row(trial: &Trial<'_, '_>, controls: &Controls, entry: &str, advice: Advice, story: Vec<usize>) -> Row {
    let mut row = match advice {
        Advice::Followed(text) => Row::refuted(controls, entry, Reason::AdviceFollowed, trial.clean(&text)),
        Advice::NotFollowed(text) => {
            Row::confirmed(controls, entry, Reason::AdviceNotFollowed, Severity::Info, trial.clean(&text))
        }
    };
    row.story = story;
    row
}

/// The advice is that of the stateless revision.
fn stateless(trial: &Trial<'_, '_>) -> Result<(), Halt> {
    match trial.session.target.era() {
        Era::Modern => Ok(()),
        Era::Legacy(version) => {
            let text = format!("the server speaks {version}, and the advice on handles came later");
            Err(Halt::skipped(Reason::NotStateless, text))
        }
    }
}
