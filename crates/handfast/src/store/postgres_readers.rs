//! Connections that reads share. A read waits for no other to be answered: what several ask at once goes to the server
//! together, and comes back in the order in which it was asked.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, AtomicUsize, Ordering},
    },
    time::{Duration, Instant},
};

use deadpool_postgres::Pool;
use tokio::sync::watch;
use tokio_postgres::{Row, Statement};

use super::{
    StoreError,
    postgres::Values,
    postgres_pool::{Lent, in_time, lend},
};
use crate::clock::monotonic;

/// A few connections on which one statement is asked, by everybody.
pub(super) struct Readers {
    sql: &'static str,
    pool: Pool,
    timeout: Duration,
    began: Instant,
    places: Box<[Arc<Place>]>,
}

/// Room for one connection. It is opened by a task of its own: whoever waits for it may stop waiting.
struct Place(watch::Sender<State>);

enum State {
    Closed,
    Opening,
    Open(Arc<Reader>),
    /// It could not be opened, at this time.
    Failed(u64, Arc<StoreError>),
}

/// A connection, and the statement prepared on it. It is never lent to anybody else: once it is forgotten, and its last
/// answer is there or given up, it is closed. Times are milliseconds, and never 0.
struct Reader {
    client: Lent,
    statement: Statement,
    /// How many wait for an answer.
    asking: AtomicUsize,
    /// When it answered for the last time.
    answered: AtomicU64,
    /// Since when it has been asked and has answered nothing; 0 if nothing is open.
    quiet: AtomicU64,
}

/// How often a read is asked in all. A connection may be closed, or its statement be stale; to ask again changes nothing.
const TRIES: usize = 3;

impl Readers {
    /// For this statement, on all connections of this pool.
    pub(super) fn over(pool: Pool, sql: &'static str, timeout: Duration) -> Self {
        let places = (0..pool.status().max_size).map(|_| Arc::new(Place(watch::Sender::new(State::Closed)))).collect();
        Self { sql, pool, timeout, began: monotonic(), places }
    }

    /// Asks, on the connection that has the least to do.
    pub(super) async fn query(&self, values: Values<'_>) -> Result<Vec<Row>, StoreError> {
        let (asked, mut late) = (self.now(), true);
        let answer = in_time(self.timeout, async {
            let mut answer = self.ask(values).await;
            for _ in 1..TRIES {
                let Err(StoreError::Unavailable(_)) = answer else { break };
                answer = self.ask(values).await;
            }
            late = false;
            answer
        });
        let answer = answer.await;
        if late {
            // Where one has fallen silent, none is trusted that has not answered since.
            self.forget(|reader| reader.answered.load(Ordering::Relaxed) <= asked);
        }
        answer
    }

    async fn ask(&self, values: Values<'_>) -> Result<Vec<Row>, StoreError> {
        let reader = match self.least_busy() {
            Some(reader) => reader,
            None => self.opened().await?,
        };
        let asking = Asking::of(&reader, self.now());
        let answer = reader.client.query(&reader.statement, values).await;
        asking.answered(self.now());
        answer.map_err(|error| {
            self.forget(|one| std::ptr::eq(one, &raw const *reader));
            error.into()
        })
    }

    /// Of those that are open, the one that has the least to do. Where all are busy another one is opened, for those who
    /// come later: nobody waits for that.
    fn least_busy(&self) -> Option<Arc<Reader>> {
        let now = self.now();
        self.forget(|reader| reader.client.is_closed() || reader.is_silent(now, self.timeout));
        let open = self.places.iter().filter_map(|place| place.reader());
        let reader = open.min_by_key(|reader| reader.asking.load(Ordering::Relaxed))?;
        if reader.asking.load(Ordering::Relaxed) > 0
            && let Some(place) = self.places.iter().find(|place| place.may_be_opened(now, self.timeout))
        {
            self.open(place);
        }
        Some(reader)
    }

    /// The first one, where none is open.
    async fn opened(&self) -> Result<Arc<Reader>, StoreError> {
        let place = self.places.iter().find(|place| matches!(*place.0.borrow(), State::Opening));
        let place = place.unwrap_or(&self.places[0]);
        let mut states = place.0.subscribe();
        self.open(place);
        loop {
            match &*states.borrow_and_update() {
                State::Open(reader) => return Ok(reader.clone()),
                State::Failed(_, error) => return Err(again(error)),
                // It was open already, and is forgotten again.
                State::Closed => return Err(StoreError::unavailable("the connection was closed")),
                State::Opening => {}
            }
            // The place is there for as long as we are.
            let _ = states.changed().await;
        }
    }

    /// Opens this place, unless it is open or being opened.
    fn open(&self, place: &Arc<Place>) {
        let begins = place.0.send_if_modified(|state| {
            let begins = matches!(state, State::Closed | State::Failed(..));
            if begins {
                *state = State::Opening;
            }
            begins
        });
        if !begins {
            return;
        }
        let (pool, sql, timeout, began) = (self.pool.clone(), self.sql, self.timeout, self.began);
        let attempt = Attempt { place: Some(place.clone()), began };
        tokio::spawn(async move {
            let opened = in_time(timeout, async {
                let client = lend(&pool).await?;
                let statement = client.prepare(sql).await?;
                Ok(Reader::new(client, statement))
            });
            let opened = opened.await;
            attempt.ended(opened);
        });
    }

    /// Closes one, so that there is room for somebody else; `false` where none is open.
    pub(super) fn close_one(&self) -> bool {
        let idle = self.places.iter().filter_map(|place| place.reader());
        let Some(idle) = idle.min_by_key(|reader| reader.asking.load(Ordering::Relaxed)) else { return false };
        self.forget(|reader| std::ptr::eq(reader, &raw const *idle));
        true
    }

    fn forget(&self, which: impl Fn(&Reader) -> bool) {
        for place in &self.places {
            let forgotten = |state: &State| matches!(state, State::Open(reader) if which(reader));
            if forgotten(&place.0.borrow()) {
                place.0.send_if_modified(|state| {
                    let forgotten = forgotten(state);
                    if forgotten {
                        *state = State::Closed;
                    }
                    forgotten
                });
            }
        }
    }

    fn now(&self) -> u64 {
        since(self.began)
    }
}

impl Place {
    fn reader(&self) -> Option<Arc<Reader>> {
        match &*self.0.borrow() {
            State::Open(reader) => Some(reader.clone()),
            State::Closed | State::Opening | State::Failed(..) => None,
        }
    }

    fn may_be_opened(&self, now: u64, timeout: Duration) -> bool {
        match &*self.0.borrow() {
            State::Closed => true,
            State::Failed(at, _) => longer_than(timeout, *at, now),
            State::Open(_) | State::Opening => false,
        }
    }
}

impl Reader {
    fn new(client: Lent, statement: Statement) -> Self {
        let (answered, quiet) = <(AtomicU64, AtomicU64)>::default();
        Self { client, statement, asking: AtomicUsize::new(0), answered, quiet }
    }

    /// Whether it was asked, and has answered nothing for longer than anybody waits: also if those who asked have not
    /// waited for so long.
    fn is_silent(&self, now: u64, timeout: Duration) -> bool {
        let quiet = self.quiet.load(Ordering::Relaxed);
        quiet != 0 && longer_than(timeout, quiet, now)
    }
}

/// Counted for as long as somebody waits for an answer.
struct Asking<'r>(&'r Reader);

impl<'r> Asking<'r> {
    fn of(reader: &'r Reader, now: u64) -> Self {
        reader.asking.fetch_add(1, Ordering::Relaxed);
        let _ = reader.quiet.compare_exchange(0, now, Ordering::Relaxed, Ordering::Relaxed);
        Self(reader)
    }

    fn answered(self, now: u64) {
        let others = self.0.asking.load(Ordering::Relaxed) > 1;
        self.0.answered.store(now, Ordering::Relaxed);
        self.0.quiet.store(if others { now } else { 0 }, Ordering::Relaxed);
    }
}

impl Drop for Asking<'_> {
    fn drop(&mut self) {
        self.0.asking.fetch_sub(1, Ordering::Relaxed);
    }
}

/// A place on its way to be open. However its task ends, the place says so.
struct Attempt {
    /// None, once it has said so: somebody else may be trying again.
    place: Option<Arc<Place>>,
    began: Instant,
}

impl Attempt {
    fn ended(mut self, opened: Result<Reader, StoreError>) {
        self.say(match opened {
            Ok(reader) => State::Open(Arc::new(reader)),
            Err(error) => State::Failed(since(self.began), Arc::new(error)),
        });
    }

    fn say(&mut self, state: State) {
        if let Some(place) = self.place.take() {
            place.0.send_replace(state);
        }
    }
}

impl Drop for Attempt {
    fn drop(&mut self) {
        let error = StoreError::unavailable("the runtime that was opening a connection has ended");
        self.say(State::Failed(since(self.began), Arc::new(error)));
    }
}

fn since(began: Instant) -> u64 {
    u64::try_from(began.elapsed().as_millis()).unwrap_or(u64::MAX - 1) + 1
}

fn longer_than(time: Duration, from: u64, to: u64) -> bool {
    u128::from(to.saturating_sub(from)) > time.as_millis()
}

/// The same once more: it is told to everybody who waits.
fn again(error: &StoreError) -> StoreError {
    match error {
        StoreError::Setup(told) => StoreError::Setup(told.clone()),
        StoreError::Forbidden => StoreError::Forbidden,
        StoreError::Unavailable(source) => StoreError::unavailable(super::postgres::chain(&**source)),
        other => StoreError::unavailable(other.to_string()),
    }
}
