//! `handfast handles revoke`.

use std::{path::PathBuf, process::ExitCode, sync::Arc};

use handfast::{
    Action, Reason, Receipt, Why,
    store::{Selector, Store, Sweep},
};

use super::{
    criteria::{self, Criteria},
    ledger::Ledger,
    patience::Patience,
    place::Place,
    presented,
};
use crate::output::{self, Failure};

/// Arguments of `handfast handles revoke`.
#[derive(Debug, clap::Args)]
#[command(after_help = HELP)]
pub(crate) struct Args {
    #[command(flatten)]
    place: Place,

    /// Why, in your words; kept with each handle
    #[arg(long, value_name = "TEXT")]
    reason: String,

    /// What you can show for it: a ticket, a log entry; kept with each handle
    #[arg(long, value_name = "TEXT")]
    receipt: String,

    /// Append an audit event for each handle to this file, as JSON lines
    #[arg(long, value_name = "FILE")]
    audit: Option<PathBuf>,

    #[command(flatten)]
    criteria: Criteria,

    /// The one whose text is on standard input
    #[arg(long, conflicts_with = "digest")]
    handle_stdin: bool,

    /// Every handle in the store
    #[arg(long, conflicts_with_all = CRITERIA)]
    all: bool,
}

/// What says less than all.
const CRITERIA: [&str; 9] =
    ["tenant", "client", "object", "policy_version", "minted_before", "digest", "subject", "keys", "handle_stdin"];

/// Runs the command.
pub(super) async fn run(args: Args) -> Result<ExitCode, Failure> {
    let reason: Reason = args.reason.parse().map_err(|error| Failure(format!("--reason: {error}")))?;
    let receipt: Receipt = args.receipt.parse().map_err(|error| Failure(format!("--receipt: {error}")))?;
    let why = Why { reason, receipt };
    let mut which = args.criteria.selector()?;
    if !args.all && !args.handle_stdin && which.is_everything() {
        return Err(Failure("which handles? give at least one criterion, such as --tenant, or --all".to_owned()));
    }
    if args.handle_stdin {
        which = which.and_handle(presented::digest().await?);
    }
    let ledger = Ledger::open(args.audit.as_deref(), Action::Revoke, Some(&why))?;
    let store = args.place.open().await?;

    let (mut count, mut patience) = (0, Patience::start());
    let ended = all(&args.place, &store, (&which, &why), &ledger, |revoked| {
        count += revoked;
        patience.say(&format!("{count} revoked so far"));
    });
    let ended = ended.await;
    drop(patience);
    let closed = ledger.close(count, ended.is_ok());
    match ended.and(closed) {
        Err(problem) if count == 0 => Err(Failure(problem)),
        Err(problem) => {
            output::complain(&format!("{count} were revoked, and there may be more; run it again: {problem}"));
            Ok(ExitCode::from(3))
        }
        Ok(()) => {
            let remark = if count == 0 { Some(none(&args.place, &store, &which).await?) } else { None };
            output::print(&format!("{count} revoked\n"))?;
            if let Some(remark) = remark {
                output::complain(remark);
            }
            Ok(ExitCode::SUCCESS)
        }
    }
}

/// Revokes until none is left, and tells how many with each batch.
async fn all(
    place: &Place,
    store: &Arc<dyn Store>,
    (which, why): (&Selector, &Why),
    ledger: &Ledger,
    mut tell: impl FnMut(u64),
) -> Result<(), String> {
    let mut sweep = Sweep::begin(&**store, which, why).await.map_err(|error| place.words(&error))?;
    loop {
        let revoked = sweep.next().await.map_err(|error| place.words(&error))?;
        if revoked.is_empty() {
            return Ok(());
        }
        tell(revoked.len() as u64);
        ledger.each(&revoked)?;
    }
}

/// Why none was revoked: a handle that is mistyped looks like one that was revoked before.
async fn none(place: &Place, store: &Arc<dyn Store>, which: &Selector) -> Result<&'static str, Failure> {
    let listed = store.list(which, None, 1).await.map_err(|error| Failure(place.words(&error)))?;
    if listed.records.is_empty() {
        criteria::other_keys(place, store, which).await?;
    }
    Ok(match listed.records.first() {
        Some(_) => "nothing to do: what is meant was revoked before",
        None => "nothing to do: there is no such handle in this store",
    })
}

const HELP: &str = "\
To revoke twice is no error: the first revocation stays, with its reason. Handles that are made meanwhile may \
stay: first end what makes them, then revoke.

Examples:
  handfast handles revoke --tenant acme --reason offboarded --receipt OPS-1234
  handfast handles revoke --subject https://id.example.com alice --keys keys.txt --reason left --receipt HR-7
  handfast handles revoke --handle-stdin --reason leaked --receipt SEC-17 < leaked-handle.txt
  handfast handles revoke --all --reason \"keys were stolen\" --receipt SEC-18 --audit revoked.jsonl

Exit codes: 0 revoked, also if there was nothing to revoke; 2 bad usage or input, or the store does not \
answer; 3 stopped after some were revoked";
