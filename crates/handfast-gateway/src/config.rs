//! The configuration: read once into types, or the program does not start.

use std::{
    net::SocketAddr,
    path::{Path, PathBuf},
    time::Duration,
};

use handfast::{Audience, Issuer, token::Algorithm};
use http::HeaderName;
use serde::Deserialize;
use thiserror::Error;

use crate::{
    gateway::Options,
    rules::{Defaults, Rules, RulesError},
    serve::Listening,
    upstream::Identity,
};

/// A configuration as it is written: in a file, and by the options of the command line, which go before it.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Written {
    /// Where it listens: 127.0.0.1:8080.
    pub listen: Option<String>,
    /// The path of the server: /mcp.
    pub path: Option<String>,
    /// Where health and metrics are.
    pub admin: Option<String>,
    /// The server behind, over HTTP.
    pub upstream: Option<String>,
    /// Or the command that starts it, to be spoken to on its standard input and output.
    pub command: Option<Vec<String>>,
    /// The rules: what `handfast discover --write` has written.
    pub rules: Option<PathBuf>,
    /// The canonical URI of the server, as tokens name it.
    pub audience: Option<String>,
    /// Where handles are kept.
    pub store: Option<String>,
    /// The file of keys.
    pub keys: Option<PathBuf>,
    /// The file of audit events; standard error without it.
    pub audit: Option<PathBuf>,
    /// Refuse tools that no rule knows.
    pub strict: Option<bool>,
    /// The origins that browsers may come from.
    pub origins: Option<Vec<String>>,
    /// Who calls.
    #[serde(default)]
    pub who: WrittenWho,
    /// What the server behind is told.
    #[serde(default)]
    pub server: WrittenServer,
    /// How handles live.
    #[serde(default)]
    pub handles: WrittenHandles,
    /// How states live.
    #[serde(default)]
    pub states: WrittenStates,
    /// Sessions of 2025-11-25 and older.
    #[serde(default)]
    pub sessions: WrittenSessions,
    /// Bounds.
    #[serde(default)]
    pub limits: WrittenLimits,
}

/// `[who]`
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct WrittenWho {
    /// The issuer of access tokens.
    pub issuer: Option<String>,
    /// Where its keys are, if its metadata do not say so.
    pub jwks: Option<String>,
    /// Which algorithms its tokens may have.
    pub algorithms: Option<Vec<String>>,
    /// Where the issuer is asked about each token, for tokens that say nothing of themselves.
    pub introspection: Option<String>,
    /// As whom.
    pub client_id: Option<String>,
    /// The environment variable with its secret.
    pub client_secret_env: Option<String>,
    /// The claim that names the tenant.
    pub tenant_claim: Option<String>,
    /// Or the header that a proxy on the same machine sets.
    pub identity_header: Option<String>,
    /// The proxy is on another machine, and nobody but it reaches the address where the gateway listens.
    pub dangerous_proxy_elsewhere: Option<bool>,
    /// Or nobody: handles are good for whoever holds them.
    pub bearer: Option<bool>,
}

/// `[server]`
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct WrittenServer {
    /// The environment variable that holds the whole header `Authorization` for it.
    pub authorization_env: Option<String>,
    /// The header that says who calls.
    pub identity_header: Option<String>,
    /// In which words.
    pub identity_value: Option<String>,
    /// How long it may take to answer.
    pub patience: Option<String>,
    /// How many children there may be.
    pub most_children: Option<usize>,
    /// How long a child lives unused.
    pub idle: Option<String>,
    /// One child for all, instead of one for each user.
    pub shared: Option<bool>,
}

/// `[handles]`
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct WrittenHandles {
    /// How long one lives in any case.
    pub lifetime: Option<String>,
    /// How long one lives unused.
    pub idle: Option<String>,
    /// What of a caller it is bound to.
    pub bound: Option<Vec<String>>,
}

/// `[states]`
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct WrittenStates {
    /// How long one lives.
    pub lifetime: Option<String>,
    /// Each may come back once.
    pub single_use: Option<bool>,
}

/// `[sessions]`
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct WrittenSessions {
    /// Whether there are any.
    pub enabled: Option<bool>,
    /// How long one lives in any case.
    pub lifetime: Option<String>,
    /// How long one lives unused.
    pub idle: Option<String>,
    /// How many a user may have.
    pub most: Option<u32>,
}

/// `[limits]`
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct WrittenLimits {
    /// The longest request, in bytes.
    pub request: Option<usize>,
    /// The longest message of the server behind, in bytes.
    pub answer: Option<usize>,
    /// How many connections there may be.
    pub connections: Option<usize>,
    /// How long running requests may take when the program ends.
    pub drain: Option<String>,
}

/// A configuration that can be run.
#[derive(Debug)]
#[non_exhaustive]
pub struct Config {
    /// Where it listens.
    pub listen: SocketAddr,
    /// Where health and metrics are.
    pub admin: Option<SocketAddr>,
    /// The server behind.
    pub behind: Behind,
    /// What is known of its handles.
    pub rules: Rules,
    /// The canonical URI of the server.
    pub audience: Audience,
    /// Who calls.
    pub who: Whose,
    /// The store, by its URL.
    pub store: String,
    /// The file of keys.
    pub keys: Option<PathBuf>,
    /// The file of audit events.
    pub audit: Option<PathBuf>,
    /// Sessions, where there are any.
    pub sessions: Option<Sessions>,
    /// What is heeded of each request.
    pub options: Options,
    /// What is heeded while listening.
    pub listening: Listening,
}

/// The server behind.
#[derive(Debug)]
pub enum Behind {
    /// Over HTTP.
    Http {
        /// Where.
        url: String,
        /// The environment variable with its credential.
        authorization_env: Option<String>,
        /// How it is told who calls.
        identity: Option<Identity>,
    },
    /// A child process.
    Stdio {
        /// The program and its arguments.
        command: Vec<String>,
        /// One for all.
        shared: bool,
        /// How many there may be.
        most_children: usize,
        /// How long one lives unused.
        idle: Duration,
    },
}

/// How it is known who calls.
#[derive(Debug)]
pub enum Whose {
    /// By tokens.
    Tokens {
        /// Their issuer.
        issuer: Issuer,
        /// How it is told whether one is good.
        judged: Judged,
        /// The claim that names the tenant.
        tenant_claim: Option<String>,
    },
    /// By a header of a trusted proxy.
    Header(HeaderName),
    /// By nothing.
    Bearer,
}

/// How it is told whether a token is good.
#[derive(Debug)]
pub enum Judged {
    /// By its signature.
    Signature {
        /// Where the issuer's keys are, if its metadata do not say so.
        jwks: Option<String>,
        /// Which algorithms.
        algorithms: Vec<Algorithm>,
    },
    /// The issuer is asked (RFC 7662).
    Introspection {
        /// Where.
        url: String,
        /// As whom.
        client_id: String,
        /// The environment variable with its secret.
        client_secret_env: String,
    },
}

/// Sessions of 2025-11-25 and older.
#[derive(Debug, Clone, Copy)]
pub struct Sessions {
    /// How long one lives in any case.
    pub lifetime: Duration,
    /// How long one lives unused.
    pub idle: Duration,
    /// How many a user may have.
    pub most: u32,
}

/// Why a configuration cannot be run.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum ConfigError {
    /// A file cannot be read.
    #[error("{}: {source}", path.display())]
    File {
        /// Which one.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// It is not written as a configuration is written. Says where.
    #[error("{}: {}", path.display(), source.to_string().trim_end().replace('\n', " "))]
    Syntax {
        /// Which file.
        path: PathBuf,
        /// Where, and what.
        source: toml::de::Error,
    },
    /// The rules are wrong.
    #[error("{}: {source}", path.display())]
    Rules {
        /// Which file.
        path: PathBuf,
        /// Where, and what.
        source: RulesError,
    },
    /// A value is wrong.
    #[error("{name}: {problem}")]
    Value {
        /// Of what.
        name: &'static str,
        /// What is wrong, and what would be right.
        problem: String,
    },
}

fn wrong(name: &'static str, problem: impl Into<String>) -> ConfigError {
    ConfigError::Value { name, problem: problem.into() }
}

fn text_of(path: &Path) -> Result<String, ConfigError> {
    std::fs::read_to_string(path).map_err(|source| ConfigError::File { path: path.to_owned(), source })
}

impl Written {
    /// Reads a file. Files that it names are looked for beside it.
    ///
    /// # Errors
    /// It cannot be read, or says what no configuration says: with the line.
    pub fn from_file(path: &Path) -> Result<Self, ConfigError> {
        let mut written: Self =
            toml::from_str(&text_of(path)?).map_err(|source| ConfigError::Syntax { path: path.to_owned(), source })?;
        let folder = path.parent().unwrap_or(Path::new(""));
        for file in [&mut written.rules, &mut written.keys, &mut written.audit].into_iter().flatten() {
            *file = folder.join(&file);
        }
        Ok(written)
    }

    /// Makes sense of it.
    ///
    /// # Errors
    /// Says what is wrong, and what to write instead.
    pub fn parse(self) -> Result<Config, ConfigError> {
        let listen = address("listen", self.listen.as_deref().unwrap_or("127.0.0.1:8080"))?;
        let admin = self.admin.as_deref().map(|text| address("admin", text)).transpose()?;
        let path = self.path.unwrap_or_else(|| "/mcp".to_owned());
        if !path.starts_with('/') {
            return Err(wrong("path", format!("{path:?} must begin with `/`")));
        }
        let elsewhere = self.who.dangerous_proxy_elsewhere.unwrap_or(false);
        let who = self.who.parse()?;
        if matches!(who, Whose::Header(_)) && !listen.ip().is_loopback() && !elsewhere {
            let told = "whoever reaches this address could name anybody in the identity header: listen on 127.0.0.1, or say \
                        `dangerous-proxy-elsewhere = true` under [who] where nobody but the proxy can reach it";
            return Err(wrong("listen", told));
        }
        let audience = match (self.audience, &who) {
            (Some(audience), _) => audience,
            // Whoever takes tokens must know for whom they are; for all others the name is only a name.
            (None, Whose::Tokens { .. }) => {
                return Err(wrong("audience", "write the URI of this server, as tokens name it in `aud`"));
            }
            (None, _) => format!("http://{listen}{path}"),
        };
        let audience: Audience = audience.parse().map_err(|error| wrong("audience", format!("{error}")))?;
        let bound = self.handles.bound.unwrap_or_else(|| who.bound());
        let defaults = Defaults {
            lifetime: time("handles.lifetime", self.handles.lifetime.as_deref(), Duration::from_secs(24 * 3600))?,
            idle: self.handles.idle.as_deref().map(|idle| duration("handles.idle", idle)).transpose()?,
            bound,
        };
        if matches!(who, Whose::Bearer) && defaults.lifetime > Duration::from_secs(24 * 3600) {
            return Err(wrong("handles.lifetime", "handles that anybody may use live for at most 24h"));
        }
        let rules = match &self.rules {
            None => Rules::from_toml("version = 1", &defaults).map_err(|error| wrong("handles", error.to_string()))?,
            Some(path) => Rules::from_toml(&text_of(path)?, &defaults)
                .map_err(|source| ConfigError::Rules { path: path.clone(), source })?,
        };
        let strict = self.strict.unwrap_or(false);
        if strict && self.rules.is_none() {
            return Err(wrong("strict", "without `rules` every tool would be refused"));
        }
        let nobody = matches!(who, Whose::Bearer);
        let options = Options {
            strict,
            single_use: self.states.single_use.unwrap_or(false),
            state_lifetime: time("states.lifetime", self.states.lifetime.as_deref(), Duration::from_secs(600))?,
            longest_request: self.limits.request.unwrap_or(4 << 20),
            longest_answer: self.limits.answer.unwrap_or(16 << 20),
            patience: time("server.patience", self.server.patience.as_deref(), Duration::from_secs(60))?,
            origins: self.origins.unwrap_or_default(),
        };
        let listening = Listening {
            path,
            most_connections: self.limits.connections.unwrap_or(20_000),
            drain: time("limits.drain", self.limits.drain.as_deref(), Duration::from_secs(30))?,
            ..Listening::default()
        };
        Ok(Config {
            listen,
            admin,
            behind: self.server.parse(self.upstream, self.command)?,
            rules,
            audience,
            who,
            store: self.store.unwrap_or_else(|| "sqlite:handfast-gateway.db".to_owned()),
            keys: self.keys,
            audit: self.audit,
            sessions: self.sessions.parse(nobody)?,
            options,
            listening,
        })
    }
}

impl WrittenWho {
    fn parse(self) -> Result<Whose, ConfigError> {
        let bearer = self.bearer.unwrap_or(false);
        match (self.issuer, self.identity_header, bearer) {
            (Some(issuer), None, false) => {
                let judged = match (self.introspection, self.client_id, self.client_secret_env) {
                    (None, None, None) => {
                        Judged::Signature { jwks: self.jwks, algorithms: algorithms(self.algorithms)? }
                    }
                    (Some(url), Some(client_id), Some(client_secret_env)) if self.jwks.is_none() => {
                        Judged::Introspection { url, client_id, client_secret_env }
                    }
                    _ => {
                        let all = "an issuer that is asked takes `introspection`, `client-id` and `client-secret-env`, and no `jwks`";
                        return Err(wrong("who", all));
                    }
                };
                let issuer = issuer.parse().map_err(|error| wrong("who.issuer", format!("{error}")))?;
                Ok(Whose::Tokens { issuer, judged, tenant_claim: self.tenant_claim })
            }
            (None, Some(header), false) => {
                let header = header.parse().map_err(|_| wrong("who.identity-header", "it is no name of a header"))?;
                Ok(Whose::Header(header))
            }
            (None, None, true) => Ok(Whose::Bearer),
            (None, None, false) => Err(wrong(
                "who",
                "nobody could be told from anybody else: name an `issuer`, or an `identity-header` that a proxy on this \
                 machine sets, or say `bearer = true`: then handles are good for whoever holds them",
            )),
            _ => Err(wrong("who", "only one of `issuer`, `identity-header` and `bearer` can say who calls")),
        }
    }
}

fn algorithms(names: Option<Vec<String>>) -> Result<Vec<Algorithm>, ConfigError> {
    let names = names.unwrap_or_else(|| vec!["RS256".to_owned(), "ES256".to_owned()]);
    let known = |name: &String| ALGORITHMS.into_iter().find(|known| known.name() == name);
    let algorithms: Option<Vec<Algorithm>> = names.iter().map(known).collect();
    let unknown = || wrong("who.algorithms", "known are RS256, PS256, ES256, ES384, EdDSA");
    algorithms.filter(|all| !all.is_empty()).ok_or_else(unknown)
}

impl Whose {
    /// What of a caller there is to bind to.
    fn bound(&self) -> Vec<String> {
        let parts: &[&str] = match self {
            Self::Tokens { tenant_claim: Some(_), .. } => &["principal", "tenant", "client"],
            Self::Tokens { tenant_claim: None, .. } => &["principal", "client"],
            Self::Header(_) | Self::Bearer => &["principal"],
        };
        parts.iter().map(|part| (*part).to_owned()).collect()
    }
}

impl WrittenServer {
    fn parse(self, url: Option<String>, command: Option<Vec<String>>) -> Result<Behind, ConfigError> {
        match (url, command.filter(|command| !command.is_empty())) {
            (Some(url), None) => {
                let identity = match (self.identity_header, self.identity_value) {
                    (None, None) => None,
                    (None, Some(_)) => return Err(wrong("server.identity-value", "in which `identity-header`?")),
                    (Some(header), value) => {
                        let header = header.parse();
                        let header =
                            header.map_err(|_| wrong("server.identity-header", "it is no name of a header"))?;
                        Some(Identity { header, value: value.unwrap_or_else(|| "{subject}".to_owned()) })
                    }
                };
                Ok(Behind::Http { url, authorization_env: self.authorization_env, identity })
            }
            (None, Some(command)) => {
                if self.authorization_env.or(self.identity_header).or(self.identity_value).is_some() {
                    return Err(wrong("server", "a server that is a child process gets no headers"));
                }
                Ok(Behind::Stdio {
                    command,
                    shared: self.shared.unwrap_or(false),
                    most_children: self.most_children.unwrap_or(100),
                    idle: time("server.idle", self.idle.as_deref(), Duration::from_secs(600))?,
                })
            }
            (Some(_), Some(_)) => Err(wrong("upstream", "there is a command as well; only one server can be behind")),
            (None, None) => Err(wrong("upstream", "name the server behind: --upstream URL, or -- COMMAND")),
        }
    }
}

impl WrittenSessions {
    fn parse(self, nobody_is_known: bool) -> Result<Option<Sessions>, ConfigError> {
        if self.enabled == Some(false) {
            return Ok(None);
        }
        Ok(Some(Sessions {
            lifetime: time("sessions.lifetime", self.lifetime.as_deref(), Duration::from_secs(12 * 3600))?,
            idle: time("sessions.idle", self.idle.as_deref(), Duration::from_secs(30 * 60))?,
            // Where nobody is known all sessions are one user's.
            most: self.most.unwrap_or(if nobody_is_known { 10_000 } else { 100 }),
        }))
    }
}

fn address(name: &'static str, text: &str) -> Result<SocketAddr, ConfigError> {
    text.parse().map_err(|_| wrong(name, format!("{text:?} is no address: write 127.0.0.1:8080")))
}

fn time(name: &'static str, text: Option<&str>, otherwise: Duration) -> Result<Duration, ConfigError> {
    text.map_or(Ok(otherwise), |text| duration(name, text))
}

fn duration(name: &'static str, text: &str) -> Result<Duration, ConfigError> {
    let parsed = humantime::parse_duration(text).ok().filter(|time| !time.is_zero());
    parsed.ok_or_else(|| wrong(name, format!("{text:?} is no duration: write 90s, 15m, 24h or 7d")))
}

const ALGORITHMS: [Algorithm; 5] =
    [Algorithm::Rs256, Algorithm::Ps256, Algorithm::Es256, Algorithm::Es384, Algorithm::EdDsa];
