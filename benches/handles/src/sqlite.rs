//! SQLite: a seeded store, and the floor of its resolve.

use std::{path::Path, sync::Arc};

use handfast::{
    Digest,
    store::{SqliteOptions, SqliteStore},
};
use rusqlite::{Connection, OpenFlags};

use crate::{
    COLUMNS,
    measure::Work,
    shop::{Shop, TENANT},
};

/// A shop over a new file with a row for each of these digests.
pub async fn seeded(path: &Path, digests: &[Digest]) -> Arc<Shop> {
    let shop = Shop::over(Arc::new(SqliteStore::open(path, SqliteOptions::default()).expect("a store")));
    let pattern = shop.pattern().await;
    let mut connection = Connection::open(path).expect("a connection");
    // Nothing else is in this file, so nothing is lost with it.
    connection.execute_batch("PRAGMA synchronous = OFF; PRAGMA cache_size = -1000000").expect("settings");
    let transaction = connection.transaction().expect("a transaction");
    let copied = COLUMNS.replacen("digest", "$1", 1);
    let sql =
        format!("INSERT INTO handfast_handles ({COLUMNS}) SELECT {copied} FROM handfast_handles WHERE digest = $2");
    for digest in digests {
        let mut insert = transaction.prepare_cached(&sql).expect("prepared");
        insert.execute([digest.as_bytes(), pattern.as_bytes()]).expect("inserted");
    }
    transaction.commit().expect("committed");
    // Otherwise every read would look into a write-ahead log of a million rows first.
    connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", (), |_| Ok(())).expect("a checkpoint");
    shop
}

/// The same select by hand: prepared once, on a connection of its own, with the settings that the library makes; every
/// column is looked at where SQLite has it, nothing is copied and nothing checked.
pub struct ByHand {
    connection: Connection,
    digests: Arc<Vec<(String, Digest)>>,
    sql: String,
}

impl ByHand {
    /// On a connection of its own to this file.
    pub fn new(path: &Path, digests: Arc<Vec<(String, Digest)>>) -> Self {
        let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let connection = Connection::open_with_flags(path, flags).expect("a connection");
        connection
            .execute_batch("PRAGMA mmap_size = 268435456; PRAGMA trusted_schema = 0; PRAGMA query_only = 1")
            .expect("settings");
        let sql =
            format!("SELECT {COLUMNS} FROM handfast_handles WHERE digest = $1 AND tenant IS NOT DISTINCT FROM $2");
        let by_hand = Self { connection, digests, sql };
        by_hand.select(0);
        by_hand
    }

    fn select(&self, row: usize) {
        let mut statement = self.connection.prepare_cached(&self.sql).expect("prepared");
        let look = |row: &rusqlite::Row<'_>| {
            for column in 0..17 {
                std::hint::black_box(row.get_ref(column)?);
            }
            Ok(())
        };
        statement.query_row((self.digests[row].1.as_bytes(), TENANT), look).expect("a row");
    }
}

impl Work for ByHand {
    async fn once(&mut self, row: usize) {
        self.select(row);
    }
}
