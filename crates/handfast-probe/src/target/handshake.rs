//! Which protocol the server speaks: 2026-07-28 first, then `initialize` with the newest older revision.
//!
//! On stdio "a dual-era server picks its era from the first message", so each attempt gets a fresh child. On HTTP the
//! usual paths are tried in turn, and a path that hangs ends the search: the run has a deadline.

use handfast_wire::{
    message::{Notification, Object},
    meta,
};
use serde_json::{Value, json};
use thiserror::Error;

use super::{Address, Body, Call, Era, Fault, Options, Reply, Target, Wire, candidate_urls, http::Http, stdio::Stdio};
use crate::identity::{Identities, Who};

/// What the server said of itself.
#[derive(Debug, Clone, Default)]
pub struct Handshake {
    /// `capabilities` of `server/discover` or `initialize`; null when the server never said.
    pub capabilities: Value,
    /// `serverInfo`, by the server's own word.
    pub server: Value,
}

/// Why there is nothing to test.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum NoTarget {
    /// The program cannot be started.
    #[error("{0}")]
    NotExecutable(String),
    /// Something answered, or nothing did, but no MCP server.
    #[error("{0}")]
    NoServerAnswered(String),
    /// The server refused identity A before any call.
    #[error("the server answered HTTP {0} to identity A")]
    Denied(u16),
    /// The child ended, or the connection broke, before the first answer.
    #[error("{0}")]
    Unreachable(String),
    /// Nothing came in time.
    #[error("{0}")]
    TimedOut(String),
    /// The options cannot work: the operator has to change them.
    #[error("{0}")]
    Setup(String),
}

/// Finds the server at an address and agrees on a protocol with it.
///
/// # Errors
/// [`NoTarget`] says what is missing.
pub async fn connect(
    address: &Address,
    identities: &Identities,
    options: &Options,
) -> Result<(Target, Handshake), NoTarget> {
    match address {
        Address::Http(url) => over_http(url, identities, options).await,
        Address::Stdio { program, arguments } => over_stdio(program, arguments, identities, options).await,
    }
}

async fn over_http(
    url: &reqwest::Url,
    identities: &Identities,
    options: &Options,
) -> Result<(Target, Handshake), NoTarget> {
    let mut denied = None;
    let mut tried = Vec::new();
    for candidate in candidate_urls(url) {
        let shown = super::http::shown(&candidate);
        let http = Http::new(candidate, options).map_err(NoTarget::Setup)?;
        let mut target = target(Wire::Http(Box::new(http)), identities, options);
        match ask(&mut target).await {
            Answered::Modern(handshake) => return Ok((target, handshake)),
            Answered::Legacy => {
                if let Some(handshake) = initialize(&mut target, options.timeout).await {
                    return Ok((target, handshake));
                }
                tried.push(format!("{shown}: no MCP"));
            }
            Answered::Denied(status) => {
                denied = denied.or(Some(status));
                tried.push(format!("{shown}: HTTP {status}"));
            }
            Answered::Not(Fault::TimedOut(after)) => {
                // A server of the older kind may never answer a method that it does not know.
                if let Some(handshake) = initialize(&mut target, options.timeout).await {
                    return Ok((target, handshake));
                }
                return Err(NoTarget::TimedOut(format!("{shown}: no answer within {} ms", after.as_millis())));
            }
            Answered::Not(fault @ Fault::Unreachable(_)) => {
                return Err(NoTarget::NoServerAnswered(format!("{shown}: {fault}")));
            }
            Answered::Not(fault) => tried.push(format!("{shown}: {fault}")),
        }
    }
    match denied {
        Some(status) => Err(NoTarget::Denied(status)),
        None => Err(NoTarget::NoServerAnswered(tried.join("; "))),
    }
}

async fn over_stdio(
    program: &str,
    arguments: &[String],
    identities: &Identities,
    options: &Options,
) -> Result<(Target, Handshake), NoTarget> {
    let start = || {
        Stdio::start(program, arguments, &options.stdio, options.max_body)
            .map_err(|error| NoTarget::NotExecutable(format!("{program}: {error}")))
    };
    let mut modern = target(Wire::Stdio(Box::new(start()?)), identities, options);
    let first = ask(&mut modern).await;
    if let Answered::Modern(handshake) = first {
        return Ok((modern, handshake));
    }
    modern.close().await;

    let mut legacy = target(Wire::Stdio(Box::new(start()?)), identities, options);
    if let Some(handshake) = initialize(&mut legacy, options.start_timeout).await {
        return Ok((legacy, handshake));
    }
    legacy.close().await;
    Err(match first {
        Answered::Not(Fault::TimedOut(after)) => {
            NoTarget::TimedOut(format!("{program} did not answer within {} ms", after.as_millis()))
        }
        Answered::Not(fault) => NoTarget::Unreachable(format!("{program}: {fault}")),
        _ => NoTarget::NoServerAnswered(format!("{program} answers neither {} nor initialize", meta::MODERN)),
    })
}

fn target(wire: Wire, identities: &Identities, options: &Options) -> Target {
    Target {
        era: Era::Modern,
        wire,
        options: options.clone(),
        identities: identities.clone(),
        next_id: 0,
        open: Vec::new(),
        issues: None,
        older: None,
        aside: false,
    }
}

enum Answered {
    Modern(Handshake),
    Legacy,
    Denied(u16),
    Not(Fault),
}

/// Asks in the modern way. "Any error that is not -32020, -32021 or -32022 means legacy" (after `tools/list` was tried as
/// well: early servers of the revision lack `server/discover`).
async fn ask(target: &mut Target) -> Answered {
    let within = match target.wire {
        Wire::Http(_) => target.options.timeout,
        Wire::Stdio(_) => target.options.start_timeout,
    };
    let discover = target.send_within(Who::A, &Call::new("server/discover", Object::new()), within).await;
    if let Some(answered) = judged(&discover) {
        return answered;
    }
    if let Body::Result(result) = &discover.body {
        let speaks = result.get("supportedVersions").and_then(Value::as_array);
        if speaks.is_none_or(|versions| versions.iter().any(|version| version == meta::MODERN)) {
            return Answered::Modern(Handshake {
                capabilities: result.get("capabilities").cloned().unwrap_or_default(),
                server: server_info(result),
            });
        }
        return Answered::Legacy;
    }
    let list = target.send(Who::A, &Call::new("tools/list", Object::new())).await;
    if let Some(answered) = judged(&list) {
        return answered;
    }
    match &list.body {
        Body::Result(result) if result.get("resultType").is_some() => {
            Answered::Modern(Handshake { capabilities: Value::Null, server: server_info(result) })
        }
        _ => Answered::Legacy,
    }
}

/// What can be said of a first answer without looking at a result.
fn judged(reply: &Reply) -> Option<Answered> {
    match &reply.body {
        Body::Error(error) if error.code == meta::UNSUPPORTED_VERSION => Some(Answered::Legacy),
        Body::Fault(fault) => Some(Answered::Not(fault.clone())),
        Body::Bare(text) => match reply.status {
            Some(status @ (401 | 403)) => Some(Answered::Denied(status)),
            Some(status) if status >= 500 || status == 429 || (300..400).contains(&status) => {
                let start: String = text.chars().take(80).collect();
                Some(Answered::Not(Fault::NotMcp(format!("HTTP {status} {start}"))))
            }
            _ => None,
        },
        Body::Error(_) if matches!(reply.status, Some(401 | 403)) => reply.status.map(Answered::Denied),
        _ => None,
    }
}

/// Name and version, by the server's own word, shortened: null where it said nothing.
fn server_info(result: &Value) -> Value {
    let in_meta = result.pointer("/_meta/io.modelcontextprotocol~1serverInfo");
    let Some(info) = in_meta.or_else(|| result.get("serverInfo")).filter(|info| info.is_object()) else {
        return Value::Null;
    };
    let short =
        |key: &str| info.get(key).and_then(Value::as_str).map(|text| text.chars().take(100).collect::<String>());
    json!({"name": short("name"), "version": short("version")})
}

/// Opens in the older way, for A and, where sessions are issued, for every other caller as well.
async fn initialize(target: &mut Target, within: std::time::Duration) -> Option<Handshake> {
    for version in meta::LEGACY {
        target.era = Era::Legacy(version.to_owned());
        let reply = target.send_within(Who::A, &opening(version), within).await;
        match reply.body {
            Body::Result(result) => {
                let agreed = result
                    .get("protocolVersion")
                    .and_then(Value::as_str)
                    .filter(|version| version.len() <= 32)?
                    .to_owned();
                target.era = Era::Legacy(agreed.clone());
                initialized(target, Who::A).await;
                if let Wire::Http(_) = target.wire {
                    open_for(target, &[Who::B, Who::Nobody, Who::Impostor], &agreed).await;
                }
                return Some(Handshake {
                    capabilities: result.get("capabilities").cloned().unwrap_or_default(),
                    server: server_info(&result),
                });
            }
            // A version that is not spoken is answered by an error; one older may be.
            Body::Error(_) => {}
            Body::Bare(_) | Body::Fault(_) => return None,
        }
    }
    None
}

async fn open_for(target: &mut Target, callers: &[Who], version: &str) {
    for who in callers {
        // A caller that is refused here is refused at every later call, which then says so.
        let reply = target.send_within(*who, &opening(version), target.options.timeout).await;
        if let Body::Result(_) = reply.body {
            initialized(target, *who).await;
        }
    }
}

/// Opens once more what was ended in between.
pub(super) async fn open_again(target: &mut Target) {
    if let (Era::Legacy(version), Wire::Http(_)) = (target.era.clone(), &target.wire) {
        open_for(target, &[Who::A, Who::B, Who::Nobody, Who::Impostor], &version).await;
    }
}

pub(super) fn opening(version: &str) -> Call {
    let mut params = Object::new();
    params.insert("protocolVersion".into(), version.into());
    // Nothing is declared: a server of this era would ask on its own, and nobody would answer.
    params.insert("capabilities".into(), json!({}));
    params.insert("clientInfo".into(), json!({"name": super::CLIENT_NAME, "version": env!("CARGO_PKG_VERSION")}));
    Call::new("initialize", params)
}

async fn initialized(target: &mut Target, who: Who) {
    let notification = Notification { method: "notifications/initialized".to_owned(), params: Object::new() };
    let identity = target.identities.of(who).clone();
    // Whether it was taken shows in the next call.
    match &mut target.wire {
        Wire::Http(http) => {
            let _ = http.notify(&target.era, &identity, &notification, target.options.timeout).await;
        }
        Wire::Stdio(stdio) => {
            let _ = stdio.notify(&notification).await;
        }
    }
}
