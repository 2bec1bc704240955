//! `handfast keys`: the keys under which a server keeps whose a handle is.

use std::{
    fs::{File, OpenOptions},
    io::{ErrorKind, Write},
    path::{Path, PathBuf},
    process::ExitCode,
};

use clap::Subcommand;
use handfast::{Keys, SecretText};

use crate::output::{self, Failure};

/// Arguments of `handfast keys`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Make a key, as a line of a server's file of keys
    #[command(after_help = HELP)]
    New {
        /// Write it to this file, which nobody else can read; an existing file is left alone
        #[arg(long, value_name = "FILE")]
        output: Option<PathBuf>,
    },
}

/// Runs the command.
pub(crate) fn run(args: &Args) -> Result<ExitCode, Failure> {
    let Command::New { output } = &args.command;
    let key = Keys::generate();
    match output {
        None => output::print(&format!("{}\n", key.expose()))?,
        Some(path) => {
            write(path, &key)?;
            output::complain(&format!("a new key is in {}, for its owner's eyes only", path.display()));
        }
    }
    Ok(ExitCode::SUCCESS)
}

fn write(path: &Path, key: &SecretText) -> Result<(), Failure> {
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let file = options.open(path).map_err(|error| match error.kind() {
        ErrorKind::AlreadyExists => {
            Failure(format!("{} exists already; a key is not overwritten: choose another name", path.display()))
        }
        _ => unwritable(path, &error),
    })?;
    whole(file, key).map_err(|error| {
        // Half a key is none.
        let _ = std::fs::remove_file(path);
        unwritable(path, &error)
    })
}

fn whole(mut file: File, key: &SecretText) -> std::io::Result<()> {
    file.write_all(key.expose().as_bytes())?;
    file.write_all(b"\n")?;
    file.sync_all()
}

fn unwritable(path: &Path, error: &std::io::Error) -> Failure {
    Failure(format!("cannot write {}: {error}", path.display()))
}

const HELP: &str = "\
The first key of a server's file is used for new handles, the others only to recognise older ones. A new key \
goes to the end of the file on every replica first, and to its front when all of them know it; an old one can \
go when every handle made under it has ended.

Examples:
  handfast keys new --output keys.txt
  handfast keys new >> keys.txt";
