//! Connections that reads share. A read waits for no other to be answered: what several ask at once goes to the server
//! together, and comes back in the order in which it was asked.

use std::{
    sync::{
        Arc, PoisonError, RwLock,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use deadpool_postgres::Pool;
use tokio::sync::Mutex;
use tokio_postgres::{Row, Statement};

use super::{
    StoreError,
    postgres::Values,
    postgres_pool::{Lent, in_time, lend},
};

/// A few connections on which one statement is asked, by everybody. They are opened as they are needed.
pub(super) struct Readers {
    sql: &'static str,
    places: Box<[Place]>,
}

/// Room for one connection.
#[derive(Default)]
struct Place {
    reader: RwLock<Option<Arc<Reader>>>,
    /// Held by whoever opens it: the others wait for that one instead of opening their own.
    opening: Mutex<()>,
    asking: AtomicUsize,
}

/// A connection, and the statement prepared on it. It is never lent to anybody else: when it is forgotten, and its last
/// answer is there or given up, it is closed.
struct Reader {
    client: Lent,
    statement: Statement,
}

impl Readers {
    /// For this statement, on so many connections at most.
    pub(super) fn of(sql: &'static str, connections: usize) -> Self {
        Self { sql, places: (0..connections.max(1)).map(|_| Place::default()).collect() }
    }

    /// Asks, on the connection that has the least to do. One that did not answer in time is not asked again.
    pub(super) async fn query(
        &self,
        pool: &Pool,
        timeout: Duration,
        values: Values<'_>,
    ) -> Result<Vec<Row>, StoreError> {
        let place = self.places.iter().min_by_key(|place| place.asking.load(Ordering::Relaxed)).expect("at least one");
        let _asking = Asking::at(place);
        let mut asked = None;
        let answer = in_time(timeout, async {
            let reader = asked.insert(place.reader(pool, self.sql).await?);
            Ok(reader.client.query(&reader.statement, values).await?)
        });
        match answer.await {
            Err(late @ StoreError::Unavailable(_)) => {
                place.forget(asked.as_ref());
                Err(late)
            }
            answer => answer,
        }
    }
}

impl Place {
    async fn reader(&self, pool: &Pool, sql: &str) -> Result<Arc<Reader>, StoreError> {
        if let Some(reader) = self.living() {
            return Ok(reader);
        }
        let _opening = self.opening.lock().await;
        if let Some(reader) = self.living() {
            return Ok(reader);
        }
        let client = lend(pool).await?;
        let statement = client.prepare(sql).await?;
        let reader = Arc::new(Reader { client, statement });
        *self.reader.write().unwrap_or_else(PoisonError::into_inner) = Some(reader.clone());
        Ok(reader)
    }

    fn living(&self) -> Option<Arc<Reader>> {
        let reader = self.reader.read().unwrap_or_else(PoisonError::into_inner);
        reader.as_ref().filter(|reader| !reader.client.is_closed()).cloned()
    }

    fn forget(&self, asked: Option<&Arc<Reader>>) {
        let mut reader = self.reader.write().unwrap_or_else(PoisonError::into_inner);
        if reader.as_ref().zip(asked).is_some_and(|(reader, asked)| Arc::ptr_eq(reader, asked)) {
            *reader = None;
        }
    }
}

/// Counted for as long as somebody waits for an answer.
struct Asking<'p>(&'p Place);

impl<'p> Asking<'p> {
    fn at(place: &'p Place) -> Self {
        place.asking.fetch_add(1, Ordering::Relaxed);
        Self(place)
    }
}

impl Drop for Asking<'_> {
    fn drop(&mut self) {
        self.0.asking.fetch_sub(1, Ordering::Relaxed);
    }
}
