//! PostgreSQL that stops, hangs, is full or cannot be written to: every call is refused in time, nothing succeeds that
//! should not, and all recovers by itself.
#![cfg(feature = "postgres")]

mod support;

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::Duration,
};

use handfast::{
    Denial, MintError,
    store::{PostgresOptions, PostgresStore, StoreError},
};
use handfast_testbed::{Cluster, Ending};
use support::{Bench, alice, caller, clock, denied, grant, read, why};

const TIMEOUT: Duration = Duration::from_secs(1);

async fn bench(url: &str) -> Arc<Bench> {
    let options = PostgresOptions { timeout: TIMEOUT, connections: 4, ..PostgresOptions::default() };
    Arc::new(Bench::over(Arc::new(PostgresStore::connect(url, options).await.expect("connected")), clock()))
}

/// Sixteen tasks use and refuse handles all the while; what they get is right or `Unavailable`, never late.
struct Load {
    end: Arc<AtomicBool>,
    down: Arc<AtomicBool>,
    right: Arc<AtomicU64>,
    unavailable: Arc<AtomicU64>,
    tasks: Vec<tokio::task::JoinHandle<()>>,
}

impl Load {
    fn on(bench: &Arc<Bench>, good: &str, revoked: &str) -> Self {
        let (end, down) = <(Arc<AtomicBool>, Arc<AtomicBool>)>::default();
        let (right, unavailable) = <(Arc<AtomicU64>, Arc<AtomicU64>)>::default();
        let tasks = (0..16)
            .map(|task| {
                let (bench, end, good, revoked) = (bench.clone(), end.clone(), good.to_owned(), revoked.to_owned());
                let (right, unavailable, down) = (right.clone(), unavailable.clone(), down.clone());
                tokio::spawn(async move {
                    while !end.load(Ordering::SeqCst) {
                        let (who, handle, expected) = match task % 3 {
                            0 => (alice(), &good, None),
                            1 => (caller("bob", "acme", "desktop"), &good, Some(Denial::ForeignPrincipal)),
                            _ => (alice(), &revoked, Some(Denial::Revoked)),
                        };
                        let (need, was_down) = (read(), down.load(Ordering::SeqCst));
                        let call = bench.handles.resolve(&who, handle, &need);
                        let answer = tokio::time::timeout(TIMEOUT * 5, call).await.expect("in time");
                        match answer.map(drop).map_err(|refused| refused.denial()) {
                            Err(Denial::Unavailable) => unavailable.fetch_add(1, Ordering::SeqCst),
                            answer => {
                                assert_eq!(answer.err(), expected, "a wrong answer");
                                let all_along = was_down && down.load(Ordering::SeqCst);
                                assert!(!all_along, "nothing succeeds without a server");
                                right.fetch_add(1, Ordering::SeqCst)
                            }
                        };
                    }
                })
            })
            .collect();
        Self { end, down, right, unavailable, tasks }
    }

    /// Waits until so many more calls have been counted.
    async fn until(count: &AtomicU64, more: u64) {
        let wanted = count.load(Ordering::SeqCst) + more;
        while count.load(Ordering::SeqCst) < wanted {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }

    async fn end(self) {
        self.end.store(true, Ordering::SeqCst);
        for task in self.tasks {
            task.await.expect("no wrong answer");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_stops_under_load_refuses_everything_and_recovers() {
    let cluster = Cluster::start(&["-c", "fsync=off"]);
    let url = cluster.database();
    let bench = bench(&url).await;
    let (good, revoked) = (bench.minted().await, bench.minted().await);
    let basket = "basket".parse().expect("a type");
    bench.handles.revoke(&alice(), &basket, &revoked, why("x")).await.expect("revoked");
    let load = Load::on(&bench, &good, &revoked);
    Load::until(&load.right, 200).await;

    for ending in [Ending::Fast, Ending::Killed] {
        cluster.end(ending);
        load.down.store(true, Ordering::SeqCst);
        Load::until(&load.unavailable, 200).await;
        let minted = bench.handles.mint(&alice(), grant("basket", "b-1", &["basket:read"])).await;
        assert!(matches!(minted.map(drop), Err(MintError::Store(StoreError::Unavailable(_)))));
        assert!(bench.handles.revoke(&alice(), &basket, &good, why("x")).await.is_err());
        assert!(bench.handles.purge(Duration::ZERO).await.is_err());

        load.down.store(false, Ordering::SeqCst);
        cluster.start_again();
        Load::until(&load.right, 200).await;
    }
    load.end().await;
    let open = cluster.sql(&url, "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'handfast'");
    assert!(open.trim().parse::<u32>().expect("a number") <= 4, "{open} connections of 4");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_hangs_refuses_in_time_and_leaks_no_connection() {
    let cluster = Cluster::shared();
    let url = cluster.database();
    let bench = bench(&url).await;
    let (good, revoked) = (bench.minted().await, bench.minted().await);
    bench.handles.revoke(&alice(), &"basket".parse().expect("a type"), &revoked, why("x")).await.expect("revoked");
    let (mut blocker, connection) = tokio_postgres::connect(&url, tokio_postgres::NoTls).await.expect("connected");
    tokio::spawn(connection);
    let lock = blocker.transaction().await.expect("a transaction");
    lock.batch_execute("LOCK TABLE handfast_handles IN ACCESS EXCLUSIVE MODE").await.expect("locked");
    let load = Load::on(&bench, &good, &revoked);

    Load::until(&load.unavailable, 40).await;
    assert_eq!(load.right.load(Ordering::SeqCst), 0);
    lock.rollback().await.expect("unlocked");
    Load::until(&load.right, 200).await;
    load.end().await;

    // All connections are usable again, and no more of them are open than there may be.
    let at_once: Vec<_> = (0..8)
        .map(|_| {
            let (bench, good) = (bench.clone(), good.clone());
            tokio::spawn(async move { bench.handles.resolve(&alice(), &good, &read()).await.map(drop) })
        })
        .collect();
    for call in at_once {
        call.await.expect("no panic").expect("resolved");
    }
    let database = url.rsplit('/').next().expect("a name");
    let open =
        format!("SELECT count(*) FROM pg_stat_activity WHERE application_name = 'handfast' AND datname = '{database}'");
    assert!(cluster.sql(&url, &open).trim().parse::<u32>().expect("a number") <= 4);
}

/// Rows that can be seen and not changed: a row-level policy, a trigger.
#[tokio::test(flavor = "multi_thread")]
async fn a_revocation_that_the_database_does_not_let_happen_ends_in_time() {
    let cluster = Cluster::shared();
    let url = cluster.database();
    let bench = bench(&url).await;
    let handle = bench.minted().await;
    cluster.sql(
        &url,
        "CREATE FUNCTION never() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RETURN NULL; END $$; \
         CREATE TRIGGER never BEFORE UPDATE ON handfast_handles FOR EACH ROW EXECUTE FUNCTION never()",
    );
    let basket = "basket".parse().expect("a type");

    let (who, reason) = (alice(), why("x"));
    let one = bench.handles.revoke(&who, &basket, &handle, reason.clone());
    let one = tokio::time::timeout(TIMEOUT * 5, one).await.expect("in time").expect_err("refused");
    assert_eq!(one.denial(), Denial::Unavailable);
    let all = handfast::store::Selector::everything();
    let all = tokio::time::timeout(TIMEOUT * 5, bench.handles.revoke_all(&all, &reason)).await.expect("in time");
    assert!(matches!(all, Err(StoreError::Unchangeable)));
}

/// A row policy lets one of them be seen and not changed. Wherever its digest stands among the others, that is no success.
#[tokio::test(flavor = "multi_thread")]
async fn a_bulk_revocation_that_passes_one_over_is_no_success() {
    let cluster = Cluster::shared();
    let url = cluster.database();
    drop(bench(&url).await);
    cluster.sql(
        &url,
        "CREATE ROLE ruled LOGIN; GRANT ALL ON handfast_handles, handfast_spent, handfast_migrations TO ruled; \
         ALTER TABLE handfast_handles ENABLE ROW LEVEL SECURITY; \
         CREATE POLICY seen ON handfast_handles FOR SELECT USING (true); \
         CREATE POLICY made ON handfast_handles FOR INSERT WITH CHECK (true); \
         CREATE POLICY changed ON handfast_handles FOR UPDATE USING (object_ref <> 'stuck')",
    );
    let bench = bench(&url.replace("handfast@", "ruled@")).await;
    bench.shop.set("stuck", Some("1"));
    let mint = async |reference| {
        let minted = bench.handles.mint(&alice(), grant("basket", reference, &["basket:read"])).await.expect("minted");
        minted.handle().digest()
    };
    // Until it is not the last one: then something comes after it.
    let stuck = mint("stuck").await;
    while mint("b-1").await < stuck {}

    let hers = bench.handles.selector_of(alice().principal().expect("she is somebody"));
    let all = bench.handles.revoke_all(&hers, &why("x")).await;

    assert!(matches!(all, Err(StoreError::Unchangeable)), "{all:?}");
    let left = cluster.sql(&url, "SELECT object_ref FROM handfast_handles WHERE revoked_at IS NULL");
    assert_eq!(left.trim(), "stuck", "all others are revoked");
}

#[tokio::test]
async fn what_the_server_is_told_holds_for_every_connection() {
    let cluster = Cluster::shared();
    let url = cluster.database();
    cluster.sql(
        &url,
        &format!(
            "ALTER DATABASE {0} SET synchronous_commit = off; \
             ALTER DATABASE {0} SET default_transaction_isolation = serializable",
            url.rsplit('/').next().expect("a name")
        ),
    );
    let bench = bench(&url).await;
    let handle = bench.minted().await;
    // What a connection is set to is seen from within it: by a trigger that tells.
    cluster.sql(
        &url,
        "CREATE TABLE told (what text); CREATE FUNCTION tell() RETURNS trigger LANGUAGE plpgsql AS \
         $$ BEGIN INSERT INTO told SELECT concat_ws(' ', current_setting('synchronous_commit'), \
         current_setting('transaction_isolation'), current_setting('statement_timeout')); RETURN NEW; END $$; \
         CREATE TRIGGER tell BEFORE UPDATE ON handfast_handles FOR EACH ROW EXECUTE FUNCTION tell()",
    );

    bench.handles.revoke(&alice(), &"basket".parse().expect("a type"), &handle, why("x")).await.expect("revoked");

    assert_eq!(cluster.sql(&url, "SELECT what FROM told").trim(), "on read committed 900ms");
}

#[tokio::test]
async fn a_database_that_is_full_or_read_only_says_so() {
    let cluster = Cluster::shared();
    let url = cluster.database();
    let first = bench(&url).await;
    let handle = first.minted().await;
    let refused = async |bench: &Bench| {
        let minted = bench.handles.mint(&alice(), grant("basket", "b-1", &["basket:read"])).await;
        minted.map(drop).expect_err("refused").to_string()
    };

    cluster.sql(
        &url,
        "CREATE FUNCTION full_disk() RETURNS trigger LANGUAGE plpgsql AS \
         $$ BEGIN RAISE EXCEPTION 'could not extend file' USING ERRCODE = '53100'; END $$; \
         CREATE TRIGGER full_disk BEFORE INSERT ON handfast_handles EXECUTE FUNCTION full_disk()",
    );
    assert_eq!(refused(&first).await, "the store is full: make room on its disk, or raise its limit");
    first.handles.resolve(&alice(), &handle, &read()).await.expect("what is there can be read");

    let database = url.rsplit('/').next().expect("a name");
    cluster.sql(&url, &format!("ALTER DATABASE {database} SET default_transaction_read_only = on"));
    let options = PostgresOptions { timeout: TIMEOUT, ..PostgresOptions::default() };
    let told = PostgresStore::connect(&url, options).await.map(drop).expect_err("refused").to_string();
    assert_eq!(told, "cannot use the database: error connecting to server: database does not allow writes");
    // One that was good when it was connected to, and is not any more.
    let postgres = cluster.url("postgres");
    cluster.sql(&postgres, &format!("ALTER DATABASE {database} SET default_transaction_read_only = off"));
    let third = bench(&url).await;
    cluster.sql(
        &url,
        "CREATE FUNCTION read_only() RETURNS trigger LANGUAGE plpgsql AS \
         $$ BEGIN RAISE EXCEPTION 'read only' USING ERRCODE = '25006'; END $$; \
         DROP TRIGGER full_disk ON handfast_handles; \
         CREATE TRIGGER read_only BEFORE INSERT ON handfast_handles EXECUTE FUNCTION read_only()",
    );
    assert_eq!(refused(&third).await, "the store cannot be written to: its database is read-only");
}

#[tokio::test]
async fn a_database_that_is_not_there_is_told_in_one_line_without_its_password() {
    let refused = async |url: &str| {
        let options = PostgresOptions { timeout: TIMEOUT, ..PostgresOptions::default() };
        PostgresStore::connect(url, options).await.map(drop).expect_err("refused").to_string()
    };
    for url in [
        "postgres://u:hunter2@127.0.0.1:1/none",
        "postgres://u:hunter2@%2Fnowhere/none",
        "postgres://u:hunter2@127.0.0.1:notaport/none",
        &Cluster::shared().url("no_such_database").replace("handfast@", "handfast:hunter2@"),
    ] {
        let told = refused(url).await;
        assert!(!told.contains("hunter2") && !told.contains('\n'), "{told}");
        assert!(told.starts_with("cannot use the database: ") || told.starts_with("the URL of the database"), "{told}");
    }
    let stranger = denied(&Bench::new().handles, &alice(), "x", &read()).await;
    assert_eq!(stranger, Denial::Malformed);
}
