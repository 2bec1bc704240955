//! The server behind every proxy: baskets, in one thread. It speaks 2026-07-28, and 2025-11-25 to who begins with
//! `initialize`; it answers JSON, keeps no more than it has to, and refuses what a strict server refuses.

use std::{
    cell::RefCell,
    collections::{HashMap, HashSet},
    convert::Infallible,
    pin::Pin,
    rc::Rc,
    task::{Context, Poll},
};

use bytes::Bytes;
use http_body_util::{BodyExt, Either, Full};
use hyper::{
    HeaderMap, Method, Request, Response, StatusCode,
    body::{Body, Frame, Incoming},
    header::{CONTENT_TYPE, HeaderValue},
    server::conn::http1,
    service::service_fn,
};
use hyper_util::rt::TokioIo;
use serde::Deserialize;
use serde_json::value::{RawValue, Value};
use tokio::net::TcpListener;

use crate::Failure;

pub const MODERN: &str = "2026-07-28";
const ABOUT: &str = r#""capabilities":{"tools":{"listChanged":true}},"serverInfo":{"name":"bench","version":"0"}"#;

const TOOLS: &str = r#"[
{"name":"whoami","description":"Who this is","inputSchema":{"type":"object"}},
{"name":"open_basket","description":"A new basket","inputSchema":{"type":"object"}},
{"name":"read_basket","description":"What is in it","inputSchema":{"type":"object","properties":{"basket_id":{"type":"string"}},"required":["basket_id"]}},
{"name":"buy","description":"Buys it","inputSchema":{"type":"object","properties":{"basket_id":{"type":"string"}},"required":["basket_id"]}}]"#;

const QUESTION: &str = r#"{"confirm":{"method":"elicitation/create","params":{"mode":"form","message":"Buy it?","requestedSchema":{"type":"object","properties":{"yes":{"type":"boolean"}},"required":["yes"]}}}}"#;

#[derive(Deserialize)]
struct Message<'b> {
    #[serde(borrow)]
    id: Option<&'b RawValue>,
    method: String,
    #[serde(default)]
    params: Params,
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
struct Params {
    name: String,
    arguments: HashMap<String, String>,
    request_state: Option<String>,
    input_responses: Value,
    #[serde(rename = "_meta")]
    meta: Value,
}

#[derive(Default)]
struct Shop {
    baskets: HashSet<String>,
    /// What each state stands for, until it comes back.
    states: HashMap<String, String>,
    sessions: HashSet<String>,
    calls: u64,
}

type Reply = Response<Either<Full<Bytes>, Open>>;

/// Serves until its input ends.
pub async fn serve() -> Result<(), Failure> {
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    println!("http://{}/mcp", listener.local_addr()?);
    let shop = Rc::new(RefCell::new(Shop::default()));
    tokio::task::spawn_local(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let _ = stream.set_nodelay(true);
            let shop = shop.clone();
            let service = service_fn(move |request| answer(shop.clone(), request));
            tokio::task::spawn_local(http1::Builder::new().serve_connection(TokioIo::new(stream), service));
        }
    });
    crate::input().await;
    Ok(())
}

async fn answer(shop: Rc<RefCell<Shop>>, request: Request<Incoming>) -> Result<Reply, hyper::Error> {
    let (head, body) = request.into_parts();
    let body = body.collect().await?.to_bytes();
    let (mut shop, session) = (shop.borrow_mut(), header(&head.headers, "mcp-session-id"));
    Ok(match (head.method, head.uri.path()) {
        (Method::POST, "/mcp") => shop.post(&head.headers, &body),
        (Method::GET, "/mcp") if shop.sessions.contains(session) => stream(": open\n\n".to_owned()),
        (Method::DELETE, "/mcp") if shop.sessions.remove(session) => json(StatusCode::OK, String::new()),
        // How many calls of tools came this far.
        (Method::GET, "/calls") => json(StatusCode::OK, shop.calls.to_string()),
        _ => json(StatusCode::NOT_FOUND, String::new()),
    })
}

impl Shop {
    fn post(&mut self, headers: &HeaderMap, body: &[u8]) -> Reply {
        let Ok(message) = serde_json::from_slice::<Message<'_>>(body) else {
            return refusal(StatusCode::BAD_REQUEST, "null", -32700, "no message");
        };
        let Some(id) = message.id.map(RawValue::get) else { return json(StatusCode::ACCEPTED, String::new()) };
        let (method, params) = (message.method.as_str(), &message.params);
        let modern = header(headers, "mcp-protocol-version") == MODERN;
        if modern {
            let version = &params.meta["io.modelcontextprotocol/protocolVersion"];
            if version != MODERN
                || header(headers, "mcp-method") != method
                || header(headers, "mcp-name") != params.name
            {
                return refusal(StatusCode::BAD_REQUEST, id, -32020, "headers and body disagree");
            }
        } else if method == "initialize" {
            let session = fresh();
            let mut reply = result(id, &format!(r#"{{"protocolVersion":"2025-11-25",{ABOUT}}}"#));
            reply.headers_mut().insert("mcp-session-id", session.parse().expect("hexadecimal"));
            self.sessions.insert(session);
            return reply;
        } else if !self.sessions.contains(header(headers, "mcp-session-id")) {
            return refusal(StatusCode::NOT_FOUND, id, -32600, "no such session");
        }
        let kind = if modern { r#""resultType":"complete","# } else { "" };
        let cached = if modern { r#","ttlMs":60000,"cacheScope":"public""# } else { "" };
        match method {
            "tools/call" => match self.call(params, kind) {
                Ok(told) => result(id, &told),
                Err(why) => refusal(StatusCode::OK, id, -32602, why),
            },
            "tools/list" => result(id, &format!(r#"{{{kind}"tools":{TOOLS}{cached}}}"#)),
            "server/discover" => result(id, &format!(r#"{{{kind}"supportedVersions":["{MODERN}"],{ABOUT}{cached}}}"#)),
            "subscriptions/listen" => stream(format!(
                "data: {{\"jsonrpc\":\"2.0\",\"method\":\"notifications/subscriptions/acknowledged\",\"params\":{{\"_meta\":\
                 {{\"io.modelcontextprotocol/subscriptionId\":{id}}},\"notifications\":{{\"toolsListChanged\":true}}}}}}\n\n"
            )),
            "ping" => result(id, "{}"),
            _ => refusal(StatusCode::NOT_FOUND, id, -32601, "no such method"),
        }
    }

    fn call(&mut self, params: &Params, kind: &str) -> Result<String, &'static str> {
        self.calls += 1;
        let basket = params.arguments.get("basket_id").map_or("", String::as_str);
        Ok(match (params.name.as_str(), &params.request_state) {
            ("whoami", _) => told(kind, r#"{"name":"bench"}"#),
            ("open_basket", _) => {
                let basket = fresh();
                self.baskets.insert(basket.clone());
                told(kind, &format!(r#"{{"basket_id":"{basket}"}}"#))
            }
            ("read_basket" | "buy", _) if !self.baskets.contains(basket) => {
                format!(r#"{{{kind}"content":[{{"type":"text","text":"no such basket"}}],"isError":true}}"#)
            }
            ("read_basket", _) => {
                told(kind, &format!(r#"{{"basket_id":"{basket}","items":["tea","cup"],"total":1250}}"#))
            }
            ("buy", None) => {
                let state = fresh();
                self.states.insert(state.clone(), basket.to_owned());
                format!(r#"{{"resultType":"input_required","inputRequests":{QUESTION},"requestState":"{state}"}}"#)
            }
            ("buy", Some(state)) => {
                let said = params.input_responses["confirm"]["action"] == "accept";
                if self.states.remove(state).as_deref() != Some(basket) || !said {
                    return Err("no such state");
                }
                told(kind, &format!(r#"{{"basket_id":"{basket}","bought":true}}"#))
            }
            _ => return Err("no such tool"),
        })
    }
}

/// A result that says the same as structure and as text.
fn told(kind: &str, structure: &str) -> String {
    let text = structure.replace('"', "\\\"");
    format!(r#"{{{kind}"content":[{{"type":"text","text":"{text}"}}],"structuredContent":{structure}}}"#)
}

fn fresh() -> String {
    let mut bytes = [0; 16];
    getrandom::fill(&mut bytes).expect("the operating system has randomness");
    format!("{:032x}", u128::from_le_bytes(bytes))
}

fn header<'h>(headers: &'h HeaderMap, name: &str) -> &'h str {
    headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default()
}

fn result(id: &str, result: &str) -> Reply {
    json(StatusCode::OK, format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{result}}}"#))
}

fn refusal(status: StatusCode, id: &str, code: i32, why: &str) -> Reply {
    json(status, format!(r#"{{"jsonrpc":"2.0","id":{id},"error":{{"code":{code},"message":"{why}"}}}}"#))
}

fn json(status: StatusCode, body: String) -> Reply {
    let mut reply = Response::new(Either::Left(Full::from(body)));
    *reply.status_mut() = status;
    reply.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    reply
}

fn stream(first: String) -> Reply {
    let mut reply = Response::new(Either::Right(Open(Some(first.into()))));
    reply.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("text/event-stream"));
    reply
}

/// A stream that stays open: an event, and then nothing any more.
struct Open(Option<Bytes>);

impl Body for Open {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        self.0.take().map_or(Poll::Pending, |first| Poll::Ready(Some(Ok(Frame::data(first)))))
    }
}
