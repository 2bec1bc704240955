//! PostgreSQL: a seeded store, and by hand what the library does with it.

use std::{
    sync::Arc,
    time::{Duration, SystemTime},
};

use handfast::{
    Digest,
    clock::{Clock, SystemClock},
    store::{PostgresOptions, PostgresStore},
};
use handfast_testbed::Cluster;
use tokio_postgres::{Client, NoTls, Statement};

use crate::{
    COLUMNS, CONNECTIONS,
    measure::{Random, Work},
    shop::{Mint, Shop, TENANT},
};

/// A connection, kept open for as long as its client is.
pub async fn connect(url: &str) -> Client {
    let (client, connection) = tokio_postgres::connect(url, NoTls).await.expect("a connection");
    tokio::spawn(connection);
    client
}

/// A shop over this database.
pub async fn shop(url: &str, connections: usize) -> Arc<Shop> {
    let options = PostgresOptions { connections, ..PostgresOptions::default() };
    Shop::over(Arc::new(PostgresStore::connect(url, options).await.expect("a store")))
}

/// A shop over this database, with a row for each of these digests.
pub async fn seeded(cluster: &Cluster, url: &str, digests: &[Digest]) -> Arc<Shop> {
    let shop = shop(url, CONNECTIONS).await;
    let digests: Vec<&[u8]> = digests.iter().map(|digest| digest.as_bytes().as_slice()).collect();
    seed(cluster, url, &shop, &digests).await;
    shop
}

/// Puts a row for each of these digests into the database of this shop.
pub async fn seed(cluster: &Cluster, url: &str, shop: &Shop, digests: &[&[u8]]) {
    let (client, pattern) = (connect(url).await, shop.pattern().await);
    let copied = COLUMNS.replacen("digest", "copies.digest", 1);
    let sql = format!(
        "INSERT INTO handfast_handles ({COLUMNS}) SELECT {copied} FROM handfast_handles AS pattern, \
         unnest($1::bytea[]) AS copies (digest) WHERE pattern.digest = $2"
    );
    for some in digests.chunks(50_000) {
        client.execute(&sql, &[&some, &pattern.as_bytes().as_slice()]).await.expect("inserted");
    }
    // As a table is that has stood for a while: no row is looked at for the first time.
    cluster.sql(url, "VACUUM ANALYZE handfast_handles");
    cluster.sql(url, "CHECKPOINT");
}

/// The library's select by hand: the same statement, prepared once, on a connection of its own.
pub struct Select {
    client: Client,
    statement: Statement,
    digests: Arc<Vec<(String, Digest)>>,
}

impl Select {
    /// On a new connection.
    pub async fn new(url: &str, digests: Arc<Vec<(String, Digest)>>) -> Self {
        let client = connect(url).await;
        let sql = format!("{} AND tenant IS NOT DISTINCT FROM $2", select_with_time("$1"));
        let statement = client.prepare(&sql).await.expect("prepared");
        Self { client, statement, digests }
    }
}

impl Work for Select {
    async fn once(&mut self, row: usize) {
        let digest = self.digests[row].1.as_bytes().as_slice();
        self.client.query_one(&self.statement, &[&digest, &TENANT]).await.expect("a row");
    }
}

/// A select with the columns that the library asks for and the time by which it judges.
pub fn select_with_time(digest: &str) -> String {
    let time = "greatest(coalesce(NULL::timestamptz, clock_timestamp()), '2026-01-01Z'::timestamptz)";
    format!("SELECT {COLUMNS}, {time} FROM handfast_handles WHERE digest = {digest}")
}

/// One insert of a row by hand; with `round_trip`, one more statement after it.
pub struct Insert {
    client: Client,
    insert: Statement,
    select: Statement,
    random: Random,
    round_trip: bool,
}

impl Insert {
    /// On a new connection.
    pub async fn new(url: &str, round_trip: bool) -> Self {
        const INSERT: &str = "INSERT INTO handfast_handles (digest, subject_key_id, subject_key, tenant, client, \
             object_type, object_ref, object_version, scopes, policy_version, created_at, expires_at, idle_micros, \
             ends_at) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14)";
        let client = connect(url).await;
        let (insert, select) = (client.prepare(INSERT).await, client.prepare("SELECT 1").await);
        // Other digests than whoever came before has left in the table.
        let random = Random::new(micros());
        Self { client, insert: insert.expect("prepared"), select: select.expect("prepared"), random, round_trip }
    }
}

impl Work for Insert {
    async fn once(&mut self, _: usize) {
        let digest: Vec<u8> = (0..4).flat_map(|_| self.random.next().to_be_bytes()).collect();
        let (now, day) = (SystemTime::UNIX_EPOCH + Duration::from_micros(micros()), Duration::from_secs(24 * 3600));
        self.client
            .execute(
                &self.insert,
                &[
                    &digest,
                    &[1_u8; 8].as_slice(),
                    &[1_u8; 32].as_slice(),
                    &TENANT,
                    &"https://app.example.com/client.json",
                    &"basket",
                    &"0192f3c4-7a55-7c1e-9d1b-2f6f0e3b8a10",
                    &"17",
                    &"basket:read basket:write",
                    &"2026-11",
                    &now,
                    &(now + 30 * day),
                    &604_800_000_000_i64,
                    &(now + 7 * day),
                ],
            )
            .await
            .expect("inserted");
        if self.round_trip {
            self.client.query_one(&self.select, &[]).await.expect("a row");
        }
    }
}

fn micros() -> u64 {
    SystemClock.now().as_microsecond().unsigned_abs()
}

/// How many statements one mint sends, as the server has counted them.
pub async fn statements(cluster: &Cluster, url: &str, mints: u32) -> f64 {
    const COUNT: &str = "SELECT sum(calls)::bigint FROM pg_stat_statements JOIN pg_database ON oid = dbid \
         WHERE datname = current_database() AND query NOT LIKE '%pg_stat_statements%'";
    let database = url.rsplit('/').next().expect("a database");
    let track = |what: &str| {
        cluster.sql(url, &format!("ALTER DATABASE {database} SET pg_stat_statements.track = '{what}'"));
    };
    // It holds for new connections: for those of this shop, of which the first mint opens the only one.
    track("all");
    let mut mint = Mint(shop(url, 1).await);
    mint.once(0).await;
    cluster.sql(url, "SELECT pg_stat_statements_reset()");
    for _ in 0..mints {
        mint.once(0).await;
    }
    track("none");
    let calls: f64 = cluster.sql(url, COUNT).trim().parse().expect("a count");
    calls / f64::from(mints)
}
