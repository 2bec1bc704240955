//! A gateway from its configuration: everything is opened before anything is served, and closed after everything was.

use std::{
    future::Future,
    sync::{Arc, OnceLock},
    time::Duration,
};

use handfast::{
    Audience, AuditSink, Issuer, JsonLines, Keys, SecretText,
    http::SessionLayer,
    session::{SessionAuthority, SessionOptions, SessionSetup},
    store::{OpenOptions, Store, open},
    token::{IntrospectionVerifier, Jwks, JwtVerifier, ProtectedResource, Remembered, TokenRules, TokenVerifier},
};
use thiserror::Error;
use tokio::{net::TcpListener, sync::watch};

use crate::{
    admin,
    config::{Behind, Config, Judged, Whose},
    files,
    gateway::{Gateway, Options, Setup},
    serve::{Listening, serve},
    upstream::{Children, HttpUpstream, StdioOptions, StdioUpstream, Upstream},
    who::{App, Who},
};

/// A gateway that listens already.
pub struct Running {
    listener: TcpListener,
    admin: Option<TcpListener>,
    listening: Listening,
    apps: watch::Sender<App>,
    parts: Parts,
    /// What whoever started it should know.
    pub remarks: Vec<String>,
}

/// What stays while rules and keys are exchanged.
#[derive(Clone)]
struct Parts {
    store: Arc<dyn Store>,
    upstream: Arc<dyn Upstream>,
    audit: Arc<dyn AuditSink>,
}

/// Exchanges rules and keys while requests are served: running ones end as they began.
#[derive(Clone)]
pub struct Reloader {
    apps: watch::Sender<App>,
    parts: Parts,
}

/// Why a gateway does not start.
#[derive(Debug, Error)]
#[error("{0}")]
pub struct NotStarted(String);

impl NotStarted {
    fn because(what: &str, error: &dyn std::fmt::Display) -> Self {
        Self(format!("{what}: {error}"))
    }
}

impl Running {
    /// Opens everything.
    ///
    /// # Errors
    /// Says what cannot be opened, and why.
    pub async fn start(config: Config) -> Result<Self, NotStarted> {
        let store = open(&config.store, OpenOptions::default()).await;
        let store = store.map_err(|error| NotStarted::because("store", &error))?;
        let audit: Arc<dyn AuditSink> = match &config.audit {
            None => Arc::new(JsonLines::new(std::io::stderr())),
            Some(path) => {
                let file = std::fs::OpenOptions::new().create(true).append(true).open(path);
                let file = file.map_err(|error| NotStarted::because(&path.display().to_string(), &error))?;
                Arc::new(JsonLines::new(file))
            }
        };
        let parts = Parts { store, upstream: upstream(&config.behind, &config.options)?, audit };
        let mut remarks = Vec::new();
        if config.keys.is_none() && std::env::var_os(KEYS).is_none() {
            remarks.push(
                "no keys: those of this process are used, and all handles, states and sessions end with it; `handfast keys \
                 new` makes keys that stay (--keys FILE)"
                    .to_owned(),
            );
        }
        if matches!(config.who, Whose::Bearer) {
            remarks.push("nobody is told from anybody else: handles are good for whoever holds them (--bearer)".into());
        }
        let bind = |address| async move {
            let listener = TcpListener::bind(address).await;
            listener.map_err(|error| NotStarted::because(&format!("listen on {address}"), &error))
        };
        let listener = bind(config.listen).await?;
        let admin = match config.admin {
            Some(address) => Some(bind(address).await?),
            None => None,
        };
        let mut listening = config.listening.clone();
        let room = files::connections(listening.most_connections);
        if room < listening.most_connections {
            remarks.push(format!("there are files for {room} connections only (`ulimit -n`): no more are taken"));
            listening.most_connections = room;
        }
        let (apps, _) = watch::channel(parts.app(config)?);
        tidy(&parts.store);
        Ok(Self { listener, admin, listening, apps, parts, remarks })
    }

    /// Where it is served.
    #[must_use]
    pub fn url(&self) -> String {
        let address = self.listener.local_addr().map_or_else(|_| String::new(), |address| address.to_string());
        format!("http://{address}{}", self.listening.path)
    }

    /// Where health and metrics are.
    #[must_use]
    pub fn admin_url(&self) -> Option<String> {
        let address = self.admin.as_ref()?.local_addr().ok()?;
        Some(format!("http://{address}"))
    }

    /// What exchanges its rules and keys.
    #[must_use]
    pub fn reloader(&self) -> Reloader {
        Reloader { apps: self.apps.clone(), parts: self.parts.clone() }
    }

    /// Serves until `ends`, and then lets running requests end. Metrics are what `metrics` says.
    ///
    /// # Errors
    /// The listener is of no more use.
    pub async fn serve(
        self,
        metrics: impl Fn() -> String + Send + Sync + 'static,
        ends: impl Future<Output = ()>,
    ) -> std::io::Result<()> {
        let health = self.admin.map(|admin| tokio::spawn(admin::serve(admin, self.parts.store.clone(), metrics)));
        let ended = serve(self.listener, self.apps.subscribe(), self.listening, ends).await;
        if let Some(health) = health {
            health.abort();
        }
        ended
    }
}

impl Reloader {
    /// Takes rules, keys and what else is heeded of a request from this configuration. Where it listens, what is behind and
    /// where handles are kept stays as it was.
    ///
    /// # Errors
    /// Nothing has changed: says what is wrong.
    pub fn reload(&self, config: Config) -> Result<(), NotStarted> {
        let app = self.parts.app(config)?;
        // Where nobody serves any more there is nothing to exchange.
        let _ = self.apps.send(app);
        Ok(())
    }
}

impl Parts {
    fn app(&self, config: Config) -> Result<App, NotStarted> {
        let Self { store, upstream, audit } = self.clone();
        let keys = keys(config.keys.as_deref())?;
        let who = who(&config.who, &config.audience)?;
        let sessions = config.sessions.map(|sessions| {
            let options = SessionOptions { lifetime: sessions.lifetime, idle: sessions.idle, most: sessions.most };
            let setup = SessionSetup {
                store: store.clone(),
                keys: keys.clone(),
                audience: config.audience.clone(),
                audit: audit.clone(),
                options,
            };
            SessionLayer::new(Arc::new(SessionAuthority::new(setup))).most(config.options.longest_request)
        });
        let Config { rules, audience, options, .. } = config;
        let gateway = Gateway::new(Setup { rules, upstream, store, keys, audience, audit, options });
        Ok(App::new(who, sessions, gateway.map_err(|error| NotStarted::because("rules", &error))?))
    }
}

fn keys(file: Option<&std::path::Path>) -> Result<Keys, NotStarted> {
    match file {
        Some(path) => Keys::from_file(path).map_err(|error| NotStarted::because(&path.display().to_string(), &error)),
        None if std::env::var_os(KEYS).is_some() => {
            Keys::from_env(KEYS).map_err(|error| NotStarted::because(KEYS, &error))
        }
        None => Ok(PROCESS_KEYS.get_or_init(Keys::dangerous_for_this_process_only).clone()),
    }
}

fn upstream(behind: &Behind, options: &Options) -> Result<Arc<dyn Upstream>, NotStarted> {
    match behind {
        Behind::Http { url, authorization_env, identity } => {
            let credential = authorization_env.as_ref().map(|name| {
                let value = std::env::var(name).map(SecretText::new);
                value.map_err(|_| NotStarted(format!("server.authorization-env: {name} is not set")))
            });
            let credential = credential.transpose()?;
            let upstream = HttpUpstream::new(url, credential.as_ref(), identity.clone());
            Ok(Arc::new(upstream.map_err(|error| NotStarted::because("upstream", &error))?))
        }
        Behind::Stdio { command, shared, most_children, idle } => {
            let [program, arguments @ ..] = &command[..] else {
                return Err(NotStarted("upstream: the command is empty".to_owned()));
            };
            Ok(Arc::new(StdioUpstream::new(StdioOptions {
                program: program.clone(),
                arguments: arguments.to_vec(),
                environment: Vec::new(),
                // What the gateway is trusted with is not the server's.
                hidden: vec![KEYS.to_owned(), STORE.to_owned()],
                folder: None,
                children: if *shared { Children::Shared } else { Children::PerPrincipal },
                most_children: *most_children,
                idle: *idle,
                patience: options.patience,
                longest_message: options.longest_answer,
            })))
        }
    }
}

fn who(whose: &Whose, audience: &Audience) -> Result<Who, NotStarted> {
    match whose {
        Whose::Tokens { issuer, judged, tenant_claim } => {
            let mut rules = TokenRules::new(issuer.clone(), audience.clone());
            if let Some(claim) = tenant_claim {
                rules = rules.tenant_claim(claim);
            }
            let server = ProtectedResource::new(audience.clone(), vec![issuer.clone()]);
            let server = server.map_err(|error| NotStarted::because("audience", &error))?;
            Ok(Who::Tokens(verifier(rules, issuer, judged)?, server))
        }
        Whose::Header(name) => {
            let issuer = Issuer::new(TRUSTED).map_err(|error| NotStarted::because("who", &error))?;
            Ok(Who::TrustedHeader { name: name.clone(), issuer, audience: audience.clone() })
        }
        Whose::Bearer => Ok(Who::DangerousAnybody { audience: audience.clone() }),
    }
}

fn verifier(rules: TokenRules, issuer: &Issuer, judged: &Judged) -> Result<Arc<dyn TokenVerifier>, NotStarted> {
    let failed = |error: &dyn std::fmt::Display| NotStarted::because("who", error);
    match judged {
        Judged::Signature { jwks, algorithms } => {
            let keys = match jwks {
                Some(url) => Jwks::at(url),
                None => Jwks::of_issuer(issuer),
            };
            let keys = keys.map_err(|error| failed(&error))?;
            Ok(Arc::new(Remembered::new(JwtVerifier::new(rules, algorithms, keys))))
        }
        // It may say no at any time: its answers are not remembered.
        Judged::Introspection { url, client_id, client_secret_env } => {
            let secret = std::env::var(client_secret_env).map(SecretText::new);
            let secret = secret.map_err(|_| NotStarted(format!("who: {client_secret_env} is not set")))?;
            let verifier = IntrospectionVerifier::new(rules, url, client_id, secret);
            Ok(Arc::new(verifier.map_err(|error| failed(&error))?))
        }
    }
}

/// Removes what has been dead for long, now and then.
fn tidy(store: &Arc<dyn Store>) {
    let store = Arc::downgrade(store);
    tokio::spawn(async move {
        loop {
            tokio::time::sleep(EVERY).await;
            let Some(store) = store.upgrade() else { return };
            loop {
                match store.purge(handfast::TOMBSTONE, BATCH).await {
                    Ok(removed) if removed >= BATCH.into() => {}
                    Ok(_) => break,
                    Err(error) => {
                        tracing::warn!(target: "handfast", %error, "what is dead could not be removed");
                        break;
                    }
                }
            }
        }
    });
}

const EVERY: Duration = Duration::from_secs(600);
const BATCH: u32 = 1000;
/// Where the operator has given none: the same for as long as the process lives.
static PROCESS_KEYS: OnceLock<Keys> = OnceLock::new();
/// The variable that holds keys.
const KEYS: &str = "HANDFAST_KEYS";
/// The variable that names the store, and may hold its password.
const STORE: &str = "HANDFAST_STORE";
/// Who has issued the names that a trusted proxy sets.
const TRUSTED: &str = "handfast:trusted-proxy";
