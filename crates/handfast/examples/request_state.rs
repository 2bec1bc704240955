//! The code of `docs/guide/request-state.md`.
//!
//! `cargo run -p handfast --example request_state`

use std::error::Error;

use handfast::{
    Audience, Caller, Issuer, Keys, Principal,
    rmcp::{Sealed, accepted},
    seal::{RequestDigest, Sealer, StateContext},
    store::{MemoryStore, Store},
};
use rmcp::{
    ErrorData, RoleServer, ServerHandler,
    model::{CallToolRequestParams, CallToolResponse, CallToolResult, ContentBlock, InputRequest, InputRequiredResult},
    service::RequestContext,
};
use serde_json::json;

/// Pays after somebody has said yes. It knows nothing of envelopes.
#[derive(Clone)]
struct Desk;

impl ServerHandler for Desk {
    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let Some(amount) = request.request_state else {
            let questions = [("approve".to_owned(), approve()?)].into_iter().collect();
            return Ok(InputRequiredResult::new(Some(questions), Some("amount=10".into())).into());
        };
        if accepted(request.input_responses.as_ref(), "approve").is_none() {
            return Ok(said("not approved, and nothing was paid").into());
        }
        Ok(said(&format!("paid: {amount}")).into())
    }
}

fn before(desk: Desk) -> impl ServerHandler {
    desk
}

fn after(desk: Desk, sealer: Sealer) -> impl ServerHandler {
    Sealed::http(desk, sealer)
}

fn approve() -> Result<InputRequest, ErrorData> {
    let question = json!({"method": "elicitation/create", "params": {
        "message": "Pay 10?", "requestedSchema": {"type": "object", "properties": {}}
    }});
    serde_json::from_value(question).map_err(|problem| ErrorData::internal_error(problem.to_string(), None))
}

fn said(text: &str) -> CallToolResult {
    CallToolResult::success(vec![ContentBlock::text(text)])
}

#[expect(clippy::print_stdout, clippy::use_debug, reason = "an example shows what it does")]
#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let keys = Keys::dangerous_for_this_process_only();
    let sealer = Sealer::new(keys.clone(), "https://mcp.example.com/mcp".parse::<Audience>()?);
    drop((before(Desk), after(Desk, Sealer::new(keys, "https://mcp.example.com/mcp".parse::<Audience>()?))));

    let issuer = Issuer::new("https://id.example.com")?;
    let (alice, bob) =
        (Caller::trusted(Principal::new(issuer.clone(), "alice")?), Caller::trusted(Principal::new(issuer, "bob")?));
    let arguments = json!({"invoice": 17}).as_object().cloned();
    let request = RequestDigest::tool("pay", arguments.as_ref());

    let context = StateContext { caller: &alice, request: &request };
    let envelope = sealer.seal(b"amount=10", &["approve"], &context)?;

    for (who, caller) in [("alice", &alice), ("bob", &bob)] {
        match sealer.open(envelope.expose(), &StateContext { caller, request: &request }) {
            Ok(opened) => println!("{who}: asked {:?}", opened.asked().collect::<Vec<_>>()),
            Err(refused) => println!("{who}: {refused}"),
        }
    }

    let store: Box<dyn Store> = Box::new(MemoryStore::new(std::sync::Arc::new(handfast::clock::SystemClock)));
    for _ in 0..2 {
        match sealer.open(envelope.expose(), &context)?.once(&*store).await {
            Ok(state) => println!("alice pays: {}", String::from_utf8_lossy(state.bytes())),
            Err(refused) => println!("alice pays again: {refused}"),
        }
    }
    Ok(())
}
