//! `handfast discover`.

use std::{fmt::Write, path::PathBuf, process::ExitCode};

use handfast_probe::{discovery::Map, profile::Profile, surface::Surface};

use crate::{
    output::{self, Failure, Progress},
    probe::NOTICE,
    settings::Settings,
};

/// Arguments of `handfast discover`.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    #[command(flatten)]
    settings: Settings,

    /// Write what was found as a profile; an existing file is left alone
    #[arg(long, value_name = "FILE")]
    write: Option<PathBuf>,
}

/// Runs the command.
pub(crate) async fn run(args: Args) -> Result<ExitCode, Failure> {
    if let Some(path) = args.write.as_ref().filter(|path| path.exists()) {
        return Err(Failure(format!("{} exists already; choose another name, or move it away", path.display())));
    }
    let run = args.settings.into_run().await?;
    output::complain(NOTICE);
    let found = {
        let progress = Progress::start();
        run.discover(&|text| progress.say(text)).await.map_err(|error| Failure(error.to_string()))?
    };
    let (surface, map) = match found {
        Ok(found) => found,
        Err(halt) => {
            output::complain(&format!("{}: {}", halt.reason.slug(), halt.detail));
            return Ok(ExitCode::from(3));
        }
    };
    let redactor = run.redactor();
    output::print(&output::harmless(&redactor.text(&described(&surface, &map))))?;
    if let Some(path) = args.write {
        output::write(&path, &Profile::of(&map).to_text(|found| redactor.text(found)))?;
        output::complain(&format!("wrote {}; edit it and pass it with --profile", path.display()));
    }
    Ok(ExitCode::SUCCESS)
}

fn described(surface: &Surface, map: &Map) -> String {
    let mut text = String::new();
    let (tools, prompts, resources) = (surface.tools.len(), surface.prompts.len(), surface.templates.len());
    let _ = writeln!(text, "{tools} tools, {prompts} prompts, {resources} resources and templates\n");
    if map.kinds.is_empty() {
        let _ = writeln!(text, "no handle found: no tool hands out a value that something else accepts\n");
    }
    for kind in &map.kinds {
        let _ = writeln!(text, "handle minted by {} at {}", kind.mint, kind.spot.shown());
        for entry in &kind.entries {
            let _ = writeln!(text, "  accepted by {entry}");
        }
        text.push('\n');
    }
    for tool in &map.barren {
        let _ = writeln!(text, "hands nothing out: {tool}");
    }
    for (tool, why) in &map.without_arguments {
        let _ = writeln!(text, "no arguments could be made: {tool}: {why}");
    }
    for (tool, why) in &map.left_out {
        let _ = writeln!(text, "left out: {tool}: {why}");
    }
    text
}

const EXAMPLES: &str = "\
Examples:
  handfast discover http://127.0.0.1:8000/mcp
  handfast discover --write profile.toml -- python3 server.py";
