//! What stands in front of the SDK over HTTP, which authenticates nobody: bearer tokens, and saying where we listen.

use std::error::Error;
use std::io::Write;
use std::sync::Arc;

use axum::Router;
use axum::extract::{Request, State};
use axum::http::{StatusCode, header};
use axum::middleware::{self, Next};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use tokio::net::TcpListener;

/// Who the bearer token belongs to.
#[derive(Clone, PartialEq, Eq)]
pub struct User(pub String);

/// Serves the router, whose `/mcp` is behind the gate, and prints the one line that the test suite waits for.
pub async fn serve(mcp: Router, port: u16) -> Result<(), Box<dyn Error>> {
    let listener = TcpListener::bind(("127.0.0.1", port)).await?;
    let origin = format!("http://{}", listener.local_addr()?);
    let url = format!("{origin}/mcp");
    let metadata =
        serde_json::json!({ "resource": url, "authorization_servers": [format!("{url}/issuer")] }).to_string();
    let challenge: Arc<str> =
        format!("Bearer error=\"invalid_token\", resource_metadata=\"{origin}{METADATA}\"").into();
    let app = mcp
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
