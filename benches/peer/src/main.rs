//! A peer: how fast `tower-sessions` loads a session from SQLite and from PostgreSQL. Its sessions know nobody: whoever
//! has the id has the session.
//!
//!     bench-peer FOLDER DATABASE-URL

#[path = "../../handles/src/measure.rs"]
mod measure;

use std::{path::Path, sync::Arc};

use measure::Work;
use serde_json::json;
use time::{Duration, OffsetDateTime};
use tokio::runtime::Runtime;
use tower_sessions::{
    SessionStore,
    session::{Id, Record},
};
use tower_sessions_sqlx_store::{
    PostgresStore, SqliteStore,
    sqlx::{
        Database,
        pool::PoolOptions,
        sqlite::{SqliteConnectOptions, SqliteJournalMode, SqliteSynchronous},
    },
};

/// As many as its rival has.
const ROWS: usize = 10_000;
const CONNECTIONS: u32 = 8;
const TASKS: usize = 32;

fn main() {
    let [folder, url] = std::env::args().skip(1).collect::<Vec<_>>().try_into().expect("a folder and a URL");
    let runtime = Runtime::new().expect("a runtime");
    let (sqlite, postgres) = runtime.block_on(async {
        let sqlite = sqlite(&Path::new(&folder).join("peer.sqlite")).await;
        let postgres = postgres(&url).await;
        (seeded(sqlite).await, seeded(postgres).await)
    });
    println!();
    measure::answer(&runtime, |name, asked| match name {
        "sqlite-load" => asked.of(TASKS, ROWS, || sqlite.clone()),
        "postgres-load" => asked.of(TASKS, ROWS, || postgres.clone()),
        other => panic!("nothing is called {other}"),
    });
}

async fn sqlite(file: &Path) -> SqliteStore {
    // The settings that its rival makes; how its sessions are written is not measured.
    let options = SqliteConnectOptions::new()
        .filename(file)
        .create_if_missing(true)
        .journal_mode(SqliteJournalMode::Wal)
        .synchronous(SqliteSynchronous::Off)
        .pragma("mmap_size", "268435456");
    let store = SqliteStore::new(pool().connect_with(options).await.expect("a pool"));
    store.migrate().await.expect("a table");
    store
}

async fn postgres(url: &str) -> PostgresStore {
    let store = PostgresStore::new(pool().connect(url).await.expect("a pool"));
    store.migrate().await.expect("a table");
    store
}

/// Connections that are not asked whether they still live before they are used, as its rival does not ask either.
fn pool<D: Database>() -> PoolOptions<D> {
    PoolOptions::new().max_connections(CONNECTIONS).test_before_acquire(false)
}

/// One load.
struct Load<S> {
    store: S,
    ids: Arc<Vec<Id>>,
}

impl<S: Clone> Clone for Load<S> {
    fn clone(&self) -> Self {
        Self { store: self.store.clone(), ids: self.ids.clone() }
    }
}

impl<S: SessionStore> Work for Load<S> {
    async fn once(&mut self, row: usize) {
        self.store.load(&self.ids[row]).await.expect("an answer").expect("a session");
    }
}

/// Fills a store with sessions that hold what a handle's record holds.
async fn seeded<S: SessionStore>(store: S) -> Load<S> {
    let held = [
        ("subject", json!("7c1e0b5f8a3d42c69e71d0f4b2a8c35e7c1e0b5f8a3d42c69e71d0f4b2a8c35e")),
        ("tenant", json!("acme")),
        ("client", json!("https://app.example.com/client.json")),
        ("object_type", json!("basket")),
        ("object_ref", json!("0192f3c4-7a55-7c1e-9d1b-2f6f0e3b8a10")),
        ("object_version", json!("17")),
        ("scopes", json!("basket:read basket:write")),
        ("policy_version", json!("2026-11")),
    ];
    let data: std::collections::HashMap<_, _> = held.map(|(name, value)| (name.to_owned(), value)).into();
    let mut ids = Vec::new();
    for _ in 0..ROWS {
        let expiry_date = OffsetDateTime::now_utc() + Duration::days(7);
        let mut record = Record { id: Id::default(), data: data.clone(), expiry_date };
        store.create(&mut record).await.expect("created");
        ids.push(record.id);
    }
    Load { store, ids: Arc::new(ids) }
}
