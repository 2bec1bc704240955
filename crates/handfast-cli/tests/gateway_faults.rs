//! `handfast gateway` when things break: its store, the server behind, the gateway itself, and clients that mean no good. What
//! cannot be decided is refused, what was promised is kept, and others are served meanwhile.
#![allow(clippy::print_stdout, reason = "what was measured is for whoever asks for it with --nocapture")]

#[path = "support/behind.rs"]
mod behind;
#[path = "support/gateway.rs"]
mod gateway;
mod support;

use std::{
    collections::BTreeMap,
    sync::{
        Arc, Mutex,
        atomic::{AtomicU64, Ordering},
    },
};

use behind::{Behind, RULES, SECRET};
use gateway::{Answer, Gateway, LONG, OURS, User, until};
use handfast_testbed::{Cluster, Ending};
use handfast_twins::issuer::{Issuer, Wish};
use serde_json::{Value, json};
use support::{Scratch, ran};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
};

/// A gateway in front of a server that counts, and two users. All of it ends when this is dropped.
struct Town {
    gateway: Gateway,
    behind: Behind,
    alice: User,
    bob: User,
    issuer: Issuer,
    config: String,
    scratch: Scratch,
}

impl Town {
    /// With this store, and further lines of configuration.
    async fn of(name: &str, store: Option<&str>, more: &str) -> Self {
        let scratch = Scratch::new(&format!("faults-{name}"));
        let (issuer, behind) = (Issuer::start(0).await.expect("a port"), Behind::start().await);
        let keys = scratch.path("keys.txt").display().to_string();
        assert_eq!(ran(&["keys", "new", "--output", &keys]).code, 0);
        scratch.file("rules.toml", RULES);
        let here = format!("sqlite:{}", scratch.path("gateway.db").display());
        let config = format!(
            "upstream = \"{}\"\nrules = \"rules.toml\"\nkeys = \"keys.txt\"\nstore = \"{}\"\naudience = \"{OURS}\"\n\
             [who]\nissuer = \"{}\"\ntenant-claim = \"tenant\"\n[states]\nsingle-use = true\n{more}",
            behind.url(),
            store.unwrap_or(&here),
            issuer.url()
        );
        let gateway = Gateway::start(&scratch, "gateway", &config);
        let (alice, bob) = (User::of(&issuer, "alice"), User::of(&issuer, "bob"));
        Self { gateway, behind, alice, bob, issuer, config, scratch }
    }

    fn url(&self) -> &str {
        &self.gateway.url
    }

    async fn serves_bob(&self) {
        let handle = make(&self.bob, self.url(), 0).await.value("thing_id");
        assert!(uses(&self.bob, self.url(), &handle).await.is_done());
    }
}

/// How many, unless somebody says otherwise by hand.
fn number(variable: &str, usual: u64) -> u64 {
    std::env::var(variable).ok().and_then(|number| number.parse().ok()).unwrap_or(usual)
}

async fn make(user: &User, url: &str, n: u64) -> Answer {
    user.call(url, "make", json!({"n": n})).await
}

async fn uses(user: &User, url: &str, handle: &Value) -> Answer {
    user.call(url, "use", json!({"n": 0, "thing_id": handle})).await
}

fn yes(state: &Value) -> Value {
    json!({"requestState": state, "inputResponses": {"go": {"action": "accept", "content": {"go": true}}}})
}

#[tokio::test(flavor = "multi_thread")]
async fn without_its_store_it_refuses_and_forwards_nothing_and_then_goes_on() {
    let cluster = Cluster::start(&["-c", "fsync=off"]);
    let town = Town::of("store", Some(&cluster.database()), "").await;
    let (alice, url) = (&town.alice, town.url());
    for ending in [Ending::Fast, Ending::Killed] {
        let handle = make(alice, url, 1).await.value("thing_id");
        let state = alice.call(url, "ask", json!({"n": 2})).await.state();
        let session = alice.session(url).await;
        let (before, ready) = (town.behind.total(), town.gateway.admin("/readyz").await.0);

        tokio::task::block_in_place(|| cluster.end(ending));

        for time in 0..3 {
            for refused in [
                make(alice, url, 3).await,
                uses(alice, url, &handle).await,
                alice.call(url, "ask", json!({"n": 4})).await,
                alice.continued(url, "ask", json!({"n": 2}), &yes(&state)).await,
                alice.call(url, "plain", json!({"n": 5})).await,
                alice.older(url, Some(&session), "tools/call", json!({"name": "plain", "arguments": {"n": 6}})).await,
                alice.older(url, None, "initialize", json!({"protocolVersion": "2025-11-25"})).await,
            ] {
                let told = (refused.status, refused.headers.contains_key("retry-after"));
                assert_eq!(told, (503, true), "{ending:?}, {time}: {refused:?}");
            }
        }
        assert_eq!(town.behind.total(), before, "nothing was forwarded: {:?}", town.behind.counts());
        assert_eq!((ready, town.gateway.admin("/readyz").await.0), (200, 503));

        tokio::task::block_in_place(|| cluster.start_again());

        until(async || town.gateway.admin("/readyz").await.0 == 200).await;
        until(async || uses(alice, url, &handle).await.is_done()).await;
        let agreed = alice.continued(url, "ask", json!({"n": 2}), &yes(&state)).await;
        assert!(agreed.is_done(), "nothing was lost: {agreed:?}");
        assert!(!alice.continued(url, "ask", json!({"n": 2}), &yes(&state)).await.is_done());
        assert_eq!(alice.older(url, Some(&session), "tools/list", json!({})).await.status, 200);
        town.serves_bob().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_behind_that_lies_is_not_believed() {
    let town = Town::of("lies", None, "[server]\npatience = \"2s\"\n").await;
    let (alice, url) = (&town.alice, town.url());
    let session = alice.session(url).await;
    let lies =
        ["no-json", "other-id", "no-answer", "no-response", "half", "twice", "html", "cut-head", "no-http", "cut-body"];
    for (n, lie) in (0_u64..).zip(lies) {
        let (older, arguments) = (json!({"name": lie, "arguments": {"n": n}}), json!({"n": n}));
        for answer in
            [alice.call(url, lie, arguments).await, alice.older(url, Some(&session), "tools/call", older).await]
        {
            assert_eq!(answer.status, 502, "{lie}: {answer:?}");
            assert!(!answer.text.contains(SECRET) && answer.json()["error"]["code"] == -32603, "{lie}: {answer:?}");
        }
        assert_eq!(town.behind.count(&format!("{lie} {n}")), 2, "each is asked once, and not once more");
        town.serves_bob().await;
    }
    // What came whole is passed on, what was cut off is not; and the client learns that there is no answer.
    let cut = alice.call(url, "cut-stream", json!({"n": 1})).await;
    assert!(cut.text.contains("whole") && !cut.text.contains(SECRET), "{cut:?}");
    let last = cut.text.lines().rfind(|line| line.starts_with("data: ")).expect("an event");
    let last: Value = serde_json::from_str(&last["data: ".len()..]).expect("JSON");
    assert_eq!(last["error"]["code"], -32603, "{cut:?}");
    town.serves_bob().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_behind_that_is_late_or_gone_holds_nobody_else_up() {
    let mut town = Town::of("late", None, "[server]\npatience = \"2s\"\n").await;
    let url = town.url().to_owned();
    let late: Vec<_> = ["late", "late-body"]
        .into_iter()
        .map(|tool| {
            let (alice, url) = (town.alice.clone(), url.clone());
            tokio::spawn(async move { alice.call(&url, tool, json!({"n": 1})).await })
        })
        .collect();
    until(async || town.behind.count("late 1") + town.behind.count("late-body 1") == 2).await;
    town.serves_bob().await;
    assert!(!late.iter().any(tokio::task::JoinHandle::is_finished), "bob was served before");
    for one in late {
        let answer = one.await.expect("an answer");
        assert_eq!(answer.status, 502, "{answer:?}");
    }
    let handle = make(&town.alice, &url, 1).await.value("thing_id");
    let (address, gone) = (town.behind.address(), Behind::start().await);
    // The old one ends, with all of its connections.
    drop(std::mem::replace(&mut town.behind, gone));
    let answer = uses(&town.alice, &url, &handle).await;
    assert_eq!(answer.status, 502, "{answer:?}");
    town.behind = Behind::at(&address).await;
    until(async || uses(&town.alice, &url, &handle).await.is_done()).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_signal_ends_no_request_that_is_running() {
    // Longer than other commands go on after a signal.
    let town = Town::of("signals", None, "[server]\npatience = \"7s\"\n").await;
    let url = town.url().to_owned();
    let late = |n: u64| {
        let (alice, url) = (town.alice.clone(), url.clone());
        tokio::spawn(async move { alice.call(&url, "late", json!({"n": n})).await.status })
    };
    let first = late(1);
    until(async || town.behind.count("late 1") == 1).await;
    town.gateway.hang_up();
    assert_eq!(first.await.expect("an answer"), 502);
    town.serves_bob().await;

    let last = late(2);
    until(async || town.behind.count("late 2") == 1).await;
    town.gateway.signal("TERM");
    assert_eq!(last.await.expect("an answer"), 502, "it had not ended before");
    assert!(tokio::task::block_in_place(|| town.gateway.has_ended_well()));
}

/// What a crash may have interrupted, as the clients know it.
#[derive(Default)]
struct Given {
    handles: Mutex<BTreeMap<u64, Value>>,
    states: Mutex<BTreeMap<u64, Value>>,
    next: AtomicU64,
}

impl Given {
    /// Makes things and answers questions until nobody answers any more, or all is done.
    async fn fill(&self, alice: &User, url: &str, most: u64) {
        loop {
            let n = self.next.fetch_add(1, Ordering::Relaxed);
            if n >= most {
                return;
            }
            let arguments = json!({"n": n});
            let Ok(made) = alice.try_call(url, "make", arguments.clone(), &json!({})).await else { return };
            self.handles.lock().expect("no panic").insert(n, made.value("thing_id"));
            let Ok(asked) = alice.try_call(url, "ask", arguments.clone(), &json!({})).await else { return };
            let state = asked.state();
            let Ok(done) = alice.try_call(url, "ask", arguments, &yes(&state)).await else { return };
            assert!(done.is_done(), "{done:?}");
            self.states.lock().expect("no panic").insert(n, state);
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn killed_in_the_middle_it_keeps_what_it_gave_and_does_nothing_twice() {
    let most = number("CALLS", if cfg!(debug_assertions) { 400 } else { 10_000 });
    let Town { gateway, behind, alice, bob, issuer: _issuer, config, scratch } = Town::of("killed", None, "").await;
    let (given, url) = (Arc::new(Given::default()), gateway.url.clone());
    let fill = |url: &str, most: u64| -> Vec<_> {
        let one = || (given.clone(), alice.clone(), url.to_owned());
        let begin =
            |(given, alice, url): (Arc<Given>, User, String)| async move { given.fill(&alice, &url, most).await };
        (0..32).map(|_| tokio::spawn(begin(one()))).collect()
    };
    let running = fill(&url, most);
    until(async || given.handles.lock().expect("no panic").len() as u64 >= most / 2).await;

    gateway.kill();

    for one in running {
        one.await.expect("what was answered was answered rightly");
    }
    let before = given.handles.lock().expect("no panic").len();
    assert!((before as u64) < most, "it was killed in the middle");
    let gateway = Gateway::start(&scratch, "again", &config);
    for one in fill(&gateway.url, most) {
        one.await.expect("it goes on");
    }
    let (handles, states) =
        (given.handles.lock().expect("no panic").clone(), given.states.lock().expect("no panic").clone());
    for (n, handle) in &handles {
        let hers = uses(&alice, &gateway.url, handle).await;
        assert!(hers.is_done() && hers.told().contains(handle.as_str().expect("text")), "{n}: {hers:?}");
        let his = uses(&bob, &gateway.url, handle).await;
        assert!(!his.is_done(), "{n}: {his:?}");
    }
    for (n, state) in &states {
        let again = alice.continued(&gateway.url, "ask", json!({"n": n}), &yes(state)).await;
        assert!(!again.is_done(), "{n} was answered before: {again:?}");
    }
    let mut counts = behind.counts();
    counts.remove("use 0");
    assert!(counts.values().all(|count| *count == 1), "nothing is done twice: {counts:?}");
    println!(
        "killed after {before} of {most}: {} handles open for their owner and for nobody else, {} states stay used, {} MB",
        handles.len(),
        states.len(),
        gateway.most_memory()
    );
}

/// The head of a request of this user, as far as its body.
fn head(town: &Town, token: &str, more: &str) -> String {
    format!(
        "POST /mcp HTTP/1.1\r\nhost: {}\r\nauthorization: Bearer {token}\r\ncontent-type: application/json\r\n\
         accept: application/json, text/event-stream\r\nmcp-protocol-version: 2026-07-28\r\nmcp-method: tools/call\r\n\
         mcp-name: plain\r\n{more}\r\n",
        town.gateway.address()
    )
}

/// Sends a head and then the same bytes again and again, as often as it is heard: how much it could send, and what came back.
async fn pour(town: &Town, head: &str, bytes: &[u8], most: usize) -> (usize, String) {
    let stream = TcpStream::connect(town.gateway.address()).await.expect("it listens");
    let (mut from, mut to) = stream.into_split();
    let sending = async {
        let mut sent = 0;
        let mut head = head.as_bytes();
        while sent < most {
            let now = if head.is_empty() { bytes } else { std::mem::take(&mut head) };
            if to.write_all(now).await.is_err() {
                break;
            }
            sent += now.len();
        }
        sent
    };
    let reading = async {
        let mut answer = Vec::new();
        // Whatever it is that ends the connection, the answer came before.
        let _ = from.read_to_end(&mut answer).await;
        String::from_utf8_lossy(&answer).into_owned()
    };
    tokio::time::timeout(LONG, async { tokio::join!(sending, reading) }).await.expect("it ends")
}

#[tokio::test(flavor = "multi_thread")]
async fn hostile_requests_take_no_memory_and_nobody_elses_turn() {
    let town = Town::of("hostile", None, "").await;
    town.serves_bob().await;
    let token = town.alice.token.clone();
    // A gigabyte, in chunks, and with its length said.
    let chunk = [b"10000\r\n".as_slice(), &vec![b'x'; 0x10000], b"\r\n"].concat();
    for said in ["transfer-encoding: chunked\r\n", "content-length: 1073741824\r\n"] {
        let (sent, answer) = pour(&town, &head(&town, &token, said), &chunk, 1 << 30).await;
        assert!(answer.starts_with("HTTP/1.1 413 "), "{answer}");
        assert!(sent < 64 << 20, "it is refused early: {sent}");
        println!("{}: 413 after {sent} bytes", said.trim());
        town.serves_bob().await;
    }
    // Ten thousand levels deep.
    for (open, close) in [("[", "]"), ("{\"a\":", "}")] {
        let deep = format!("{}1{}", open.repeat(10_000), close.repeat(10_000));
        let body = format!(
            r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{{"name":"plain","arguments":{deep}}}}}"#
        );
        let sent = town.alice.modern(town.url(), "plain", json!({}), &json!({})).body(body).send().await;
        let answer = Answer::of(sent.expect("an answer")).await.expect("all of it");
        assert_eq!(answer.status, 400, "{answer:?}");
    }
    // Tokens of all kinds that are none.
    let bad = |n: u64| {
        let wish = Wish::of("mallory", OURS);
        match n % 5 {
            0 => "no-token".to_owned(),
            1 => town.issuer.token(&Wish { foreign_key: true, ..wish }),
            2 => town
                .issuer
                .token(&Wish { header: BTreeMap::from([("kid".to_owned(), json!(format!("k{n}")))]), ..wish }),
            3 => town.issuer.token(&Wish::of("mallory", "https://elsewhere.example/")),
            _ => "x".repeat(7000),
        }
    };
    let flood = number("TOKENS", if cfg!(debug_assertions) { 2_000 } else { 20_000 });
    let tokens: Vec<String> = (0..flood).map(bad).collect();
    let running: Vec<_> = tokens
        .chunks(flood.div_ceil(16) as usize)
        .map(|tokens| {
            let users: Vec<User> =
                tokens.iter().map(|token| User { token: token.clone(), ..town.bob.clone() }).collect();
            let url = town.url().to_owned();
            tokio::spawn(async move {
                for user in users {
                    let answer = user.call(&url, "plain", json!({"n": "flood"})).await;
                    assert_eq!(answer.status, 401, "{answer:?}");
                }
            })
        })
        .collect();
    town.serves_bob().await;
    for one in running {
        one.await.expect("all of them are refused");
        town.serves_bob().await;
    }
    assert_eq!(town.behind.count("plain \"flood\""), 0);
    println!("{flood} bad tokens; VmHWM {} MB", town.gateway.most_memory());
    assert!(town.gateway.most_memory() < 200);
}

#[tokio::test(flavor = "multi_thread")]
async fn idle_streams_take_little_memory_and_nobody_elses_turn() {
    let most = number("STREAMS", 1000);
    let town = Town::of("idle", None, "").await;
    let before = town.gateway.most_memory();
    let mut streams = Vec::new();
    for n in 0..most {
        let sent = town.alice.modern(town.url(), "idle", json!({"n": n}), &json!({})).send().await;
        let mut response = sent.expect("it begins");
        assert!(response.chunk().await.expect("it goes on").is_some());
        streams.push(response);
    }
    town.serves_bob().await;
    let most_memory = town.gateway.most_memory();
    println!("{most} idle streams: VmHWM {most_memory} MB, {before} MB before");
    assert!(most_memory < 200 || most > 1000);
    // Readers that do not read: what they are sent is not kept for them.
    let mut deaf = Vec::new();
    for n in 0..20 {
        let sent = town.alice.modern(town.url(), "flood", json!({"n": n}), &json!({})).send().await;
        deaf.push(sent.expect("it begins"));
    }
    for _ in 0..20 {
        town.serves_bob().await;
    }
    println!("20 readers that do not read: VmHWM {} MB", town.gateway.most_memory());
    assert!(town.gateway.most_memory() < 200 || most > 1000);
}
