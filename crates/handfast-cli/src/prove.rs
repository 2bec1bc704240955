//! `handfast prove`: the probe against the twins, in twelve directions. Not only the verdicts are checked: the evidence
//! behind each must be there. Then every twin against every check, as a table.

mod matrix;
mod served;

use std::{collections::BTreeMap, fmt::Write, process::ExitCode};

use handfast_probe::{
    evidence::Step,
    identity::Identities,
    report::{CheckReport, EntryPoint, Report},
    runner::Run,
    target::Address,
    verdict::{Reason, Verdict},
};
use serde_json::json;
use url::Url;

use served::started;

use crate::{
    output::{self, Failure, Progress},
    probe::Format,
    twin::Transport,
};

/// Arguments of `handfast prove`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Only the directions over this transport
    #[arg(long, value_enum)]
    transport: Option<Transport>,

    /// Only the directions, without the table of every twin and every check
    #[arg(long)]
    brief: bool,

    /// How to write the result
    #[arg(long, value_enum, default_value_t = Format::Text)]
    format: Format,
}

/// One direction: what is probed, and what must come of it.
struct Direction {
    transport: Transport,
    /// The twin, or what stands in its place.
    name: &'static str,
    /// What must hold of the report.
    expected: fn(&Report) -> Vec<Claim>,
}

/// Something that must hold.
struct Claim {
    text: &'static str,
    holds: bool,
}

/// Runs the command.
pub(crate) async fn run(args: Args) -> Result<ExitCode, Failure> {
    let chosen = |direction: &&Direction| args.transport.is_none_or(|transport| transport == direction.transport);
    let (mut text, mut results, mut failed) = (String::new(), Vec::new(), 0);
    let directions: Vec<&Direction> = DIRECTIONS.iter().filter(chosen).collect();
    for (number, direction) in directions.iter().enumerate() {
        let report = {
            let progress = Progress::start();
            progress.say(&format!("{} of {}: {}", number + 1, directions.len(), direction.name));
            probed(direction).await?
        };
        let claims = (direction.expected)(&report);
        let holds = claims.iter().all(|claim| claim.holds);
        failed += usize::from(!holds);
        let transport = matrix::word(direction.transport);
        let _ = writeln!(
            text,
            "{:>2}. {transport:<5} {:<18} {}",
            number + 1,
            direction.name,
            if holds { "holds" } else { "FAILS" }
        );
        text.push_str(&verdicts(&report));
        for claim in &claims {
            let _ = writeln!(text, "      {}  {}", if claim.holds { "ok   " } else { "FALSE" }, claim.text);
        }
        results.push(json!({
            "transport": transport,
            "twin": direction.name,
            "holds": holds,
            "claims": claims.iter().map(|claim| json!({"claim": claim.text, "holds": claim.holds})).collect::<Vec<_>>(),
            "checks": report.checks.iter().map(|check| json!({"id": check.id, "verdict": check.verdict, "reason": check.reason})).collect::<Vec<_>>(),
        }));
    }
    let held = directions.len() - failed;
    let mut written = json!({"version": 1, "directions": results, "held": held});
    text.push('\n');
    let mut unproved = Vec::new();
    if !args.brief {
        let transports = args.transport.map_or(vec![Transport::Http, Transport::Stdio], |transport| vec![transport]);
        let lines = matrix::probed(&transports).await?;
        unproved = matrix::unproved(&lines);
        text.push_str(&matrix::text(&lines, &transports));
        for id in &unproved {
            let _ = writeln!(text, "FALSE  {id} is confirmed on one twin and refuted on another");
        }
        written["matrix"] = matrix::json(&lines);
    }
    let _ = writeln!(text, "{held} of {} directions hold", directions.len());
    match args.format {
        Format::Text => output::print(&text)?,
        Format::Json => output::print(&format!("{written:#}\n"))?,
    }
    Ok(if failed == 0 && unproved.is_empty() { ExitCode::SUCCESS } else { ExitCode::from(1) })
}

/// A line for each check, and one for all that were skipped for the same reason.
fn verdicts(report: &Report) -> String {
    let mut text = String::new();
    let mut skipped: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for check in &report.checks {
        match check.verdict {
            Verdict::Skipped => skipped.entry(check.reason.slug()).or_default().push(check.id),
            _ => {
                let _ = writeln!(text, "      {:<9}  {}  [{}]", check.verdict.word(), check.id, check.reason.slug());
            }
        }
    }
    for (reason, ids) in skipped {
        let others = if ids.len() > 1 { format!(" and {} others", ids.len() - 1) } else { String::new() };
        let _ = writeln!(text, "      {:<9}  {}{others}  [{reason}]", "skipped", ids[0]);
    }
    text
}

async fn probed(direction: &Direction) -> Result<Report, Failure> {
    let fail = |error: &dyn std::fmt::Display| Failure(format!("{}: {error}", direction.name));
    let identities = || Identities::new(None, None).map_err(|error| fail(&error));
    match (direction.transport, direction.name) {
        (Transport::Http, NOTHING_LISTENING) => {
            // A port that was free a moment ago.
            let listener = std::net::TcpListener::bind("127.0.0.1:0").map_err(|error| fail(&error))?;
            let at = listener.local_addr().map_err(|error| fail(&error))?;
            drop(listener);
            let url = Url::parse(&format!("http://{at}/mcp")).map_err(|error| fail(&error))?;
            finished(Run::new(Address::Http(url), identities()?)).await
        }
        (Transport::Stdio, CANNOT_BE_RUN) => {
            let address = Address::Stdio { program: "/nonexistent/mcp-server".to_owned(), arguments: Vec::new() };
            finished(Run::new(address, identities()?)).await
        }
        (transport, name) => {
            let served = started(transport, name).await?;
            let report = finished(Run::new(served.address(), identities()?)).await;
            served.stop().await;
            report
        }
    }
}

async fn finished(run: Run) -> Result<Report, Failure> {
    run.probe(&|_| {}).await.map_err(|error| Failure(error.to_string()))
}

const NOTHING_LISTENING: &str = "nothing listening";
const CANNOT_BE_RUN: &str = "cannot be run";

const DIRECTIONS: [Direction; 12] = [
    Direction { transport: Transport::Http, name: "flawed", expected: flawed },
    Direction { transport: Transport::Http, name: "sound", expected: sound },
    Direction { transport: Transport::Http, name: "noguard", expected: noguard },
    Direction { transport: Transport::Http, name: "opaque", expected: opaque },
    Direction { transport: Transport::Http, name: "legacy", expected: legacy_over_http },
    Direction { transport: Transport::Http, name: NOTHING_LISTENING, expected: nothing_listening },
    Direction { transport: Transport::Stdio, name: "flawed", expected: flawed },
    Direction { transport: Transport::Stdio, name: "sound", expected: sound },
    Direction { transport: Transport::Stdio, name: "noguard", expected: noguard },
    Direction { transport: Transport::Stdio, name: "opaque", expected: opaque },
    Direction { transport: Transport::Stdio, name: "legacy", expected: legacy_over_stdio },
    Direction { transport: Transport::Stdio, name: CANNOT_BE_RUN, expected: cannot_be_run },
];

fn flawed(report: &Report) -> Vec<Claim> {
    let (handle, state) = (Seen::of(report, "handle-foreign-principal"), Seen::of(report, "state-tampered"));
    let canary = handle.fact("canary_of_a");
    vec![
        claim("reached without a handshake", era(report) == "stateless(2026-07-28)"),
        claim("handle confirmed: A's handle is honoured for B", handle.is(Verdict::Confirmed, Reason::HandleNotBound)),
        claim("A used its own handle", handle.answered("owner-use", "accepted")),
        claim("B is a live user of its own", handle.answered("stranger-own-use", "accepted")),
        claim("a forged handle was refused", handle.answered("forged-handle", "refused")),
        claim("A's canary came back to B", !canary.is_empty() && handle.said("subject").contains(&canary)),
        claim("the two handles differ", handle.fact("handle_of_a") != handle.fact("handle_of_b")),
        claim(
            "state confirmed: an altered state was accepted",
            state.is(Verdict::Confirmed, Reason::AlteredStateAccepted),
        ),
        claim("the untouched state was accepted", state.answered("untouched-retry", "accepted")),
        claim("a random state was refused", state.answered("random-state", "refused")),
        claim("the altered field is the principal", state.mutation("field").ends_with("principal")),
        claim("the altered value came back", state.mutation("came_back_in_answer") == "true"),
    ]
}

fn sound(report: &Report) -> Vec<Claim> {
    let (handle, state) = (Seen::of(report, "handle-foreign-principal"), Seen::of(report, "state-tampered"));
    vec![
        claim("handle refuted: A's handle is refused to B", handle.is(Verdict::Refuted, Reason::HandleBound)),
        claim(
            "A and B used their own handles",
            handle.answered("owner-use", "accepted") && handle.answered("stranger-own-use", "accepted"),
        ),
        claim("a forged handle was refused as well", handle.answered("forged-handle", "refused")),
        claim("every entry point was judged", handle.every_row(Verdict::Refuted)),
        claim("state refuted: every altered state was refused", state.is(Verdict::Refuted, Reason::StateIntegrityHeld)),
        claim("the untouched state was accepted", state.answered("untouched-retry", "accepted")),
        claim("a random state was refused", state.answered("random-state", "refused")),
        claim(
            "the state was readable and its signature left as issued",
            state.fact("envelope").ends_with(".signature"),
        ),
    ]
}

fn noguard(report: &Report) -> Vec<Claim> {
    let (handle, state) = (Seen::of(report, "handle-foreign-principal"), Seen::of(report, "state-tampered"));
    vec![
        claim(
            "handle refuted: no validation, so nothing to be unbound from",
            handle.is(Verdict::Refuted, Reason::HandleWitnessUnusable),
        ),
        claim("a forged handle was honoured", handle.answered("forged-handle", "accepted")),
        claim("and that is on record as an observation", handle.observed("forged-handle-honoured")),
        claim("state refuted", state.is(Verdict::Refuted, Reason::StateIntegrityHeld)),
    ]
}

fn opaque(report: &Report) -> Vec<Claim> {
    let (handle, state) = (Seen::of(report, "handle-foreign-principal"), Seen::of(report, "state-tampered"));
    vec![
        claim("handle refuted: A's handle is refused to B", handle.is(Verdict::Refuted, Reason::HandleBound)),
        claim(
            "state confirmed: one flipped character was accepted",
            state.is(Verdict::Confirmed, Reason::StateNotAuthenticated),
        ),
        claim("the state could not be read", state.fact("envelope") == "opaque"),
        claim("a random state was refused", state.answered("random-state", "refused")),
        claim("the evidence names the flip", state.has("flip")),
        claim("and claims no mutation of a field", !state.has("mutation")),
    ]
}

fn legacy_over_http(report: &Report) -> Vec<Claim> {
    let session = Seen::of(report, "session-foreign-principal");
    let mut claims = legacy(report);
    claims.extend([
        claim("session refuted: A's session is refused to B", session.is(Verdict::Refuted, Reason::SessionBound)),
        claim("A's session worked", session.answered("own-session", "accepted")),
        claim("an id that nobody issued was refused", session.answered("unknown-session", "refused")),
        claim("no other check of sessions is confirmed", report.totals.confirmed == 0),
        claim("so something could be tested", report.exit_code(false, &[]) == 0),
    ]);
    claims
}

fn legacy_over_stdio(report: &Report) -> Vec<Claim> {
    let session = Seen::of(report, "session-foreign-principal");
    let mut claims = legacy(report);
    claims.extend([
        claim("session skipped: there are no session ids", session.is(Verdict::Skipped, Reason::NeedsHttp)),
        claim("which does not look green", report.exit_code(false, &[]) == 3),
    ]);
    claims
}

fn legacy(report: &Report) -> Vec<Claim> {
    let (handle, state) = (Seen::of(report, "handle-foreign-principal"), Seen::of(report, "state-tampered"));
    vec![
        claim("reached by the older handshake", era(report) == "legacy(initialize)"),
        claim("handle skipped: nothing takes a handle", handle.is(Verdict::Skipped, Reason::NoToolConsumesAHandle)),
        claim(
            "state skipped: nothing asks for input",
            state.is(Verdict::Skipped, Reason::NothingReturnedInputRequired),
        ),
    ]
}

fn nothing_listening(report: &Report) -> Vec<Claim> {
    vec![
        claim("skipped: no server answered", all(report, Verdict::Skipped, Reason::NoServerAnswered)),
        claim("which does not look green", report.exit_code(false, &[]) == 3),
    ]
}

fn cannot_be_run(report: &Report) -> Vec<Claim> {
    vec![
        claim("errored: the command cannot be run", all(report, Verdict::Errored, Reason::TargetNotExecutable)),
        claim("which does not look green", report.exit_code(false, &[]) == 3),
    ]
}

fn claim(text: &'static str, holds: bool) -> Claim {
    Claim { text, holds }
}

fn era(report: &Report) -> &str {
    report.handshake.as_ref().map_or("", |handshake| &handshake.era)
}

fn all(report: &Report, verdict: Verdict, reason: Reason) -> bool {
    report.checks.iter().all(|check| check.verdict == verdict && check.reason == reason)
}

/// What a report shows of one check.
struct Seen<'r>(Option<&'r CheckReport>);

impl<'r> Seen<'r> {
    fn of(report: &'r Report, id: &str) -> Self {
        Self(report.checks.iter().find(|check| check.id == id))
    }

    fn is(&self, verdict: Verdict, reason: Reason) -> bool {
        self.0.is_some_and(|check| check.verdict == verdict && check.reason == reason)
    }

    fn every_row(&self, verdict: Verdict) -> bool {
        self.0.is_some_and(|check| check.evidence.entry_points.iter().all(|point| point.row.verdict == verdict))
    }

    /// The entry point that the verdict rests on.
    fn point(&self) -> Option<&'r EntryPoint> {
        let check = self.0?;
        check.evidence.entry_points.iter().find(|point| point.row.reason == check.reason)
    }

    fn step(&self, name: &str) -> Option<&'r Step> {
        let check = self.0?;
        self.point()?.row.story.iter().filter_map(|&at| check.evidence.exchanges.get(at)).find(|step| step.step == name)
    }

    fn answered(&self, step: &str, disposition: &str) -> bool {
        self.step(step).is_some_and(|step| step.disposition == disposition)
    }

    fn said(&self, step: &str) -> String {
        self.step(step).map(|step| step.answer.clone()).unwrap_or_default()
    }

    fn has(&self, fact: &str) -> bool {
        self.point().is_some_and(|point| point.facts.contains_key(fact))
    }

    fn fact(&self, name: &str) -> String {
        let value = self.point().and_then(|point| point.facts.get(name));
        value.and_then(|value| value.as_str()).unwrap_or_default().to_owned()
    }

    fn mutation(&self, name: &str) -> String {
        let value = self.point().and_then(|point| point.facts.get("mutation")).and_then(|mutation| mutation.get(name));
        value.map(|value| value.as_str().map_or_else(|| value.to_string(), str::to_owned)).unwrap_or_default()
    }

    fn observed(&self, id: &str) -> bool {
        self.0.is_some_and(|check| check.observations.iter().any(|observation| observation.id == id))
    }
}
