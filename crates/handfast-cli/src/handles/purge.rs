//! `handfast handles purge`.

use std::{path::PathBuf, process::ExitCode, time::Duration};

use handfast::Action;

use super::{ledger::Ledger, patience::Patience, place::Place};
use crate::output::{self, Failure};

/// Arguments of `handfast handles purge`.
#[derive(Debug, clap::Args)]
#[command(after_help = HELP)]
pub(crate) struct Args {
    #[command(flatten)]
    place: Place,

    /// Only what has been revoked, expired or idle for longer than this
    #[arg(long, value_name = "TIME", default_value = "24h", value_parser = humantime::parse_duration)]
    dead_for: Duration,

    /// Append an audit event to this file, as JSON lines
    #[arg(long, value_name = "FILE")]
    audit: Option<PathBuf>,
}

/// How many are removed by one statement, so that traffic goes on meanwhile.
const BATCH: u32 = 1000;

/// Runs the command.
pub(super) async fn run(args: Args) -> Result<ExitCode, Failure> {
    let ledger = Ledger::open(args.audit.as_deref(), Action::Purge, None)?;
    let store = args.place.open().await?;
    let (mut count, mut patience) = (0, Patience::start());
    let ended = loop {
        match store.purge(args.dead_for, BATCH).await {
            Ok(0) => break Ok(()),
            Ok(removed) => count += removed,
            Err(error) => break Err(args.place.words(&error)),
        }
        patience.say(&format!("{count} removed so far"));
    };
    drop(patience);
    let closed = ledger.close(count, ended.is_ok());
    match ended.and(closed) {
        Err(problem) if count == 0 => Err(Failure(problem)),
        Err(problem) => {
            output::complain(&format!("{count} were removed, and there may be more; run it again: {problem}"));
            Ok(ExitCode::from(3))
        }
        Ok(()) => {
            output::print(&format!("{count} removed\n"))?;
            Ok(ExitCode::SUCCESS)
        }
    }
}

const HELP: &str = "\
The count is of handles, and of the marks by which states that may be used once were known to be used.

A handle that is removed is unknown from then on. Until then its owner is told that it has expired or was \
revoked, and the reason of a revocation stands in the store.

Examples:
  handfast handles purge --store sqlite:handles.db
  handfast handles purge --dead-for 30d

Exit codes: 0 removed, also if there was nothing to remove; 2 bad usage or input, or the store does not \
answer; 3 stopped after some were removed";
