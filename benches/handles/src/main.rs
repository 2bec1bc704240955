//! The library's speed, and that of its floors. `handles.py` starts it and says what is measured when.
//!
//!     bench-handles FOLDER ROWS
//!
//! Prints the URL of an empty database for the peer, and the version of the server, once everything stands.

mod measure;
mod pgbench;
mod postgres;
mod shop;
mod sqlite;

use std::{path::PathBuf, sync::Arc};

use handfast_testbed::Cluster;
use measure::Asked;
use pgbench::Pgbench;
use shop::{Mint, Resolve, Shop};
use tokio::runtime::Runtime;

/// The columns of a record: what every select of this program asks for, as those of the library do.
const COLUMNS: &str = "digest, subject_key_id, subject_key, tenant, client, object_type, object_ref, object_version, \
     scopes, policy_version, created_at, expires_at, idle_micros, ends_at, revoked_at, revocation_reason, \
     revocation_receipt";

/// The rows of a small store.
const SMALL: usize = 10_000;

/// The connections to PostgreSQL: the library's default, and everybody else's.
const CONNECTIONS: usize = 8;

/// The tasks that call at once where a rate is measured.
const TASKS: usize = 32;

/// The server does not wait for the disk: a write that did would hide a second round trip. It is not disturbed by
/// its own cleaning, and counts statements only where a database asks for it.
const SETTINGS: [&str; 8] = [
    "-c",
    "fsync=off",
    "-c",
    "autovacuum=off",
    "-c",
    "shared_preload_libraries=pg_stat_statements",
    "-c",
    "pg_stat_statements.track=none",
];

/// Everything that is measured here.
struct Bench {
    cluster: Cluster,
    folder: PathBuf,
    handles: Arc<Vec<(String, handfast::Digest)>>,
    sqlite: [Arc<Shop>; 2],
    sqlite_mints: Arc<Shop>,
    postgres: [Arc<Shop>; 2],
    small_url: String,
    mints_url: String,
    pgbench: Pgbench,
}

fn main() {
    let [folder, rows] = std::env::args().skip(1).collect::<Vec<_>>().try_into().expect("a folder and a number");
    let runtime = Runtime::new().expect("a runtime");
    let bench = runtime.block_on(Bench::new(folder.into(), rows.parse().expect("a number")));
    println!("{}\n{}", bench.cluster.database(), bench.cluster.sql(&bench.small_url, "SHOW server_version").trim());
    measure::answer(&runtime, |name, asked| bench.measure(&runtime, name, asked));
}

impl Bench {
    async fn new(folder: PathBuf, rows: usize) -> Self {
        let handles = shop::made_up(rows);
        let mut digests: Vec<_> = handles.iter().map(|(_, digest)| *digest).collect();
        let mut small_digests = digests[..SMALL].to_vec();
        // Sorted they are inserted many times faster.
        digests.sort_unstable();
        small_digests.sort_unstable();

        let file = |name: &str| folder.join(name);
        let sqlite = [
            sqlite::seeded(&file("small.sqlite"), &small_digests).await,
            sqlite::seeded(&file("large.sqlite"), &digests).await,
        ];
        let sqlite_mints = sqlite::seeded(&file("mints.sqlite"), &[]).await;

        let cluster = Cluster::start(&SETTINGS);
        let (small_url, large_url, mints_url) = (cluster.database(), cluster.database(), cluster.database());
        let postgres = [
            postgres::seeded(&cluster, &small_url, &small_digests).await,
            postgres::seeded(&cluster, &large_url, &digests).await,
        ];
        let pgbench = Pgbench::new(&cluster, &folder, SMALL).await;
        cluster.sql(&mints_url, "CREATE EXTENSION pg_stat_statements");
        postgres::shop(&mints_url, 1).await;
        Self {
            cluster,
            folder,
            handles: Arc::new(handles),
            sqlite,
            sqlite_mints,
            postgres,
            small_url,
            mints_url,
            pgbench,
        }
    }

    fn measure(&self, runtime: &Runtime, name: &str, asked: &Asked<'_>) -> f64 {
        let resolve = |shop: &Arc<Shop>, rows| asked.of(TASKS, rows, || Resolve(shop.clone(), self.handles.clone()));
        let insert = |more| move || runtime.block_on(postgres::Insert::new(&self.mints_url, more));
        let rows = self.handles.len();
        match name {
            "sqlite-resolve" => resolve(&self.sqlite[0], SMALL),
            "sqlite-resolve-large" => resolve(&self.sqlite[1], rows),
            "sqlite-by-hand" => {
                let file = self.folder.join("small.sqlite");
                asked.of(TASKS, SMALL, || sqlite::ByHand::new(&file, self.handles.clone()))
            }
            "sqlite-mint" => asked.of(TASKS, 1, || Mint(self.sqlite_mints.clone())),
            "postgres-resolve" => resolve(&self.postgres[0], SMALL),
            "postgres-resolve-large" => resolve(&self.postgres[1], rows),
            // A connection has one call at a time here, so there are no more tasks than connections.
            "postgres-by-hand" => {
                let select = || runtime.block_on(postgres::Select::new(&self.small_url, self.handles.clone()));
                asked.of(CONNECTIONS, SMALL, select)
            }
            "pgbench-same" | "pgbench-plain" => self.pgbench.rate(&self.cluster, name, asked),
            "postgres-mint" => {
                let shop = runtime.block_on(postgres::shop(&self.mints_url, 1));
                asked.of(1, 1, || Mint(shop.clone()))
            }
            "postgres-insert" => asked.of(1, 1, insert(false)),
            "postgres-insert-and-more" => asked.of(1, 1, insert(true)),
            "postgres-mint-statements" => runtime.block_on(postgres::statements(&self.cluster, &self.mints_url, 1000)),
            other => panic!("nothing is called {other}"),
        }
    }
}
