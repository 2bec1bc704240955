//! Options that every command shares which talks to a server.

use std::{path::PathBuf, time::Duration};

use clap::Args;
use handfast_probe::{
    check::Check,
    checks,
    credential::{Environment, Source},
    identity::{Identities, Who},
    profile::Profile,
    runner::Run,
    target::{self, Address, ExtraHeader, HttpOptions, Options, StdioOptions},
};
use secrecy::{ExposeSecret, SecretString};

use crate::{address, input::read, output::Failure};

/// Where the server is, who calls, and within which bounds.
#[derive(Debug, Args)]
pub(crate) struct Settings {
    /// URL of the server (without a path, /mcp, / and /rpc are tried), or cli:///absolute/path
    target: Option<String>,

    /// Credential of user A: a bearer token over HTTP, the principal over stdio
    #[arg(
        long,
        value_name = "TOKEN",
        env = "HANDFAST_IDENTITY_A",
        hide_env_values = true,
        help_heading = "Identities"
    )]
    identity_a: Option<String>,

    /// Credential of user B, another user; by preference of the same OAuth client
    #[arg(
        long,
        value_name = "TOKEN",
        env = "HANDFAST_IDENTITY_B",
        hide_env_values = true,
        help_heading = "Identities"
    )]
    identity_b: Option<String>,

    /// A header for every request; may be repeated
    #[arg(long = "header", value_name = "NAME: VALUE", help_heading = "Identities")]
    headers: Vec<String>,

    /// Profile that overrides what would be found (`handfast discover --write` makes one)
    #[arg(long, value_name = "FILE")]
    profile: Option<PathBuf>,

    /// Also call tools that look destructive. Only on a system that you may break
    #[arg(long, help_heading = "Bounds")]
    pub(crate) include_destructive: bool,

    /// Calls that the run may make
    #[arg(long, value_name = "N", default_value_t = 2000, help_heading = "Bounds")]
    max_calls: usize,

    /// Time for the whole run
    #[arg(long, value_name = "TIME", default_value = "5m", value_parser = humantime::parse_duration, help_heading = "Bounds")]
    max_time: Duration,

    /// Time for one answer
    #[arg(long, value_name = "TIME", default_value = "10s", value_parser = humantime::parse_duration, help_heading = "Bounds")]
    timeout: Duration,

    /// Time for a command to start and answer its first message
    #[arg(long, value_name = "TIME", default_value = "60s", value_parser = humantime::parse_duration, help_heading = "Bounds")]
    start_timeout: Duration,

    /// Trust the certificates in this PEM file as well
    #[arg(long, value_name = "FILE", help_heading = "TLS")]
    ca_file: Option<PathBuf>,

    /// Accept any certificate: whoever sits in between reads and changes everything
    #[arg(long, help_heading = "TLS")]
    insecure: bool,

    /// Command that speaks MCP over stdio
    #[arg(last = true, value_name = "COMMAND")]
    command: Vec<String>,
}

impl Settings {
    /// The run that these settings describe.
    pub(crate) async fn into_run(self) -> Result<Run, Failure> {
        let address = address::parse(self.target.as_deref(), &self.command)?;
        let profile = self.profile.as_deref().map(read_profile).transpose()?.unwrap_or_default();
        let ca_certificates =
            self.ca_file.as_deref().map(|path| read(path, "PEM file")).transpose()?.map(String::into_bytes);
        let given = [self.identity_a.is_some(), self.identity_b.is_some()];
        let named = fetched(&profile, &address, &given, ca_certificates.as_deref()).await?;
        let of = |who: Who| named.iter().find(|(named, _)| *named == who).map(|(_, credential)| credential.clone());
        let given = [(self.identity_a, Who::A), (self.identity_b, Who::B)]
            .map(|(given, who)| given.map(SecretString::from).or_else(|| of(who)));
        let mut identities = identities(given, &profile)?;
        for (who, credential) in named.into_iter().filter(|(who, _)| Who::NAMED.contains(who)) {
            identities = identities.with(who, credential);
        }
        if matches!(address, Address::Http(_)) {
            for who in [Who::A, Who::B].into_iter().chain(Who::NAMED) {
                let credential = identities.of(who).credential().unwrap_or_default();
                if credential.get(..7).is_some_and(|scheme| scheme.eq_ignore_ascii_case("bearer ")) {
                    return Err(Failure(format!(
                        "the credential of identity {} is the token alone, without `Bearer ` before it",
                        who.label()
                    )));
                }
                if !credential.bytes().all(|byte| (0x21..=0x7e).contains(&byte)) {
                    return Err(Failure(format!(
                        "the credential of identity {} has blanks or characters that an HTTP header cannot carry",
                        who.label()
                    )));
                }
            }
        }
        let headers = self.headers.iter().map(|text| header(text)).collect::<Result<Vec<_>, _>>()?;
        let mut run = Run::new(address, identities);
        run.options = Options {
            timeout: positive(self.timeout, "--timeout")?,
            start_timeout: positive(self.start_timeout, "--start-timeout")?,
            http: HttpOptions {
                keeps_connection: false,
                ca_certificates,
                dangerous_accept_any_certificate: self.insecure,
                headers,
                identity_header: profile.identities.header.clone(),
            },
            stdio: StdioOptions { hidden: profile.identities.variables(), ..StdioOptions::default() },
            ..Options::default()
        };
        if let Some(key) = &profile.identities.meta_key {
            run.options.principal_key.clone_from(key);
        }
        run.include_destructive = self.include_destructive;
        run.max_calls = self.max_calls;
        run.max_time = positive(self.max_time, "--max-time")?;
        run.profile = profile;
        target::usable(&run.address, &run.options).map_err(Failure)?;
        crate::watchdog::over_time(run.max_time);
        Ok(run)
    }
}

/// The checks of these ids, or all of them. `session-*` stands for every check whose id begins so.
pub(crate) fn chosen(ids: &[String]) -> Result<Vec<&'static Check>, Failure> {
    if let Some(pattern) = ids.iter().find(|pattern| !checks::all().any(|check| fits(pattern, check.id))) {
        let nearest = nearest(pattern);
        let meant = if nearest.is_empty() { ";".to_owned() } else { format!("; is it {}?", nearest.join(", or ")) };
        return Err(Failure(format!(
            "there is no check `{pattern}`{meant} `handfast checks` lists all, and `*` stands for anything: `handle-*`"
        )));
    }
    Ok(checks::all().filter(|check| ids.is_empty() || ids.iter().any(|pattern| fits(pattern, check.id))).collect())
}

/// Whether an id is this one, where `*` stands for anything.
fn fits(pattern: &str, id: &str) -> bool {
    let mut parts = pattern.split('*');
    let (start, end) = (parts.next().unwrap_or_default(), parts.next_back());
    let Some(end) = end else { return pattern == id };
    let between = id.strip_prefix(start).and_then(|rest| rest.strip_suffix(end));
    between.is_some_and(|rest| {
        parts.try_fold(rest, |rest, part| rest.find(part).map(|at| &rest[at + part.len()..])).is_some()
    })
}

/// A few ids that may be meant: those that hold what was written, or are spelt much like it.
fn nearest(written: &str) -> Vec<&'static str> {
    let written = written.trim_matches('*');
    let held = checks::all().map(|check| check.id).filter(|id| written.len() > 2 && id.contains(written));
    let mut near: Vec<&str> = held.take(MOST_NEAR).collect();
    if near.is_empty() {
        let likeness = |id: &str| strsim::jaro_winkler(written, id);
        near = checks::all().map(|check| check.id).filter(|id| likeness(id) > LIKE).collect();
        near.sort_by(|one, other| likeness(other).total_cmp(&likeness(one)));
        near.truncate(MOST_NEAR);
    }
    near
}

const MOST_NEAR: usize = 4;
const LIKE: f64 = 0.8;

fn read_profile(path: &std::path::Path) -> Result<Profile, Failure> {
    let fail = |error: String| Failure(format!("{}: {error}", path.display()));
    Profile::parse(&read(path, "profile")?).map_err(|error| fail(error.to_string()))
}

/// The credentials that the profile names, those apart that the command line gives.
async fn fetched(
    profile: &Profile,
    address: &Address,
    given: &[bool; 2],
    ca_certificates: Option<&[u8]>,
) -> Result<Vec<(Who, SecretString)>, Failure> {
    let environment: Environment = std::env::vars_os()
        .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)))
        .collect();
    let mut fetched = Vec::new();
    for (name, who, source) in profile.identities.sources() {
        if (who == Who::A && given[0]) || (who == Who::B && given[1]) {
            continue;
        }
        let credential = source.fetch(&environment, ca_certificates).await;
        fetched.push((who, credential.map_err(|error| Failure(format!("identity {name} of the profile: {error}")))?));
        if let (Who::WrongAudience, Address::Http(url)) = (who, address) {
            // Where an issuer gives tokens for any server, it gives them for those that are nearly this one.
            let named = profile.identities.a.as_ref().and_then(Source::resource);
            fetched.extend(source.nearly(named.unwrap_or(url.as_str()), &environment, ca_certificates).await);
        }
    }
    Ok(fetched)
}

fn identities([a, b]: [Option<SecretString>; 2], profile: &Profile) -> Result<Identities, Failure> {
    let secret = |given: Option<SecretString>, variable: &Option<String>, published: &str, which: &str| {
        let from = |name: &str| std::env::var(name).ok().filter(|value| !value.is_empty()).map(SecretString::from);
        let named = match variable {
            Some(name) if given.is_none() => Some(
                from(name)
                    .ok_or_else(|| Failure(format!("the profile takes {which} from ${name}, which is not set")))?,
            ),
            _ => None,
        };
        match given.or(named).or_else(|| from(published)) {
            Some(value) if value.expose_secret().trim().is_empty() => Err(Failure(format!("{which} is empty"))),
            value => Ok(value),
        }
    };
    let a = secret(a, &profile.identities.a_env, "CXG_MCP_IDENTITY_A", "identity A")?;
    let b = secret(b, &profile.identities.b_env, "CXG_MCP_IDENTITY_B", "identity B")?;
    if a.is_some() != b.is_some() {
        return Err(Failure(
            "only one identity was given: a stranger is needed too (--identity-a and --identity-b)".to_owned(),
        ));
    }
    Identities::new(a, b).map_err(|error| Failure(error.to_string()))
}

fn header(text: &str) -> Result<ExtraHeader, Failure> {
    let parts = text.split_once(':').map(|(name, value)| (name.trim(), value.trim()));
    match parts {
        Some((name, value)) if !name.is_empty() => {
            Ok(ExtraHeader { name: name.to_owned(), value: SecretString::from(value.to_owned()) })
        }
        // The text may be a secret; it is not repeated.
        _ => Err(Failure("--header takes `NAME: VALUE`, with a colon".to_owned())),
    }
}

fn positive(duration: Duration, option: &str) -> Result<Duration, Failure> {
    match duration {
        Duration::ZERO => Err(Failure(format!("{option} must be more than nothing"))),
        more if more > LONGEST => Err(Failure(format!("{option} must be at most {} days", LONGEST.as_secs() / 86_400))),
        duration => Ok(duration),
    }
}

const LONGEST: Duration = Duration::from_secs(365 * 86_400);
