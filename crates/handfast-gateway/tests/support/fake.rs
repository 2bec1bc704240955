//! A gateway without a network: its callers are made here, and the server behind says what a test tells it.

use std::{
    collections::VecDeque,
    sync::{Arc, Mutex},
};

use async_trait::async_trait;
use axum_core::body::Body;
use bytes::Bytes;
use futures_util::stream;
use handfast::{Audience, Caller, DangerousNoAudit, Keys, Principal, clock::SystemClock, store::MemoryStore};
use handfast_gateway::{
    Gateway, Options, Rules, Setup,
    upstream::{Down, Upstream},
};
use http::{Request, Response};
use http_body_util::BodyExt;
use serde_json::{Value, json};
use tower_service::Service;

use super::{OURS, defaults};

/// A server behind: what it received, and what it will say, each for one user.
#[derive(Default)]
pub(crate) struct Fake {
    pub(crate) seen: Mutex<Vec<(String, String)>>,
    says: Mutex<VecDeque<(String, Answer)>>,
}

/// An answer, in chunks.
#[derive(Debug, Clone)]
pub(crate) struct Answer {
    pub(crate) is_stream: bool,
    pub(crate) chunks: Vec<Bytes>,
}

#[async_trait]
impl Upstream for Fake {
    async fn ask(&self, caller: &Caller, request: Request<Bytes>) -> Result<Response<Body>, Down> {
        let who = caller.principal().expect("somebody").subject().expose().to_owned();
        let body = String::from_utf8(request.into_body().to_vec()).expect("UTF-8");
        let id = serde_json::from_str::<Value>(&body).expect("JSON")["id"].to_string();
        self.seen.lock().expect("a lock").push((who.clone(), body));
        let answer = {
            let mut says = self.says.lock().expect("a lock");
            let at = says.iter().position(|(whose, _)| *whose == who).expect("an answer");
            says.remove(at).expect("it is there").1
        };
        let kind = if answer.is_stream { "text/event-stream" } else { "application/json" };
        // The test cannot know which id it will be asked with.
        let chunks = with_id(answer.chunks, &id).into_iter().map(Ok::<_, std::convert::Infallible>);
        let response = Response::builder().header("content-type", kind).body(Body::from_stream(stream::iter(chunks)));
        Ok(response.expect("a response"))
    }
}

fn with_id(chunks: Vec<Bytes>, id: &str) -> Vec<Bytes> {
    let sizes: Vec<usize> = chunks.iter().map(Bytes::len).collect();
    let mut whole = String::from_utf8(chunks.concat()).expect("UTF-8").replace(ID, id).into_bytes();
    let mut cut: Vec<Bytes> = Vec::new();
    for size in sizes {
        let rest = whole.split_off(size.min(whole.len()));
        cut.push(std::mem::replace(&mut whole, rest).into());
    }
    cut.push(whole.into());
    cut
}

/// What stands in an answer where its id is.
pub(crate) const ID: &str = "\"the id\"";

/// A gateway in front of it.
#[derive(Clone)]
pub(crate) struct Front {
    gateway: Gateway,
    pub(crate) behind: Arc<Fake>,
}

impl Front {
    pub(crate) fn new(rules: &str, options: Options) -> Self {
        let behind = Arc::new(Fake::default());
        let gateway = Gateway::new(Setup {
            rules: Rules::from_toml(rules, &defaults()).expect("rules"),
            upstream: behind.clone(),
            store: Arc::new(MemoryStore::new(Arc::new(SystemClock))),
            keys: Keys::dangerous_for_this_process_only(),
            audience: OURS.parse().expect("an audience"),
            audit: Arc::new(DangerousNoAudit),
            options,
        });
        Self { gateway: gateway.expect("a gateway"), behind }
    }

    /// What the server behind will say to this user.
    pub(crate) fn will_say(&self, who: &str, answer: Answer) {
        self.behind.says.lock().expect("a lock").push_back((who.to_owned(), answer));
    }

    /// What the server behind was sent last for this user; nothing after that.
    pub(crate) fn take_seen(&self, who: &str) -> Option<String> {
        let mut seen = self.behind.seen.lock().expect("a lock");
        let at = seen.iter().position(|(whose, _)| whose == who)?;
        Some(seen.remove(at).1)
    }

    /// Calls a tool as this user; the answer's text.
    pub(crate) async fn call(&self, who: &str, tool: &str, more: Value) -> String {
        let mut params = json!({"name": tool, "_meta": {"io.modelcontextprotocol/protocolVersion": "2026-07-28"}});
        let more = more.as_object().expect("an object").clone();
        params.as_object_mut().expect("an object").extend(more);
        let body = json!({"jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": params}).to_string();
        let audience: Audience = OURS.parse().expect("an audience");
        let principal = Principal::new("https://id.example".parse().expect("an issuer"), who).expect("a principal");
        let caller = Caller::trusted(principal).for_audience(audience);
        let caller = caller.in_tenant("demo".parse().expect("a tenant")).by_client("app".parse().expect("a client"));
        let request = Request::post("/mcp")
            .header("mcp-protocol-version", "2026-07-28")
            .header("mcp-method", "tools/call")
            .header("mcp-name", tool)
            .extension(caller)
            .body(Body::from(body));
        let answer = self.gateway.clone().call(request.expect("a request")).await;
        let Ok(answer) = answer;
        let whole = answer.into_body().collect().await.expect("a body").to_bytes();
        String::from_utf8(whole.to_vec()).expect("UTF-8")
    }
}
