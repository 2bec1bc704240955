//! The schema: replicas that start at once, what it refuses by itself, and what a newer program left behind.

#[cfg(feature = "sqlite")]
mod sqlite {
    use std::path::Path;

    use handfast::store::{SqliteOptions, SqliteStore};

    #[test]
    fn ten_replicas_start_at_once() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("handles.db");
        for _ in 0..5 {
            let _ = std::fs::remove_file(&path);
            std::thread::scope(|scope| {
                for _ in 0..10 {
                    scope.spawn(|| SqliteStore::open(&path, SqliteOptions::default()).map(drop).expect("opened"));
                }
            });
        }
        assert_eq!(rows(&path, "SELECT count(*) FROM handfast_migrations"), 2);
    }

    #[test]
    fn the_schema_refuses_what_no_record_can_be() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("handles.db");
        drop(SqliteStore::open(&path, SqliteOptions::default()).expect("opened"));
        let connection = rusqlite::Connection::open(&path).expect("opened");
        let good = super::row("x'", "'", "1", "100");
        connection.execute_batch(&good).expect("the row itself is sound");
        for (bad, what) in super::bad_rows("x'", "'", "1", "100") {
            assert!(connection.execute_batch(&bad).is_err(), "{what}");
        }
    }

    #[test]
    fn a_newer_schema_is_refused() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("handles.db");
        drop(SqliteStore::open(&path, SqliteOptions::default()).expect("opened"));
        rusqlite::Connection::open(&path)
            .and_then(|connection| connection.execute_batch("INSERT INTO handfast_migrations VALUES (7)"))
            .expect("written");

        let error = SqliteStore::open(&path, SqliteOptions::default()).map(drop).expect_err("refused").to_string();

        assert_eq!(error, "the store has schema version 7; this program knows versions up to 2: use a newer handfast");
    }

    #[test]
    fn what_is_no_database_is_refused_and_left_alone() {
        let folder = tempfile::tempdir().expect("a folder");
        let text = folder.path().join("notes.txt");
        std::fs::write(&text, "not a database, and longer than a hundred bytes ".repeat(9)).expect("written");
        let none = folder.path().join("missing/handles.db");
        for path in [text.as_path(), folder.path(), &none] {
            let error = SqliteStore::open(path, SqliteOptions::default()).map(drop).expect_err("refused").to_string();
            assert!(error.starts_with(&format!("cannot open {}: ", path.display())), "{error}");
        }
        assert!(std::fs::read_to_string(text).expect("text").starts_with("not a database"));
    }

    fn rows(path: &Path, sql: &str) -> i64 {
        let connection = rusqlite::Connection::open(path).expect("opened");
        connection.query_row(sql, (), |row| row.get(0)).expect("a row")
    }
}

#[cfg(feature = "postgres")]
mod postgres {
    use std::sync::Arc;

    use handfast::store::{
        PostgresOptions, PostgresStore,
        contract::{self, Pair},
    };
    use handfast_testbed::Cluster;

    #[tokio::test(flavor = "multi_thread")]
    async fn ten_replicas_start_at_once() {
        let cluster = Cluster::shared();
        for _ in 0..3 {
            let url = cluster.database();
            let starts: Vec<_> = (0..10)
                .map(|_| {
                    let url = url.clone();
                    tokio::spawn(
                        async move { PostgresStore::connect(&url, PostgresOptions::default()).await.map(drop) },
                    )
                })
                .collect();
            for start in starts {
                start.await.expect("no panic").expect("connected");
            }
            assert_eq!(cluster.sql(&url, "SELECT max(version), count(*) FROM handfast_migrations").trim(), "2|3");
        }
    }

    /// Somebody else brings the schema up to date: whoever comes meanwhile waits for them.
    #[tokio::test(flavor = "multi_thread")]
    async fn whoever_comes_second_waits_for_the_first() {
        let cluster = Cluster::shared();
        let url = cluster.database();
        cluster.sql(
            &url,
            "CREATE TABLE handfast_migrations (version integer PRIMARY KEY); INSERT INTO handfast_migrations VALUES (0)",
        );
        let (mut first, connection) = tokio_postgres::connect(&url, tokio_postgres::NoTls).await.expect("connected");
        tokio::spawn(connection);
        let turn = first.transaction().await.expect("a transaction");
        turn.execute("SELECT version FROM handfast_migrations FOR UPDATE", &[]).await.expect("our turn");

        let second = tokio::spawn({
            let url = url.clone();
            async move { PostgresStore::connect(&url, PostgresOptions::default()).await.map(drop) }
        });
        let waits = format!(
            "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'handfast' AND datname = '{}' \
             AND wait_event_type = 'Lock'",
            url.rsplit('/').next().expect("a name")
        );
        while cluster.sql(&url, &waits).trim() != "1" {
            assert!(!second.is_finished(), "it did not wait");
        }
        turn.rollback().await.expect("it is the other's turn");

        second.await.expect("no panic").expect("connected");
    }

    #[tokio::test]
    async fn the_schema_refuses_what_no_record_can_be() {
        let cluster = Cluster::shared();
        let url = cluster.database();
        PostgresStore::connect(&url, PostgresOptions::default()).await.expect("connected");
        let (from, until) = ("'2026-11-30'", "'2026-12-30'");
        let row = super::row("'\\x", "'", from, until);
        cluster.sql(&url, &row);
        for (bad, what) in super::bad_rows("'\\x", "'", from, until) {
            let database = url.rsplit('/').next().expect("a name");
            let told = cluster.client("psql").args(["-v", "ON_ERROR_STOP=1", "-qc", &bad, database]).output();
            assert!(!told.expect("psql runs").status.success(), "{what}");
        }
    }

    #[tokio::test]
    async fn a_newer_schema_is_refused() {
        let cluster = Cluster::shared();
        let url = cluster.database();
        PostgresStore::connect(&url, PostgresOptions::default()).await.expect("connected");
        cluster.sql(&url, "INSERT INTO handfast_migrations VALUES (7)");

        let error = PostgresStore::connect(&url, PostgresOptions::default()).await.map(drop).expect_err("refused");

        let expected = "the store has schema version 7; this program knows versions up to 2: use a newer handfast";
        assert_eq!(error.to_string(), expected);
    }

    /// The whole contract on the same table, partitioned by hash of the digest.
    #[tokio::test(flavor = "multi_thread")]
    async fn the_table_can_be_partitioned_by_digest() {
        let schema = include_str!("../migrations/postgres/0001_handles.sql");
        let partitioned = schema.replacen("\n);\n", "\n) PARTITION BY HASH (digest);\n", 1);
        assert_ne!(schema, partitioned);
        let parts: String = (0..4)
            .map(|part| {
                format!(
                    "CREATE TABLE part{part} PARTITION OF handfast_handles FOR VALUES WITH (MODULUS 4, REMAINDER {part});"
                )
            })
            .collect();
        let lock = "CREATE TABLE handfast_migrations (version integer PRIMARY KEY); INSERT INTO handfast_migrations VALUES (0), (1);";
        contract::hold("partitioned postgres", async || {
            let (clock, cluster) = (contract::clock(), Cluster::shared());
            let url = cluster.database();
            cluster.sql(&url, &format!("{partitioned}{parts}{lock}"));
            let open = async || {
                let options = PostgresOptions { clock: Some(clock.clone()), ..PostgresOptions::default() };
                Arc::new(PostgresStore::connect(&url, options).await.expect("connected"))
            };
            Pair { one: open().await, other: open().await, clock }
        })
        .await;
    }

    /// A role that may only read is told what it lacks.
    #[tokio::test]
    async fn a_role_without_the_right_to_write_is_told_so() {
        let cluster = Cluster::shared();
        let url = cluster.database();
        PostgresStore::connect(&url, PostgresOptions::default()).await.expect("connected");
        cluster.sql(
            &url,
            "CREATE ROLE reader LOGIN; GRANT SELECT ON handfast_handles TO reader; \
             GRANT SELECT ON handfast_migrations TO reader",
        );
        let store = PostgresStore::connect(&url.replace("handfast@", "reader@"), PostgresOptions::default()).await;

        let purged = handfast::store::Store::purge(&store.expect("connected"), std::time::Duration::ZERO, 9).await;

        let told = purged.expect_err("refused").to_string();
        assert!(told.starts_with("the database does not let this user do that: GRANT SELECT, INSERT"), "{told}");
    }

    /// A role that may use the table need not be one that may make it.
    #[tokio::test]
    async fn a_role_without_the_right_to_create_can_use_what_is_there() {
        let cluster = Cluster::shared();
        let url = cluster.database();
        PostgresStore::connect(&url, PostgresOptions::default()).await.expect("connected");
        cluster.sql(
            &url,
            "CREATE ROLE server LOGIN; GRANT SELECT, INSERT, UPDATE, DELETE ON handfast_handles, handfast_spent TO server; \
             GRANT SELECT ON handfast_migrations TO server",
        );

        let store = PostgresStore::connect(&url.replace("handfast@", "server@"), PostgresOptions::default()).await;

        assert_eq!(
            handfast::store::Store::purge(&store.expect("connected"), std::time::Duration::ZERO, 9)
                .await
                .expect("an answer"),
            0
        );
    }
}

/// A row in SQL, as `open` and `close` write bytes, living from one time until another.
#[cfg(any(feature = "sqlite", feature = "postgres"))]
fn row(open: &str, close: &str, from: &str, until: &str) -> String {
    let digest = "ab".repeat(32);
    format!(
        "INSERT INTO handfast_handles VALUES ({open}{digest}{close}, NULL, NULL, 't', 'c', 'basket', 'b-1', '1', \
         'read', 'v1', {from}, {until}, NULL, {until}, NULL, NULL, NULL)"
    )
}

/// The row, with one thing wrong with it.
#[cfg(any(feature = "sqlite", feature = "postgres"))]
fn bad_rows(open: &str, close: &str, from: &str, until: &str) -> Vec<(String, &'static str)> {
    // Another digest than that of the sound row, so that it is not refused for being there.
    let good = row(open, close, from, until).replace(&"ab".repeat(32), &"cd".repeat(32));
    let subject = format!("{open}{}{close}, {open}{}{close}", "01".repeat(8), "02".repeat(32));
    let change = |from: &str, to: &str| {
        let changed = good.replacen(from, to, 1);
        assert_ne!(changed, good);
        changed
    };
    vec![
        (row(open, close, from, until), "the same digest twice"),
        (change(&"cd".repeat(32), &"cd".repeat(31)), "a digest that is too short"),
        (change("'read'", "''"), "no scopes"),
        (change("'read'", "NULL"), "scopes that are not there"),
        (change("'b-1'", "''"), "no object"),
        (change("'1'", "''"), "no object version"),
        (change("'basket'", "NULL"), "no object type"),
        (change("'t'", "''"), "an empty tenant"),
        (change("'c'", "''"), "an empty client"),
        (change("'v1'", "NULL"), "no policy version"),
        (
            change("NULL, NULL, 't'", &format!("{}, NULL, 't'", subject.split(", ").next().expect("two"))),
            "a key id alone",
        ),
        (change(&format!("{from}, {until}"), &format!("{until}, {from}")), "an end before its beginning"),
        (change(&format!("NULL, {until}, NULL"), &format!("0, {until}, NULL")), "no idle window"),
        (change("NULL, NULL, NULL)", &format!("{from}, NULL, NULL)")), "a revocation without a reason"),
        (change("NULL, NULL, NULL)", "NULL, 'x', 'y')"), "a reason without a revocation"),
    ]
}
