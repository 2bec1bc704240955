//! Opening a store that is not there: it is made where that was asked for, and nothing is touched where it was not.
#![cfg(all(feature = "sqlite", feature = "postgres"))]

use std::path::Path;

use handfast::store::{OpenOptions, StoreError, open};
use handfast_testbed::Cluster;

/// Opens what must be there already.
async fn existing(url: &str) -> Result<(), String> {
    let opened = open(url, OpenOptions { create: false, ..OpenOptions::default() }).await;
    opened.map(drop).map_err(|error| match error {
        StoreError::Setup(told) => told,
        other => panic!("{other:?}"),
    })
}

fn names_in(folder: &Path) -> Vec<String> {
    let names = std::fs::read_dir(folder).expect("a folder").flatten();
    names.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect()
}

#[tokio::test]
async fn a_file_is_made_only_when_asked_for() {
    let folder = tempfile::tempdir().expect("a folder");
    let url = format!("sqlite:{}", folder.path().join("handles.db").display());

    assert!(existing(&url).await.expect_err("it is not there").starts_with("there is no file /"));
    assert_eq!(names_in(folder.path()), [""; 0]);

    drop(open(&url, OpenOptions::default()).await.expect("made"));
    assert_eq!(existing(&url).await, Ok(()));
}

#[tokio::test]
async fn the_database_of_another_program_is_left_as_it_is() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("theirs.db");
    rusqlite::Connection::open(&path).and_then(|theirs| theirs.execute_batch("CREATE TABLE t (x)")).expect("made");
    let before = std::fs::read(&path).expect("read");

    let told = existing(&format!("sqlite:{}", path.display())).await.expect_err("it is none of ours");

    assert!(told.contains("theirs.db") && told.contains("no tables of handfast"), "{told}");
    assert_eq!(std::fs::read(&path).expect("read"), before);
    assert_eq!(names_in(folder.path()), ["theirs.db"]);
}

#[tokio::test]
async fn so_is_a_database_of_postgresql() {
    let cluster = Cluster::shared();
    let url = cluster.database();

    let told = existing(&url).await.expect_err("it is empty");

    assert_eq!(told, "there is no store in this database: it has no tables of handfast");
    assert_eq!(cluster.sql(&url, "SELECT count(*) FROM pg_tables WHERE schemaname = 'public'").trim(), "0");

    drop(open(&url, OpenOptions::default()).await.expect("made"));
    assert_eq!(existing(&url).await, Ok(()));
}
