//! `handfast gateway`.

use std::{path::PathBuf, process::ExitCode};

use handfast_gateway::{
    Running,
    config::{Config, Written},
};
use metrics_exporter_prometheus::PrometheusBuilder;
use tokio::signal::unix::{Signal, SignalKind, signal};

use crate::output::{self, Failure};

/// Arguments of `handfast gateway`.
#[derive(Debug, clap::Args)]
#[command(after_help = HELP)]
pub(crate) struct Args {
    /// The configuration; what is said here besides goes before it
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,

    /// Read the configuration, say what is wrong with it, and stop
    #[arg(long)]
    check: bool,

    /// The server behind, over HTTP
    #[arg(long, value_name = "URL")]
    upstream: Option<String>,

    /// Where to listen
    #[arg(long, value_name = "ADDRESS")]
    listen: Option<String>,

    /// Where health and metrics are
    #[arg(long, value_name = "ADDRESS")]
    admin: Option<String>,

    /// The issuer of the access tokens that clients show
    #[arg(long, value_name = "URL")]
    issuer: Option<String>,

    /// The URI of this server, as tokens name it in `aud`
    #[arg(long, value_name = "URI")]
    audience: Option<String>,

    /// Where the issuer's keys are, if its metadata do not say so
    #[arg(long, value_name = "URL")]
    jwks: Option<String>,

    /// The header in which a proxy on this machine says who calls; it must take it away where a client sends it
    #[arg(long, value_name = "NAME")]
    identity_header: Option<String>,

    /// Nobody is known: handles are good for whoever holds them
    #[arg(long)]
    bearer: bool,

    /// The rules: what `handfast discover --write` has written
    #[arg(long, value_name = "FILE")]
    rules: Option<PathBuf>,

    /// Refuse tools that no rule knows
    #[arg(long)]
    strict: bool,

    /// Where handles are kept: sqlite:FILE, or postgres://USER@HOST/DATABASE
    #[arg(long, value_name = "URL", env = "HANDFAST_STORE", hide_env_values = true)]
    store: Option<String>,

    /// The file of keys (`handfast keys new`); HANDFAST_KEYS may hold them instead
    #[arg(long, value_name = "FILE")]
    keys: Option<PathBuf>,

    /// The file of audit events; standard error without it
    #[arg(long, value_name = "FILE")]
    audit: Option<PathBuf>,

    /// The command that starts the server behind, which is spoken to on its standard input and output
    #[arg(last = true, value_name = "COMMAND")]
    command: Vec<String>,
}

/// Runs the command.
pub(crate) async fn run(args: Args) -> Result<ExitCode, Failure> {
    let config = args.config()?;
    if args.check {
        output::print("the configuration can be run\n")?;
        return Ok(ExitCode::SUCCESS);
    }
    let recorder = PrometheusBuilder::new().build_recorder();
    let metrics = recorder.handle();
    // Another recorder is none of ours: there is none in this program.
    let _ = metrics::set_global_recorder(recorder);
    handfast::describe_metrics();
    handfast_gateway::describe_metrics();
    logged();
    let running = Running::start(config).await.map_err(|error| Failure(error.to_string()))?;
    for remark in &running.remarks {
        output::complain(remark);
    }
    // Heard from the beginning: whoever reads where it listens may send one at once.
    let signals = Signals::new().map_err(|error| Failure(format!("signals cannot be heard: {error}")))?;
    let Signals { mut hangups, interrupts, terminations } = signals;
    output::print(&format!("listening on {}\n", running.url()))?;
    if let Some(admin) = running.admin_url() {
        output::print(&format!("health and metrics on {admin}\n"))?;
    }
    let reloader = running.reloader();
    let reloading = async {
        while hangups.recv().await.is_some() {
            let reloaded = args.config().map_err(|failure| failure.0);
            let reloaded = reloaded.and_then(|config| reloader.reload(config).map_err(|error| error.to_string()));
            match reloaded {
                Ok(()) => output::complain("rules and keys are read again"),
                Err(error) => output::complain(&format!("nothing is changed: {error}")),
            }
        }
    };
    let ended = running.serve(move || metrics.render(), ended(interrupts, terminations));
    tokio::select! {
        ended = ended => ended.map_err(|error| Failure(format!("cannot listen any more: {error}")))?,
        () = reloading => {}
    }
    Ok(ExitCode::SUCCESS)
}

impl Args {
    fn config(&self) -> Result<Config, Failure> {
        let fail = |error: handfast_gateway::config::ConfigError| Failure(error.to_string());
        let mut written = match &self.config {
            Some(path) => Written::from_file(path).map_err(fail)?,
            None => Written::default(),
        };
        let over = |place: &mut Option<String>, given: &Option<String>| {
            if let Some(given) = given {
                *place = Some(given.clone());
            }
        };
        over(&mut written.listen, &self.listen);
        over(&mut written.admin, &self.admin);
        over(&mut written.audience, &self.audience);
        over(&mut written.store, &self.store);
        if self.upstream.is_some() || !self.command.is_empty() {
            (written.upstream, written.command) = (self.upstream.clone(), Some(self.command.clone()));
        }
        for (place, given) in
            [(&mut written.rules, &self.rules), (&mut written.keys, &self.keys), (&mut written.audit, &self.audit)]
        {
            if given.is_some() {
                place.clone_from(given);
            }
        }
        // Whoever says who calls says all of it.
        if self.issuer.is_some() || self.identity_header.is_some() || self.bearer {
            let who = &mut written.who;
            (who.issuer, who.identity_header) = (self.issuer.clone(), self.identity_header.clone());
            who.bearer = self.bearer.then_some(true);
        }
        over(&mut written.who.jwks, &self.jwks);
        if self.strict {
            written.strict = Some(true);
        }
        written.parse().map_err(fail)
    }
}

/// What a person or a supervisor can say to a process.
struct Signals {
    hangups: Signal,
    interrupts: Signal,
    terminations: Signal,
}

impl Signals {
    fn new() -> std::io::Result<Self> {
        Ok(Self {
            hangups: signal(SignalKind::hangup())?,
            interrupts: signal(SignalKind::interrupt())?,
            terminations: signal(SignalKind::terminate())?,
        })
    }
}

/// Waits for a person or a supervisor to end it.
async fn ended(mut interrupts: Signal, mut terminations: Signal) {
    tokio::select! {
        _ = interrupts.recv() => {}
        _ = terminations.recv() => {}
    }
}

/// What the gateway has to say of itself, on standard error.
fn logged() {
    let level = std::env::var("HANDFAST_LOG").ok().and_then(|level| level.parse().ok());
    let level = level.unwrap_or(tracing::level_filters::LevelFilter::INFO);
    let _ = tracing_subscriber::fmt().with_writer(std::io::stderr).with_max_level(level).with_ansi(false).try_init();
}

const HELP: &str = "\
Examples:
  handfast discover --write rules.toml http://127.0.0.1:9000/mcp
  handfast gateway --upstream http://127.0.0.1:9000/mcp --rules rules.toml \\
      --issuer https://id.example.com --audience https://mcp.example.com/mcp
  handfast gateway --rules rules.toml --identity-header X-User -- python server.py
  handfast gateway --config gateway.toml --check

SIGHUP reads rules and keys again, SIGTERM lets running requests end. HANDFAST_LOG says how much is told: warn, info, debug.";
