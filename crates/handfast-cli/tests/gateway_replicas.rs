//! Replicas of `handfast gateway`: three processes, one PostgreSQL, one file of keys. Any of them answers any request, and
//! what one of them has ended is over on all.

#[path = "support/gateway.rs"]
mod gateway;
mod support;

use std::sync::{
    Arc,
    atomic::{AtomicBool, AtomicU64, Ordering},
};

use gateway::{Gateway, OURS, User};
use handfast_testbed::Cluster;
use handfast_twins::{Answers, Served, find, issuer::Issuer, serve_http};
use serde_json::{Value, json};
use support::{Ran, Scratch, handfast, ran};

const RULES: &str = r#"
version = 1
[[handle]]
name = "workspace"
mint = "open_workspace"
pointer = "/structuredContent/workspace_id"
consume = [
    "tools/call read_workspace#workspace_id",
    "tools/call append_note#workspace_id",
    "tools/call archive_workspace#workspace_id",
]
"#;

/// Three gateways in front of one twin, and two users. All of it ends when this is dropped.
struct Town {
    replicas: Vec<Gateway>,
    alice: User,
    bob: User,
    issuer: Issuer,
    store: String,
    keys: String,
    _twin: Served,
    _scratch: Scratch,
}

impl Town {
    async fn of(name: &str, twin: &str) -> Self {
        let scratch = Scratch::new(&format!("replicas-{name}"));
        let (issuer, store) = (Issuer::start(0).await.expect("a port"), Cluster::shared().database());
        let twin = serve_http(find(twin).expect("a twin"), 0, Answers::Json).await.expect("a port");
        let keys = scratch.path("keys.txt").display().to_string();
        assert_eq!(ran(&["keys", "new", "--output", &keys]).code, 0);
        scratch.file("rules.toml", RULES);
        let config = format!(
            "upstream = \"{}\"\nrules = \"rules.toml\"\nkeys = \"keys.txt\"\nstore = \"{store}\"\naudience = \"{OURS}\"\n\
             [who]\nissuer = \"{}\"\ntenant-claim = \"tenant\"\n\
             [server]\nidentity-header = \"authorization\"\nidentity-value = \"Bearer {{subject}}\"\n\
             [states]\nsingle-use = true\n",
            twin.url(),
            issuer.url()
        );
        // All at once: each of them makes the tables if they are not there.
        let start = |at: usize| Gateway::start(&scratch, &format!("gateway-{at}"), &config);
        let replicas = std::thread::scope(|threads| {
            let started: Vec<_> = (0..3).map(|at| threads.spawn(move || start(at))).collect();
            started.into_iter().map(|one| one.join().expect("it starts")).collect()
        });
        let (alice, bob) = (User::of(&issuer, "alice"), User::of(&issuer, "bob"));
        Self { replicas, alice, bob, issuer, store, keys, _twin: twin, _scratch: scratch }
    }

    /// Every replica with every other.
    fn pairs(&self) -> impl Iterator<Item = (&str, &str)> {
        let all = || self.replicas.iter().map(|replica| replica.url.as_str());
        all().flat_map(move |one| all().map(move |other| (one, other)))
    }

    fn urls(&self) -> Vec<String> {
        self.replicas.iter().map(|replica| replica.url.clone()).collect()
    }
}

async fn open(user: &User, url: &str) -> Value {
    user.call(url, "open_workspace", json!({"label": "a"})).await.value("workspace_id")
}

async fn reads(user: &User, url: &str, handle: &Value) -> bool {
    user.call(url, "read_workspace", json!({"workspace_id": handle})).await.is_done()
}

/// The state of a question whether to archive it.
async fn ask(user: &User, url: &str, handle: &Value) -> Value {
    user.call(url, "archive_workspace", json!({"workspace_id": handle})).await.state()
}

async fn agree(user: &User, url: &str, handle: &Value, state: &Value) -> gateway::Answer {
    let yes = json!({"requestState": state, "inputResponses": {"confirm": {"action": "accept", "content": {"confirm": true}}}});
    user.continued(url, "archive_workspace", json!({"workspace_id": handle}), &yes).await
}

async fn remember(user: &User, url: &str, session: &str, text: &str) -> u16 {
    let note = json!({"name": "remember", "arguments": {"text": text}});
    user.older(url, Some(session), "tools/call", note).await.status
}

async fn recall(user: &User, url: &str, session: &str) -> gateway::Answer {
    user.older(url, Some(session), "tools/call", json!({"name": "recall", "arguments": {}})).await
}

#[tokio::test(flavor = "multi_thread")]
async fn any_replica_answers_any_request_of_any_flow() {
    let town = Town::of("any", "dual-era-unbound").await;
    let Town { alice, bob, .. } = &town;
    for (one, other) in town.pairs() {
        let handle = open(alice, one).await;
        assert!(reads(alice, other, &handle).await, "minted on {one}, used on {other}");
        assert!(!reads(bob, other, &handle).await);

        let state = ask(alice, one, &handle).await;
        assert!(!agree(bob, other, &handle, &state).await.is_done());
        let agreed = agree(alice, other, &handle, &state).await;
        assert_eq!(agreed.value("times"), 1, "asked on {one}, answered on {other}: {agreed:?}");

        let session = alice.session(one).await;
        assert_eq!(remember(alice, other, &session, "a note").await, 200);
        assert_eq!(recall(alice, one, &session).await.told(), "a note");
        assert_eq!(recall(bob, other, &session).await.status, 404);
        assert_eq!(bob.end(other, &session).await, 404);
        assert_eq!(alice.end(other, &session).await, 204, "begun on {one}, ended on {other}");
        for url in town.urls() {
            assert_eq!(recall(alice, &url, &session).await.status, 404, "ended on {other}, used on {url}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_state_that_is_sent_to_all_at_once_is_used_once() {
    // A server that would do it as often as it is told to.
    let town = Town::of("once", "flawed").await;
    let (alice, urls) = (&town.alice, town.urls());
    let handle = open(alice, &urls[0]).await;
    for time in 1..=10 {
        let state = ask(alice, &urls[time % 3], &handle).await;
        let sent: Vec<_> = (0..12)
            .map(|at| {
                let (alice, url, handle, state) = (alice.clone(), urls[at % 3].clone(), handle.clone(), state.clone());
                tokio::spawn(async move { agree(&alice, &url, &handle, &state).await })
            })
            .collect();
        let mut done = Vec::new();
        for one in sent {
            let answer = one.await.expect("an answer");
            assert_eq!(answer.status, 200, "{answer:?}");
            done.extend(answer.is_done().then(|| answer.value("times")));
        }
        // What the server behind has counted says that nothing reached it besides.
        assert_eq!(done, [json!(time)]);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_revocation_is_in_force_on_all_when_the_command_has_returned() {
    let town = Town::of("revoked", "dual-era-unbound").await;
    let Town { alice, bob, issuer, store, keys, .. } = &town;
    for (one, _) in town.pairs() {
        let (hers, his) = (open(alice, one).await, open(bob, one).await);
        let session = alice.session(one).await;
        // Used on all of them a moment ago: nothing that one of them may remember helps.
        for url in town.urls() {
            assert!(reads(alice, &url, &hers).await && recall(alice, &url, &session).await.status == 200);
        }
        let who = ["--subject", issuer.url(), "alice", "--tenant", "demo", "--keys", keys];
        let mut revoke = handfast();
        revoke.args(["handles", "revoke", "--store", store, "--reason", "r", "--receipt", "c"]).args(who);

        let revoked = tokio::task::block_in_place(|| Ran::of(&mut revoke));

        assert_eq!(revoked.code, 0, "{revoked:?}");
        for url in town.urls() {
            assert!(!reads(alice, &url, &hers).await, "{revoked:?}");
            assert!(reads(bob, &url, &his).await, "nobody else's");
            assert_eq!(recall(alice, &url, &session).await.status, 404, "sessions are revoked as well: {revoked:?}");
        }
    }
}

/// Requests that never stop while keys are exchanged: what is begun on one replica is ended on another.
struct Traffic {
    stop: Arc<AtomicBool>,
    flows: Arc<AtomicU64>,
    running: Vec<tokio::task::JoinHandle<()>>,
}

impl Traffic {
    fn begin(town: &Town) -> Self {
        let (stop, flows) = (Arc::<AtomicBool>::default(), Arc::<AtomicU64>::default());
        let begin = |at: usize| {
            let (stop, flows) = (stop.clone(), flows.clone());
            let (alice, mut urls) = (town.alice.clone(), town.urls());
            urls.rotate_left(at);
            tokio::spawn(async move {
                while !stop.load(Ordering::Relaxed) {
                    urls.rotate_left(1);
                    let handle = open(&alice, &urls[0]).await;
                    assert!(reads(&alice, &urls[1], &handle).await);
                    let state = ask(&alice, &urls[2], &handle).await;
                    let agreed = agree(&alice, &urls[0], &handle, &state).await;
                    assert_eq!(agreed.value("times"), 1, "{agreed:?}");
                    let session = alice.session(&urls[1]).await;
                    assert_eq!(remember(&alice, &urls[2], &session, "n").await, 200);
                    assert_eq!(alice.end(&urls[0], &session).await, 204);
                    flows.fetch_add(1, Ordering::Relaxed);
                }
            })
        };
        let running = (0..3).map(begin).collect();
        Self { stop, flows, running }
    }

    /// Waits until every flow that runs now has ended, and one that began later too.
    async fn passes(&self) {
        let before = self.flows.load(Ordering::Relaxed);
        gateway::until(async || {
            assert!(!self.running.iter().any(tokio::task::JoinHandle::is_finished), "a flow was refused");
            self.flows.load(Ordering::Relaxed) >= before + 6
        })
        .await;
    }

    async fn end(self) -> u64 {
        self.stop.store(true, Ordering::Relaxed);
        for one in self.running {
            one.await.expect("no flow was refused");
        }
        self.flows.load(Ordering::Relaxed)
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_key_is_exchanged_while_requests_go_on_and_nothing_is_lost() {
    let town = Town::of("rotation", "dual-era-unbound").await;
    let Town { alice, bob, keys, .. } = &town;
    let traffic = Traffic::begin(&town);
    let (mut handles, mut sessions) = (Vec::new(), Vec::new());
    for step in 1..=3 {
        let mut rotate = handfast();
        rotate.args(["keys", "rotate", keys]).args((step == 3).then_some("--now"));
        let rotated = tokio::task::block_in_place(|| Ran::of(&mut rotate));
        assert!(rotated.code == 0 && rotated.stdout.starts_with(&format!("step {step} of 3")), "{rotated:?}");
        for (at, replica) in town.replicas.iter().enumerate() {
            let asked = (open(alice, &replica.url).await, &replica.url);
            // A question that was asked before this replica knew of the step, answered after.
            let state = ask(alice, asked.1, &asked.0).await;

            replica.hang_up();
            traffic.passes().await;

            for url in town.urls() {
                let agreed = agree(alice, &url, &asked.0, &state).await;
                assert_eq!(agreed.is_done(), url == town.urls()[0], "step {step}, replica {at}: {agreed:?}");
            }
            handles.push(open(alice, &replica.url).await);
            sessions.push(alice.session(&replica.url).await);
            for url in town.urls() {
                for handle in &handles {
                    assert!(reads(alice, &url, handle).await, "step {step}, replica {at}, at {url}");
                    assert!(!reads(bob, &url, handle).await);
                }
                for session in &sessions {
                    assert_eq!(recall(alice, &url, session).await.status, 200, "step {step}, replica {at}, at {url}");
                    assert_eq!(recall(bob, &url, session).await.status, 404);
                }
            }
        }
    }
    assert!(traffic.end().await > 0, "flows went on while keys were exchanged, and none was refused");
}
