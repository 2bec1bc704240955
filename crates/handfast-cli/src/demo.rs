//! `handfast demo`: a flawed server, the probe, the gateway in front of the server, and the probe once more.

use std::{
    fmt::Write,
    process::ExitCode,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use axum_core::body::Body;
use handfast::{
    Audience, Caller, DangerousNoAudit, Keys,
    clock::SystemClock,
    store::MemoryStore,
    token::{Algorithm, Jwks, JwtVerifier, ProtectedResource, TokenRules},
};
use handfast_gateway::{
    App, Defaults, Gateway, Listening, Options, Rules, Setup, Who, serve,
    upstream::{Down, HttpUpstream, Identity, Upstream},
};
use handfast_probe::{
    identity::Identities, profile::Profile, report::Report, runner::Run, target::Address, verdict::Verdict,
};
use handfast_twins::{
    Answers,
    issuer::{Issuer, Wish},
    serve_http,
};
use handfast_wire::meta;
use http::{HeaderValue, Request, Response, header};
use http_body_util::BodyExt;
use serde_json::{Value, json};
use tokio::net::TcpListener;

use crate::{
    output::{self, Failure, Progress},
    twin,
};

/// Arguments of `handfast demo`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The server to begin with: another of `handfast twin --list`
    #[arg(long, value_name = "TWIN", default_value = "flawed")]
    twin: String,
}

/// Runs the command.
pub(crate) async fn run(args: Args) -> Result<ExitCode, Failure> {
    let failed = |what: &str, error: &dyn std::fmt::Display| Failure(format!("{what}: {error}"));
    let (bare, behind, story) = {
        let progress = Progress::start();
        let server = serve_http(twin::named(&args.twin)?, 0, Answers::Json).await;
        let server = server.map_err(|error| failed("the server", &error))?;
        let issuer = Issuer::start(0).await.map_err(|error| failed("the issuer", &error))?;

        let as_users = |a: String, b: String| {
            Identities::new(Some(a.into()), Some(b.into())).map_err(|error| failed("the users", &error))
        };
        let run = probing(&server.url(), as_users("alice".to_owned(), "bob".to_owned())?)?;
        let bare = run.probe(&|text| progress.say(text)).await.map_err(|error| failed("the probe", &error))?;
        let found = run.discover(&|text| progress.say(text)).await.map_err(|error| failed("the probe", &error))?;
        let (_, map) = found.map_err(|halt| Failure(format!("the rules: {}", halt.detail)))?;
        let rules = Profile::of(&map).to_text(str::to_owned);

        let watched = Watched::new(&server.url()).map_err(|error| failed("the gateway", &error))?;
        let gateway = gateway(&rules, watched.clone(), &issuer).await?;
        let token = |user: &str| issuer.token(&Wish::of(user, AUDIENCE));
        let run = probing(&gateway, as_users(token("alice"), token("bob"))?)?;
        let behind = run.probe(&|text| progress.say(text)).await.map_err(|error| failed("the probe", &error))?;
        let story = one_call(&gateway, &token("alice"), &watched).await.map_err(|error| failed("the call", &error))?;
        server.stop().await;
        (bare, behind, story)
    };
    let mut text = side_by_side(&args.twin, &bare, &behind);
    text.push_str(&story);
    output::print(&output::harmless(&text))?;
    let any = |report: &Report| report.checks.iter().any(|check| check.verdict == Verdict::Confirmed);
    Ok(if any(&bare) && !any(&behind) { ExitCode::SUCCESS } else { ExitCode::from(1) })
}

fn probing(url: &str, identities: Identities) -> Result<Run, Failure> {
    let url = url.parse().map_err(|error| Failure(format!("{url}: {error}")))?;
    Ok(Run::new(Address::Http(url), identities))
}

/// Starts a gateway in front of the server, and says where it is.
async fn gateway(rules: &str, upstream: Arc<Watched>, issuer: &Issuer) -> Result<String, Failure> {
    let fail = |error: &dyn std::fmt::Display| Failure(format!("the gateway: {error}"));
    let audience: Audience = AUDIENCE.parse().map_err(|error| fail(&error))?;
    let name: handfast::Issuer = issuer.url().parse().map_err(|error| fail(&error))?;
    let bound = ["principal", "client"].map(str::to_owned).to_vec();
    let defaults = Defaults { lifetime: Duration::from_secs(3600), idle: None, bound };
    let gateway = Gateway::new(Setup {
        rules: Rules::from_toml(rules, &defaults).map_err(|error| fail(&error))?,
        upstream,
        store: Arc::new(MemoryStore::new(Arc::new(SystemClock))),
        keys: Keys::dangerous_for_this_process_only(),
        audience: audience.clone(),
        audit: Arc::new(DangerousNoAudit),
        options: Options { single_use: true, ..Options::default() },
    });
    let keys = Jwks::of_issuer(&name).map_err(|error| fail(&error))?;
    let verifier = JwtVerifier::new(TokenRules::new(name.clone(), audience.clone()), &[Algorithm::Es256], keys);
    let server = ProtectedResource::new(audience, vec![name]).map_err(|error| fail(&error))?;
    let app = App::new(Who::Tokens(Arc::new(verifier), server), None, gateway.map_err(|error| fail(&error))?);
    let listener = TcpListener::bind("127.0.0.1:0").await.map_err(|error| fail(&error))?;
    let url = format!("http://{}/mcp", listener.local_addr().map_err(|error| fail(&error))?);
    let (_, apps) = tokio::sync::watch::channel(app);
    tokio::spawn(serve(listener, apps, Listening::default(), std::future::pending()));
    Ok(url)
}

fn side_by_side(twin: &str, bare: &Report, behind: &Report) -> String {
    let mut text = format!("{:<34}{:<26}the same behind the gateway\n", "", format!("the server `{twin}`, bare"));
    for (before, after) in bare.checks.iter().zip(&behind.checks) {
        if before.verdict == Verdict::Confirmed || after.verdict == Verdict::Confirmed {
            let _ = writeln!(text, "{:<34}{:<26}{}", before.id, before.verdict.word(), after.verdict.word());
        }
    }
    let count = |report: &Report, verdict| report.checks.iter().filter(|check| check.verdict == verdict).count();
    let counted = |report: &Report| {
        let [confirmed, refuted] = [Verdict::Confirmed, Verdict::Refuted].map(|verdict| count(report, verdict));
        format!("{confirmed} confirmed, {refuted} refuted")
    };
    let _ = writeln!(text, "{:<34}{:<26}{}\n", "of all checks", counted(bare), counted(behind));
    text
}

/// A server behind, of which is kept what it was asked last, and what it answered.
struct Watched {
    inner: HttpUpstream,
    last: Mutex<(Value, Value)>,
}

impl Watched {
    fn new(url: &str) -> Result<Arc<Self>, handfast_gateway::upstream::NoUpstream> {
        // What the twins take for a token is the name of a user.
        let identity = Identity { header: header::AUTHORIZATION, value: "Bearer {subject}".to_owned() };
        Ok(Arc::new(Self { inner: HttpUpstream::new(url, None, Some(identity))?, last: Mutex::default() }))
    }
}

#[handfast::async_trait]
impl Upstream for Watched {
    async fn ask(&self, caller: &Caller, request: Request<bytes::Bytes>) -> Result<Response<Body>, Down> {
        let asked = serde_json::from_slice(request.body()).unwrap_or_default();
        let (head, body) = self.inner.ask(caller, request).await?.into_parts();
        let body = body.collect().await.map_err(|error| Down::Unreachable(error.into()))?.to_bytes();
        let answered = serde_json::from_slice(&body).unwrap_or_default();
        *self.last.lock().unwrap_or_else(PoisonError::into_inner) = (asked, answered);
        Ok(Response::from_parts(head, Body::from(body)))
    }
}

/// What the gateway does to one call: what goes in and comes out on both sides.
async fn one_call(gateway: &str, token: &str, watched: &Watched) -> Result<String, String> {
    let client = hyper_util::client::legacy::Client::builder(hyper_util::rt::TokioExecutor::new()).build_http();
    let call = async |tool: &str, arguments: Value| -> Result<Value, String> {
        let meta = meta::modern(json!({}), "demo", "0");
        let message = json!({
            "jsonrpc": "2.0", "id": 1, "method": "tools/call",
            "params": {"name": tool, "arguments": arguments, "_meta": meta},
        });
        let request = Request::post(gateway)
            .header(header::AUTHORIZATION, format!("Bearer {token}"))
            .header(header::CONTENT_TYPE, HeaderValue::from_static("application/json"))
            .header(header::ACCEPT, "application/json, text/event-stream")
            .header("mcp-protocol-version", meta::MODERN)
            .header("mcp-method", "tools/call")
            .header("mcp-name", tool)
            .body(Body::from(message.to_string()))
            .map_err(|error| error.to_string())?;
        let response = client.request(request).await.map_err(|error| error.to_string())?;
        let body = response.into_body().collect().await.map_err(|error| error.to_string())?.to_bytes();
        serde_json::from_slice(&body).map_err(|error| error.to_string())
    };
    let opened = call("open_workspace", json!({"label": "plans"})).await?;
    let handle = opened.pointer("/result/structuredContent/workspace_id").cloned().unwrap_or_default();
    let answer = call("read_workspace", json!({"workspace_id": handle})).await?;
    let (asked, answered) = watched.last.lock().unwrap_or_else(PoisonError::into_inner).clone();
    let shown = |message: &Value, pointer: &str| message.pointer(pointer).cloned().unwrap_or_default().to_string();
    Ok(format!(
        "What the gateway does to one call of `read_workspace`:\n  \
         the client sends     {}\n  \
         the server receives  {}\n  \
         the server answers   {}\n  \
         the client receives  {}\n",
        json!({"workspace_id": handle}),
        shown(&asked, "/params/arguments"),
        shown(&answered, "/result/structuredContent"),
        shown(&answer, "/result/structuredContent"),
    ))
}

/// The server, as the tokens of the demonstration name it.
const AUDIENCE: &str = "https://mcp.example.com/mcp";
