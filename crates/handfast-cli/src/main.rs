//! `handfast`: argument parsing and wiring, nothing else.
#![cfg_attr(
    not(all(feature = "probe", feature = "twins", feature = "handles", feature = "gateway")),
    allow(dead_code, reason = "what the commands that are left out would have used")
)]

#[cfg(feature = "probe")]
mod address;
#[cfg(feature = "probe")]
mod catalogue;
#[cfg(feature = "probe")]
mod cxg;
#[cfg(feature = "demo")]
mod demo;
#[cfg(feature = "probe")]
mod discover;
#[cfg(feature = "gateway")]
mod gateway;
#[cfg(feature = "handles")]
mod handles;
mod input;
#[cfg(feature = "twins")]
mod issuer;
#[cfg(feature = "handles")]
mod keys;
mod output;
#[cfg(feature = "probe")]
mod plan;
#[cfg(feature = "probe")]
mod probe;
#[cfg(all(feature = "probe", feature = "twins"))]
mod prove;
#[cfg(feature = "probe")]
mod settings;
#[cfg(feature = "twins")]
mod twin;
mod watchdog;

use std::process::ExitCode;

use clap::{
    CommandFactory, Parser, Subcommand,
    error::{ContextValue, ErrorKind},
};

/// Proves whether an MCP server binds handles and sessions to principals, keeps requestState intact and heeds its tokens; and looks
/// after stores of handles.
#[derive(Debug, Parser)]
#[command(name = "handfast", version, max_term_width = 100, after_help = EXAMPLES)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
#[allow(clippy::large_enum_variant, reason = "there is one of it")]
enum Command {
    /// See it all at once: a flawed server, the probe, the gateway in front of the server, and the probe once more
    #[cfg(feature = "demo")]
    Demo(demo::Args),
    /// Test a server: two identities, one mutation, controls that could have said no
    #[cfg(feature = "probe")]
    Probe(probe::Args),
    /// Say what `probe` would do to a server: the calls, by whom, with which arguments; make none of them
    #[cfg(feature = "probe")]
    Plan(plan::Args),
    /// Show which handles a server mints and who accepts them; write that as a profile
    #[cfg(feature = "probe")]
    Discover(discover::Args),
    /// Run the probe against the built-in twins, in every direction, and check each verdict's evidence
    #[cfg(all(feature = "probe", feature = "twins"))]
    Prove(prove::Args),
    /// Start a twin: a server with one guard left out, or the sound one
    #[cfg(feature = "twins")]
    Twin(twin::Args),
    /// Start an issuer of access tokens on this machine, for tests and demonstrations
    #[cfg(feature = "twins")]
    Issuer(issuer::Args),
    /// List the checks, or explain one
    #[cfg(feature = "probe")]
    Checks(catalogue::Args),
    /// Stand in for the published check of the same purpose: its arguments, variables and output
    #[cfg(feature = "probe")]
    Cxg(cxg::Args),
    /// Stand in front of a server that nobody can change, and make its handles, states and sessions their owner's alone
    #[cfg(feature = "gateway")]
    Gateway(gateway::Args),
    /// Look after a store of handles: list, revoke, purge, verify
    #[cfg(feature = "handles")]
    Handles(handles::Args),
    /// Make, exchange and show the keys under which a server keeps whose a handle is and seals its states
    #[cfg(feature = "handles")]
    Keys(keys::Args),
    /// Print completions for a shell
    Completions {
        /// The shell
        shell: clap_complete::Shell,
    },
}

fn main() -> ExitCode {
    std::panic::set_hook(Box::new(|panic| {
        let place = panic.location().map(ToString::to_string).unwrap_or_default();
        output::complain(&format!("internal error at {place}; please report it"));
    }));
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => return usage(&error),
    };
    let Ok(runtime) = runtime(&cli.command) else {
        output::complain("the operating system gives no event loop");
        return ExitCode::from(3);
    };
    if !heeds_signals(&cli.command) {
        watchdog::over_signals();
    }
    let running = std::panic::AssertUnwindSafe(|| runtime.block_on(interruptible(cli.command)));
    std::panic::catch_unwind(running).unwrap_or(ExitCode::from(3))
}

/// One thread is enough for everything but a race.
fn runtime(command: &Command) -> std::io::Result<tokio::runtime::Runtime> {
    use tokio::runtime::Builder;
    let mut builder = match command {
        #[cfg(feature = "handles")]
        Command::Handles(args) if handles::races(args) => Builder::new_multi_thread(),
        #[cfg(feature = "gateway")]
        Command::Gateway(_) => Builder::new_multi_thread(),
        _ => Builder::new_current_thread(),
    };
    builder.enable_all().build()
}

/// Whether it ends in good order by itself, and knows signals that are no reason to end.
fn heeds_signals(command: &Command) -> bool {
    #[cfg(feature = "gateway")]
    return matches!(command, Command::Gateway(_));
    #[cfg(not(feature = "gateway"))]
    return {
        let _ = command;
        false
    };
}

/// Runs a command until it ends or a person ends it; then everything that it started is dropped, and thereby ended.
async fn interruptible(command: Command) -> ExitCode {
    if heeds_signals(&command) {
        return run(command).await;
    }
    #[cfg(feature = "twins")]
    let serves = matches!(command, Command::Twin(_) | Command::Issuer(_));
    #[cfg(not(feature = "twins"))]
    let serves = false;
    tokio::select! {
        // First, so that nothing is begun before a signal would be heard.
        biased;
        // To be ended is how a server ends.
        () = interrupted() => if serves { ExitCode::SUCCESS } else {
            output::complain("interrupted");
            ExitCode::from(130)
        },
        code = run(command) => code,
    }
}

/// Waits for a person or a supervisor to end the program.
pub(crate) async fn interrupted() {
    use tokio::signal::unix::{SignalKind, signal};
    let signals = (signal(SignalKind::interrupt()), signal(SignalKind::terminate()), signal(SignalKind::hangup()));
    let (Ok(mut interrupt), Ok(mut terminate), Ok(mut hangup)) = signals else {
        return std::future::pending().await;
    };
    tokio::select! {
        _ = interrupt.recv() => {}
        _ = terminate.recv() => {}
        _ = hangup.recv() => {}
    }
}

async fn run(command: Command) -> ExitCode {
    let ended = match command {
        #[cfg(feature = "demo")]
        Command::Demo(args) => demo::run(args).await,
        #[cfg(feature = "probe")]
        Command::Probe(args) => probe::run(args).await,
        #[cfg(feature = "probe")]
        Command::Plan(args) => plan::run(args).await,
        #[cfg(feature = "probe")]
        Command::Discover(args) => discover::run(args).await,
        #[cfg(all(feature = "probe", feature = "twins"))]
        Command::Prove(args) => prove::run(args).await,
        #[cfg(feature = "twins")]
        Command::Twin(args) => twin::run(args).await,
        #[cfg(feature = "twins")]
        Command::Issuer(args) => issuer::run(args).await,
        #[cfg(feature = "probe")]
        Command::Checks(args) => catalogue::run(&args),
        #[cfg(feature = "probe")]
        Command::Cxg(args) => cxg::run(args).await,
        #[cfg(feature = "gateway")]
        Command::Gateway(args) => gateway::run(args).await,
        #[cfg(feature = "handles")]
        Command::Handles(args) => handles::run(args).await,
        #[cfg(feature = "handles")]
        Command::Keys(args) => keys::run(&args),
        Command::Completions { shell } => {
            let mut text = Vec::new();
            clap_complete::generate(shell, &mut Cli::command(), "handfast", &mut text);
            output::print(&String::from_utf8_lossy(&text)).map(|()| ExitCode::SUCCESS)
        }
    };
    ended.unwrap_or_else(|failure| {
        output::complain(&failure.0);
        ExitCode::from(2)
    })
}

/// Bad usage: what, where and what to do, in one line.
fn usage(error: &clap::Error) -> ExitCode {
    if matches!(error.kind(), ErrorKind::DisplayHelp | ErrorKind::DisplayVersion) {
        return match output::print(&error.render().ansi().to_string()) {
            Ok(()) => ExitCode::SUCCESS,
            Err(_) => ExitCode::from(2),
        };
    }
    let text = without_secrets(error);
    if error.kind() == ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand {
        let usage = text.lines().find_map(|line| line.strip_prefix("Usage: ")).unwrap_or("handfast <COMMAND>");
        let help = usage.trim_end_matches(" <COMMAND>");
        output::complain(&format!("a command is missing: {usage} (see `{help} --help`)"));
        return ExitCode::from(2);
    }
    let mut parts =
        text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with("For more information"));
    let first = parts.next().unwrap_or("bad usage").trim_start_matches("error: ").to_owned();
    let rest: Vec<&str> = parts.take_while(|line| !line.starts_with("Usage:")).collect();
    let joined = if rest.is_empty() { first } else { format!("{first} {}", rest.join(" ")) };
    output::complain(&format!("{joined} (see `{} --help`)", command_meant()));
    ExitCode::from(2)
}

/// The command that was meant, as far as it was one.
fn command_meant() -> String {
    let (mut command, mut words) = (Cli::command(), vec!["handfast".to_owned()]);
    for word in std::env::args_os().skip(1) {
        let Some(next) = command.find_subcommand(&word).cloned() else { break };
        words.push(next.get_name().to_owned());
        command = next;
    }
    words.join(" ")
}

/// What clap says, without repeating what may be a secret in a place where it does not belong: a URL or keywords may hold
/// a password, and a handle, a key or a token is a long word.
fn without_secrets(error: &clap::Error) -> String {
    let secret = |text: &str| {
        let between = |byte: &u8| !(byte.is_ascii_alphanumeric() || [b'-', b'_'].contains(byte));
        text.contains(['@', '='])
            || text.contains("://")
            || text.as_bytes().split(between).any(|word| word.len() >= SECRET_WORD)
    };
    error.context().fold(error.render().to_string(), |text, (_, value)| match value {
        ContextValue::String(given) => {
            // What clap shows has no escape sequences in it, however many were given.
            let shown = anstream::adapter::strip_str(given).to_string();
            if secret(&shown) { text.replace(&shown, "…") } else { text }
        }
        _ => text,
    })
}

/// Shorter than every handle, key and token that deserves the name; longer than the names of options.
const SECRET_WORD: usize = 32;

const EXAMPLES: &str = "\
Examples:
  handfast prove
  handfast probe https://mcp.example.com/mcp --identity-a \"$ALICE\" --identity-b \"$BOB\"
  handfast probe --format json --output report.json -- npx -y some-mcp-server
  handfast checks handle-foreign-principal
  handfast handles list --store sqlite:handles.db

Exit codes: 0 nothing confirmed, or done; 1 something confirmed, or a property failed; 2 bad usage \
or input; 3 something errored, nothing could be tested, or stopped half-way";
