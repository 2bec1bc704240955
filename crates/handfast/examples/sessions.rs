//! A server with sessions (protocol 2025-11-25 and older) behind both layers: who calls shows a token, and a session belongs
//! to whoever began it. The server is on the official SDK, and keeps notes for as long as a session lives; its own session
//! manager asks nobody whose a session is. With `--upstream` it is any other server over HTTP.
//!
//! `handfast issuer --audience http://127.0.0.1:8080/mcp --port 9000` in one terminal, and in another
//! `cargo run -p handfast --example sessions --all-features -- --issuer http://127.0.0.1:9000 --port 8080`.

use std::{
    error::Error,
    io::Write,
    process::ExitCode,
    sync::{Arc, Mutex, PoisonError},
};

use axum::{
    Router,
    body::Body,
    extract::Request,
    http::{HeaderValue, header::AUTHORIZATION},
    response::Response,
    routing::get,
};
use clap::Parser;
use handfast::{
    Audience, Caller, Issuer, JsonLines, Keys,
    http::{BearerLayer, SessionLayer},
    session::{SessionAuthority, SessionOptions, SessionSetup},
    store::{self, OpenOptions},
    token::{Algorithm, Jwks, JwtVerifier, ProtectedResource, TokenRules},
};
use metrics_exporter_prometheus::PrometheusBuilder;
use rmcp::{
    ServerHandler,
    handler::server::{router::tool::ToolRouter, wrapper::Parameters},
    model::{CallToolResult, ContentBlock, ServerCapabilities, ServerConfig},
    tool, tool_handler, tool_router,
    transport::{
        StreamableHttpService,
        streamable_http_server::{StreamableHttpServerConfig, session::local::LocalSessionManager},
    },
};
use schemars::JsonSchema;
use serde::Deserialize;
use tokio::net::TcpListener;

/// A server with sessions, behind layers that make them belong to whoever began them.
#[derive(Parser)]
#[command(name = "sessions")]
struct Args {
    /// The issuer of tokens; its keys are at /jwks
    #[arg(long, value_name = "URL")]
    issuer: String,
    /// The canonical URI of this server, which tokens must be for; where it listens, unless this says otherwise
    #[arg(long, value_name = "URI")]
    audience: Option<String>,
    /// The port on 127.0.0.1; 0 takes any that is free
    #[arg(long, default_value_t = 0)]
    port: u16,
    /// The port on 127.0.0.1 at which the counters are; 0 takes any that is free
    #[arg(long, default_value_t = 0)]
    metrics_port: u16,
    /// Where sessions are kept: sqlite:FILE, or postgres://USER@HOST/DATABASE
    #[arg(long, value_name = "URL", default_value = "sqlite:sessions.db")]
    store: String,
    /// The file of keys, as `handfast keys new` makes it; without one, a key that dies with this process
    #[arg(long, value_name = "FILE")]
    keys: Option<std::path::PathBuf>,
    /// Another server over HTTP, in the place of the notes
    #[arg(long, value_name = "URL")]
    upstream: Option<String>,
    /// What the server behind is shown instead of the caller's token; {subject} stands for who that is
    #[arg(long, value_name = "TOKEN", env = "UPSTREAM_TOKEN", hide_env_values = true, requires = "upstream")]
    upstream_token: Option<String>,
    /// Leave the sessions unguarded: tokens are verified, and that is all
    #[arg(long)]
    unguarded: bool,
}

/// Notes of one session: the SDK makes a handler for each.
#[derive(Clone)]
struct Notes {
    tool_router: ToolRouter<Self>,
    notes: Arc<Mutex<Vec<String>>>,
}

#[derive(Deserialize, JsonSchema)]
struct Note {
    /// What to remember
    text: String,
}

#[tool_router]
impl Notes {
    fn new() -> Self {
        Self { tool_router: Self::tool_router(), notes: Arc::default() }
    }

    #[tool(description = "Remember a note until the session ends.", annotations(destructive_hint = false))]
    async fn remember(&self, Parameters(Note { text }): Parameters<Note>) -> CallToolResult {
        self.notes.lock().unwrap_or_else(PoisonError::into_inner).push(text);
        CallToolResult::success(vec![ContentBlock::text("remembered")])
    }

    #[tool(description = "Tell what was remembered in this session.", annotations(read_only_hint = true))]
    async fn recall(&self) -> CallToolResult {
        let notes = self.notes.lock().unwrap_or_else(PoisonError::into_inner).join("\n");
        CallToolResult::success(vec![ContentBlock::text(notes)])
    }
}

#[tool_handler(router = self.tool_router)]
impl ServerHandler for Notes {
    fn get_info(&self) -> ServerConfig {
        ServerConfig::new(ServerCapabilities::builder().enable_tools().build())
    }
}

fn notes() -> Router {
    let (sessions, config) = (Arc::new(LocalSessionManager::default()), StreamableHttpServerConfig::default());
    Router::new().fallback_service(StreamableHttpService::new(|| Ok(Notes::new()), sessions, config))
}

/// Hands every request on. The caller's token stays here: it is for this server.
fn elsewhere(url: &str, token: Option<&str>) -> Result<Router, Box<dyn Error>> {
    let token = token.map(str::to_owned);
    let url = reqwest::Url::parse(url)?;
    // Neither another server nor a proxy gets to see what is meant for this one.
    let client = reqwest::Client::builder().redirect(reqwest::redirect::Policy::none()).no_proxy().build()?;
    let forward = move |request: Request| {
        let (url, client, token) = (url.clone(), client.clone(), token.clone());
        async move {
            let (mut head, body) = request.into_parts();
            for name in ["authorization", "host", "content-length", "connection", "transfer-encoding"] {
                head.headers.remove(name);
            }
            let caller = head.extensions.get::<Caller>().and_then(Caller::principal);
            let subject = caller.map_or("", |principal| principal.subject().expose());
            let shown = token.map(|token| format!("Bearer {}", token.replace("{subject}", subject)));
            let shown = shown.and_then(|shown| HeaderValue::from_str(&shown).ok());
            head.headers.extend(shown.map(|shown| (AUTHORIZATION, shown)));
            let body = axum::body::to_bytes(body, 4 * 1024 * 1024).await.unwrap_or_default();
            match client.request(head.method, url).headers(head.headers).body(body).send().await {
                Ok(answer) => {
                    let mut answer: axum::http::Response<reqwest::Body> = answer.into();
                    for name in ["connection", "content-length", "transfer-encoding"] {
                        answer.headers_mut().remove(name);
                    }
                    answer.map(Body::new)
                }
                Err(_) => {
                    let mut response = Response::new(Body::empty());
                    *response.status_mut() = axum::http::StatusCode::BAD_GATEWAY;
                    response
                }
            }
        }
    };
    Ok(Router::new().fallback(forward))
}

#[tokio::main]
async fn main() -> ExitCode {
    let ended = serve(Args::parse()).await;
    ended.map_or_else(
        |error| {
            let _ = writeln!(std::io::stderr(), "sessions: {error}");
            ExitCode::from(2)
        },
        |()| ExitCode::SUCCESS,
    )
}

async fn serve(args: Args) -> Result<(), Box<dyn Error>> {
    let listener = TcpListener::bind(("127.0.0.1", args.port)).await;
    let listener = listener.map_err(|error| format!("cannot listen on 127.0.0.1:{}: {error}", args.port))?;
    let url = format!("http://{}/mcp", listener.local_addr()?);
    let audience = Audience::new(args.audience.unwrap_or_else(|| url.clone()))?;
    let metrics = PrometheusBuilder::new().install_recorder()?;
    handfast::describe_metrics();

    let issuer = Issuer::new(args.issuer)?;
    let jwks = Jwks::at(&format!("{issuer}/jwks"))?;
    let rules = TokenRules::new(issuer.clone(), audience.clone()).tenant_claim("tenant");
    let verifier = JwtVerifier::new(rules, &[Algorithm::Es256], jwks);
    let bearer = BearerLayer::new(Arc::new(verifier), ProtectedResource::new(audience.clone(), vec![issuer])?);
    let mcp = match &args.upstream {
        Some(url) => elsewhere(url, args.upstream_token.as_deref())?,
        None => notes(),
    };
    let guarded = if args.unguarded {
        mcp
    } else {
        let keys = match &args.keys {
            Some(path) => Keys::from_file(path)?,
            None => Keys::dangerous_for_this_process_only(),
        };
        let store = store::open(&args.store, OpenOptions::default()).await?;
        let (audit, options) = (Arc::new(JsonLines::new(std::io::stderr())), SessionOptions::default());
        let sessions = SessionAuthority::new(SessionSetup { store, keys, audience, audit, options });
        // This is the line that makes a session somebody's: the server behind knows nothing of it.
        mcp.layer(SessionLayer::new(Arc::new(sessions)).also_without_sessions())
    };
    let app = guarded.layer(bearer);

    // Counters are for whoever operates the server, at another port than its users'.
    let scraped = TcpListener::bind(("127.0.0.1", args.metrics_port)).await;
    let scraped = scraped.map_err(|error| format!("cannot listen on 127.0.0.1:{}: {error}", args.metrics_port))?;
    let counters = format!("http://{}/metrics", scraped.local_addr()?);
    let router = Router::new().route("/metrics", get(move || std::future::ready(metrics.render())));
    tokio::spawn(async move { axum::serve(scraped, router).await });

    let mut out = std::io::stdout();
    writeln!(out, "listening on {url}\ncounters at {counters}")?;
    out.flush()?;
    axum::serve(listener, app).await?;
    Ok(())
}
