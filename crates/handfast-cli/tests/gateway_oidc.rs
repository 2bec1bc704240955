//! `handfast gateway` with an authorization server that is not ours: npm's oidc-provider. The gateway finds its keys by its
//! metadata, lets its users in, and each of them sees their own only.

#[path = "support/behind.rs"]
mod behind;
#[path = "support/gateway.rs"]
mod gateway;
mod support;

use std::{
    io::{BufRead, BufReader},
    process::{Child, Command, Stdio},
};

use behind::{Behind, RULES};
use gateway::{Gateway, OURS, User};
use serde_json::json;
use support::{Scratch, interop, ran};

/// The authorization server, and what it has given its users. Dropping it ends it.
struct Provider {
    child: Child,
    issuer: String,
    alice: User,
    bob: User,
}

impl Provider {
    fn start() -> Self {
        let mut command = Command::new("sh");
        command.arg(interop().join("run")).args(["oidc-provider", "--audience", OURS, "alice", "bob"]);
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().expect("it runs");
        let mut said = BufReader::new(child.stdout.take().expect("it is piped"));
        let mut told = |name: &str| {
            let mut line = String::new();
            said.read_line(&mut line).expect("it says something");
            let told = line.trim().strip_prefix(name).and_then(|rest| rest.strip_prefix(": "));
            told.unwrap_or_else(|| panic!("no {name} in {line:?}: run `sh interop/install.sh`")).to_owned()
        };
        let (issuer, alice, bob) = (told("issuer"), told("alice"), told("bob"));
        Self { child, issuer, alice: User::with(alice), bob: User::with(bob) }
    }
}

impl Drop for Provider {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn users_of_an_authorization_server_that_is_not_ours_see_their_own_only() {
    let scratch = Scratch::new("gateway-oidc");
    let (provider, behind) = (tokio::task::block_in_place(Provider::start), Behind::start().await);
    let keys = scratch.path("keys.txt").display().to_string();
    assert_eq!(ran(&["keys", "new", "--output", &keys]).code, 0);
    scratch.file("rules.toml", RULES);
    let config = |audience: &str, name: &str| {
        format!(
            "upstream = \"{}\"\nrules = \"rules.toml\"\nkeys = \"keys.txt\"\nstore = \"sqlite:{}\"\naudience = \"{audience}\"\n\
             [who]\nissuer = \"{}\"\n",
            behind.url(),
            scratch.path(name).display(),
            provider.issuer
        )
    };
    let ours = Gateway::start(&scratch, "ours", &config(OURS, "ours.db"));
    let Provider { alice, bob, .. } = &provider;
    for (n, (owner, other)) in [(alice, bob), (bob, alice)].into_iter().enumerate() {
        let handle = owner.call(&ours.url, "make", json!({"n": n})).await.value("thing_id");
        let arguments = json!({"n": n, "thing_id": handle});
        let used = owner.call(&ours.url, "use", arguments.clone()).await;
        assert!(used.is_done() && used.told().contains(handle.as_str().expect("text")), "{used:?}");
        let before = behind.total();

        let refused = other.call(&ours.url, "use", arguments).await;

        assert!(!refused.is_done() && behind.total() == before, "{refused:?}");
    }
    // Nearly right: a token of this issuer for somewhere else, and one that was changed.
    let theirs = Gateway::start(&scratch, "theirs", &config("https://elsewhere.example/mcp", "theirs.db"));
    assert_eq!(alice.call(&theirs.url, "make", json!({"n": 9})).await.status, 401);
    let (signed, signature) = alice.token.rsplit_once('.').expect("a JWT");
    let changed = format!("{signed}.{}", signature.chars().rev().collect::<String>());
    assert_eq!(User::with(changed).call(&ours.url, "make", json!({"n": 9})).await.status, 401);
    assert_eq!(behind.count("make 9"), 0);
}
