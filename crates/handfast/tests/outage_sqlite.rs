//! A SQLite file that is full, held by somebody or cannot be written to: a clear error, and nothing is lost.
#![cfg(feature = "sqlite")]

#[path = "support/child.rs"]
mod child;
mod support;

use std::{path::Path, sync::Arc};

use handfast::{
    Denial,
    store::{Selector, SqliteOptions, SqliteStore, StoreError},
};
use support::{Bench, alice, clock, grant, read, why};

fn bench(path: &Path, most_bytes: Option<u64>) -> Bench {
    let time = clock();
    let options = SqliteOptions { clock: time.clone(), most_bytes, ..SqliteOptions::default() };
    Bench::over(Arc::new(SqliteStore::open(path, options).expect("opened")), time)
}

async fn mint(bench: &Bench) -> Result<String, String> {
    let minted = bench.handles.mint(&alice(), grant("basket", "b-1", &["basket:read"])).await;
    minted.map(|minted| minted.handle().expose().to_owned()).map_err(|error| error.to_string())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_database_that_is_full_says_so_and_loses_nothing() {
    let folder = tempfile::tempdir().expect("a folder");
    let bench = Arc::new(bench(&folder.path().join("handles.db"), Some(200 * 1024)));
    let mut minted = Vec::new();
    let error = loop {
        // Several at once, so that they share transactions.
        let batch: Vec<_> = (0..8)
            .map(|_| {
                let bench = bench.clone();
                tokio::spawn(async move { mint(&bench).await })
            })
            .collect();
        let mut refused = None;
        for answer in batch {
            match answer.await.expect("no panic") {
                Ok(handle) => minted.push(handle),
                Err(error) => refused = Some(error),
            }
        }
        if let Some(error) = refused {
            break error;
        }
        assert!(minted.len() < 10_000, "200 KiB have been full for long");
    };

    assert!(error.starts_with("the store is full"), "{error}");
    // One more may find room where several did not.
    let alone = loop {
        match mint(&bench).await {
            Ok(handle) => minted.push(handle),
            Err(error) => break error,
        }
    };
    assert_eq!(alone, "the store is full: make room on its disk, or raise its limit");
    for handle in &minted {
        bench.handles.resolve(&alice(), handle, &read()).await.map(drop).unwrap_or_else(|refused| {
            assert_eq!(refused.denial(), handfast::Denial::Unavailable, "it cannot be touched, but it is there");
        });
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_database_that_somebody_holds_refuses_writes_in_time_and_recovers() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("handles.db");
    let options = SqliteOptions { timeout: std::time::Duration::from_millis(300), ..SqliteOptions::default() };
    let bench = Bench::over(Arc::new(SqliteStore::open(&path, options).expect("opened")), clock());
    let handle = mint(&bench).await.expect("minted");
    let holder = rusqlite::Connection::open(&path).expect("opened");
    holder.execute_batch("BEGIN IMMEDIATE").expect("held");

    let refused = tokio::time::timeout(std::time::Duration::from_secs(10), mint(&bench)).await.expect("in time");
    assert_eq!(refused.expect_err("refused"), "the store is unavailable");
    let key = handfast::Key {
        tenant: "acme".parse().ok(),
        digest: handfast::parse_handle(handle.as_bytes(), "bsk".parse().ok().as_ref()).expect("a handle"),
    };
    assert!(bench.store.find(&key).await.expect("readers wait for no writer").is_some());
    holder.execute_batch("ROLLBACK").expect("let go");
    mint(&bench).await.expect("minted");
}

/// Whoever can change the file can put a trigger in it. It may not call what reaches beyond the tables.
#[tokio::test]
async fn the_schema_of_a_file_runs_no_code_that_reaches_beyond_it() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("handles.db");
    mint(&bench(&path, None)).await.expect("minted");
    let by_hand = rusqlite::Connection::open(&path).expect("opened");
    by_hand
        .execute_batch(
            "CREATE TABLE seen (what TEXT); CREATE TRIGGER spy AFTER INSERT ON handfast_handles BEGIN \
             INSERT INTO seen SELECT file FROM pragma_database_list; END",
        )
        .expect("written");

    assert_eq!(mint(&bench(&path, None)).await.expect_err("refused"), "the store is unavailable");
    by_hand.execute_batch("DROP TRIGGER spy").expect("removed");
    mint(&bench(&path, None)).await.expect("minted");
}

#[tokio::test]
async fn a_revocation_that_a_trigger_undoes_is_no_success() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("handles.db");
    let bench = bench(&path, None);
    let (one, other) = (mint(&bench).await.expect("minted"), mint(&bench).await.expect("minted"));
    let never = "CREATE TRIGGER never BEFORE UPDATE OF revoked_at ON handfast_handles BEGIN SELECT RAISE(IGNORE); END";
    rusqlite::Connection::open(&path).and_then(|by_hand| by_hand.execute_batch(never)).expect("written");

    let all = bench.handles.revoke_all(&Selector::everything(), &why("x")).await;
    assert!(matches!(all, Err(StoreError::Unchangeable)), "{all:?}");
    let mine = bench.handles.revoke(&alice(), &"basket".parse().expect("a type"), &one, why("x")).await;
    assert_eq!(mine.expect_err("refused").denial(), Denial::Unavailable);
    for handle in [one, other] {
        bench.handles.resolve(&alice(), &handle, &read()).await.expect("nobody was told otherwise");
    }
}

#[cfg(unix)]
#[tokio::test]
async fn a_database_that_cannot_be_written_to_says_so() {
    if let Some(path) = child::told() {
        let opened = SqliteStore::open(path, SqliteOptions::default());
        child::tell(&format!("said: {}", opened.map(drop).expect_err("refused")));
        return;
    }
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("handles.db");
    mint(&bench(&path, None)).await.expect("minted");
    let said = as_nobody(folder.path(), &path);

    assert!(said.contains("said: the store cannot be written to: its database is read-only"), "{said}");
}

/// Runs the test above as somebody who may read the file, but not write it. Root may do everything.
#[cfg(unix)]
fn as_nobody(folder: &Path, path: &Path) -> String {
    use std::{fs, os::unix::fs::PermissionsExt, process::Command};

    let allow = |path: &Path, mode| fs::set_permissions(path, fs::Permissions::from_mode(mode)).expect("allowed");
    let program = folder.join("program");
    fs::copy(std::env::current_exe().expect("this program"), &program).expect("copied");
    allow(folder, 0o755);
    allow(&program, 0o755);
    for file in fs::read_dir(folder).expect("a folder").flatten().filter(|file| file.path() != program) {
        allow(&file.path(), 0o444);
    }
    let root = Command::new("id").arg("-u").output().is_ok_and(|output| output.stdout == b"0\n");
    let mut command = Command::new(if root { "setpriv" } else { "env" });
    if root {
        command.args(["--reuid=nobody", "--regid=nogroup", "--clear-groups"]);
    } else {
        allow(folder, 0o555);
    }
    command.arg(&program).current_dir("/");
    let test = "a_database_that_cannot_be_written_to_says_so";
    let mut command = child::by(command, test, &path.display().to_string());
    let output = command.output().expect("it runs");
    allow(folder, 0o755);
    String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr)
}
