//! Stores with handles in them, as a server leaves them: made with the library, in SQLite and in PostgreSQL.
#![allow(dead_code, reason = "each test file uses its part of this")]

use std::{
    io::{BufRead, BufReader, Write},
    path::Path,
    process::{Child, Command, Stdio},
    sync::{Arc, LazyLock},
    time::Duration,
};

use handfast::{
    Asked, BackendDown, Caller, DangerousNoAudit, Grant, Handles, Keys, Loaded, NotAuthorized, Object, ObjectAuthority,
    ObjectVersion, Policy, Principal, ScopeSet, Setup, Why, async_trait,
    clock::{Clock, ManualClock, SystemClock, Timestamp},
    store::{OpenOptions, Selector, Store, open},
};
use handfast_testbed::Cluster;
use jsonschema::Validator;
use serde_json::Value;

use crate::support::{Ran, Scratch, handfast};

/// A slow machine is no failure.
pub(crate) const PATIENT: [&str; 2] = ["--timeout", "30s"];

pub(crate) const ISSUER: &str = "https://id.example.com";

/// Who has which handles, in the order in which they were made: `(name, days ago, policy, tenant, client, object)`.
pub(crate) const TOWN: [(&str, u64, &str, &str, &str, &str); 7] = [
    ("carol", 8, "2025-1", "acme", "web", "basket/b-1"),
    ("carol", 2, "2026-1", "acme", "web", "basket/b-2"),
    ("alice", 0, "2026-1", "acme", "web", "basket/b-3"),
    ("alice", 0, "2026-1", "acme", "cli", "basket/b-4"),
    ("bob", 0, "2026-1", "acme", "web", "order/o-1"),
    ("alice", 0, "2026-1", "globex", "web", "basket/b-5"),
    ("dave", 0, "2026-1", "globex", "web", "basket/b-6"),
];

/// A store with the handles of [`TOWN`]: one expired, one idle, four alive, and the last one revoked.
pub(crate) struct Town {
    pub(crate) url: String,
    /// The text of a file of keys.
    pub(crate) keys: String,
    /// The texts of the handles, which no output may contain.
    pub(crate) handles: Vec<String>,
}

impl Town {
    pub(crate) fn sqlite(scratch: &Scratch, name: &str) -> Self {
        Self::at(&format!("sqlite:{}", scratch.path(name).display()))
    }

    pub(crate) fn postgres() -> Self {
        Self::at(&Cluster::shared().database())
    }

    pub(crate) fn both(scratch: &Scratch) -> [Self; 2] {
        [Self::sqlite(scratch, "handles.db"), Self::postgres()]
    }

    fn at(url: &str) -> Self {
        let keys = Keys::generate().expose().to_owned();
        let handles = wait(async {
            let (mut handles, now) = (Vec::new(), SystemClock.now());
            for (name, days, policy, tenant, client, object) in TOWN {
                let time = now.checked_sub(Duration::from_secs(days * 24 * 3600)).expect("a time");
                let server = server(url, &keys, policy, time).await;
                let principal = Principal::new(text(ISSUER), name).expect("a principal");
                let caller = Caller::trusted(principal).in_tenant(text(tenant)).by_client(text(client));
                let (kind, reference) = object.split_once('/').expect("a type");
                let object = Object { kind: text(kind), reference: text(reference), version: version() };
                let scopes = ScopeSet::new(["read", "write"]).expect("scopes");
                let minted = server.mint(&caller, Grant { object, scopes }).await.expect("minted");
                if name == "dave" {
                    let why = Why { reason: text("left"), receipt: text("HR-1") };
                    server.revoke_all(&Selector::handle(minted.handle().digest()), &why).await.expect("revoked");
                }
                handles.push(minted.handle().expose().to_owned());
            }
            handles
        });
        Self { url: url.to_owned(), keys, handles }
    }

    /// Runs `handfast handles` on this store, and sees that no secret is in what it says.
    pub(crate) fn ran(&self, arguments: &[&str]) -> Ran {
        self.checked(handfast().arg("handles").args(arguments).args(["--store", &self.url]).args(PATIENT))
    }

    /// Waits for the end of a command, and sees that no secret is in what it says.
    pub(crate) fn checked(&self, command: &mut Command) -> Ran {
        let ran = Ran::of(command);
        self.assert_silent(&ran.said());
        ran
    }

    pub(crate) fn assert_silent(&self, said: &str) {
        for secret in self.handles.iter().chain([&self.keys]) {
            // Nor the part of it that is random.
            assert!(!said.contains(&secret[secret.len() - 43..]), "a secret in: {said}");
        }
    }

    /// The states of the handles of [`TOWN`], in their order; `-` for one that is not there any more.
    pub(crate) fn states(&self) -> [String; 7] {
        let ran = self.ran(&["list", "--format", "json"]);
        let listed = ran.json();
        let of = |handle: &String| {
            let digest = handfast::parse_handle(handle.as_bytes(), Some(&text("hf"))).expect("a handle").to_string();
            let all = listed["handles"].as_array().expect("a list");
            let found = all.iter().find(|one| one["digest"] == *digest);
            found.map_or("-", |one| one["state"].as_str().expect("text")).to_owned()
        };
        std::array::from_fn(|at| of(&self.handles[at]))
    }

    pub(crate) fn digest(&self, at: usize) -> String {
        handfast::parse_handle(self.handles[at].as_bytes(), Some(&text("hf"))).expect("a handle").to_string()
    }
}

/// What a server is: the library over this store, at this time.
async fn server(url: &str, keys: &str, policy: &str, time: Timestamp) -> Handles<Anything> {
    let rules =
        "lifetime = \"7d\"\nidle = \"24h\"\nscopes = [\"read\", \"write\"]\nprefix = \"hf\"\ncreated_by = \"m\"\n";
    let policy = format!("version = \"{policy}\"\n[objects.basket]\n{rules}[objects.order]\n{rules}");
    let clock: Arc<dyn Clock> = Arc::new(ManualClock::at(time));
    let options = OpenOptions { clock: Some(clock), timeout: Duration::from_secs(30), ..OpenOptions::default() };
    let store = open(url, options).await.expect("opened");
    Handles::new(Setup {
        store,
        policy: Policy::from_toml(&policy).expect("a policy"),
        keys: Keys::parse(keys).expect("a key"),
        authority: Anything,
        audit: Arc::new(DangerousNoAudit),
    })
}

/// Allows everything.
struct Anything;

#[async_trait]
impl ObjectAuthority for Anything {
    type Object = ();

    async fn load(&self, _: &Object) -> Result<Option<Loaded<()>>, BackendDown> {
        Ok(Some(Loaded { object: (), version: version() }))
    }

    async fn authorize(&self, _: Asked<'_, ()>) -> Result<(), NotAuthorized> {
        Ok(())
    }
}

/// An empty store, made by the library.
pub(crate) fn empty(url: &str) -> Arc<dyn Store> {
    let options = OpenOptions { timeout: Duration::from_secs(30), ..OpenOptions::default() };
    wait(open(url, options)).expect("made")
}

/// Runs SQL on a SQLite file, as somebody would by hand.
pub(crate) fn by_hand(path: &Path, sql: &str) {
    rusqlite::Connection::open(path).and_then(|connection| connection.execute_batch(sql)).expect("done");
}

/// Fills a store in PostgreSQL with as many living handles, whose digests are not of any text.
pub(crate) fn many(cluster: &Cluster, url: &str, count: usize) {
    drop(empty(url));
    cluster.sql(
        url,
        &format!(
            "INSERT INTO handfast_handles (digest, tenant, object_type, object_ref, object_version, scopes, \
             policy_version, created_at, expires_at, ends_at) SELECT sha256(n::text::bytea), 'acme', 'basket', 'b', '1', \
             'read', '1', now(), now() + '1 hour', now() + '1 hour' FROM generate_series(1, {count}) AS n"
        ),
    );
}

/// A lock on the table of handles, held by somebody else until it is dropped.
pub(crate) struct Lock(Child);

impl Lock {
    pub(crate) fn hold(cluster: &Cluster, url: &str) -> Self {
        let database = url.rsplit('/').next().expect("a database");
        let mut psql = cluster.client("psql");
        psql.args(["-qAt", database]).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = psql.spawn().expect("psql runs");
        let input = child.stdin.as_mut().expect("it is piped");
        input.write_all(b"BEGIN; LOCK TABLE handfast_handles; SELECT 'locked';\n").expect("it reads");
        let mut line = String::new();
        BufReader::new(child.stdout.as_mut().expect("it is piped")).read_line(&mut line).expect("it answers");
        assert_eq!(line, "locked\n");
        Self(child)
    }

    /// Waits until somebody waits for the lock.
    pub(crate) fn is_waited_for(cluster: &Cluster, url: &str) {
        let waiting =
            "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND datname = current_database()";
        while cluster.sql(url, waiting).trim() == "0" {}
    }
}

impl Drop for Lock {
    fn drop(&mut self) {
        // The end of its input is the end of its session.
        drop(self.0.stdin.take());
        let _ = self.0.wait();
    }
}

/// The published schema of what is written as JSON.
pub(crate) static SCHEMA: LazyLock<Validator> = LazyLock::new(|| {
    let text = include_str!("../../schema/handles.v1.json");
    let schema: Value = serde_json::from_str(text).expect("the schema is JSON");
    jsonschema::draft202012::meta::validate(&schema).expect("the schema is one");
    jsonschema::validator_for(&schema).expect("the schema can be used")
});

pub(crate) fn assert_valid(document: &Value) {
    let errors: Vec<String> =
        SCHEMA.iter_errors(document).map(|error| format!("{}: {error}", error.instance_path())).collect();
    assert!(errors.is_empty(), "{errors:#?}\n{document:#}");
}

pub(crate) fn wait<T>(future: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime").block_on(future)
}

pub(crate) fn text<T: std::str::FromStr<Err: std::fmt::Debug>>(text: &str) -> T {
    text.parse().expect("it is one")
}

fn version() -> ObjectVersion {
    text("1")
}
