//! A stolen database: not one byte of it is a handle, a subject or a key.
#![cfg(any(feature = "sqlite", feature = "postgres"))]

mod support;

use handfast::{Caller, SecretText};
use support::{Bench, alice, caller, grant, read, why};

/// Everything that a database must not hold, used in every way in which handles are.
async fn lived_in(bench: &Bench) -> Vec<String> {
    let key = |caller: &Caller| caller.principal().expect("a principal").subject().expose().to_owned();
    let mut secrets = vec!["https://id.example".to_owned(), "token-9f8e7d".to_owned()];
    for subject in ["alice@example.com", "bob-the-builder", "karl\u{e9}"] {
        let who = caller(subject, "acme", "desktop").with_token_id("token-9f8e7d".parse().expect("a token id"));
        secrets.push(key(&who));
        for _ in 0..50 {
            let minted = bench.handles.mint(&who, grant("basket", "b-1", &["basket:read"])).await.expect("minted");
            let handle = minted.handle().expose();
            bench.handles.resolve(&who, handle, &read()).await.expect("resolved");
            let _ = bench.handles.resolve(&alice(), handle, &read()).await;
            bench.handles.revoke(&who, &"basket".parse().expect("a type"), handle, why("x")).await.expect("revoked");
            // Also without its prefix, and as raw bytes.
            secrets.push(handle.to_owned());
            secrets.push(handle[4..].to_owned());
        }
    }
    secrets
}

fn holds(bytes: &[u8], secret: &str) -> bool {
    String::from_utf8_lossy(bytes).contains(secret)
}

#[test]
fn debug_output_is_as_quiet_as_a_database() {
    let text = format!("{:?} {:?}", alice(), SecretText::new("bsk_secret"));

    assert!(!text.contains("alice") && !text.contains("bsk_secret"), "{text}");
}

#[cfg(feature = "sqlite")]
#[tokio::test]
async fn a_sqlite_file_holds_no_handle_and_no_subject() {
    use std::sync::Arc;

    let folder = tempfile::tempdir().expect("a folder");
    let clock = support::clock();
    let options = handfast::store::SqliteOptions { clock: clock.clone(), ..Default::default() };
    let store = handfast::store::SqliteStore::open(folder.path().join("handles.db"), options).expect("opened");
    let bench = Bench::over(Arc::new(store), clock);
    let secrets = lived_in(&bench).await;

    let files: Vec<_> = std::fs::read_dir(folder.path()).expect("a folder").flatten().collect();
    assert_eq!(files.len(), 3, "the database, its log and its index");
    for file in files {
        let bytes = std::fs::read(file.path()).expect("a file");
        let name = file.file_name();
        assert!(name != "handles.db-wal" || holds(&bytes, "acme"), "what is looked for is found where it is");
        for secret in &secrets {
            assert!(!holds(&bytes, secret), "{} holds {secret}", name.display());
        }
        #[cfg(unix)]
        {
            let mode = std::os::unix::fs::PermissionsExt::mode(&file.metadata().expect("a file").permissions());
            assert_eq!(mode & 0o077, 0, "{} is for its owner's eyes only", name.display());
        }
    }
}

#[cfg(feature = "postgres")]
#[tokio::test]
async fn a_postgresql_dump_holds_no_handle_and_no_subject() {
    use std::sync::Arc;

    let cluster = handfast_testbed::Cluster::shared();
    let url = cluster.database();
    let clock = support::clock();
    let options = handfast::store::PostgresOptions { clock: Some(clock.clone()), ..Default::default() };
    let store = handfast::store::PostgresStore::connect(&url, options).await.expect("connected");
    let bench = Bench::over(Arc::new(store), clock);
    let secrets = lived_in(&bench).await;

    let database = url.rsplit('/').next().expect("a name");
    let dump = cluster.client("pg_dump").arg(database).output().expect("a dump").stdout;
    assert!(holds(&dump, "acme"), "what is looked for is found where it is");
    for secret in &secrets {
        assert!(!holds(&dump, secret), "the dump holds {secret}");
    }
}
