//! `handfast keys new`.

use std::{
    fs::{File, OpenOptions},
    io::{ErrorKind, Write},
    path::{Path, PathBuf},
    process::ExitCode,
};

use handfast::{Keys, SecretText};

use crate::output::{self, Failure};

/// Arguments of `handfast keys new`.
#[derive(Debug, clap::Args)]
#[command(after_help = HELP)]
pub(crate) struct Args {
    /// Write it to this file, which nobody else can read; an existing file is left alone
    #[arg(long, value_name = "FILE")]
    output: Option<PathBuf>,
}

/// Runs the command.
pub(super) fn run(args: &Args) -> Result<ExitCode, Failure> {
    let key = Keys::generate();
    match &args.output {
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
    whole(file, key).and_then(|()| super::kept_in_its_folder(path)).map_err(|error| {
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
A server's first file of keys. To bring in another key later, without refusing anybody, there is `handfast \
keys rotate`.

Examples:
  handfast keys new --output keys.txt
  handfast keys new";
