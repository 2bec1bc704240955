//! Records in a SQLite file: the embedded default. Nothing to install, nothing to run.
//!
//! Reads run where they are asked for, each on a connection of its own; a read takes microseconds and waits for no writer.
//! Writes go through one thread, which commits what has queued up meanwhile in one transaction.

use std::{
    path::{Path, PathBuf},
    sync::{Arc, LazyLock, Mutex, PoisonError},
    time::Duration,
};

use async_trait::async_trait;
use rusqlite::{Connection, ErrorCode, OpenFlags, OptionalExtension, ToSql, params_from_iter, types::ToSqlOutput};

use super::{
    Found, LONGEST_TIMEOUT, Lifespan, Listed, OLDER, Selector, SpendId, Store, StoreError,
    sql::{COLUMNS, Columns, Conditions, Value, known, micros},
    sqlite_writer::{Durability, Writer},
};
use crate::{
    clock::{Clock, Horizon, SystemClock, Timestamp, earlier, from_micros, later},
    record::{Digest, Key, NewRecord, ObjectVersion, Record, Why},
};

/// How a SQLite store is opened.
#[derive(Clone)]
pub struct SqliteOptions {
    /// The clock that judges.
    pub clock: Arc<dyn Clock>,
    /// How long a call may take before it is [`StoreError::Unavailable`].
    pub timeout: Duration,
    /// How large the database may become, in bytes. Beyond it, what would be written is [`StoreError::Full`].
    pub most_bytes: Option<u64>,
    /// Whether the file, and the tables in it, are made where there are none.
    pub create: bool,
}

impl Default for SqliteOptions {
    fn default() -> Self {
        Self { clock: Arc::new(SystemClock), timeout: Duration::from_secs(2), most_bytes: None, create: true }
    }
}

/// Records in a SQLite file.
pub struct SqliteStore {
    path: PathBuf,
    options: SqliteOptions,
    readers: Mutex<Vec<Connection>>,
    writer: Writer,
    horizon: Arc<Horizon>,
}

/// How far the newest record may lie in the future before the clock is held to be wrong.
const TOLERANCE: Duration = Duration::from_secs(60);

/// How many idle connections are kept for reading.
const READERS: usize = 16;

const MIGRATIONS: [(u32, &str); 2] = [
    (1, include_str!("../../migrations/sqlite/0001_handles.sql")),
    (2, include_str!("../../migrations/sqlite/0002_spent.sql")),
];

/// The newest of them.
const NEWEST: u32 = 2;

/// The record of a key.
static FIND: LazyLock<String> = LazyLock::new(|| {
    format!("SELECT {COLUMNS} FROM handfast_handles WHERE digest = $1 AND tenant IS NOT DISTINCT FROM $2")
});

impl SqliteStore {
    /// Opens the file, and makes it where it is not there yet: for its owner's eyes only. Several processes may have it
    /// open, and may open it at once.
    ///
    /// Time does not go back behind the newest record, and a file whose newest record is more than a minute ahead of
    /// the clock is refused: a clock that was set back would revive what has expired.
    ///
    /// # Errors
    /// The file cannot be opened or written to, is no database of this program or of a newer one, or the clock is
    /// wrong.
    pub fn open(path: impl AsRef<Path>, options: SqliteOptions) -> Result<Self, StoreError> {
        let options = SqliteOptions { timeout: options.timeout.min(LONGEST_TIMEOUT), ..options };
        // In full, because SQLite gives names such as `:memory:` and `file:x?mode=memory` another meaning.
        let path = std::path::absolute(path.as_ref())
            .map_err(|error| StoreError::Setup(format!("cannot open {}: {error}", path.as_ref().display())))?;
        let told = |error: StoreError| match error {
            StoreError::Unavailable(source) => StoreError::Setup(format!("cannot open {}: {source}", path.display())),
            other => other,
        };
        if path.is_dir() {
            return Err(StoreError::Setup(format!("cannot open {}: it is a directory", path.display())));
        }
        if options.create {
            create_private(&path).map_err(|error| told(StoreError::unavailable(error)))?;
        } else if !path.exists() {
            return Err(StoreError::Setup(format!("there is no file {}", path.display())));
        }
        let mut connection = connect(&path, options.timeout).map_err(told)?;
        if !options.create && !is_store(&connection).map_err(told)? {
            return Err(StoreError::Setup(format!(
                "there is no store in {}: it has no tables of handfast",
                path.display()
            )));
        }
        if !options.create && version(&connection).map_err(failure).map_err(told)? < NEWEST {
            return Err(StoreError::Setup(OLDER.into()));
        }
        if let Some(bytes) = options.most_bytes {
            limit(&connection, bytes).map_err(told)?;
        }
        write_ahead(&connection, options.timeout).map_err(told)?;
        migrate(&mut connection).map_err(told)?;
        let horizon = Arc::new(Horizon::new());
        horizon.reach(newest(&connection, options.clock.now()).map_err(told)?);
        let writer = Writer::start(connection, options.timeout).map_err(StoreError::unavailable)?;
        Ok(Self { path, options, readers: Mutex::default(), writer, horizon })
    }

    fn read<T>(&self, query: impl FnOnce(&Connection) -> rusqlite::Result<T>) -> Result<T, StoreError> {
        let idle = || self.readers.lock().unwrap_or_else(PoisonError::into_inner);
        let kept = idle().pop();
        let connection = match kept {
            Some(connection) => connection,
            None => {
                let connection = connect(&self.path, self.options.timeout)?;
                connection.pragma_update(None, "query_only", true).map_err(failure)?;
                connection
            }
        };
        let answer = query(&connection).map_err(failure)?;
        let mut idle = idle();
        if idle.len() < READERS {
            idle.push(connection);
        }
        Ok(answer)
    }

    fn now(&self) -> Timestamp {
        self.horizon.reach(self.options.clock.now())
    }

    /// The time, as a job on the writing thread reads it.
    fn teller(&self) -> impl FnOnce() -> Timestamp + Send + 'static {
        let (clock, horizon) = (self.options.clock.clone(), self.horizon.clone());
        move || horizon.reach(clock.now())
    }
}

#[async_trait]
impl Store for SqliteStore {
    async fn insert(&self, new: &NewRecord) -> Result<Lifespan, StoreError> {
        const INSERT: &str = "INSERT INTO handfast_handles (digest, subject_key_id, subject_key, tenant, client, \
             object_type, object_ref, object_version, scopes, policy_version, created_at, expires_at, idle_micros, \
             ends_at) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14)";
        let (new, now) = (new.clone(), self.teller());
        // A mint that is lost with the machine fails closed, so it need not wait for the disk.
        let insert = move |connection: &Connection| {
            let record = new.minted_at(now());
            let subject = record.partition.subject;
            connection.prepare_cached(INSERT)?.execute(rusqlite::params![
                record.digest.as_bytes(),
                subject.as_ref().map(|subject| subject.key.0.as_slice()),
                subject.as_ref().map(|subject| subject.mac.as_slice()),
                record.partition.tenant.as_ref().map(|tenant| tenant.as_str()),
                record.partition.client.as_ref().map(|client| client.as_str()),
                record.object.kind.as_str(),
                record.object.reference.as_str(),
                record.object.version.as_str(),
                record.scopes.text(),
                record.policy.as_str(),
                record.created.as_microsecond(),
                record.expires.as_microsecond(),
                record.idle.map(micros),
                record.ends.as_microsecond(),
            ])?;
            Ok(Lifespan { created: record.created, expires: record.expires })
        };
        self.writer.write(Durability::Process, insert).await
    }

    async fn find(&self, key: &Key) -> Result<Option<Found>, StoreError> {
        let tenant = key.tenant.as_ref().map(|tenant| tenant.as_str());
        let record = self.read(|connection| {
            let mut statement = connection.prepare_cached(&FIND)?;
            statement.query_row((key.digest.as_bytes(), tenant), |row| Ok(record(row))).optional()
        })?;
        // The time is read after the record, so that what ends meanwhile has ended.
        record.transpose().map(|record| record.map(|record| Found { record, now: self.now() }))
    }

    async fn touch(&self, key: &Key, ends: Timestamp) -> Result<bool, StoreError> {
        const TOUCH: &str = "UPDATE handfast_handles SET ends_at = min($1, expires_at) \
             WHERE digest = $2 AND tenant IS NOT DISTINCT FROM $3 AND revoked_at IS NULL AND ends_at < $4 \
             AND ends_at > $5";
        let (key, ends, now) = (key.clone(), ends.as_microsecond(), self.teller());
        let touch = move |connection: &Connection| {
            let tenant = key.tenant.as_ref().map(|tenant| tenant.as_str());
            connection.prepare_cached(TOUCH)?.execute((
                ends,
                key.digest.as_bytes(),
                tenant,
                ends,
                now().as_microsecond(),
            ))
        };
        Ok(self.writer.write(Durability::Process, touch).await? == 1)
    }

    async fn advance(&self, key: &Key, from: &ObjectVersion, to: &ObjectVersion) -> Result<bool, StoreError> {
        const ADVANCE: &str = "UPDATE handfast_handles SET object_version = $1 WHERE digest = $2 \
             AND tenant IS NOT DISTINCT FROM $3 AND object_version = $4 AND revoked_at IS NULL AND ends_at > $5";
        let (key, from, to, now) = (key.clone(), from.clone(), to.clone(), self.teller());
        let advance = move |connection: &Connection| {
            let tenant = key.tenant.as_ref().map(|tenant| tenant.as_str());
            let values = (to.as_str(), key.digest.as_bytes(), tenant, from.as_str(), now().as_microsecond());
            connection.prepare_cached(ADVANCE)?.execute(values)
        };
        Ok(self.writer.write(Durability::Process, advance).await? == 1)
    }

    async fn revoke(
        &self,
        which: &Selector,
        why: &Why,
        after: Option<Digest>,
        limit: u32,
    ) -> Result<Vec<Digest>, StoreError> {
        let (which, why, now) = (which.clone(), why.clone(), self.teller());
        let revoke = move |connection: &Connection| {
            let chosen = Conditions::of(&which, 4);
            let sql = format!(
                "UPDATE handfast_handles SET revoked_at = $1, revocation_reason = $2, revocation_receipt = $3 \
                 WHERE digest IN ({}) RETURNING digest",
                chosen.unrevoked("$4", limit)
            );
            let after = after.as_ref().map_or(&[] as &[u8], |digest| digest.as_bytes());
            let (reason, receipt) = (Value::Text(why.reason.as_str()), Value::Text(why.receipt.as_str()));
            let mut values = vec![Value::Time(now()), reason, receipt, Value::Bytes(after)];
            values.extend(chosen.values);
            let mut statement = connection.prepare(&sql)?;
            let rows = statement.query_map(params_from_iter(values), |row| row.get::<_, [u8; 32]>(0).map(Digest))?;
            let revoked = rows.collect::<rusqlite::Result<Vec<Digest>>>()?;
            // A trigger may have kept all of them as they were.
            let left = Conditions::of(&which, 1);
            let values = std::iter::once(Value::Bytes(after)).chain(left.values.iter().copied());
            let in_vain = revoked.is_empty()
                && connection.prepare(&left.unrevoked("$1", limit))?.exists(params_from_iter(values))?;
            Ok((revoked, in_vain))
        };
        // A revocation that is lost re-opens access, so it waits for the disk.
        match self.writer.write(Durability::Disk, revoke).await? {
            (_, true) => Err(StoreError::Unchangeable),
            (revoked, false) => Ok(revoked),
        }
    }

    async fn list(&self, which: &Selector, after: Option<Digest>, limit: u32) -> Result<Listed, StoreError> {
        let chosen = Conditions::of(which, 1);
        let sql = format!(
            "SELECT {COLUMNS} FROM handfast_handles WHERE digest > $1 AND {} ORDER BY digest LIMIT {limit}",
            chosen.sql
        );
        let mut values = vec![Value::Bytes(after.as_ref().map_or(&[], |digest| digest.as_bytes().as_slice()))];
        values.extend(chosen.values);
        let records: Vec<Result<Record, StoreError>> = self.read(|connection| {
            let mut statement = connection.prepare(&sql)?;
            statement.query_map(params_from_iter(values), |row| Ok(record(row)))?.collect()
        })?;
        Ok(Listed { records: records.into_iter().collect::<Result<_, _>>()?, now: self.now() })
    }

    async fn spend(&self, id: &SpendId, until: Timestamp) -> Result<bool, StoreError> {
        const SPEND: &str = "INSERT OR IGNORE INTO handfast_spent (id, until) SELECT $1, $2 WHERE $3 > $4";
        let (id, until, now) = (*id, until.as_microsecond(), self.teller());
        let spend = move |connection: &Connection| {
            connection.prepare_cached(SPEND)?.execute((id.as_bytes(), until, until, now().as_microsecond()))
        };
        // A mark that is lost lets the same thing happen twice, so it waits for the disk.
        Ok(self.writer.write(Durability::Disk, spend).await? == 1)
    }

    async fn purge(&self, dead_for: Duration, limit: u32) -> Result<u64, StoreError> {
        const PURGE: &str = "DELETE FROM handfast_handles WHERE digest IN (SELECT digest FROM handfast_handles \
             WHERE ends_at < $1 OR revoked_at < $2 LIMIT $3)";
        const FORGET: &str = "DELETE FROM handfast_spent WHERE id IN (SELECT id FROM handfast_spent WHERE until < $1 \
             LIMIT $2)";
        let now = self.teller();
        let purge = move |connection: &Connection| {
            let cutoff = earlier(now(), dead_for).as_microsecond();
            let dead = connection.prepare_cached(PURGE)?.execute((cutoff, cutoff, limit))?;
            Ok(dead + connection.prepare_cached(FORGET)?.execute((cutoff, limit))?)
        };
        self.writer.write(Durability::Process, purge).await.map(|removed| removed as u64)
    }

    async fn erase(&self, digests: &[Digest]) -> Result<u64, StoreError> {
        let digests = digests.to_vec();
        let erase = move |connection: &Connection| {
            let mut statement = connection.prepare_cached("DELETE FROM handfast_handles WHERE digest = $1")?;
            let mut removed = 0;
            for digest in &digests {
                removed += statement.execute([digest.as_bytes()])? as u64;
            }
            Ok(removed)
        };
        self.writer.write(Durability::Disk, erase).await
    }
}

impl ToSql for Value<'_> {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        match self {
            Self::Bytes(bytes) => bytes.to_sql(),
            Self::Text(text) => text.to_sql(),
            Self::Time(time) => Ok(time.as_microsecond().into()),
        }
    }
}

/// What went wrong, in the words of this crate.
pub(super) fn failure(error: rusqlite::Error) -> StoreError {
    match error.sqlite_error_code() {
        Some(ErrorCode::DiskFull) => StoreError::Full,
        Some(ErrorCode::ReadOnly) => StoreError::ReadOnly,
        Some(ErrorCode::ConstraintViolation) if is_there(&error) => StoreError::Duplicate,
        _ => match foreign(&error) {
            Some(told) => StoreError::foreign(told),
            None => StoreError::unavailable(error),
        },
    }
}

/// What is said of a statement that names a table or a column that is not there. SQLite has no code of its own for that.
fn foreign(error: &rusqlite::Error) -> Option<&str> {
    let (rusqlite::Error::SqliteFailure(_, Some(text)) | rusqlite::Error::SqlInputError { msg: text, .. }) = error
    else {
        return None;
    };
    ["no such column", "no such table", "table handfast_handles has no column"]
        .iter()
        .any(|said| text.starts_with(said))
        .then_some(text)
}

/// Whether the constraint that was violated is that of the key.
fn is_there(error: &rusqlite::Error) -> bool {
    use rusqlite::ffi::{SQLITE_CONSTRAINT_PRIMARYKEY, SQLITE_CONSTRAINT_UNIQUE};
    error
        .sqlite_error()
        .is_some_and(|error| [SQLITE_CONSTRAINT_PRIMARYKEY, SQLITE_CONSTRAINT_UNIQUE].contains(&error.extended_code))
}

fn record(row: &rusqlite::Row<'_>) -> Result<Record, StoreError> {
    let unreadable = |error: &dyn std::error::Error| StoreError::Corrupt(error.to_string());
    let bytes = |at| row.get_ref(at).map_err(|e| unreadable(&e))?.as_bytes().map_err(|e| unreadable(&e));
    let text = |at| row.get_ref(at).map_err(|e| unreadable(&e))?.as_str().map_err(|e| unreadable(&e));
    let maybe_bytes = |at| row.get_ref(at).map_err(|e| unreadable(&e))?.as_bytes_or_null().map_err(|e| unreadable(&e));
    let maybe_text = |at| row.get_ref(at).map_err(|e| unreadable(&e))?.as_str_or_null().map_err(|e| unreadable(&e));
    let time = |at| row.get::<_, i64>(at).map(from_micros).map_err(|e| unreadable(&e));
    Columns {
        digest: bytes(0)?,
        subject_key_id: maybe_bytes(1)?,
        subject_key: maybe_bytes(2)?,
        tenant: maybe_text(3)?,
        client: maybe_text(4)?,
        object_type: text(5)?,
        object_ref: text(6)?,
        object_version: text(7)?,
        scopes: text(8)?,
        policy_version: text(9)?,
        created_at: time(10)?,
        expires_at: time(11)?,
        idle_micros: row.get(12).map_err(|e| unreadable(&e))?,
        ends_at: time(13)?,
        revoked_at: row.get::<_, Option<i64>>(14).map_err(|e| unreadable(&e))?.map(from_micros),
        reason: maybe_text(15)?,
        receipt: maybe_text(16)?,
    }
    .record()
}

/// Makes the file, readable and writable by its owner alone, where it is not there yet. What SQLite puts beside it has
/// the same permissions.
fn create_private(path: &Path) -> std::io::Result<()> {
    let mut options = std::fs::OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    match options.open(path) {
        Err(error) if error.kind() != std::io::ErrorKind::AlreadyExists => Err(error),
        _ => Ok(()),
    }
}

fn connect(path: &Path, timeout: Duration) -> Result<Connection, StoreError> {
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = Connection::open_with_flags(path, flags).map_err(failure)?;
    let settle = || {
        connection.busy_timeout(timeout)?;
        connection.pragma_update(None, "mmap_size", i32::MAX)?;
        // A row that was written by hand cannot hold what the schema forbids, nor its schema run code.
        connection.pragma_update(None, "trusted_schema", false)
    };
    settle().map_err(failure)?;
    Ok(connection)
}

/// Whether the database has the tables of this program.
fn is_store(connection: &Connection) -> Result<bool, StoreError> {
    const TABLES: &str = "SELECT count(*) FROM sqlite_schema WHERE name = 'handfast_migrations'";
    connection.query_row(TABLES, (), |row| row.get(0)).map_err(failure)
}

fn limit(connection: &Connection, bytes: u64) -> Result<(), StoreError> {
    let bytes = i64::try_from(bytes).unwrap_or(i64::MAX);
    let limit = || {
        let page: i64 = connection.pragma_query_value(None, "page_size", |row| row.get(0))?;
        connection.pragma_update_and_check(None, "max_page_count", (bytes / page).max(1), |_| Ok(()))
    };
    limit().map_err(failure)
}

/// Turns on the write-ahead log. Of several processes that do so at once, SQLite tells all but one that the database is
/// locked, without waiting; so we wait.
fn write_ahead(connection: &Connection, timeout: Duration) -> Result<(), StoreError> {
    let step = Duration::from_millis(10);
    let mut left = timeout;
    loop {
        match connection.pragma_update_and_check(None, "journal_mode", "wal", |row| row.get::<_, String>(0)) {
            Ok(mode) if mode == "wal" => return Ok(()),
            Ok(mode) => {
                return Err(StoreError::Setup(format!("the file system allows no write-ahead log, only {mode}")));
            }
            Err(error) if error.sqlite_error_code() == Some(ErrorCode::DatabaseBusy) && left > step => {
                std::thread::sleep(step);
                left -= step;
            }
            Err(error) => return Err(failure(error)),
        }
    }
}

/// Brings the schema up to date, under the database's own lock.
fn migrate(connection: &mut Connection) -> Result<(), StoreError> {
    let mut migrate = || {
        if version(connection).is_ok_and(|version| version == NEWEST) {
            return Ok(NEWEST);
        }
        let transaction = connection.transaction_with_behavior(rusqlite::TransactionBehavior::Immediate)?;
        transaction
            .execute_batch("CREATE TABLE IF NOT EXISTS handfast_migrations (version INTEGER PRIMARY KEY) STRICT")?;
        let done = version(&transaction)?;
        for (number, sql) in MIGRATIONS.iter().filter(|(number, _)| *number > done) {
            transaction.execute_batch(sql)?;
            transaction.execute("INSERT INTO handfast_migrations (version) VALUES ($1)", [number])?;
        }
        transaction.commit()?;
        Ok(done.max(NEWEST))
    };
    known(migrate().map_err(failure)?, NEWEST)
}

fn version(connection: &Connection) -> rusqlite::Result<u32> {
    connection.query_row("SELECT coalesce(max(version), 0) FROM handfast_migrations", (), |row| row.get(0))
}

/// The time of the newest record, if it is one that this clock could have given.
fn newest(connection: &Connection, now: Timestamp) -> Result<Timestamp, StoreError> {
    let newest: Option<i64> =
        connection.query_row("SELECT max(created_at) FROM handfast_handles", (), |row| row.get(0)).map_err(failure)?;
    match newest.map(from_micros) {
        Some(newest) if newest > later(now, TOLERANCE) => Err(StoreError::Setup(format!(
            "the newest record was made at {newest}, but the clock says {now}: set the clock right; or, if those records \
             were made while it was wrong, remove them: DELETE FROM handfast_handles WHERE created_at > {}",
            now.as_microsecond()
        ))),
        newest => Ok(newest.unwrap_or(now)),
    }
}
