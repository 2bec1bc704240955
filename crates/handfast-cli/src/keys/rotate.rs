//! `handfast keys rotate`: one step at a time, because all replicas must have taken one before any takes the next.

use std::{path::PathBuf, process::ExitCode, time::Duration};

use handfast::{KeyId, KeyUse};

use super::file::KeyFile;
use crate::output::{self, Failure};

/// Arguments of `handfast keys rotate`.
#[derive(Debug, clap::Args)]
#[command(after_help = HELP)]
pub(crate) struct Args {
    /// The file of keys
    file: PathBuf,

    /// Say what the next step is, and leave the file as it is
    #[arg(long)]
    dry_run: bool,

    /// Retire a key even if states that were sealed under it may still be alive
    #[arg(long)]
    now: bool,
}

/// A step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Step {
    /// A new key, which opens and does not seal yet.
    Add,
    /// The new key seals, the old one opens.
    Switch,
    /// The old key opens nothing any more.
    Retire,
}

/// How long a state lives at most, unless a server says otherwise.
const LONGEST: Duration = Duration::from_secs(3600);

/// Runs the command.
pub(super) fn run(args: &Args) -> Result<ExitCode, Failure> {
    // Of two who rotate at once one waits, and takes the step after that of the other.
    let held = std::fs::File::open(&args.file).and_then(|file| file.lock().map(|()| file));
    let mut file = KeyFile::read(&args.file)?;
    let (at, sealing) = file
        .keys()
        .find(|(_, _, used)| *used == KeyUse::Sealing)
        .map(|(at, id, _)| (at, id))
        .ok_or_else(|| Failure(format!("{}: no key is `sealing`", args.file.display())))?;
    let opening: Vec<(usize, KeyId)> =
        file.keys().filter(|(_, _, used)| *used == KeyUse::Opening).map(|(at, id, _)| (at, id)).collect();
    // The newest stands first. What stands before the key that seals is on its way there, what stands behind it has been.
    let next = opening.iter().find(|(place, _)| *place < at).copied();
    let step = match (next, opening.is_empty()) {
        (Some(_), _) => Step::Switch,
        (None, false) => Step::Retire,
        (None, true) => Step::Add,
    };
    if step == Step::Retire && !args.now && !args.dry_run {
        old_enough(args)?;
    }
    let told = match (step, next) {
        (Step::Switch, Some((place, id))) => {
            file.set(place, KeyUse::Sealing);
            file.set(at, KeyUse::Opening);
            format!(
                "step 2 of 3: {id} seals from now on, {sealing} only opens. Bring this file to every replica, and take \
                 the next step an hour after the last one has it"
            )
        }
        (Step::Retire, _) => {
            opening.iter().for_each(|(place, _)| file.set(*place, KeyUse::Retired));
            "step 3 of 3: what does not seal opens no state any more. Bring this file to every replica. A retired key still \
             tells whose handles are: drop its line when all handles that were made under it have ended"
                .to_owned()
        }
        _ => {
            file.set(at, KeyUse::Sealing);
            let id = file.add_before(at)?;
            format!(
                "step 1 of 3: {id} is new, and only opens; {sealing} goes on sealing. Bring this file to every replica, \
                 and then take the next step"
            )
        }
    };
    if args.dry_run {
        // The id of a key that was not made names nothing.
        let told = if step == Step::Add { "step 1 of 3: a new key, which only opens at first" } else { &told };
        output::print(&format!("next: {told}\n"))?;
        return Ok(ExitCode::SUCCESS);
    }
    file.write()?;
    drop(held);
    output::print(&format!("{told}\n"))?;
    Ok(ExitCode::SUCCESS)
}

/// The file was changed last by the step before, as far as anybody can tell.
fn old_enough(args: &Args) -> Result<(), Failure> {
    let changed = std::fs::metadata(&args.file).and_then(|metadata| metadata.modified());
    let age = changed.ok().and_then(|changed| changed.elapsed().ok()).unwrap_or_default();
    if age >= LONGEST {
        return Ok(());
    }
    let age = humantime::format_duration(Duration::from_secs(age.as_secs()));
    Err(Failure(format!(
        "{} was changed {age} ago, and states that were sealed before may live for an hour: wait, or say --now",
        args.file.display()
    )))
}

const HELP: &str = "\
Run it three times. First a new key is added that opens and does not seal; then it seals and the old one only \
opens; then, an hour later, the old one is retired. After each step every replica needs the file, and has to be \
started again, before the next one, so that none of them ever meets a key that it does not know. The hour is \
counted from the last change of the file. After a leak go on without it (--now): until a key is retired, whoever \
has it can write states. In the file the newest key stands first. Where a server \
lets states live for longer than an hour, wait for as long yourself before the third step.

Examples:
  handfast keys rotate keys.txt --dry-run
  handfast keys rotate keys.txt

Exit codes: 0 the step was taken; 2 bad usage or input, or it is too early for the step";
