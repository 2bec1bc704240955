//! Every store passes the same suite.

use std::sync::Arc;

use handfast::store::{
    MemoryStore,
    contract::{self, Pair},
};

#[tokio::test(flavor = "multi_thread")]
async fn memory() {
    contract::hold("memory", async || {
        let clock = contract::clock();
        let one = Arc::new(MemoryStore::new(clock.clone()));
        Pair { other: one.clone(), one, clock }
    })
    .await;
}

#[cfg(feature = "sqlite")]
#[tokio::test(flavor = "multi_thread")]
async fn sqlite() {
    use handfast::store::{SqliteOptions, SqliteStore};

    let folder = tempfile::tempdir().expect("a folder");
    let count = std::cell::Cell::new(0);
    contract::hold("sqlite", async || {
        count.set(count.get() + 1);
        let (clock, path) = (contract::clock(), folder.path().join(format!("{}.db", count.get())));
        let open = || {
            let options = SqliteOptions { clock: clock.clone(), ..SqliteOptions::default() };
            Arc::new(SqliteStore::open(&path, options).expect("opened"))
        };
        Pair { one: open(), other: open(), clock }
    })
    .await;
}

#[cfg(feature = "postgres")]
#[tokio::test(flavor = "multi_thread")]
async fn postgres() {
    use handfast::store::{PostgresOptions, PostgresStore};
    use handfast_testbed::Cluster;

    contract::hold("postgres", async || {
        let (clock, url) = (contract::clock(), Cluster::shared().database());
        let open = async || {
            let options = PostgresOptions { clock: Some(clock.clone()), ..PostgresOptions::default() };
            Arc::new(PostgresStore::connect(&url, options).await.expect("connected"))
        };
        Pair { one: open().await, other: open().await, clock }
    })
    .await;
}
