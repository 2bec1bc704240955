//! `handfast keys inspect`.

use std::{io::Read, path::PathBuf, process::ExitCode};

use handfast::{KeyUse, seal::Sealer};

use super::file::KeyFile;
use crate::output::{self, Failure};

/// Arguments of `handfast keys inspect`.
#[derive(Debug, clap::Args)]
#[command(after_help = HELP)]
pub(crate) struct Args {
    /// The file of keys
    file: PathBuf,

    /// Say which of them the state on standard input was sealed under
    #[arg(long)]
    state_stdin: bool,
}

/// Runs the command.
pub(super) fn run(args: &Args) -> Result<ExitCode, Failure> {
    let file = KeyFile::read(&args.file)?;
    if args.state_stdin {
        return sealed_under(&file);
    }
    let mut text = String::new();
    for (_, id, used) in file.keys() {
        text.push_str(&format!("{id}\t{}\t{}\n", used.word(), means(used)));
    }
    output::print(&text)?;
    Ok(ExitCode::SUCCESS)
}

fn means(used: KeyUse) -> &'static str {
    match used {
        KeyUse::Sealing => "seals and opens states; new handles are kept under it",
        KeyUse::Opening => "opens states; tells whose handles are",
        KeyUse::Retired => "opens no state; tells whose handles are",
    }
}

fn sealed_under(file: &KeyFile) -> Result<ExitCode, Failure> {
    let mut state = String::new();
    let read = std::io::stdin().lock().take(LONGEST).read_to_string(&mut state);
    read.map_err(|error| Failure(format!("standard input: {error}")))?;
    let id = Sealer::key_of(state.trim()).map_err(|refused| {
        Failure(format!("standard input: this is no state of this kind ({}); one begins with hf1.", refused.denial()))
    })?;
    let told = match file.keys().find(|(_, known, _)| *known == id) {
        Some((_, _, used)) => format!("{id}\t{}\t{}\n", used.word(), means(used)),
        None => format!("{id}\tunknown\tnot in this file: it is refused\n"),
    };
    output::print(&told)?;
    Ok(ExitCode::SUCCESS)
}

/// Longer than every state.
const LONGEST: u64 = 100_000;

const HELP: &str = "\
Each line has, with tabs between: the id of the key, what it is used for, and what that means. A state names \
the key it was sealed under in clear; whether it is authentic only its server can tell, which knows for whom \
and for what it was sealed.

Examples:
  handfast keys inspect keys.txt
  handfast keys inspect keys.txt --state-stdin < state.txt";
