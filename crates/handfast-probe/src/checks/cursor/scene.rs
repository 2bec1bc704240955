//! Lists that come in pages: those of the protocol, and those of tools that take a cursor and give one. What stands on a page
//! is told by its values, the cursors in it left out.

use std::collections::{BTreeMap, BTreeSet};

use handfast_wire::{message::Object, pointer};
use serde_json::Value;

use crate::{
    arguments::{self, Wish},
    canary::Canary,
    discovery::{self, names},
    disposition::Disposition,
    forge,
    identity::Who,
    surface::Tool,
    target::Call,
    trial::{Answer, Trial},
    verdict::{ControlPlan, Halt, Reason},
};

/// A list that may come in pages.
#[derive(Debug, Clone)]
pub(super) enum List {
    /// `tools/list` and its like.
    Protocol(&'static str),
    /// A tool, and the argument that takes the cursor.
    Tool(Box<Tool>, String),
}

/// One page.
#[derive(Debug, Clone)]
pub(super) struct Page {
    pub(super) answer: Answer,
    /// Its values, but for the cursor.
    pub(super) holds: BTreeSet<String>,
    /// Where it goes on.
    pub(super) next: Option<String>,
}

/// The first two pages of somebody's list, and the cursor between them.
pub(super) struct Pages {
    pub(super) first: Page,
    pub(super) cursor: String,
    pub(super) second: Page,
    /// What was planted into what is listed.
    pub(super) canaries: Vec<Canary>,
}

/// What a cursor came to that was not given for this.
pub(super) enum Came {
    Refused(String),
    /// The first page, as if there had been no cursor.
    Ignored,
    /// A page that is neither the first nor the one that the honest cursor brings.
    Other(Page),
    /// The page that the honest cursor brings.
    Same(Page),
}

impl List {
    pub(super) fn entry(&self) -> String {
        match self {
            Self::Protocol(method) => (*method).to_owned(),
            Self::Tool(tool, argument) => format!("tools/call {}#{argument}", tool.name),
        }
    }

    /// Whether what is listed belongs to somebody.
    pub(super) fn is_of_the_caller(&self) -> bool {
        matches!(self, Self::Tool(..))
    }

    /// A page as somebody. The other arguments are the same each time, so that pages differ by the cursor alone.
    pub(super) async fn page(
        &self,
        trial: &mut Trial<'_, '_>,
        step: &str,
        who: Who,
        cursor: Option<&str>,
    ) -> Result<Answer, Halt> {
        let call = match self {
            Self::Protocol(method) => {
                let mut params = Object::new();
                params.extend(cursor.map(|cursor| ("cursor".to_owned(), cursor.into())));
                Call::new(method, params)
            }
            Self::Tool(tool, argument) => {
                let given = cursor.map(|cursor| (argument.clone(), Value::from(cursor)));
                let fixed = discovery::supply(trial, who, tool, &given.into_iter().collect::<BTreeMap<_, _>>()).await?;
                let wish = Wish { canary: None, fixed: fixed.clone(), optional_text: false };
                let mut arguments = arguments::synthesise(&tool.input, &wish).unwrap_or_default();
                match cursor {
                    Some(_) => arguments.extend(fixed.into_iter().filter(|(name, _)| name == argument)),
                    None => drop(arguments.shift_remove(argument)),
                }
                discovery::tool_call(tool, arguments)
            }
        };
        trial.call(step, who, &call).await
    }

    /// The first two pages of somebody's list. Where it is too short for two, more is made first.
    pub(super) async fn pages(&self, trial: &mut Trial<'_, '_>, who: Who) -> Result<Pages, Halt> {
        let mut canaries = Vec::new();
        for _ in 0..=MOST_MADE {
            let first = read(self.page(trial, "first-page", who, None).await?)?;
            let Some(cursor) = first.next.clone() else {
                match self.is_of_the_caller() {
                    true => canaries.extend(make(trial, who).await?),
                    false => break,
                }
                continue;
            };
            trial.session.redactor.shorten(&cursor);
            let second = read(self.page(trial, "second-page", who, Some(&cursor)).await?)?;
            let again = read(self.page(trial, "second-page", who, Some(&cursor)).await?)?;
            if second.holds != again.holds || second.holds == first.holds {
                let detail =
                    "the pages are not the same twice, or the second is the first: nothing shows what a cursor does";
                return Err(Halt::skipped(Reason::CursorWitnessUnusable, detail));
            }
            return Ok(Pages { first, cursor, second, canaries });
        }
        Err(Halt::skipped(Reason::NoCursorGiven, format!("{}'s list has only one page", who.label())))
    }
}

/// Every list that might come in pages.
///
/// # Errors
/// [`Reason::NoCursorGiven`] where there is none.
pub(super) fn lists(trial: &Trial<'_, '_>) -> Result<Vec<List>, Halt> {
    let session = &trial.session;
    let mut lists: Vec<List> = session.surface.paged.iter().map(|method| List::Protocol(method)).collect();
    let tools = session.surface.tools.iter().filter(|tool| session.may_call(tool));
    let taking = tools.filter_map(|tool| {
        let arguments = tool.input.get("properties").and_then(Value::as_object)?;
        let cursor = arguments.keys().find(|name| names::names_a_cursor(name))?.clone();
        Some(List::Tool(Box::new(tool.clone()), cursor))
    });
    lists.extend(taking.take(MOST_LISTS));
    if lists.is_empty() {
        return Err(Halt::skipped(Reason::NoCursorGiven, "no list comes in pages, and no tool takes a cursor"));
    }
    Ok(lists)
}

/// Reads a page.
fn read(answer: Answer) -> Result<Page, Halt> {
    page(answer).map_err(|answer| {
        let said = format!("an honest page does not come: {}", answer.said());
        answer.unclear().unwrap_or_else(|| Halt::skipped(Reason::CursorWitnessUnusable, said))
    })
}

fn page(answer: Answer) -> Result<Page, Box<Answer>> {
    let Some(result) = answer.result().filter(|_| answer.disposition == Disposition::Accepted) else {
        return Err(Box::new(answer));
    };
    let (mut holds, mut next) = (BTreeSet::new(), None);
    for (at, value) in values(result) {
        let name = pointer::last(&at);
        match value {
            _ if at.split('/').any(|part| part == "_meta")
                || ["/resultType", "/ttlMs", "/cacheScope"].contains(&at.as_str()) => {}
            Value::String(text) if names::names_a_cursor(&name) => next = Some(text).filter(|text| !text.is_empty()),
            Value::String(text) => drop(holds.insert(text)),
            Value::Number(number) => drop(holds.insert(number.to_string())),
            _ => {}
        }
    }
    Ok(Page { answer, holds, next })
}

/// The cursor in an answer.
pub(super) fn next_of(answer: &Answer) -> Option<String> {
    page(answer.clone()).ok()?.next
}

/// The values of a result: of its structured content where there is any, else of what its texts say, JSON opened.
fn values(result: &Value) -> Vec<(String, Value)> {
    let scalars = |value: &Value| -> Vec<(String, Value)> {
        pointer::scalars(value, MOST_VALUES).into_iter().map(|(at, value)| (at, value.clone())).collect()
    };
    if let Some(structured) = result.get("structuredContent") {
        return scalars(structured);
    }
    let open =
        |(at, value): (String, Value)| match value.as_str().and_then(|text| serde_json::from_str::<Value>(text).ok()) {
            Some(json) if json.is_object() || json.is_array() => scalars(&json),
            _ => vec![(at, value)],
        };
    scalars(result).into_iter().flat_map(open).collect()
}

/// Makes one more of what the server hands out, so that lists grow.
async fn make(trial: &mut Trial<'_, '_>, who: Who) -> Result<Option<Canary>, Halt> {
    let Some(kind) = trial.session.map.kinds.first().cloned() else { return Ok(None) };
    let Some(tool) = trial.session.surface.tool(&kind.mint).cloned() else { return Ok(None) };
    Ok(discovery::mint_call(trial, who, &tool).await?.ok().map(|(canary, _)| canary))
}

/// What a cursor came to, held against honest pages.
pub(super) fn came_to(answer: Answer, pages: &Pages) -> Result<Came, Halt> {
    match page(answer) {
        Ok(page) if page.holds == pages.first.holds => Ok(Came::Ignored),
        Ok(page) if page.holds == pages.second.holds => Ok(Came::Same(page)),
        Ok(page) => Ok(Came::Other(page)),
        Err(answer) => match &answer.disposition {
            Disposition::Refused(refusal) if !refusal.reads_like_an_outage() => Ok(Came::Refused(refusal.to_string())),
            _ => Err(answer.unclear().unwrap_or_else(|| Halt::errored(Reason::Unclear, answer.said()))),
        },
    }
}

/// The control: a cursor of the same shape that nobody was given, and the answer to it.
pub(super) async fn unissued(
    trial: &mut Trial<'_, '_>,
    list: &List,
    who: Who,
    pages: &Pages,
    plan: &mut ControlPlan,
) -> Result<(Answer, Option<Page>), Halt> {
    let forged = forge::state(&pages.cursor);
    trial.session.redactor.shorten(&forged);
    let answer = list.page(trial, "forged", who, Some(&forged)).await?;
    let page = match came_to(answer.clone(), pages)? {
        Came::Refused(said) => {
            plan.refused_in_words(&said);
            None
        }
        Came::Ignored => {
            plan.was_asked_again();
            None
        }
        Came::Other(page) | Came::Same(page) => {
            plan.presents_unissued(&page.answer, &[])?;
            Some(page)
        }
    };
    Ok((answer, page))
}

/// The honest cursor once more: a refusal means nothing where it is refused as well.
pub(super) async fn still_works(trial: &mut Trial<'_, '_>, list: &List, who: Who, pages: &Pages) -> Result<(), Halt> {
    let after = read(list.page(trial, "second-page-again", who, Some(&pages.cursor)).await?)?;
    if after.holds == pages.second.holds {
        return Ok(());
    }
    Err(Halt::errored(Reason::Unstable, "the same cursor brings another page than before"))
}

const MOST_LISTS: usize = 4;
const MOST_MADE: usize = 6;
const MOST_VALUES: usize = 4000;
