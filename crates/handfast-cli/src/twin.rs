//! `handfast twin`.

use std::process::ExitCode;

use clap::ValueEnum;
use handfast_twins::{Answers, Twin};

use crate::output::{self, Failure};

/// Arguments of `handfast twin`.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Most twins take any text as a bearer token, and it is whom it names. Those with a gate, from `gated` to \
`no-challenge`, know `alice` and `bob`, and tokens of alice that should open nothing: `expired-alice`, `elsewhere-alice` \
(for another server), `client-alice` (for the client itself).

Examples:\n  handfast twin flawed --port 8971\n  handfast twin sound --transport stdio\n  handfast twin --list\n  handfast twin signed-tokens --token alice"
)]
pub(crate) struct Args {
    /// Which twin: flawed, sound, noguard, opaque, legacy, or another of `--list`
    #[arg(required_unless_present = "list")]
    mode: Option<String>,

    /// How it is spoken to; http listens on 127.0.0.1 only
    #[arg(long, value_enum, default_value_t = Transport::Http)]
    transport: Transport,

    /// The port; 0 takes any that is free
    #[arg(long, default_value_t = 0)]
    port: u16,

    /// How it answers over HTTP
    #[arg(long, value_enum, default_value_t = Framing::Json)]
    answers: Framing,

    /// Print the token that the twin takes for this text, and stop: most take the text itself, some sign it
    #[arg(long, value_name = "TEXT", requires = "mode")]
    token: Option<String>,

    /// List the twins
    #[arg(long)]
    list: bool,
}

/// How a server is spoken to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Transport {
    /// Streamable HTTP
    Http,
    /// Standard input and output
    Stdio,
}

/// How answers are framed over HTTP.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Framing {
    /// One JSON body
    Json,
    /// A stream of events
    Sse,
}

/// Runs the command.
pub(crate) async fn run(args: Args) -> Result<ExitCode, Failure> {
    if args.list {
        let lines: String =
            handfast_twins::all().iter().map(|twin| format!("{:<26} {}\n", twin.name, twin.summary)).collect();
        output::print(&lines)?;
        return Ok(ExitCode::SUCCESS);
    }
    let twin = named(args.mode.as_deref().unwrap_or_default())?;
    if let Some(text) = &args.token {
        output::print(&format!("{}\n", twin.token(text)))?;
        return Ok(ExitCode::SUCCESS);
    }
    match args.transport {
        Transport::Http => {
            let answers = match args.answers {
                Framing::Json => Answers::Json,
                Framing::Sse => Answers::Sse,
            };
            let served = handfast_twins::serve_http(twin, args.port, answers).await.map_err(|error| {
                Failure(format!("cannot listen on 127.0.0.1:{}: {error}; --port 0 takes any that is free", args.port))
            })?;
            output::print(&format!("{}\n", served.url()))?;
            std::future::pending::<()>().await;
        }
        Transport::Stdio => {
            let input = tokio::io::BufReader::new(tokio::io::stdin());
            handfast_twins::serve_stdio(twin, input, tokio::io::stdout())
                .await
                .map_err(|error| Failure(format!("standard input and output: {error}")))?;
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// The twin of this name.
pub(crate) fn named(name: &str) -> Result<&'static Twin, Failure> {
    handfast_twins::find(name)
        .ok_or_else(|| Failure(format!("there is no twin `{name}`; `handfast twin --list` names them")))
}
