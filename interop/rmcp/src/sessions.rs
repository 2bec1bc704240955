//! A memo for each session on rmcp, made to be probed: protocol 2025-11-25 with `Mcp-Session-Id`.
//!
//! The SDK's session manager is told ids and never users. In flawed mode that is all there is, so whoever knows an id is
//! in. In sound mode a layer in front of it remembers who began a session, and knows no session for anybody else.

mod gate;
mod http_options;

use std::borrow::Cow;
use std::collections::HashMap;
use std::error::Error;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::request::Parts;
use axum::http::{HeaderValue, Method, StatusCode};
use axum::middleware::{self, Next};
use axum::response::Response;
use axum::{Extension, Router};
use rmcp::handler::server::router::tool::ToolRouter;
use rmcp::handler::server::wrapper::Parameters;
use rmcp::model::*;
use rmcp::service::RequestContext;
use rmcp::transport::StreamableHttpService;
use rmcp::transport::streamable_http_server::StreamableHttpServerConfig;
use rmcp::transport::streamable_http_server::session::local::LocalSessionManager;
use rmcp::{ErrorData, RoleServer, ServerHandler, tool, tool_handler, tool_router};
use schemars::JsonSchema;
use serde::Deserialize;

use gate::User;

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let (sound, port) = match http_options::parse(std::env::args().skip(1)) {
        Ok(options) => options,
        Err(problem) => {
            eprintln!("{problem}");
            std::process::exit(2);
        }
    };
    let mcp = StreamableHttpService::new(
        // Called once for every session.
        || Ok(Memo { tool_router: Memo::tool_router(), text: Mutex::default() }),
        Arc::new(LocalSessionManager::default()),
        StreamableHttpServerConfig::default()
            .with_legacy_session_mode(true)
            .with_allowed_origins(["http://127.0.0.1:*", "http://localhost:*"]),
    );
    let mut router = Router::new().route_service("/mcp", mcp);
    if sound {
        router = router.layer(middleware::from_fn_with_state(Owners::default(), bind));
    }
    gate::serve(router, port).await
}

// --- whose session it is, in sound mode --------------------------------------------------------------

/// Who began which session.
#[derive(Clone, Default)]
struct Owners(Arc<Mutex<HashMap<HeaderValue, User>>>);

impl Owners {
    fn all(&self) -> MutexGuard<'_, HashMap<HeaderValue, User>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

async fn bind(
    State(owners): State<Owners>,
    Extension(user): Extension<User>,
    request: Request,
    next: Next,
) -> Response {
    let presented = request.headers().get(SESSION_ID).cloned();
    if let Some(id) = &presented
        && owners.all().get(id) != Some(&user)
    {
        // Foreign, unknown and ended are one answer for every verb: the SDK's own, which has no content type.
        let mut refusal = Response::new(Body::from("Not Found: Session not found"));
        *refusal.status_mut() = StatusCode::NOT_FOUND;
        return refusal;
    }
    let ends = request.method() == Method::DELETE;
    let response = next.run(request).await;
    match (presented, response.headers().get(SESSION_ID)) {
        (None, Some(begun)) => _ = owners.all().insert(begun.clone(), user),
        (Some(id), _) if ends && response.status().is_success() => _ = owners.all().remove(&id),
        _ => {}
    }
    response
}

const SESSION_ID: &str = "mcp-session-id";

// --- the MCP server ----------------------------------------------------------------------------------

struct Memo {
    tool_router: ToolRouter<Self>,
    text: Mutex<Option<String>>,
}

#[derive(Deserialize, JsonSchema)]
struct Remembering {
    text: String,
}

#[tool_router]
impl Memo {
    fn text(&self) -> MutexGuard<'_, Option<String>> {
        self.text.lock().unwrap_or_else(PoisonError::into_inner)
    }

    #[tool(description = "Remember a text for this session.", annotations(destructive_hint = false))]
    fn remember(&self, Parameters(Remembering { text }): Parameters<Remembering>) -> String {
        *self.text() = Some(text);
        "Remembered.".to_owned()
    }

    #[tool(description = "Say what this session remembers.", annotations(read_only_hint = true))]
    fn recall(&self) -> String {
        self.text().clone().unwrap_or_else(|| "Nothing is remembered.".to_owned())
    }

    #[tool(description = "Say whose token this request carries.", annotations(read_only_hint = true))]
    fn whoami(&self, context: RequestContext<RoleServer>) -> Result<String, ErrorData> {
        let user = context.extensions.get::<Parts>().and_then(|parts| parts.extensions.get::<User>());
        user.map(|User(name)| name.clone()).ok_or_else(|| ErrorData::internal_error("nobody", None))
    }
}

#[tool_handler(router = self.tool_router)]
impl ServerHandler for Memo {
    fn get_info(&self) -> ServerConfig {
        let offers = ServerCapabilities::builder().enable_tools().build();
        ServerConfig::new(offers).with_server_info(Implementation::new("interop-memo", "1"))
    }

    // Nothing newer: from 2026-07-28 on there are no sessions.
    fn supported_protocol_versions(&self) -> Cow<'static, [ProtocolVersion]> {
        Cow::Borrowed(ProtocolVersion::known_up_to(&ProtocolVersion::V_2025_11_25))
    }
}
