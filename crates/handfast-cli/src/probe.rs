//! `handfast probe`.

use std::{path::PathBuf, process::ExitCode, time::Duration};

use clap::ValueEnum;
use handfast_probe::{format, report::Report};

use crate::{
    output::{self, Failure, Progress},
    plan,
    settings::{self, Settings},
};

/// Arguments of `handfast probe`.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    #[command(flatten)]
    settings: Settings,

    /// Run only this check, or those whose ids fit (`session-*`); may be repeated (`handfast checks` lists them)
    #[arg(long = "check", value_name = "ID")]
    checks: Vec<String>,

    /// Time that a check may wait, for each entry point, to see whether something ends that should (two seconds it waits in any case)
    #[arg(long, value_name = "TIME", default_value = "0s", value_parser = humantime::parse_duration, help_heading = "Bounds")]
    max_wait: Duration,

    /// How to write the report
    #[arg(long, value_enum, default_value_t = Format::Text)]
    format: Format,

    /// Write the report to a file instead of standard output
    #[arg(long, value_name = "FILE")]
    output: Option<PathBuf>,

    /// List the server and print the calls that would be made; make none of them
    #[arg(long)]
    dry_run: bool,

    /// Exit with 3 also when something that the server has was left untested, or somebody was let in and nothing shows to what
    #[arg(long)]
    strict: bool,

    /// Exit with 3 unless these checks were tested, whatever they came to: ids, or what ids fit (`session-*`, `*-overbound`)
    #[arg(long, value_name = "ID[,ID]", value_delimiter = ',')]
    require: Vec<String>,

    /// Run so many times, and say how often each check came to what it came to
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u8).range(1..=100))]
    repeat: u8,

    /// Another address of the same server, at which A's handles must serve A as well; may be repeated
    #[arg(long = "replica", value_name = "URL")]
    replicas: Vec<String>,
}

/// How a report is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    /// For a person
    Text,
    /// For a program: version 1, with a published schema
    Json,
}

/// Runs the command.
pub(crate) async fn run(args: Args) -> Result<ExitCode, Failure> {
    let checks = settings::chosen(&args.checks)?;
    let required: Vec<&'static str> = match &args.require[..] {
        [] => Vec::new(),
        ids => settings::chosen(ids)?.iter().map(|check| check.id).collect(),
    };
    if let Some(id) = required.iter().find(|id| checks.iter().all(|check| check.id != **id)) {
        return Err(Failure(format!("--require {id}: this run leaves it out (--check); add it, or do not require it")));
    }
    let replicas = args.replicas.iter().map(|url| replica(url)).collect::<Result<Vec<_>, _>>()?;
    let mut run = args.settings.into_run().await?;
    run.checks = checks;
    run.replicas = replicas;
    if args.max_wait >= run.max_time {
        return Err(Failure(
            "--max-wait must be less than --max-time, within which everything has to be done".to_owned(),
        ));
    }
    run.max_wait = args.max_wait;
    if let Some(path) = &args.output {
        output::writable(path)?;
    }
    if args.dry_run {
        return plan::print(&run).await;
    }
    output::complain(NOTICE);
    let report = {
        let progress = Progress::start();
        run.repeated(args.repeat.into(), &|text| progress.say(text))
            .await
            .map_err(|error| Failure(error.to_string()))?
    };
    write(&report, args.format, args.output.as_deref())?;
    if let Some(path) = &args.output {
        // The log of a pipeline should show what the file says.
        output::complain(&format!("{}; the report is in {}", report.totals, path.display()));
    }
    let open = if args.strict { report.left_open() } else { Vec::new() };
    for (id, entry, reason) in &open {
        let at = entry.map(|entry| format!(" at {entry}")).unwrap_or_default();
        output::complain(&format!("--strict: {id} is open{at}: {}", reason.slug()));
    }
    for (id, reason) in report.untested(&required) {
        output::complain(&format!("{id} is required and was not tested: {}", reason.slug()));
    }
    Ok(ExitCode::from(report.exit_code(args.strict, &required)))
}

fn replica(text: &str) -> Result<url::Url, Failure> {
    let parsed = url::Url::parse(text).ok().filter(|url| matches!(url.scheme(), "http" | "https") && url.has_host());
    parsed.ok_or_else(|| Failure("--replica takes an http or https URL, with its path".to_owned()))
}

fn write(report: &Report, format: Format, path: Option<&std::path::Path>) -> Result<(), Failure> {
    let text = match format {
        Format::Text => format::text::write(report, path.is_none() && output::takes_colour()),
        Format::Json => format::json::write(report),
    };
    match path {
        Some(path) => output::write(path, &text),
        None => output::print(&text),
    }
}

/// Said at the start of every run that calls tools.
pub(crate) const NOTICE: &str =
    "this calls the server's tools, as two users; make sure that you are authorised to test it";

const EXAMPLES: &str = "\
Examples:
  handfast probe https://mcp.example.com/mcp --identity-a \"$ALICE\" --identity-b \"$BOB\"
  handfast probe --dry-run http://127.0.0.1:8000
  handfast probe --check state-tampered --format json --output report.json -- python3 server.py
  handfast probe http://127.0.0.1:8000/mcp --require 'handle-*' --repeat 5 --replica http://127.0.0.1:8001/mcp
  handfast probe --start-timeout 3m -- npx -y some-mcp-server

Exit codes: 0 nothing confirmed; 1 something confirmed, advice (info) apart; 2 bad usage or input; 3 something errored, or nothing could be tested";
