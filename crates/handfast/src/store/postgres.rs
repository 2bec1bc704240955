//! Records in PostgreSQL, or a database that speaks like it: one store for many replicas. Its clock judges for all.

use std::{
    sync::{Arc, LazyLock},
    time::{Duration, SystemTime},
};

use async_trait::async_trait;
use bytes::BytesMut;
use deadpool_postgres::{Object, Pool};
use tokio_postgres::{
    Row,
    error::SqlState,
    types::{IsNull, ToSql, Type, to_sql_checked},
};

use super::{
    Found, LONGEST_TIMEOUT, Lifespan, Listed, OLDER, Selector, SpendId, Store, StoreError,
    postgres_pool::{self, Lent, Schema, in_time, is_too_many, lend},
    postgres_readers::Readers,
    sql::{COLUMNS, Columns, Conditions, Value, micros},
};
use crate::{
    clock::{Clock, Horizon, Timestamp, system_time},
    record::{Digest, Key, NewRecord, ObjectVersion, Record, Why},
};

/// How a PostgreSQL store is opened.
#[derive(Clone)]
pub struct PostgresOptions {
    /// How many connections, from 2 to 1,000: up to half of them are shared by all reads, the others are for one write
    /// at a time each. More than the database has cores makes it slower. A connection that is given up because it did
    /// not answer is closed here at once; on the server it may last until what it was asked has ended there.
    pub connections: usize,
    /// How long a call may take before it is [`StoreError::Unavailable`].
    pub timeout: Duration,
    /// A clock that judges instead of the database's own, which all replicas share: to verify expiries to the tick.
    pub clock: Option<Arc<dyn Clock>>,
    /// Whether the tables are made where there are none.
    pub create: bool,
}

impl Default for PostgresOptions {
    fn default() -> Self {
        Self { connections: 8, timeout: Duration::from_secs(2), clock: None, create: true }
    }
}

/// Records in PostgreSQL.
pub struct PostgresStore {
    pool: Pool,
    readers: Readers,
    timeout: Duration,
    clock: Option<Arc<dyn Clock>>,
    horizon: Horizon,
}

/// The time by the database's clock, unless another one ($1) judges; never before what this process has seen ($2).
const NOW: &str = "greatest(coalesce($1::timestamptz, clock_timestamp()), $2::timestamptz)";

/// Keeps a record, with the times of the clock.
static INSERT: LazyLock<String> = LazyLock::new(|| {
    format!(
        "WITH clock AS (SELECT {NOW} AS now) INSERT INTO handfast_handles (digest, subject_key_id, subject_key, \
             tenant, client, object_type, object_ref, object_version, scopes, policy_version, created_at, expires_at, \
             idle_micros, ends_at) SELECT $3::bytea, $4::bytea, $5::bytea, $6::text, $7::text, $8::text, $9::text, \
             $10::text, $11::text, $12::text, now, now + $13::bigint * interval '1 microsecond', $14::bigint, now + \
             least($13::bigint, $14::bigint) * interval '1 microsecond' FROM clock RETURNING created_at, expires_at"
    )
});

/// The record of a key, and the time.
static FIND: LazyLock<String> = LazyLock::new(|| {
    format!("SELECT {COLUMNS}, {NOW} FROM handfast_handles WHERE digest = $3 AND tenant IS NOT DISTINCT FROM $4")
});

/// Moves the end of a living record.
static TOUCH: LazyLock<String> = LazyLock::new(|| {
    format!(
        "UPDATE handfast_handles SET ends_at = least($3, expires_at) WHERE digest = $4 \
             AND tenant IS NOT DISTINCT FROM $5 AND revoked_at IS NULL AND ends_at < $3 AND ends_at > {NOW} \
             RETURNING digest"
    )
});

/// Marks what is used up, unless a mark of it may have been forgotten already.
static SPEND: LazyLock<String> = LazyLock::new(|| {
    format!(
        "INSERT INTO handfast_spent (id, until) SELECT $3::bytea, $4::timestamptz WHERE $4 > {NOW} \
             ON CONFLICT DO NOTHING RETURNING id"
    )
});

/// More than any server grants.
const MOST_CONNECTIONS: usize = 1000;

/// How long a server may take to notice that a connection was closed.
const A_MOMENT: Duration = Duration::from_millis(20);

/// Moves the version of a living record.
static ADVANCE: LazyLock<String> = LazyLock::new(|| {
    format!(
        "UPDATE handfast_handles SET object_version = $3 WHERE digest = $4 AND tenant IS NOT DISTINCT FROM $5 \
             AND object_version = $6 AND revoked_at IS NULL AND ends_at > {NOW} RETURNING digest"
    )
});

pub(super) type Values<'v> = &'v [&'v (dyn ToSql + Sync)];

impl PostgresStore {
    /// Connects, and brings the schema up to date. Replicas may start at once: they take turns.
    ///
    /// The URL is `postgres://user:password@host:port/database`, or as libpq writes it with its keywords. To a host
    /// that is not this machine TLS is required and verified, unless the URL says `sslmode=disable`.
    ///
    /// # Errors
    /// The URL is none, the database cannot be reached, or its schema is newer than this program.
    pub async fn connect(url: &str, options: PostgresOptions) -> Result<Self, StoreError> {
        let PostgresOptions { connections, timeout, clock, create } = options;
        let timeout = timeout.min(LONGEST_TIMEOUT);
        // Each has room of its own, so that neither keeps the other from being heard.
        let connections = connections.clamp(2, MOST_CONNECTIONS);
        let pool = postgres_pool::open(url, connections - connections / 2, timeout)?;
        let readers = Readers::over(postgres_pool::open(url, connections / 2, timeout)?, &FIND, timeout);
        let store = Self { pool, readers, timeout, clock, horizon: Horizon::new() };
        store.prepare(create).await.map_err(|error| match error {
            StoreError::Unavailable(source) => {
                StoreError::Setup(format!("cannot use the database: {}", chain(&*source)))
            }
            other => other,
        })?;
        Ok(store)
    }

    async fn prepare(&self, create: bool) -> Result<(), StoreError> {
        match self.bounded(self.timeout, async |client| postgres_pool::schema(client).await).await? {
            Schema::UpToDate => Ok(()),
            Schema::Missing if !create => {
                Err(StoreError::Setup("there is no store in this database: it has no tables of handfast".into()))
            }
            Schema::Older if !create => Err(StoreError::Setup(OLDER.into())),
            Schema::Missing | Schema::Older => self.bounded(postgres_pool::MIGRATING, postgres_pool::migrate).await,
        }
    }

    /// Runs a statement that is prepared once for each connection: one round trip.
    async fn prepared(&self, sql: &str, values: Values<'_>) -> Result<Vec<Row>, StoreError> {
        self.bounded(self.timeout, async |client| {
            let statement = client.prepare_cached(sql).await?;
            Ok(client.query(&statement, values).await?)
        })
        .await
    }

    /// Runs a statement that is put together for the occasion.
    async fn occasional(&self, sql: &str, values: Values<'_>) -> Result<Vec<Row>, StoreError> {
        self.bounded(self.timeout, async |client| Ok(client.query(sql, values).await?)).await
    }

    /// Lends a connection, for no longer than this in all. One that did not answer, or not as it should, is not used
    /// again: its next user would wait for the answer before, or ask for a statement that is not there any more.
    async fn bounded<T>(
        &self,
        timeout: Duration,
        work: impl AsyncFnOnce(&mut Object) -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        let mut late = true;
        let done = in_time(timeout, async {
            let done = self.lent(work).await;
            late = false;
            done
        });
        let done = done.await;
        if late {
            // Where one has fallen silent, those that have waited beside it are not trusted either.
            self.pool.retain(|_, _| false);
        }
        done
    }

    async fn lent<T>(&self, work: impl AsyncFnOnce(&mut Object) -> Result<T, StoreError>) -> Result<T, StoreError> {
        let mut client = self.lend().await?;
        let done = work(&mut client).await;
        if !matches!(done, Err(StoreError::Unavailable(_))) {
            client.give_back();
        }
        done
    }

    /// A connection for a write. A server that grants no more of them is given one back that reads had.
    async fn lend(&self) -> Result<Lent, StoreError> {
        loop {
            match lend(&self.pool).await {
                Err(error) if is_too_many(&error) && self.readers.close_one() => tokio::time::sleep(A_MOMENT).await,
                lent => return Ok(lent?),
            }
        }
    }

    /// The two parameters of [`NOW`].
    fn time(&self) -> (Option<SystemTime>, SystemTime) {
        (self.clock.as_ref().map(|clock| system_time(clock.now())), system_time(self.horizon.seen()))
    }
}

#[async_trait]
impl Store for PostgresStore {
    async fn insert(&self, new: &NewRecord) -> Result<Lifespan, StoreError> {
        let ((manual, seen), subject) = (self.time(), new.partition.subject);
        let values: Values<'_> = &[
            &manual,
            &seen,
            &new.digest.as_bytes().as_slice(),
            &subject.as_ref().map(|subject| subject.key.0.as_slice()),
            &subject.as_ref().map(|subject| subject.mac.as_slice()),
            &new.partition.tenant.as_ref().map(|tenant| tenant.as_str()),
            &new.partition.client.as_ref().map(|client| client.as_str()),
            &new.object.kind.as_str(),
            &new.object.reference.as_str(),
            &new.object.version.as_str(),
            &new.scopes.text(),
            &new.policy.as_str(),
            &micros(new.lifetime),
            &new.idle.map(micros),
        ];
        let rows = self.prepared(&INSERT, values).await?;
        let row = rows.first().ok_or_else(|| StoreError::Corrupt("a record that was inserted is not there".into()))?;
        let created = self.horizon.reach(time(row, 0)?);
        Ok(Lifespan { created, expires: time(row, 1)? })
    }

    async fn find(&self, key: &Key) -> Result<Option<Found>, StoreError> {
        let (manual, seen) = self.time();
        let tenant = key.tenant.as_ref().map(|tenant| tenant.as_str());
        let values: Values<'_> = &[&manual, &seen, &key.digest.as_bytes().as_slice(), &tenant];
        let rows = self.readers.query(values).await?;
        let Some(row) = rows.first() else { return Ok(None) };
        let now = self.horizon.reach(time(row, 17)?);
        Ok(Some(Found { record: record(row)?, now }))
    }

    async fn touch(&self, key: &Key, ends: Timestamp) -> Result<bool, StoreError> {
        let (manual, seen) = self.time();
        let tenant = key.tenant.as_ref().map(|tenant| tenant.as_str());
        let digest = key.digest.as_bytes().as_slice();
        let values: Values<'_> = &[&manual, &seen, &system_time(ends), &digest, &tenant];
        Ok(self.prepared(&TOUCH, values).await?.len() == 1)
    }

    async fn advance(&self, key: &Key, from: &ObjectVersion, to: &ObjectVersion) -> Result<bool, StoreError> {
        let (manual, seen) = self.time();
        let tenant = key.tenant.as_ref().map(|tenant| tenant.as_str());
        let digest = key.digest.as_bytes().as_slice();
        let values: Values<'_> = &[&manual, &seen, &to.as_str(), &digest, &tenant, &from.as_str()];
        Ok(self.prepared(&ADVANCE, values).await?.len() == 1)
    }

    async fn revoke(
        &self,
        which: &Selector,
        why: &Why,
        after: Option<Digest>,
        limit: u32,
    ) -> Result<Vec<Digest>, StoreError> {
        let chosen = Conditions::of(which, 5);
        let sql = format!(
            "UPDATE handfast_handles SET revoked_at = {NOW}, revocation_reason = $3, revocation_receipt = $4 \
             WHERE digest IN ({}) AND revoked_at IS NULL RETURNING digest",
            chosen.unrevoked("$5", limit)
        );
        let left = Conditions::of(which, 1);
        let after = after.as_ref().map_or(&[] as &[u8], |digest| digest.as_bytes());
        let mut in_vain = 0;
        let every = async {
            loop {
                let (manual, seen) = self.time();
                let (reason, receipt) = (why.reason.as_str(), why.receipt.as_str());
                let mut values: Vec<&(dyn ToSql + Sync)> = vec![&manual, &seen, &reason, &receipt, &after];
                values.extend(chosen.values.iter().map(|value| value as &(dyn ToSql + Sync)));
                let revoked = self.occasional(&sql, &values).await?;
                // Of none it may be that somebody else was revoking them, and has: then there may be more.
                let mut values: Vec<&(dyn ToSql + Sync)> = vec![&after];
                values.extend(left.values.iter().map(|value| value as &(dyn ToSql + Sync)));
                if !revoked.is_empty() || self.occasional(&left.unrevoked("$1", limit), &values).await?.is_empty() {
                    return revoked.iter().map(digest).collect();
                }
                in_vain += 1;
            }
        };
        // A database that shows rows and does not change them (a policy, a trigger) must not keep us for ever.
        match in_time(self.timeout, every).await {
            Err(StoreError::Unavailable(_)) if in_vain > 2 => Err(StoreError::Unchangeable),
            revoked => revoked,
        }
    }

    async fn list(&self, which: &Selector, after: Option<Digest>, limit: u32) -> Result<Listed, StoreError> {
        let chosen = Conditions::of(which, 3);
        // The time stands in a row of its own, which is there even where no record is.
        let sql = format!(
            "SELECT {COLUMNS}, clock.now FROM (SELECT {NOW} AS now) AS clock LEFT JOIN (SELECT {COLUMNS} FROM \
             handfast_handles WHERE digest > $3 AND {} ORDER BY digest LIMIT {limit}) AS chosen ON true ORDER BY digest",
            chosen.sql
        );
        let (manual, seen) = self.time();
        let after = after.as_ref().map_or(&[] as &[u8], |digest| digest.as_bytes());
        let mut values: Vec<&(dyn ToSql + Sync)> = vec![&manual, &seen, &after];
        values.extend(chosen.values.iter().map(|value| value as &(dyn ToSql + Sync)));
        let rows = self.occasional(&sql, &values).await?;
        let now = rows.first().map(|row| time(row, 17)).transpose()?.unwrap_or(Timestamp::MAX);
        let found = rows.iter().filter(|row| row.try_get::<_, Option<&[u8]>>(0).is_ok_and(|digest| digest.is_some()));
        Ok(Listed { records: found.map(record).collect::<Result<_, _>>()?, now: self.horizon.reach(now) })
    }

    async fn spend(&self, id: &SpendId, until: Timestamp) -> Result<bool, StoreError> {
        let (manual, seen) = self.time();
        let values: Values<'_> = &[&manual, &seen, &id.as_bytes().as_slice(), &system_time(until)];
        Ok(self.prepared(&SPEND, values).await?.len() == 1)
    }

    async fn purge(&self, dead_for: Duration, limit: u32) -> Result<u64, StoreError> {
        let sql = format!(
            "WITH cutoff AS (SELECT {NOW} - $3::bigint * interval '1 microsecond' AS at) DELETE FROM handfast_handles \
             WHERE digest IN (SELECT digest FROM handfast_handles, cutoff WHERE ends_at < at OR revoked_at < at \
             LIMIT {limit}) RETURNING digest"
        );
        let forget = format!(
            "WITH cutoff AS (SELECT {NOW} - $3::bigint * interval '1 microsecond' AS at) DELETE FROM handfast_spent \
             WHERE id IN (SELECT id FROM handfast_spent, cutoff WHERE until < at LIMIT {limit}) RETURNING id"
        );
        let (manual, seen) = self.time();
        // A database knows no time before the beginning; nothing has been dead for a hundred years.
        let dead_for = micros(dead_for.min(Duration::from_secs(100 * 366 * 24 * 3600)));
        // Marks first: who may not remove those has removed nothing.
        let forgotten = self.occasional(&forget, &[&manual, &seen, &dead_for]).await?.len();
        Ok((forgotten + self.occasional(&sql, &[&manual, &seen, &dead_for]).await?.len()) as u64)
    }

    async fn erase(&self, digests: &[Digest]) -> Result<u64, StoreError> {
        const ERASE: &str = "DELETE FROM handfast_handles WHERE digest = ANY($1) RETURNING digest";
        let digests: Vec<&[u8]> = digests.iter().map(|digest| digest.as_bytes().as_slice()).collect();
        Ok(self.occasional(ERASE, &[&digests]).await?.len() as u64)
    }
}

impl From<tokio_postgres::Error> for StoreError {
    fn from(error: tokio_postgres::Error) -> Self {
        match error.code() {
            Some(&SqlState::UNIQUE_VIOLATION) => Self::Duplicate,
            Some(&SqlState::DISK_FULL) => Self::Full,
            Some(&SqlState::READ_ONLY_SQL_TRANSACTION) => Self::ReadOnly,
            Some(&SqlState::INSUFFICIENT_PRIVILEGE) => Self::Forbidden,
            Some(&SqlState::UNDEFINED_TABLE | &SqlState::UNDEFINED_COLUMN) => {
                Self::foreign(error.as_db_error().map_or("", |error| error.message()))
            }
            // Its details name what stands in a row.
            _ => match error.as_db_error() {
                Some(told) => Self::unavailable(format!("db error: {}: {}", told.severity(), told.message())),
                None => Self::unavailable(error),
            },
        }
    }
}

impl ToSql for Value<'_> {
    fn to_sql(&self, kind: &Type, out: &mut BytesMut) -> Result<IsNull, Box<dyn std::error::Error + Sync + Send>> {
        match self {
            Self::Bytes(bytes) => bytes.to_sql(kind, out),
            Self::Text(text) => text.to_sql(kind, out),
            // Nothing is older, and the database knows no time before its own beginning.
            Self::Time(time) => system_time((*time).max(Timestamp::UNIX_EPOCH)).to_sql(kind, out),
        }
    }

    fn accepts(kind: &Type) -> bool {
        matches!(*kind, Type::BYTEA | Type::TEXT | Type::TIMESTAMPTZ)
    }

    to_sql_checked!();
}

/// An error with its causes, in one line.
pub(super) fn chain(error: &dyn std::error::Error) -> String {
    let causes = std::iter::successors(error.source(), |cause| cause.source());
    causes.fold(error.to_string(), |text, cause| {
        let cause = cause.to_string();
        if text.contains(&cause) { text } else { format!("{text}: {cause}") }
    })
}

fn unreadable(error: &tokio_postgres::Error) -> StoreError {
    StoreError::Corrupt(error.to_string())
}

fn time(row: &Row, at: usize) -> Result<Timestamp, StoreError> {
    let time: SystemTime = row.try_get(at).map_err(|error| unreadable(&error))?;
    Timestamp::try_from(time).map_err(|error| StoreError::Corrupt(error.to_string()))
}

fn digest(row: &Row) -> Result<Digest, StoreError> {
    let bytes: &[u8] = row.try_get(0).map_err(|error| unreadable(&error))?;
    Digest::from_bytes(bytes).ok_or_else(|| StoreError::Corrupt("a digest without 32 bytes".into()))
}

fn record(row: &Row) -> Result<Record, StoreError> {
    fn get<'r, T: tokio_postgres::types::FromSql<'r>>(row: &'r Row, at: usize) -> Result<T, StoreError> {
        row.try_get(at).map_err(|error| unreadable(&error))
    }
    Columns {
        digest: get(row, 0)?,
        subject_key_id: get(row, 1)?,
        subject_key: get(row, 2)?,
        tenant: get(row, 3)?,
        client: get(row, 4)?,
        object_type: get(row, 5)?,
        object_ref: get(row, 6)?,
        object_version: get(row, 7)?,
        scopes: get(row, 8)?,
        policy_version: get(row, 9)?,
        created_at: time(row, 10)?,
        expires_at: time(row, 11)?,
        idle_micros: get(row, 12)?,
        ends_at: time(row, 13)?,
        revoked_at: get::<Option<SystemTime>>(row, 14)?.map(|_| time(row, 14)).transpose()?,
        reason: get(row, 15)?,
        receipt: get(row, 16)?,
    }
    .record()
}
