//! How an object comes to its end: by a tool that ends it, or by its time.

use std::time::Duration;

use serde_json::Value;

use super::handles::{Minted, use_handle};
use crate::{
    clock,
    discovery::{Entry, Kind, names},
    disposition::Disposition,
    identity::Who,
    lifetime, likeness,
    surface::Tool,
    trial::{Answer, Trial},
    verdict::{Halt, Reason},
};

/// The entry point of a tool after which a handle is worth nothing, by its name and by what it says of itself.
///
/// # Errors
/// [`Reason::NoToolEndsAHandle`] where there is none, or none that may be called.
pub(in crate::checks) fn tool_that_ends(trial: &Trial<'_, '_>, kind: &Kind) -> Result<Entry, Halt> {
    let mut left_out = Vec::new();
    for entry in &kind.entries {
        let Entry::Tool { tool, argument } = entry else { continue };
        // What the handle names, by the argument that takes it and by the tool that makes it.
        let named: Vec<String> = names::noun(argument).into_iter().chain(names::words(&kind.mint)).collect();
        let ends = |tool: &&Tool| ends_its_object(tool, &named);
        let Some(tool) = trial.session.surface.tool(tool).filter(ends) else { continue };
        match trial.session.why_not(tool) {
            None => return Ok(entry.clone()),
            Some(why) => left_out.push(format!("{}: {why}", tool.name)),
        }
    }
    let detail = match left_out.is_empty() {
        true => "no tool says that it ends what the handle names".to_owned(),
        false => format!("what would end it was left out: {}", left_out.join(", ")),
    };
    Err(Halt::skipped(Reason::NoToolEndsAHandle, detail))
}

/// An archived workspace, a submitted form and a closed ticket can still be read, and should. What ends is what says that it
/// does, and what is by its nature over when it is closed.
fn ends_its_object(tool: &Tool, named: &[String]) -> bool {
    let words = names::words(&tool.name);
    let is_verb = |word: &&String| VERBS.contains(&word.as_str()) || DESTROYING.contains(&word.as_str());
    let Some(verb) = words.iter().find(is_verb) else { return false };
    // To remove an item from a basket, or to close a tab of a session, ends neither.
    let mut others = words.iter().filter(|word| *word != verb);
    if !others.all(|word| named.iter().any(|known| names::same_noun(word, known))) {
        return false;
    }
    let described = names::words(&tool.description);
    let says = |known: &[&str]| described.iter().any(|word| known.contains(&word.as_str()));
    let fleeting = words.iter().any(|word| FLEETING.contains(&word.as_str()));
    let sure = DESTROYING.contains(&verb.as_str()) || fleeting || says(&WORTHLESS);
    sure && !says(&STAYING)
}

/// A ends an object of its own.
///
/// # Errors
/// [`Reason::ControlFailed`] where it is not to be ended.
pub(in crate::checks) async fn end(trial: &mut Trial<'_, '_>, ender: &Entry, object: &Minted) -> Result<Answer, Halt> {
    let (answer, _) = use_handle(trial, "end", Who::A, ender, &object.handle).await?;
    if let Some(halt) = answer.unclear() {
        return Err(halt);
    }
    let declined = answer.result().is_some_and(|result| likeness::says_no(result, &Value::Null));
    if answer.disposition != Disposition::Accepted || declined {
        let detail = format!("A could not end its own object by {ender}: {}", answer.said());
        return Err(Halt::skipped(Reason::ControlFailed, detail));
    }
    Ok(answer)
}

/// How long a handle of this kind lives, by the description of the tool that mints it, or by what stands beside the handle.
pub(in crate::checks) fn lifetime_of(trial: &Trial<'_, '_>, kind: &Kind, minted: Option<&Answer>) -> Option<Duration> {
    let tool = trial.session.surface.tool(&kind.mint)?;
    let result = minted.and_then(Answer::result);
    lifetime::in_text(&tool.description).or_else(|| lifetime::in_result(result?, &kind.spot, clock::unix_seconds()))
}

/// How long to wait for the end of a lifetime, where that is allowed.
///
/// # Errors
/// [`Reason::NeedsWait`] where it is not.
pub(in crate::checks) fn wait_for(trial: &Trial<'_, '_>, lifetime: Duration) -> Result<Duration, Halt> {
    // A server may count in whole seconds, or look from time to time.
    let wait = lifetime + lifetime / 10 + MARGIN;
    if lifetime <= ALWAYS || wait <= trial.session.max_wait {
        return Ok(wait);
    }
    let detail = format!(
        "by its own words a handle lives for {} s, and the probe waits for {} s at most ({} lets it)",
        lifetime.as_secs(),
        trial.session.max_wait.max(ALWAYS).as_secs(),
        trial.session.option_to_wait(wait)
    );
    Err(Halt::skipped(Reason::NeedsWait, detail))
}

/// What is waited for whatever the operator says.
const ALWAYS: Duration = Duration::from_secs(2);
const MARGIN: Duration = Duration::from_millis(250);
const VERBS: [&str; 8] = ["close", "end", "release", "finish", "dispose", "terminate", "stop", "disconnect"];
const DESTROYING: [&str; 7] = ["delete", "destroy", "remove", "discard", "invalidate", "revoke", "expire"];
/// What is over when it is closed.
const FLEETING: [&str; 18] = [
    "session",
    "connection",
    "transaction",
    "browser",
    "page",
    "tab",
    "sandbox",
    "lease",
    "lock",
    "cursor",
    "terminal",
    "shell",
    "process",
    "stream",
    "channel",
    "handle",
    "context",
    "reservation",
];
/// How a tool says that a handle is worth nothing afterwards.
const WORTHLESS: [&str; 16] = [
    "worth",
    "worthless",
    "longer",
    "invalid",
    "invalidates",
    "invalidated",
    "unusable",
    "releases",
    "frees",
    "discards",
    "discarded",
    "destroys",
    "deletes",
    "deleted",
    "gone",
    "revokes",
];
/// How a tool says that something is still there afterwards.
const STAYING: [&str; 12] = [
    "stays", "remains", "remain", "kept", "keeps", "reopen", "reopened", "restore", "restored", "archive", "archives",
    "undo",
];

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;

    fn tool(name: &str, description: &str) -> Tool {
        Tool {
            name: name.to_owned(),
            description: description.to_owned(),
            input: Value::Null,
            output: Value::Null,
            read_only: false,
            destructive: None,
        }
    }

    #[test]
    fn what_ends_is_what_says_so_or_is_fleeting() {
        for (name, description) in [
            ("close_workspace", "Closes a workspace. Its handle is worth nothing from then on."),
            ("close_session", "Closes a session."),
            ("browser_close", "Closes the browser."),
            ("release_lock", "Releases a lock"),
            ("delete_basket", "Deletes a basket."),
            ("finish_upload", "Finishes the upload; the id is no longer valid."),
        ] {
            let named = names::words("open_workspace_session_browser_lock_baskets_upload");
            assert!(ends_its_object(&tool(name, description), &named), "{name}");
        }
    }

    #[test]
    fn what_can_still_be_read_has_not_ended() {
        for (name, description) in [
            ("archive_workspace", "Counts the items of a workspace into the archive. The workspace stays as it is."),
            ("close_ticket", "Closes a ticket."),
            ("close_issue", "Closes an issue. It can be reopened."),
            ("delete_note", "Moves a note to the trash, from where it can be restored."),
            ("submit_order", "Submits an order."),
            ("checkout", "Pays for a basket, which is gone afterwards."),
            ("end_of_day_report", "Makes a report."),
            ("remove_item", "Deletes an item of a basket."),
            ("close_tab", "Closes a tab of a session."),
        ] {
            let named = names::words("open_workspace_ticket_issue_note_order_basket_session");
            assert!(!ends_its_object(&tool(name, description), &named), "{name}");
        }
    }
}
