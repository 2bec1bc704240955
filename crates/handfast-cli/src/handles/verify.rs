//! `handfast handles verify`.

use std::{process::ExitCode, sync::Arc};

use handfast::{
    clock::{Clock, ManualClock, SystemClock},
    store::{Store, StoreError},
    verify::{Lab, Property, Replicas, verify},
};
use serde_json::{Value, json};
use tokio::sync::mpsc;

use super::{
    Format,
    place::Place,
    watched::{Trouble, Watched},
};
use crate::output::{self, Failure, on_one_line};

/// Arguments of `handfast handles verify`.
#[derive(Debug, clap::Args)]
#[command(after_help = HELP)]
pub(crate) struct Args {
    #[command(flatten)]
    place: Place,

    /// How to write the result
    #[arg(long, value_enum, default_value_t = Format::Text)]
    format: Format,
}

/// What came of one property.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Outcome {
    Held,
    Failed,
    /// The store did not answer, which says nothing about handles.
    Unknown,
}

impl Outcome {
    fn slug(self) -> &'static str {
        match self {
            Self::Held => "held",
            Self::Failed => "failed",
            Self::Unknown => "unknown",
        }
    }
}

/// One property, and what was seen or what speaks against it.
struct Finding {
    name: &'static str,
    outcome: Outcome,
    detail: String,
}

/// Runs the command.
pub(super) async fn run(args: Args) -> Result<ExitCode, Failure> {
    let missing = args.place.missing().await;
    let (clock, trouble) = (Arc::new(ManualClock::at(SystemClock.now())), Trouble::default());
    let watched = async || -> Result<Arc<dyn Store>, Failure> {
        let watched: Arc<dyn Store> =
            Arc::new(Watched { inner: args.place.open_with(&clock).await?, trouble: trouble.clone() });
        Ok(watched)
    };
    let lab = Lab::new(Replicas { one: watched().await?, other: watched().await?, clock: clock.clone() });
    if let Some(what) = missing {
        output::complain(&format!("there was {what}: it was made, and what follows is about an empty store"));
    }
    let (tell, mut told) = mpsc::unbounded_channel();
    let verifying = async move {
        // Whoever listens may have heard enough.
        verify(&lab, |property| drop(tell.send((property.clone(), trouble.take())))).await;
    };
    tokio::pin!(verifying);
    let (mut findings, mut running) = (Vec::new(), true);
    let stopped = loop {
        tokio::select! {
            biased;
            known = told.recv() => {
                let Some((property, trouble)) = known else { break false };
                let finding = finding(&args.place, property, trouble.as_ref());
                if args.format == Format::Text {
                    output::print(&line(&finding))?;
                }
                let stopped = finding.outcome == Outcome::Unknown;
                findings.push(finding);
                if stopped {
                    break true;
                }
            }
            () = &mut verifying, if running => running = false,
        }
    };
    let count = |outcome| findings.iter().filter(|finding| finding.outcome == outcome).count();
    let (held, failed) = (count(Outcome::Held), count(Outcome::Failed));
    match args.format {
        Format::Text => output::print(&format!("\n{held} held, {failed} failed\n"))?,
        Format::Json => output::print(&format!("{:#}\n", document(&findings, (held, failed), !stopped)))?,
    }
    if stopped {
        output::complain(
            "stopped before the end: the line above says why. What was made for this ends by itself, within seconds",
        );
    }
    Ok(ExitCode::from(match (failed, stopped) {
        (1.., _) => 1,
        (0, true) => 3,
        (0, false) => 0,
    }))
}

fn finding(place: &Place, property: Property, trouble: Option<&StoreError>) -> Finding {
    let (outcome, detail) = match (property.outcome, trouble) {
        (Ok(seen), _) => (Outcome::Held, seen),
        (Err(_), Some(trouble)) => (Outcome::Unknown, place.words(trouble)),
        (Err(against), None) => (Outcome::Failed, against),
    };
    Finding { name: property.name, outcome, detail: on_one_line(&detail) }
}

fn line(finding: &Finding) -> String {
    let word = match finding.outcome {
        // So that it is seen among the others.
        Outcome::Failed => "FAILED",
        other => other.slug(),
    };
    format!("{word:<7} {:<26} {}\n", finding.name, finding.detail)
}

fn document(findings: &[Finding], (held, failed): (usize, usize), finished: bool) -> Value {
    let properties: Vec<Value> = findings
        .iter()
        .map(|finding| json!({"name": finding.name, "outcome": finding.outcome.slug(), "detail": finding.detail}))
        .collect();
    json!({
        "version": 1,
        "command": "verify",
        "properties": properties,
        "held": held,
        "failed": failed,
        "finished": finished,
    })
}

const HELP: &str = "\
The store is opened twice, as two replicas would have it open. Everything happens in tenants of the \
verifier's own, with handles that live for seconds and are removed again, so it can run on a store that is in \
use. Where the store has no tables yet they are made.

Examples:
  handfast handles verify --store sqlite:handles.db
  handfast handles verify --store postgres://handfast@db.example.com/handles --timeout 10s

Exit codes: 0 every property held; 1 one failed; 2 bad usage or input, or the store cannot be opened; 3 the \
run could not be finished";
