//! `handfast cxg`: the arguments, variables and output of the published check that people have wired into an engine.

use std::{env, process::ExitCode, time::Duration};

use handfast_probe::{format, identity::Identities, runner::Run, target::Address};
use secrecy::SecretString;
use url::Url;

use crate::output::{self, Failure};

/// Arguments of `handfast cxg`.
#[derive(Debug, clap::Args)]
#[command(after_help = HELP)]
pub(crate) struct Args {
    #[arg(
        trailing_var_arg = true,
        allow_hyphen_values = true,
        value_name = "ARGS",
        help = "HOST [PORT] [SCHEME] (8000 and http by default), a URL, or --stdio COMMAND [ARGS...], or cli:///absolute/path"
    )]
    arguments: Vec<String>,
}

/// Runs the command. Whatever happens, the output is one JSON object and the exit code is 0.
pub(crate) async fn run(args: Args) -> Result<ExitCode, Failure> {
    output::complain(crate::probe::NOTICE);
    let text = match planned(&args.arguments) {
        Ok(run) => match run.probe(&|_| {}).await {
            Ok(report) => format::cxg::write(&report),
            Err(error) => format::cxg::errored(&error.to_string()),
        },
        Err(reason) => format::cxg::errored(&reason),
    };
    output::print(&text)?;
    Ok(ExitCode::SUCCESS)
}

fn planned(arguments: &[String]) -> Result<Run, String> {
    let address = address(arguments)?;
    let given = |name: &str| set(name).map(SecretString::from);
    let identities =
        Identities::new(given("CXG_MCP_IDENTITY_A"), given("CXG_MCP_IDENTITY_B")).map_err(|error| error.to_string())?;
    let mut run = Run::new(address, identities);
    // The published check knows of these two.
    run.checks.retain(|check| ["handle-foreign-principal", "state-tampered"].contains(&check.id));
    run.include_destructive = set("CXG_MCP_MRTR_INCLUDE_DESTRUCTIVE").as_deref() == Some("1");
    if let Some(key) = set("CXG_MCP_PRINCIPAL_META_KEY") {
        run.options.principal_key = key;
    }
    run.options.timeout = Duration::from_secs(12);
    crate::watchdog::over_time(run.max_time);
    Ok(run)
}

/// The target, in the order of precedence of the published check.
fn address(arguments: &[String]) -> Result<Address, String> {
    if let Some(command) = set("CXG_MCP_STDIO_CMD") {
        return of_words(split(&command)?);
    }
    if set("CERT_X_GEN_MODE").as_deref() == Some("engine") {
        return of_engine();
    }
    match arguments.split_first() {
        None => Err("usage: handfast cxg HOST [PORT] [SCHEME] | --stdio COMMAND [ARGS...] | cli:///path".to_owned()),
        Some((first, rest)) if first == "--stdio" => of_words(rest.to_vec()),
        Some((first, _)) if first.starts_with("cli://") => of_program(first.trim_start_matches("cli://")),
        Some((url, [])) if url.starts_with("http://") || url.starts_with("https://") => {
            Url::parse(url).map(Address::Http).map_err(|error| format!("`{url}`: {error}"))
        }
        Some((host, rest)) => {
            let port = rest.first().map_or("8000", String::as_str);
            of_url(rest.get(1).map_or("http", String::as_str), host, port)
        }
    }
}

fn of_engine() -> Result<Address, String> {
    let host = set("CERT_X_GEN_TARGET_HOST").ok_or("CERT_X_GEN_TARGET_HOST is not set")?;
    if let Some(path) = host.strip_prefix("cli://") {
        return of_program(path);
    }
    let is_command = set("CERT_X_GEN_TARGET_KIND").is_some_and(|kind| kind.eq_ignore_ascii_case("cli"));
    if is_command || (host.starts_with('/') && std::path::Path::new(&host).is_file()) {
        return of_program(&host);
    }
    let scheme = set("CERT_X_GEN_TARGET_PROTOCOL").unwrap_or_else(|| "http".to_owned());
    let port = set("CERT_X_GEN_TARGET_PORT").unwrap_or_else(|| "8000".to_owned());
    of_url(&scheme, &host, &port)
}

fn of_program(path: &str) -> Result<Address, String> {
    let mut words = vec![path.to_owned()];
    // A Python file that is not executable is run by Python, as the published check does.
    if path.ends_with(".py") && !is_executable(path) {
        words.insert(0, "python3".to_owned());
    }
    if let Some(more) = set("CXG_MCP_STDIO_ARGS") {
        words.extend(split(&more)?);
    }
    of_words(words)
}

fn of_words(words: Vec<String>) -> Result<Address, String> {
    match words.split_first() {
        Some((program, arguments)) if !program.is_empty() => {
            Ok(Address::Stdio { program: program.clone(), arguments: arguments.to_vec() })
        }
        _ => Err("--stdio needs a command".to_owned()),
    }
}

fn of_url(scheme: &str, host: &str, port: &str) -> Result<Address, String> {
    let host = host.trim_start_matches("http://").trim_start_matches("https://");
    let host = host.split('/').next().unwrap_or_default();
    let port: u16 = port.parse().map_err(|_| format!("`{port}` is not a port"))?;
    if !matches!(scheme, "http" | "https") {
        return Err(format!("`{scheme}` is not a scheme: http or https"));
    }
    // An IPv6 address needs its brackets before a port.
    let host =
        if host.matches(':').count() > 1 && !host.starts_with('[') { format!("[{host}]") } else { host.to_owned() };
    let bare = host.rsplit_once(':').filter(|(_, end)| end.parse::<u16>().is_ok() && !host.ends_with(']'));
    let host = bare.map_or(host.as_str(), |(host, _)| host);
    Url::parse(&format!("{scheme}://{host}:{port}/")).map(Address::Http).map_err(|error| format!("`{host}`: {error}"))
}

fn split(command: &str) -> Result<Vec<String>, String> {
    shlex::split(command).ok_or_else(|| "a command with an unclosed quote".to_owned())
}

fn set(name: &str) -> Option<String> {
    env::var(name).ok().filter(|value| !value.is_empty())
}

fn is_executable(path: &str) -> bool {
    use std::os::unix::fs::PermissionsExt;
    std::fs::metadata(path).is_ok_and(|metadata| metadata.is_file() && metadata.permissions().mode() & 0o111 != 0)
}

const HELP: &str = "\
Variables: CXG_MCP_IDENTITY_A, CXG_MCP_IDENTITY_B, CXG_MCP_STDIO_ARGS, CXG_MCP_STDIO_CMD, CXG_MCP_PRINCIPAL_META_KEY,
CXG_MCP_MRTR_INCLUDE_DESTRUCTIVE=1; for the engine CERT_X_GEN_MODE=engine with CERT_X_GEN_TARGET_HOST, _PORT, _PROTOCOL, _KIND.
The output is one JSON object with `findings`, `metadata.status` and `metadata.detail`; the exit code is 0.";
