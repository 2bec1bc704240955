//! A store by its URL, as configurations and command lines name it.

use std::{path::Path, sync::Arc, time::Duration};

use super::{Store, StoreError};
use crate::clock::Clock;

/// How a store is opened by its URL.
#[derive(Clone)]
pub struct OpenOptions {
    /// A clock that judges instead of the store's own.
    pub clock: Option<Arc<dyn Clock>>,
    /// How long a call may take before it is [`StoreError::Unavailable`].
    pub timeout: Duration,
    /// Whether a store is made where there is none: a SQLite file, or the tables in a database.
    pub create: bool,
}

impl Default for OpenOptions {
    fn default() -> Self {
        Self { clock: None, timeout: Duration::from_secs(2), create: true }
    }
}

/// Opens a store: `sqlite:FILE`, or `postgres://USER@HOST/DATABASE`.
///
/// # Errors
/// The URL is none of these, or this program was built without that store, or the store cannot be opened.
pub async fn open(url: &str, options: OpenOptions) -> Result<Arc<dyn Store>, StoreError> {
    if let Some(path) = url.strip_prefix("sqlite:") {
        return sqlite(Path::new(path.strip_prefix("//").unwrap_or(path)), options);
    }
    if url.starts_with("postgres://") || url.starts_with("postgresql://") {
        return postgres(url, options).await;
    }
    // Nothing is repeated that may hold a password: of keywords, of a URL.
    let names_a_file = url.chars().all(|character| character.is_ascii_alphanumeric() || "._-/".contains(character));
    let hint = if names_a_file { format!("; for a file write sqlite:{url}") } else { String::new() };
    Err(StoreError::Setup(format!("a store is named by sqlite:FILE or postgres://USER@HOST/DATABASE{hint}")))
}

#[cfg(feature = "sqlite")]
fn sqlite(path: &Path, options: OpenOptions) -> Result<Arc<dyn Store>, StoreError> {
    if path.as_os_str().is_empty() {
        return Err(StoreError::Setup("sqlite: names no file; write sqlite:FILE".into()));
    }
    let OpenOptions { clock, timeout, create } = options;
    let mut sqlite = super::SqliteOptions { timeout, create, ..super::SqliteOptions::default() };
    if let Some(clock) = clock {
        sqlite.clock = clock;
    }
    Ok(Arc::new(super::SqliteStore::open(path, sqlite)?))
}

#[cfg(not(feature = "sqlite"))]
fn sqlite(_: &Path, _: OpenOptions) -> Result<Arc<dyn Store>, StoreError> {
    Err(StoreError::Setup("this program was built without SQLite: enable the feature `sqlite`".into()))
}

#[cfg(feature = "postgres")]
async fn postgres(url: &str, options: OpenOptions) -> Result<Arc<dyn Store>, StoreError> {
    let OpenOptions { clock, timeout, create } = options;
    let postgres = super::PostgresOptions { clock, timeout, create, ..super::PostgresOptions::default() };
    Ok(Arc::new(super::PostgresStore::connect(url, postgres).await?))
}

#[cfg(not(feature = "postgres"))]
async fn postgres(_: &str, _: OpenOptions) -> Result<Arc<dyn Store>, StoreError> {
    Err(StoreError::Setup("this program was built without PostgreSQL: enable the feature `postgres`".into()))
}
