//! Connections to PostgreSQL, over TLS that is verified, and the schema.

use std::{
    ops::{Deref, DerefMut},
    sync::Arc,
    time::Duration,
};

use deadpool_postgres::{
    Hook, HookError, Manager, ManagerConfig, Object, Pool, PoolError, QueueMode, RecyclingMethod, Runtime,
};
use rustls_platform_verifier::BuilderVerifierExt;
use tokio_postgres::{
    Config,
    config::{Host, SslMode, TargetSessionAttrs},
    error::SqlState,
};
use tokio_postgres_rustls::MakeRustlsConnect;

use super::{StoreError, sql::known};

const MIGRATIONS: [(i32, &str); 2] = [
    (1, include_str!("../../migrations/postgres/0001_handles.sql")),
    (2, include_str!("../../migrations/postgres/0002_spent.sql")),
];

/// The newest of them.
const NEWEST: i32 = 2;

/// A pool of connections that are opened as they are needed.
pub(super) fn open(url: &str, connections: usize, timeout: Duration) -> Result<Pool, StoreError> {
    let manager = Manager::from_config(
        config(url, timeout)?,
        MakeRustlsConnect::new(tls()?),
        ManagerConfig { recycling_method: RecyclingMethod::Fast },
    );
    // Whatever the server's defaults are: an acknowledged revocation is on disk, and a statement ends before nobody waits
    // for it any more.
    let settings = format!(
        "SET synchronous_commit TO on; SET default_transaction_isolation TO 'read committed'; \
         SET statement_timeout TO {}",
        (timeout.as_millis() * 9 / 10).max(1)
    );
    let settle = Hook::async_fn(move |client, _| {
        let settings = settings.clone();
        Box::pin(async move { client.batch_execute(&settings).await.map_err(HookError::Backend) })
    });
    Pool::builder(manager)
        .max_size(connections.max(1))
        // The connection that was used last is the one whose server process is warm.
        .queue_mode(QueueMode::Lifo)
        .runtime(Runtime::Tokio1)
        .post_create(settle)
        .build()
        .map_err(|error| StoreError::Setup(error.to_string()))
}

/// A connection on loan. Unless it is given back it is closed: whoever stops waiting for an answer leaves one behind.
pub(super) struct Lent(Option<Object>);

/// Lends a connection.
pub(super) async fn lend(pool: &Pool) -> Result<Lent, PoolError> {
    pool.get().await.map(|client| Lent(Some(client)))
}

/// Whether the server grants no more connections.
pub(super) fn is_too_many(error: &PoolError) -> bool {
    matches!(error, PoolError::Backend(error) if error.code() == Some(&SqlState::TOO_MANY_CONNECTIONS))
}

impl From<PoolError> for StoreError {
    fn from(error: PoolError) -> Self {
        match error {
            PoolError::Backend(error) | PoolError::PostCreateHook(HookError::Backend(error)) => error.into(),
            other => Self::unavailable(other),
        }
    }
}

impl Lent {
    /// Gives it back: it has answered everything that it was asked.
    pub(super) fn give_back(mut self) {
        drop(self.0.take());
    }
}

impl Drop for Lent {
    fn drop(&mut self) {
        if let Some(client) = self.0.take() {
            drop(Object::take(client));
        }
    }
}

impl Deref for Lent {
    type Target = Object;

    fn deref(&self) -> &Object {
        self.0.as_ref().expect("it is there until it is given back")
    }
}

impl DerefMut for Lent {
    fn deref_mut(&mut self) -> &mut Object {
        self.0.as_mut().expect("it is there until it is given back")
    }
}

/// The answer, or [`StoreError::Unavailable`] if it takes longer than this.
pub(super) async fn in_time<T>(
    timeout: Duration,
    answer: impl Future<Output = Result<T, StoreError>>,
) -> Result<T, StoreError> {
    let late = |_| StoreError::unavailable(format!("no answer within {}", humantime::format_duration(timeout)));
    tokio::time::timeout(timeout, answer).await.map_err(late)?
}

fn config(url: &str, timeout: Duration) -> Result<Config, StoreError> {
    // The URL may hold a password, so nothing of it is repeated, and neither is what the parser says of it.
    let mut config: Config = url.parse().map_err(|_| {
        StoreError::Setup(
            "the URL of the database cannot be read: write postgres://USER:PASSWORD@HOST:PORT/DATABASE, with %XX for \
             characters such as @ / ? & in a password, and sslmode=disable, prefer or require"
                .into(),
        )
    })?;
    if config.get_connect_timeout().is_none() {
        config.connect_timeout(timeout);
    }
    if config.get_tcp_user_timeout().is_none() {
        config.tcp_user_timeout(timeout);
    }
    if config.get_application_name().is_none() {
        config.application_name("handfast");
    }
    if config.get_ssl_mode() == SslMode::Prefer && !stays_on_this_machine(&config) {
        // To prefer TLS is to do without it wherever somebody in between says so.
        config.ssl_mode(SslMode::Require);
    }
    // A standby may not know yet what was revoked: only a server that takes writes is asked.
    config.target_session_attrs(TargetSessionAttrs::ReadWrite);
    Ok(config)
}

/// Whether whatever is sent stays here. An address (`hostaddr`) decides where it goes, whatever the host's name is.
fn stays_on_this_machine(config: &Config) -> bool {
    let (hosts, addresses) = (config.get_hosts(), config.get_hostaddrs());
    !(hosts.is_empty() && addresses.is_empty())
        && hosts.iter().all(on_this_machine)
        && addresses.iter().all(std::net::IpAddr::is_loopback)
}

fn on_this_machine(host: &Host) -> bool {
    match host {
        #[cfg(unix)]
        Host::Unix(_) => true,
        Host::Tcp(name) => {
            name == "localhost" || name.parse::<std::net::IpAddr>().is_ok_and(|address| address.is_loopback())
        }
    }
}

/// TLS with the roots of this machine; on Linux `SSL_CERT_FILE` names others.
fn tls() -> Result<rustls::ClientConfig, StoreError> {
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let config = rustls::ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .and_then(BuilderVerifierExt::with_platform_verifier);
    config.map(|config| config.with_no_client_auth()).map_err(|error| StoreError::Setup(format!("TLS: {error}")))
}

/// How long a schema may take to be brought up to date, with all who wait for their turn.
pub(super) const MIGRATING: Duration = Duration::from_secs(120);

const VERSION: &str = "SELECT coalesce(max(version), 0) FROM handfast_migrations";

/// What schema a database has.
pub(super) enum Schema {
    Missing,
    Older,
    UpToDate,
}

/// Which one it is. That needs no right but to read.
pub(super) async fn schema(client: &Object) -> Result<Schema, StoreError> {
    match client.query_one(VERSION, &[]).await {
        Ok(row) if row.try_get::<_, i32>(0)? >= NEWEST => newest(row.try_get(0)?).map(|()| Schema::UpToDate),
        Ok(_) => Ok(Schema::Older),
        Err(error) if error.code() == Some(&SqlState::UNDEFINED_TABLE) => Ok(Schema::Missing),
        Err(error) => Err(error.into()),
    }
}

/// Brings the schema up to date. A row is the lock by which replicas take turns: every database of this kind has row
/// locks, not every one has advisory locks.
pub(super) async fn migrate(client: &mut Object) -> Result<(), StoreError> {
    create_lock(client).await?;
    let transaction = client.transaction().await?;
    transaction.batch_execute("SET LOCAL statement_timeout TO 0").await?;
    transaction.execute("SELECT version FROM handfast_migrations WHERE version = 0 FOR UPDATE", &[]).await?;
    let done: i32 = transaction.query_one(VERSION, &[]).await?.try_get(0)?;
    for (number, sql) in MIGRATIONS.iter().filter(|(number, _)| *number > done) {
        transaction.batch_execute(sql).await?;
        transaction.execute("INSERT INTO handfast_migrations (version) VALUES ($1)", &[number]).await?;
    }
    transaction.commit().await?;
    newest(done.max(NEWEST))
}

/// The table of migrations, and in it the row that is the lock.
async fn create_lock(client: &Object) -> Result<(), StoreError> {
    const CREATE: &str = "CREATE TABLE IF NOT EXISTS handfast_migrations (version integer PRIMARY KEY); \
         INSERT INTO handfast_migrations (version) VALUES (0) ON CONFLICT DO NOTHING";
    // `IF NOT EXISTS` looks first and creates then; of two that create at once one is told so, and looks again.
    let another_was_first = [SqlState::UNIQUE_VIOLATION, SqlState::DUPLICATE_TABLE, SqlState::DUPLICATE_OBJECT];
    loop {
        match client.batch_execute(CREATE).await {
            Err(error) if error.code().is_some_and(|code| another_was_first.contains(code)) => {}
            done => return Ok(done?),
        }
    }
}

fn newest(version: i32) -> Result<(), StoreError> {
    known(version.unsigned_abs(), NEWEST.unsigned_abs())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mode(url: &str) -> SslMode {
        config(url, Duration::from_secs(1)).expect("a URL").get_ssl_mode()
    }

    #[test]
    fn tls_is_required_to_another_machine_unless_the_url_says_otherwise() {
        for elsewhere in ["postgres://u@db.example/d", "postgres://u@10.0.0.7/d", "postgres://u@127.0.0.1,db.example/d"]
        {
            assert_eq!(mode(elsewhere), SslMode::Require, "{elsewhere}");
        }
        for elsewhere in ["postgres://u@/d?hostaddr=10.0.0.7", "postgres://u@localhost/d?hostaddr=10.0.0.7", "user=u"] {
            assert_eq!(mode(elsewhere), SslMode::Require, "{elsewhere}");
        }
        for here in ["postgres://u@localhost/d", "postgres://u@127.0.0.9/d", "postgres://u@[::1]/d", "host=/tmp user=u"]
        {
            assert_eq!(mode(here), SslMode::Prefer, "{here}");
        }
        assert_eq!(mode("postgres://u@db.example/d?sslmode=disable"), SslMode::Disable);
        assert_eq!(mode("postgres://u@localhost/d?sslmode=require"), SslMode::Require);
    }

    #[test]
    fn no_call_waits_for_a_server_that_is_gone() {
        let config = config("postgres://u@localhost/d", Duration::from_secs(7)).expect("a URL");

        assert_eq!(config.get_connect_timeout(), Some(&Duration::from_secs(7)));
        assert_eq!(config.get_tcp_user_timeout(), Some(&Duration::from_secs(7)));
        assert_eq!(config.get_target_session_attrs(), TargetSessionAttrs::ReadWrite);
    }

    #[test]
    fn a_bad_url_is_told_without_repeating_it() {
        for bad in [
            "postgres://u:hunter2@h:x/d",
            "postgres://u:hunter2@h/d?sslmode=verify-full",
            "postgres://u:Pa@ss=w?ord&hunter2=x@h/d",
            "hunter2",
        ] {
            let error = config(bad, Duration::from_secs(1)).expect_err("refused").to_string();
            assert!(error.starts_with("the URL of the database cannot be read: "), "{error}");
            assert!(!error.contains("hunter2"), "{error}");
        }
    }
}
