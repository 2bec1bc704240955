//! `handfast keys`: the keys under which a server keeps whose a handle is, and seals its states.

mod file;
mod inspect;
mod new;
mod rotate;

use std::{fs, io, path::Path, process::ExitCode};

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

/// Waits until the folder has this name on the disk: a key that seals must not vanish with the power. A folder that may
/// only be written to is left to the system.
fn kept_in_its_folder(path: &Path) -> io::Result<()> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    fs::File::open(folder).map_or(Ok(()), |folder| folder.sync_all())
}
