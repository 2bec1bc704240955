//! `cursor-tampered`: is a cursor taken in which another place stands than the server wrote? One respect differs from the
//! honest request: a number in the cursor.

use base64::{
    Engine,
    engine::general_purpose::{STANDARD, STANDARD_NO_PAD, URL_SAFE, URL_SAFE_NO_PAD},
};
use handfast_wire::pointer;
use serde_json::Value;

use crate::{
    check::{Check, Level, Running},
    checks, cvss,
    identity::Who,
    owasp,
    state::envelope::Envelope,
    trial::Trial,
    verdict::{ControlPlan, Halt, Judgement, Reason, Row, Severity},
};

use super::scene::{self, Came, List};

/// The check.
pub(super) static CHECK: Check = Check {
    id: "cursor-tampered",
    title: "Cursors are believed",
    claim: "A cursor in which a number was changed is taken, and brings another page than the server meant.",
    spec: "Invalid cursors SHOULD result in an error with code -32602 (Invalid params).",
    spec_url: "https://modelcontextprotocol.io/specification/2026-07-28/server/utilities/pagination",
    help: include_str!("tampered.md"),
    level: Level::Hardening,
    severity: Severity::Low,
    cwe: &[472, 642],
    cvss: &[cvss::HARDENING, cvss::NOTHING],
    owasp: &[owasp::API8],
    run,
};

fn run<'r>(trial: &'r mut Trial<'_, '_>) -> Running<'r> {
    Box::pin(async move {
        let outcome = judge(trial).await;
        checks::finish(trial, &CHECK, outcome).await
    })
}

async fn judge(trial: &mut Trial<'_, '_>) -> Result<Judgement, Halt> {
    let mut rows = trial.unlisted_rows();
    for list in scene::lists(trial)? {
        let outcome = of_list(trial, &list).await;
        let over = outcome.as_ref().is_err_and(Halt::is_final);
        rows.push(outcome.unwrap_or_else(|halt| Row::halted(&list.entry(), halt)));
        if over {
            break;
        }
    }
    Ok(Judgement::over(rows, Vec::new()))
}

async fn of_list(trial: &mut Trial<'_, '_>, list: &List) -> Result<Row, Halt> {
    let entry = list.entry();
    let pages = list.pages(trial, Who::A).await?;
    let altered = altered(&pages.cursor);
    if altered.is_empty() {
        return Err(Halt::skipped(Reason::CursorNotReadable, "no number can be read in the cursor"));
    }
    let mut plan = ControlPlan::default();
    plan.accepts(&pages.second.answer, |said| Halt::skipped(Reason::CursorWitnessUnusable, said))?;
    let (_, unissued) = scene::unissued(trial, list, Who::A, &pages, &mut plan).await?;
    let controls = plan.hold()?;

    let mut refused = None;
    for cursor in altered {
        trial.session.redactor.shorten(&cursor);
        let answer = list.page(trial, "subject", Who::A, Some(&cursor)).await?;
        let page = match scene::came_to(answer, &pages)? {
            Came::Other(page) => page,
            Came::Refused(said) => {
                refused.get_or_insert(said);
                continue;
            }
            Came::Ignored | Came::Same(_) => continue,
        };
        // A cursor that nobody was given brings the same: it is taken for something, and not for a place.
        if unissued.as_ref().is_some_and(|unissued| unissued.holds == page.holds) {
            continue;
        }
        let again = list.page(trial, "subject", Who::A, Some(&cursor)).await?;
        if !matches!(scene::came_to(again, &pages)?, Came::Other(again) if again.holds == page.holds) {
            return Err(Halt::errored(Reason::Unstable, "a changed cursor brought a page once, and another one then"));
        }
        let severity = if list.is_of_the_caller() { CHECK.severity } else { Severity::Info };
        let what = if page.holds.is_empty() { "an empty page, and no error" } else { "another page" };
        let detail = format!("a number in the cursor was changed, and what came is {what}");
        let mut row = Row::confirmed(&controls, &entry, Reason::AlteredCursorTaken, severity, detail);
        row.story = vec![pages.first.answer.step, pages.second.answer.step, page.answer.step];
        return Ok(row);
    }
    scene::still_works(trial, list, Who::A, &pages).await?;
    let detail = match refused {
        Some(said) => format!("changed cursors are refused: {}", trial.clean(&said)),
        None => "a changed cursor brings nothing that the cursor as it was given does not".to_owned(),
    };
    let mut row = Row::refuted(&controls, &entry, Reason::CursorHeld, detail);
    row.story = vec![pages.first.answer.step, pages.second.answer.step];
    Ok(row)
}

/// The cursor with a number in it changed: a little less, a little more, and far away. Signatures stay as they are.
fn altered(cursor: &str) -> Vec<String> {
    let mut altered = in_text(cursor);
    if altered.is_empty()
        && let Some(envelope) = Envelope::read(cursor)
    {
        let value = envelope.value();
        for (at, number) in pointer::scalars(&value, MOST_VALUES) {
            let number = number.as_u64().or_else(|| number.as_str()?.parse().ok().filter(|_| number.is_string()));
            let written = |changed: u64| match value.pointer(&at) {
                Some(Value::String(_)) => Value::from(changed.to_string()),
                _ => Value::from(changed),
            };
            for changed in number.into_iter().flat_map(changes) {
                altered.extend(envelope.with(&at, &written(changed)));
            }
        }
    }
    if altered.is_empty() {
        for engine in [STANDARD, STANDARD_NO_PAD, URL_SAFE, URL_SAFE_NO_PAD] {
            let text = engine.decode(cursor).ok().and_then(|bytes| String::from_utf8(bytes).ok());
            altered.extend(text.iter().flat_map(|text| in_text(text)).map(|text| engine.encode(text)));
            if !altered.is_empty() {
                break;
            }
        }
    }
    altered.retain(|changed| changed != cursor);
    altered.truncate(MOST_ALTERED);
    altered
}

/// `20`, `offset=20`, `v1:6fd2:20`: the number at the end of a text, where it is set apart.
fn in_text(text: &str) -> Vec<String> {
    let digits = text.len() - text.trim_end_matches(|c: char| c.is_ascii_digit()).len();
    let (before, number) = text.split_at(text.len() - digits);
    let apart = before.chars().next_back().is_none_or(|c| !c.is_alphanumeric());
    match number.parse::<u64>() {
        Ok(number) if apart && digits <= MOST_DIGITS => {
            changes(number).into_iter().map(|changed| format!("{before}{changed}")).collect()
        }
        _ => Vec::new(),
    }
}

fn changes(number: u64) -> Vec<u64> {
    [number.checked_sub(1), number.checked_add(1), number.checked_add(FAR)].into_iter().flatten().collect()
}

const MOST_VALUES: usize = 50;
const MOST_ALTERED: usize = 9;
const MOST_DIGITS: usize = 9;
const FAR: u64 = 900;

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_place_is_changed_wherever_it_stands() {
        assert_eq!(altered("20"), ["19", "21", "920"]);
        assert_eq!(altered("v1:6fd2:20"), ["v1:6fd2:19", "v1:6fd2:21", "v1:6fd2:920"]);
        assert_eq!(altered(&STANDARD.encode("offset:0"))[0], STANDARD.encode("offset:1"));
        let page = |offset: u64| URL_SAFE_NO_PAD.encode(json!({"offset": offset, "list": "x"}).to_string());
        assert_eq!(altered(&page(2))[..2], [page(1), page(3)]);
        let signed = format!("{}.c2lnbmF0dXJlLXNpZ25hdHVyZQ", page(2));
        assert!(altered(&signed).iter().all(|changed| changed.ends_with(".c2lnbmF0dXJlLXNpZ25hdHVyZQ")));
        assert!(!altered(&signed).is_empty());
    }

    #[test]
    fn what_holds_no_place_is_left_alone() {
        for opaque in ["a8fj2kd9", "6f1c0b3e9d2a4f5b", "Zm9vYmFy", "ws-0f12ab34cd"] {
            assert_eq!(altered(opaque), [""; 0], "{opaque}");
        }
    }
}
