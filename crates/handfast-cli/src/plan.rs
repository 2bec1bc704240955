//! `handfast plan`, which is `handfast probe --dry-run` by a name of its own.

use std::{fmt::Write, process::ExitCode};

use handfast_probe::{
    plan::{Plan, Planned},
    runner::Run,
};

use crate::{
    output::{self, Failure},
    settings::{self, Settings},
};

/// Arguments of `handfast plan`.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    #[command(flatten)]
    settings: Settings,

    /// Only this check, or those whose ids fit (`session-*`); may be repeated
    #[arg(long = "check", value_name = "ID")]
    checks: Vec<String>,
}

/// Runs the command.
pub(crate) async fn run(args: Args) -> Result<ExitCode, Failure> {
    let checks = settings::chosen(&args.checks)?;
    let mut run = args.settings.into_run().await?;
    run.checks = checks;
    print(&run).await
}

/// Prints what a run would do.
pub(crate) async fn print(run: &Run) -> Result<ExitCode, Failure> {
    let plan = run.plan(&|_| {}).await.map_err(|error| Failure(error.to_string()))?;
    let plan = match plan {
        Ok(plan) => plan,
        Err(halt) => {
            output::complain(&format!("{}: {}", halt.reason.slug(), halt.detail));
            return Ok(ExitCode::from(3));
        }
    };
    output::print(&output::harmless(&text(run, &plan)))?;
    Ok(ExitCode::SUCCESS)
}

fn text(run: &Run, Plan { calls, others }: &Plan) -> String {
    let mut text =
        String::from("Calls that a run would begin with, as A and as B; handles are filled in as they are minted.\n\n");
    let redactor = run.redactor();
    for Planned { call, arguments, left_out } in calls {
        let line = match (left_out, arguments) {
            (Some(why), _) => format!("left out   {}: {why}", call.trim_start_matches("tools/call ")),
            (None, Ok(arguments)) => format!("{call} {arguments}"),
            (None, Err(why)) => format!("impossible {call}: {why}"),
        };
        let _ = writeln!(text, "{}", redactor.excerpt(&line, LONGEST_LINE).replace('\n', " "));
    }
    let checks = run.checks.len();
    let _ = writeln!(
        text,
        "\nThen each of {checks} checks makes such calls again, as A and as B: with fresh arguments, with the handles of the other, with\n\
         handles and states that nobody issued, with states that are altered. Besides them call"
    );
    for (who, what) in others {
        let _ = writeln!(text, "  {who}: {what}");
    }
    let time = humantime::format_duration(run.max_time);
    let _ = writeln!(text, "At most {} calls within {time} (--max-calls, --max-time).", run.max_calls);
    text
}

const LONGEST_LINE: usize = 1000;

const EXAMPLES: &str = "\
Examples:
  handfast plan http://127.0.0.1:8000
  handfast plan --check 'handle-*' -- python3 server.py";
