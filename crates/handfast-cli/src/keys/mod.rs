//! `handfast keys`: the keys under which a server keeps whose a handle is, and seals its states.

mod file;
mod inspect;
mod new;
mod rotate;

use std::process::ExitCode;

use clap::Subcommand;

use crate::output::Failure;

/// Arguments of `handfast keys`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Make a key, as a line of a server's file of keys
    New(new::Args),
    /// Take the next step of exchanging a server's key, with no moment at which anybody is refused
    Rotate(rotate::Args),
    /// Show which keys a file has and what each is used for; never a key
    Inspect(inspect::Args),
}

/// Runs the command.
pub(crate) fn run(args: &Args) -> Result<ExitCode, Failure> {
    match &args.command {
        Command::New(args) => new::run(args),
        Command::Rotate(args) => rotate::run(args),
        Command::Inspect(args) => inspect::run(args),
    }
}
