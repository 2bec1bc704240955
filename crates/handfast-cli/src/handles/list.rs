//! `handfast handles list`.

use std::{io::IsTerminal, process::ExitCode};

use clap::ValueEnum;
use handfast::{Digest, store::Listed};

use super::{
    criteria::{self, Criteria},
    place::Place,
    sheet::Sheet,
};
use crate::output::{self, Failure};

/// Arguments of `handfast handles list`.
#[derive(Debug, clap::Args)]
#[command(after_help = HELP)]
pub(crate) struct Args {
    #[command(flatten)]
    place: Place,

    /// How many at most
    #[arg(long, value_name = "N", default_value_t = 100, value_parser = clap::value_parser!(u64).range(1..))]
    limit: u64,

    /// How to write them; a table on a terminal and lines anywhere else, unless this says otherwise
    #[arg(long, value_enum)]
    format: Option<Format>,

    #[command(flatten)]
    criteria: Criteria,
}

/// How records are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum Format {
    /// For a person: digests are shortened
    Table,
    /// One line each, with tabs between
    Lines,
    /// For a program: version 1, with a published schema
    Json,
}

/// How many records are asked for at once.
const PAGE: u32 = 500;

/// Runs the command.
pub(super) async fn run(args: Args) -> Result<ExitCode, Failure> {
    let which = args.criteria.selector()?;
    let format = args.format.unwrap_or(if std::io::stdout().is_terminal() { Format::Table } else { Format::Lines });
    let store = args.place.open().await?;
    let (mut sheet, mut after, mut left): (Sheet, Option<Digest>, u64) = (Sheet::new(format), None, args.limit);
    let more = loop {
        // One more than is shown tells whether there are more.
        let wanted = u32::try_from(left).map_or(PAGE, |left| left.min(PAGE));
        let listed = store.list(&which, after, wanted + 1).await;
        let Listed { mut records, now } = listed.map_err(|error| Failure(args.place.words(&error)))?;
        let further = records.len() > wanted as usize;
        records.truncate(wanted as usize);
        left -= records.len() as u64;
        after = records.last().map(|record| record.digest).or(after);
        if !output::print_on(&sheet.page(&records, now))? {
            return Ok(ExitCode::SUCCESS);
        }
        if !further || left == 0 {
            break further;
        }
    };
    output::print(&sheet.end(more))?;
    if more {
        let shown = if args.limit == 1 { "1 handle is".to_owned() } else { format!("{} handles are", args.limit) };
        output::complain(&format!("{shown} shown, and there are more: raise --limit, or add a criterion"));
    }
    if after.is_none() {
        criteria::other_keys(&args.place, &store, &which).await?;
        output::complain(if which.is_everything() {
            "there is no handle in this store"
        } else {
            "there is no handle that meets these criteria"
        });
    }
    Ok(ExitCode::SUCCESS)
}

const HELP: &str = "\
Each line has, with tabs between: digest, state (alive, revoked, expired or idle), the time at which that \
ends or began, when it was made, object type, scopes, version of the policy, tenant, client, and the user as \
a keyed digest. What a handle is not bound to is empty.

Examples:
  handfast handles list --store sqlite:handles.db
  handfast handles list --tenant acme --object basket --format json
  handfast handles list --subject https://id.example.com alice --keys keys.txt

Exit codes: 0 listed, also if there is none; 2 bad usage or input, or the store does not answer";
