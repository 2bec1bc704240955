//! Seals and opens a state of 200 bytes, in every way that is compared: told by name on standard input, answers with
//! nanoseconds. `../seal.py` asks.

use std::{
    hint::black_box,
    io::{BufRead, Write},
    time::{Duration, Instant},
};

use aws_lc_rs::aead::{AES_256_GCM_SIV, Aad, LessSafeKey, Nonce, UnboundKey};
use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};
use handfast::{
    Audience, Caller, ClientId, Issuer, Keys, Principal, Tenant,
    rmcp::Sealed,
    seal::{RequestDigest, Sealer, StateContext},
};
use rmcp::{
    ErrorData, RoleServer, ServerHandler, ServiceExt,
    model::{
        CallToolRequestParams, CallToolResponse, CallToolResult, RequestStateCodec, SealOptions, ServerCapabilities,
        ServerConfig,
    },
    service::RequestContext,
};
use serde_json::{Map, Value, json};

const STATE: [u8; 200] = [b's'; 200];
const CALLS: u32 = 5000;

struct Bench {
    sealer: Sealer,
    caller: Caller,
    arguments: Map<String, Value>,
    bare: LessSafeKey,
    peer: RequestStateCodec,
    context: Vec<u8>,
}

fn main() {
    let bench = Bench::new();
    for line in std::io::stdin().lock().lines() {
        let line = line.expect("a line of text");
        let nanoseconds = match line.as_str() {
            "ours" => timed(|| bench.ours(&bench.request())),
            "ours-digested" => {
                let request = bench.request();
                timed(|| bench.ours(&request))
            }
            "digest" => timed(|| drop(black_box(bench.request()))),
            "bare" => timed(|| bench.bare(&STATE)),
            "bare-as-long" => timed(|| bench.bare(&[b's'; 200 + 190])),
            "peer" => timed(|| bench.peer()),
            "call" => calls(Nothing, &bench),
            "call-wrapped" => {
                let caller = bench.caller.clone();
                calls(Sealed::by(Nothing, sealer(), move |_| Some(caller.clone())), &bench)
            }
            other => panic!("nothing is called {other}"),
        };
        println!("{nanoseconds}");
        std::io::stdout().flush().expect("somebody listens");
    }
}

/// The time of one call, in nanoseconds.
fn timed(mut call: impl FnMut()) -> f64 {
    let begun = Instant::now();
    for _ in 0..CALLS {
        call();
    }
    begun.elapsed().as_secs_f64() * 1e9 / f64::from(CALLS)
}

impl Bench {
    fn new() -> Self {
        let principal = Principal::new(Issuer::new("https://id.example.com").expect("an issuer"), "alice@example.com");
        let caller = Caller::trusted(principal.expect("a principal"))
            .in_tenant(Tenant::new("acme").expect("a tenant"))
            .by_client(ClientId::new("https://app.example.com/client.json").expect("a client"));
        let Value::Object(arguments) = json!({"order": 17, "to": "Berlin", "express": true}) else { unreachable!() };
        Self {
            sealer: sealer(),
            caller,
            arguments,
            bare: LessSafeKey::new(UnboundKey::new(&AES_256_GCM_SIV, &[7; 32]).expect("a key")),
            peer: RequestStateCodec::try_new([7; 32]).expect("a key"),
            // What an author of that codec would bind to: as much as ours is bound to.
            context: b"https://id.example.com\0alice@example.com\0acme\0https://app.example.com/client.json\0tools/call\0\
                checkout\0{\"express\":true,\"order\":17,\"to\":\"Berlin\"}"
                .to_vec(),
        }
    }

    fn request(&self) -> RequestDigest<'_> {
        RequestDigest::tool("checkout", Some(&self.arguments))
    }

    fn ours(&self, request: &RequestDigest<'_>) {
        let context = StateContext { caller: &self.caller, request };
        let sealed = self.sealer.seal(&STATE, &["approve"], &context).expect("sealed");
        let opened = self.sealer.open(sealed.expose(), &context).expect("opened");
        black_box(opened.replayable().bytes());
    }

    /// The cipher and the coding, and the nonce from the operating system: bound to nothing, and without an end.
    fn bare(&self, state: &[u8]) {
        let mut nonce = [0; 12];
        getrandom::fill(&mut nonce).expect("random bytes");
        let mut bytes = Vec::with_capacity(state.len() + 28);
        bytes.extend_from_slice(&nonce);
        bytes.extend_from_slice(state);
        let sealed = Nonce::assume_unique_for_key(nonce);
        let tag = self.bare.seal_in_place_separate_tag(sealed, Aad::empty(), &mut bytes[12..]).expect("sealed");
        bytes.extend_from_slice(tag.as_ref());
        let text = URL_SAFE_NO_PAD.encode(&bytes);
        let mut bytes = URL_SAFE_NO_PAD.decode(&text).expect("decoded");
        let (nonce, sealed) = bytes.split_at_mut(12);
        let nonce = Nonce::try_assume_unique_for_key(nonce).expect("a nonce");
        black_box(self.bare.open_in_place(nonce, Aad::empty(), sealed).expect("opened"));
    }

    fn peer(&self) {
        let options = SealOptions::new().associated_data(&self.context).ttl(Duration::from_secs(600));
        let sealed = self.peer.seal_with(&STATE, &options);
        black_box(self.peer.open_with(&sealed, &self.context).expect("opened"));
    }
}

fn sealer() -> Sealer {
    let audience = Audience::new("https://mcp.example.com/mcp").expect("an audience");
    Sealer::new(Keys::dangerous_for_this_process_only(), audience)
}

/// A handler that has nothing to do, and asks nothing.
struct Nothing;

impl ServerHandler for Nothing {
    fn get_info(&self) -> ServerConfig {
        ServerConfig::new(ServerCapabilities::builder().enable_tools().build())
    }

    async fn call_tool(
        &self,
        _: CallToolRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        Ok(CallToolResult::success(Vec::new()).into())
    }
}

/// The median time of one call that carries no state, in nanoseconds: client and server in one thread, without a network.
fn calls(handler: impl ServerHandler, bench: &Bench) -> f64 {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    runtime.block_on(async {
        let (ours, theirs) = tokio::io::duplex(1 << 16);
        let (server, client) = tokio::join!(handler.serve(ours), ().serve(theirs));
        let (server, client) = (server.expect("it serves"), client.expect("it connects"));
        let mut times = Vec::new();
        for _ in 0..2000 {
            let params = CallToolRequestParams::new("checkout").with_arguments(bench.arguments.clone());
            let begun = Instant::now();
            client.call_tool(params).await.expect("an answer");
            times.push(begun.elapsed());
        }
        drop((client.cancel().await, server.cancel().await));
        times.sort_unstable();
        times[times.len() / 2].as_secs_f64() * 1e9
    })
}
