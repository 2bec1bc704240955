//! A small server behind over real HTTP, that keeps what it receives, and clients of the gateway before it.

use std::{
    convert::Infallible,
    sync::{Arc, Mutex},
};

use axum_core::body::Body;
use handfast_twins::issuer::{Issuer, Wish};
use handfast_wire::headers;
use http::{HeaderMap, Method, Request, Response};
use http_body_util::BodyExt;
use hyper::{body::Incoming, server::conn::http1, service::service_fn};
use hyper_util::rt::TokioIo;
use serde_json::{Value, json};
use tokio::{net::TcpListener, task::JoinHandle};

use super::{OURS, Parts, Running, token};

/// What the server behind received.
#[derive(Debug, Clone)]
pub(crate) struct Seen {
    pub(crate) verb: Method,
    pub(crate) headers: HeaderMap,
    pub(crate) body: String,
}

impl Seen {
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or(Value::Null)
    }

    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name).map(|value| value.to_str().expect("ASCII"))
    }

    pub(crate) fn arguments(&self) -> Value {
        self.json()["params"]["arguments"].clone()
    }

    /// An answer to it.
    pub(crate) fn result(&self, result: &Value) -> Response<Body> {
        said("application/json", json!({"jsonrpc": "2.0", "id": self.json()["id"], "result": result}).to_string())
    }
}

/// A response of this type.
pub(crate) fn said(kind: &str, body: impl Into<Body>) -> Response<Body> {
    Response::builder().header("content-type", kind).body(body.into()).expect("a response")
}

pub(crate) fn status(status: u16) -> Response<Body> {
    Response::builder().status(status).body(Body::empty()).expect("a response")
}

/// The server behind, the gateway before it, and who issues tokens.
pub(crate) struct World {
    pub(crate) gateway: Running,
    pub(crate) issuer: Issuer,
    seen: Arc<Mutex<Vec<Seen>>>,
    task: JoinHandle<()>,
    http: reqwest::Client,
}

impl Drop for World {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl World {
    pub(crate) async fn new(says: impl Fn(&Seen) -> Response<Body> + Send + Sync + 'static) -> Self {
        Self::with(says, |_, _| {}).await
    }

    /// With a gateway that differs; the change is told the address of the server behind.
    pub(crate) async fn with(
        says: impl Fn(&Seen) -> Response<Body> + Send + Sync + 'static,
        change: impl FnOnce(&mut Parts, &str),
    ) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let url = format!("http://{}/mcp", listener.local_addr().expect("an address"));
        let (says, seen): (Says, _) = (Arc::new(says), Arc::default());
        let task = tokio::spawn(listen(listener, says, Arc::clone(&seen)));
        let issuer = Issuer::start(0).await.expect("an issuer");
        let mut parts = Parts::new(RULES, &url);
        change(&mut parts, &url);
        let gateway = parts.start(&issuer).await;
        let http = reqwest::Client::builder().redirect(reqwest::redirect::Policy::none()).build().expect("a client");
        Self { gateway, issuer, seen, task, http }
    }

    /// What the server behind has received since this was asked last.
    pub(crate) fn seen(&self) -> Vec<Seen> {
        std::mem::take(&mut *self.seen.lock().expect("a lock"))
    }

    pub(crate) fn user(&self, subject: &str) -> Client<'_> {
        self.bearer(&token(&self.issuer, subject))
    }

    pub(crate) fn wish(&self, change: impl FnOnce(&mut Wish)) -> Client<'_> {
        let mut wish = Wish::of("alice", OURS);
        change(&mut wish);
        self.bearer(&self.issuer.token(&wish))
    }

    pub(crate) fn bearer(&self, token: &str) -> Client<'_> {
        Client { world: self, token: token.to_owned() }
    }
}

async fn listen(listener: TcpListener, says: Says, seen: Arc<Mutex<Vec<Seen>>>) {
    while let Ok((stream, _)) = listener.accept().await {
        let (says, seen) = (says.clone(), seen.clone());
        let service = service_fn(move |request: Request<Incoming>| {
            let (says, seen) = (says.clone(), seen.clone());
            async move {
                let (head, body) = request.into_parts();
                let body = body.collect().await.expect("a body").to_bytes();
                let body = String::from_utf8(body.to_vec()).expect("UTF-8");
                let one = Seen { verb: head.method, headers: head.headers, body };
                seen.lock().expect("a lock").push(one.clone());
                Ok::<_, Infallible>(says(&one))
            }
        });
        tokio::spawn(http1::Builder::new().serve_connection(TokioIo::new(stream), service));
    }
}

/// Somebody who calls the gateway.
pub(crate) struct Client<'w> {
    world: &'w World,
    token: String,
}

/// What a client was told.
#[derive(Debug, PartialEq)]
pub(crate) struct Got {
    pub(crate) status: u16,
    pub(crate) headers: HeaderMap,
    pub(crate) text: String,
}

impl Got {
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.text).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }

    pub(crate) fn code(&self) -> Value {
        self.json()["error"]["code"].clone()
    }

    /// Whether the tool has said that it failed.
    pub(crate) fn is_error(&self) -> bool {
        self.json()["result"]["isError"] == true
    }

    pub(crate) fn session(&self) -> String {
        self.headers["mcp-session-id"].to_str().expect("ASCII").to_owned()
    }
}

impl Client<'_> {
    pub(crate) async fn open(
        &self,
        verb: Method,
        more: &[(&str, &str)],
        body: impl Into<Vec<u8>>,
    ) -> reqwest::Response {
        self.open_at("", verb, more, body).await
    }

    pub(crate) async fn open_at(
        &self,
        query: &str,
        verb: Method,
        more: &[(&str, &str)],
        body: impl Into<Vec<u8>>,
    ) -> reqwest::Response {
        let mut request = self.world.http.request(verb, format!("{}{query}", self.world.gateway.url));
        request = request.header("content-type", "application/json").header("accept", BOTH).body(body.into());
        if !self.token.is_empty() {
            request = request.bearer_auth(&self.token);
        }
        let request = more.iter().fold(request, |request, (name, value)| request.header(*name, *value));
        request.send().await.expect("an answer")
    }

    pub(crate) async fn send(&self, verb: Method, more: &[(&str, &str)], body: impl Into<Vec<u8>>) -> Got {
        read(self.open(verb, more, body).await).await
    }

    /// A request of 2026-07-28, with further headers.
    pub(crate) async fn modern(&self, method: &str, params: Value, more: &[(&str, &str)]) -> Got {
        let mut params = params;
        params["_meta"] = json!({
            "io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientCapabilities": {"extensions": {"io.modelcontextprotocol/tasks": {}}},
        });
        let standard = headers::standard(method, params.as_object().expect("an object"));
        let mut given: Vec<(&str, &str)> = standard.iter().map(|(name, value)| (*name, value.as_str())).collect();
        given.retain(|(name, _)| !more.iter().any(|(other, _)| other.eq_ignore_ascii_case(name)));
        given.extend_from_slice(more);
        let body = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}).to_string();
        self.send(Method::POST, &given, body).await
    }

    pub(crate) async fn call(&self, tool: &str, arguments: Value) -> Got {
        self.modern("tools/call", json!({"name": tool, "arguments": arguments}), &[]).await
    }

    /// A new workspace; its handle.
    pub(crate) async fn create(&self) -> String {
        let got = self.call("create", json!({})).await;
        got.json()["result"]["structuredContent"]["workspace_id"].as_str().expect("a handle").to_owned()
    }

    /// A request in a session of 2025-11-25.
    pub(crate) async fn legacy(&self, session: &str, body: &Value) -> Got {
        let given = [("mcp-session-id", session), ("mcp-protocol-version", "2025-11-25")];
        let from = usize::from(session.is_empty());
        self.send(Method::POST, &given[from..], body.to_string()).await
    }

    /// A new session.
    pub(crate) async fn begin(&self) -> String {
        self.legacy("", &initialize()).await.session()
    }
}

pub(crate) async fn read(response: reqwest::Response) -> Got {
    let (status, mut headers) = (response.status().as_u16(), response.headers().clone());
    headers.remove("date");
    Got { status, headers, text: response.text().await.expect("a text") }
}

pub(crate) fn initialize() -> Value {
    json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {"protocolVersion": "2025-11-25"}})
}

/// A server with workspaces: the first is `ws-100001`, and it believes whoever names one. Its sessions are `behind-1` and so on.
pub(crate) fn workshop() -> impl Fn(&Seen) -> Response<Body> + Send + Sync + 'static {
    let (made, begun) = (Mutex::new(100_000), Mutex::new(0));
    move |seen| {
        let next = |of: &Mutex<u32>| {
            let mut of = of.lock().expect("a lock");
            *of += 1;
            *of
        };
        let (body, session) = (seen.json(), seen.header("mcp-session-id"));
        match (seen.verb.as_str(), body["method"].as_str(), body["params"]["name"].as_str()) {
            ("GET", ..) => said(
                "text/event-stream",
                format!(": {session:?}\n\ndata: {{\"jsonrpc\":\"2.0\",\"method\":\"hello\"}}\n\n"),
            ),
            ("DELETE", ..) => status(204),
            (_, Some("initialize"), _) => {
                let mut response = seen.result(&json!({"protocolVersion": "2025-11-25"}));
                let id = format!("behind-{}", next(&begun));
                response.headers_mut().insert("mcp-session-id", id.parse().expect("a header"));
                response
            }
            (_, Some(method), _) if method.starts_with("notifications/") => status(202),
            (_, _, Some("create")) => {
                seen.result(&json!({"structuredContent": {"workspace_id": format!("ws-{}", next(&made))}}))
            }
            (_, _, Some("order")) => seen.result(&json!({"structuredContent": {"order_id": 1000 + next(&made)}})),
            (_, _, Some("task")) => seen.result(&json!({"resultType": "task", "taskId": "t-000001"})),
            _ => seen.result(&json!({"content": [], "structuredContent": {"heard": body["params"]}})),
        }
    }
}

const BOTH: &str = "application/json, text/event-stream";

const RULES: &str = r#"
version = 1

[[handle]]
mint = "create"
name = "workspace"
pointer = "/structuredContent/workspace_id"
consume = ["tools/call use#/workspace_id", "tools/call use#/lines/*/workspace_id", "prompts/get about#workspace_id", "resources/read ws://{id}#id"]

[[handle]]
mint = "order"
name = "order"
pointer = "/structuredContent/order_id"
consume = ["tools/call use#/order_id"]
"#;

/// What a server answers to what it sees.
type Says = Arc<dyn Fn(&Seen) -> Response<Body> + Send + Sync>;
