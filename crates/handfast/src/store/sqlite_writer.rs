//! The one thread that writes to a SQLite file: what has queued up is committed together.

use std::{thread::JoinHandle, time::Duration};

use rusqlite::Connection;
use tokio::sync::{mpsc, oneshot};

use super::{StoreError, sqlite::failure};

/// What a write must survive before it is acknowledged.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Durability {
    /// The end of the process.
    Process,
    /// The end of the machine: the disk has it.
    Disk,
}

/// Hands work to the writing thread, which ends with it.
pub(super) struct Writer {
    jobs: Option<mpsc::Sender<Job>>,
    thread: Option<JoinHandle<()>>,
    timeout: Duration,
}

/// One piece of work. It runs inside a transaction and leaves what is to be told once that has been committed, or not.
struct Job {
    durability: Durability,
    run: Run,
}

type Run = Box<dyn FnOnce(Option<&Connection>) -> (Settle, Option<rusqlite::Error>) + Send>;
type Settle = Box<dyn FnOnce(Result<(), &rusqlite::Error>) + Send>;

/// How many jobs wait at most, and how many are committed at once.
const QUEUE: usize = 1024;

impl Writer {
    pub(super) fn start(connection: Connection, timeout: Duration) -> std::io::Result<Self> {
        let (jobs, queue) = mpsc::channel(QUEUE);
        let thread =
            std::thread::Builder::new().name("handfast-sqlite".into()).spawn(move || run(&connection, queue))?;
        Ok(Self { jobs: Some(jobs), thread: Some(thread), timeout })
    }

    /// Does this work in a transaction and answers once that has been committed. Where the answer does not come in
    /// time the work may still be done.
    pub(super) async fn write<T: Send + 'static>(
        &self,
        durability: Durability,
        work: impl FnOnce(&Connection) -> rusqlite::Result<T> + Send + 'static,
    ) -> Result<T, StoreError> {
        let (tell, told) = oneshot::channel();
        let run = Box::new(move |transaction: Option<&Connection>| -> (Settle, Option<rusqlite::Error>) {
            let done = transaction.map(work);
            let failed = done.as_ref().and_then(|done| done.as_ref().err()).map(again);
            let settle: Settle = Box::new(move |committed| {
                // Whoever asked may have given up waiting.
                let _ = tell.send(match (done, committed) {
                    (Some(Ok(done)), Ok(())) => Ok(done),
                    (Some(Err(error)), _) => Err(failure(error)),
                    (_, Err(error)) => Err(failure(again(error))),
                    (None, Ok(())) => Err(StoreError::unavailable("the transaction was rolled back")),
                });
            });
            (settle, failed)
        });
        let answer = async {
            let jobs = self.jobs.as_ref().ok_or("the writing thread has ended")?;
            jobs.send(Job { durability, run }).await.map_err(|_| "the writing thread has ended")?;
            told.await.map_err(|_| "the writing thread has ended")
        };
        match tokio::time::timeout(self.timeout, answer).await {
            Ok(Ok(answer)) => answer,
            Ok(Err(gone)) => Err(StoreError::unavailable(gone)),
            Err(_) => {
                let timeout = humantime::format_duration(self.timeout);
                Err(StoreError::unavailable(format!("no answer within {timeout}")))
            }
        }
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        // Without a sender the thread ends when it has done what is queued; then the file is closed.
        self.jobs = None;
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

fn run(connection: &Connection, mut queue: mpsc::Receiver<Job>) {
    while let Some(first) = queue.blocking_recv() {
        let mut batch = vec![first];
        while batch.len() < QUEUE
            && let Ok(next) = queue.try_recv()
        {
            batch.push(next);
        }
        commit(connection, batch);
    }
}

fn commit(connection: &Connection, batch: Vec<Job>) {
    let synchronous = match batch.iter().map(|job| job.durability).max() {
        Some(Durability::Disk) => "FULL",
        _ => "NORMAL",
    };
    let begun = connection.execute_batch(&format!("PRAGMA synchronous = {synchronous}; BEGIN IMMEDIATE"));
    if let Err(error) = begun {
        for job in batch {
            (job.run)(None).0(Err(&error));
        }
        return;
    }
    let (mut settles, mut ended): (Vec<Settle>, Option<rusqlite::Error>) = (Vec::new(), None);
    for job in batch {
        // An error such as a full disk may have ended the transaction; nothing may be done outside of one.
        let (settle, failed) = (job.run)((!connection.is_autocommit()).then_some(connection));
        if connection.is_autocommit() && ended.is_none() {
            ended = failed;
        }
        settles.push(settle);
    }
    let committed = match ended {
        // Everybody is told what ended it.
        Some(error) => Err(error),
        None => connection.execute_batch("COMMIT"),
    };
    if committed.is_err() && !connection.is_autocommit() {
        let _ = connection.execute_batch("ROLLBACK");
    }
    for settle in settles {
        settle(committed.as_ref().map(drop));
    }
}

/// The same error once more: it is told to everybody whose work was in the transaction.
fn again(error: &rusqlite::Error) -> rusqlite::Error {
    match error {
        rusqlite::Error::SqliteFailure(code, text) => rusqlite::Error::SqliteFailure(*code, text.clone()),
        other => rusqlite::Error::ToSqlConversionFailure(other.to_string().into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TIMEOUT: Duration = Duration::from_millis(100);

    fn writer(setup: &str) -> Writer {
        let connection = Connection::open_in_memory().expect("opened");
        connection.execute_batch(setup).expect("set up");
        Writer::start(connection, TIMEOUT).expect("a thread")
    }

    async fn number(writer: &Writer, durability: Durability, sql: &'static str) -> Result<i64, StoreError> {
        writer.write(durability, |connection| connection.query_row(sql, (), |row| row.get(0))).await
    }

    #[tokio::test]
    async fn what_must_survive_the_machine_waits_for_the_disk() {
        const NORMAL: i64 = 1;
        const FULL: i64 = 2;
        let writer = writer("");
        for (durability, expected) in
            [(Durability::Process, NORMAL), (Durability::Disk, FULL), (Durability::Process, NORMAL)]
        {
            let synchronous = number(&writer, durability, "PRAGMA synchronous").await.expect("an answer");
            assert_eq!(synchronous, expected, "{durability:?}");
        }
    }

    #[tokio::test]
    async fn what_cannot_be_committed_is_told_and_is_in_nobody_elses_transaction() {
        let writer = writer(
            "PRAGMA foreign_keys = ON; CREATE TABLE parents (id INTEGER PRIMARY KEY); \
             CREATE TABLE children (of INTEGER REFERENCES parents DEFERRABLE INITIALLY DEFERRED)",
        );

        let orphan =
            writer.write(Durability::Disk, |connection| connection.execute("INSERT INTO children VALUES (7)", ()));

        assert!(matches!(orphan.await, Err(StoreError::Unavailable(_))), "its parent is missing when it is committed");
        let children = number(&writer, Durability::Disk, "SELECT count(*) FROM children").await;
        assert_eq!(children.expect("the next one is not held up"), 0);
    }

    #[tokio::test]
    async fn whoever_waits_for_a_slow_write_is_told_in_time() {
        let (go, gone) = std::sync::mpsc::channel::<()>();
        let writer = writer("");
        let slow = writer.write(Durability::Process, move |_| {
            let _ = gone.recv();
            Ok(())
        });
        let behind = number(&writer, Durability::Process, "SELECT 1");

        let (slow, behind) = tokio::join!(slow, behind);

        for told in [slow.map(|()| 0), behind] {
            let Err(StoreError::Unavailable(source)) = told else { panic!("nobody has written") };
            assert_eq!(source.to_string(), "no answer within 100ms");
        }
        drop(go);
        assert_eq!(number(&writer, Durability::Process, "SELECT 1").await.expect("it goes on"), 1);
    }
}
