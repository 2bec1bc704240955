//! A ticket desk on rmcp, the official Rust SDK, made to be probed.
//!
//! This file reads the options and serves; `desk.rs` is the MCP server, `state.rs` is what travels between two rounds.
//! The SDK authenticates nobody, so over HTTP a middleware in front of it turns a bearer token into a user.

mod desk;
mod options;
mod state;

use std::error::Error;
use std::io::Write;
use std::sync::Arc;

use axum::extract::{Request, State};
use axum::http::{StatusCode, header};
use axum::middleware::{self, Next};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use rmcp::ServiceExt;
use rmcp::transport::StreamableHttpService;
use rmcp::transport::streamable_http_server::StreamableHttpServerConfig;
use rmcp::transport::streamable_http_server::session::local::LocalSessionManager;
use tokio::net::TcpListener;

use desk::{Desk, User};
use options::{Options, Transport};

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let options = match Options::parse(std::env::args().skip(1)) {
        Ok(options) => options,
        Err(problem) => {
            eprintln!("{problem}");
            std::process::exit(2);
        }
    };
    let desk = Desk::new(&options)?;
    match options.transport {
        Transport::Stdio => {
            desk.serve(rmcp::transport::stdio()).await?.waiting().await?;
            Ok(())
        }
        Transport::Http => over_http(desk, options.port).await,
    }
}

async fn over_http(desk: Desk, port: u16) -> Result<(), Box<dyn Error>> {
    let listener = TcpListener::bind(("127.0.0.1", port)).await?;
    let origin = format!("http://{}", listener.local_addr()?);
    let url = format!("{origin}/mcp");

    // Every request gets a clone of one desk: tickets are shared by all, whatever connection they come on.
    let mcp = StreamableHttpService::new(
        move || Ok(desk.clone()),
        Arc::new(LocalSessionManager::default()),
        // The SDK guards `Host` by default and `Origin` only when told whom to let in.
        StreamableHttpServerConfig::default().with_allowed_origins(["http://127.0.0.1:*", "http://localhost:*"]),
    );
    let metadata =
        serde_json::json!({ "resource": url, "authorization_servers": [format!("{url}/issuer")] }).to_string();
    let challenge: Arc<str> =
        format!("Bearer error=\"invalid_token\", resource_metadata=\"{origin}{METADATA}\"").into();
    let app = axum::Router::new()
        .route_service("/mcp", mcp)
        .layer(middleware::from_fn_with_state(challenge, admit))
        .route(METADATA, get(async move || ([(header::CONTENT_TYPE, "application/json")], metadata)));

    // Listening began with `bind`; from here on a connection waits for `serve` at worst.
    println!("listening on {url}");
    std::io::stdout().flush()?;
    axum::serve(listener, app).await?;
    Ok(())
}

/// The name of the caller, for the handlers, or 401. rmcp carries request extensions through to the tools.
async fn admit(State(challenge): State<Arc<str>>, mut request: Request, next: Next) -> Response {
    let token = request
        .headers()
        .get(header::AUTHORIZATION)
        .and_then(|value| value.to_str().ok())
        .and_then(|value| value.strip_prefix("Bearer "));
    let user = match token {
        Some("alice-token") => "alice",
        Some("bob-token") => "bob",
        _ => return (StatusCode::UNAUTHORIZED, [(header::WWW_AUTHENTICATE, &*challenge)]).into_response(),
    };
    request.extensions_mut().insert(User(user.to_owned()));
    next.run(request).await
}

const METADATA: &str = "/.well-known/oauth-protected-resource/mcp";
