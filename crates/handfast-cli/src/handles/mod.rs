//! `handfast handles`: what an operator does to a store of handles. No handle is in a store, so none is shown.

mod criteria;
mod ledger;
mod list;
mod patience;
mod place;
mod presented;
mod purge;
mod revoke;
mod sheet;
mod verify;
mod watched;

use std::process::ExitCode;

use clap::{Subcommand, ValueEnum};

use crate::output::Failure;

/// Arguments of `handfast handles`.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Show what the store has: digests and owners, never a handle
    List(list::Args),
    /// Revoke handles: from then on nobody is let in with them, on any replica
    Revoke(revoke::Args),
    /// Remove the records of handles that have been dead for long
    Purge(purge::Args),
    /// Try on this store what an attacker would try, with handles made for it, and remove them again
    Verify(verify::Args),
}

/// How a result is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Format {
    /// For a person
    Text,
    /// For a program: version 1, with a published schema
    Json,
}

/// Whether the command races with itself, and so must run on several threads.
pub(crate) fn races(args: &Args) -> bool {
    matches!(args.command, Command::Verify(_))
}

/// Runs the command.
pub(crate) async fn run(args: Args) -> Result<ExitCode, Failure> {
    match args.command {
        Command::List(args) => list::run(args).await,
        Command::Revoke(args) => revoke::run(args).await,
        Command::Purge(args) => purge::run(args).await,
        Command::Verify(args) => verify::run(args).await,
    }
}

const EXAMPLES: &str = "\
Examples:
  export HANDFAST_STORE=postgres://handfast@db.example.com/handles
  handfast handles list --tenant acme
  handfast handles revoke --tenant acme --reason offboarded --receipt OPS-1234
  handfast handles purge
  handfast handles verify";
