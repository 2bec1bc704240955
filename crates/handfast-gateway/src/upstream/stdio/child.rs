//! One child process, from its start to the end of its whole process group.

use std::{
    process::Stdio as Piped,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering},
    },
    time::Duration,
};

use process_wrap::tokio::{ChildWrapper, CommandWrap, KillOnDrop, ProcessGroup};
use tokio::{
    io::{AsyncRead, AsyncWriteExt, BufReader},
    process::ChildStdin,
    sync::mpsc,
    task::AbortHandle,
};

use super::{
    StdioOptions,
    lines::{self, Line},
    log::{self, Pen},
    message::{Message, number},
    table::{Owner, Table, Talk},
};

/// A child, for as long as it is kept: to drop it is to end it at once.
pub(super) struct Child {
    /// Whose it is; `None` where it is everybody's.
    pub(super) owner: Option<Owner>,
    /// The session that it is, where it is one.
    pub(super) session: Option<String>,
    pub(super) table: Arc<Table>,
    pub(super) input: mpsc::Sender<String>,
    /// When it was used last, counted in uses.
    pub(super) used: AtomicU64,
    fate: Arc<Fate>,
    keeper: AbortHandle,
}

/// How a child has ended.
#[derive(Default)]
struct Fate {
    /// How many children in a row, this one included, have ended before they answered anything.
    failures: AtomicU32,
    /// No other is started yet.
    rests: AtomicBool,
}

impl Child {
    /// Starts one, in a process group of its own.
    pub(super) fn start(
        options: &StdioOptions,
        talk: Talk,
        owner: Option<Owner>,
        session: Option<String>,
        born: u64,
        failed: u32,
    ) -> std::io::Result<Self> {
        let mut command = CommandWrap::with_new(&options.program, |command| {
            command.args(&options.arguments).stdin(Piped::piped()).stdout(Piped::piped()).stderr(Piped::piped());
            for name in &options.hidden {
                command.env_remove(name);
            }
            command.envs(options.environment.iter().map(|(name, value)| (name, value)));
            if let Some(folder) = &options.folder {
                command.current_dir(folder);
            }
        });
        command.wrap(ProcessGroup::leader()).wrap(KillOnDrop);
        let mut process = command.spawn()?;
        let missing = || std::io::Error::other("the child has no pipes");
        let stdin = process.stdin().take().ok_or_else(missing)?;
        let stdout = process.stdout().take().ok_or_else(missing)?;
        let stderr = process.stderr().take().ok_or_else(missing)?;

        let table = Arc::new(Table::new(talk, options.longest_message));
        let (input, lines) = mpsc::channel(MOST_UNWRITTEN);
        let fate = Arc::new(Fate::default());
        let group = Group { process, table: Arc::clone(&table), is_gone: false };
        let keeper = Keeper {
            table: Arc::clone(&table),
            born,
            idle: options.idle,
            longest: options.longest_message,
            failures: failed.saturating_add(1),
            fate: Arc::clone(&fate),
            // The keeper answers questions that reach nobody, and must not keep the child's input open for that.
            replies: input.downgrade(),
        };
        let keeper = tokio::spawn(keeper.keep(group, stdin, lines, stdout, stderr)).abort_handle();
        let used = AtomicU64::new(born);
        Ok(Self { owner, session, table, input, used, fate, keeper })
    }

    /// Whether it has ended at once, like others before it, so that no other is started yet.
    pub(super) fn rests(&self) -> bool {
        self.fate.rests.load(Ordering::Acquire)
    }

    /// How many in a row have ended at once by now.
    pub(super) fn failed(&self) -> u32 {
        self.fate.failures.load(Ordering::Acquire)
    }
}

impl Drop for Child {
    fn drop(&mut self) {
        // One that ends already is let end in its own way.
        if !self.table.is_over() {
            self.keeper.abort();
        }
    }
}

/// The processes. However they are left, none of them lives on, and nobody waits for them.
struct Group {
    process: Box<dyn ChildWrapper>,
    table: Arc<Table>,
    is_gone: bool,
}

impl Group {
    /// Its first process has ended, and what that has said last was read. What it has started may live on and hold its
    /// output open.
    async fn has_ended(&mut self) {
        let _ = self.process.inner_mut().wait().await;
        tokio::time::sleep(GRACE).await;
    }

    /// Its input is closed by now. It gets a moment to end by itself, and then ends with all that it has started.
    async fn end(&mut self) {
        let _ = tokio::time::timeout(GRACE, self.process.inner_mut().wait()).await;
        let _ = self.process.start_kill();
        self.is_gone = tokio::time::timeout(GRACE, self.process.wait()).await.is_ok();
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        if !self.is_gone {
            let _ = self.process.start_kill();
        }
        self.table.end();
    }
}

struct Keeper {
    table: Arc<Table>,
    born: u64,
    idle: Duration,
    longest: usize,
    failures: u32,
    fate: Arc<Fate>,
    replies: mpsc::WeakSender<String>,
}

impl Keeper {
    async fn keep(
        self,
        mut group: Group,
        stdin: ChildStdin,
        lines: mpsc::Receiver<String>,
        stdout: impl AsyncRead + Unpin,
        stderr: impl AsyncRead + Unpin,
    ) {
        let failed = tokio::select! {
            () = self.read(stdout) => true,
            () = write(stdin, lines) => true,
            () = group.has_ended() => true,
            () = log::follow(stderr, self.born) => false,
            () = self.until_idle() => false,
            () = self.table.over.notified() => false,
        };
        let failures = if failed && !self.table.is_proven() { self.failures } else { 0 };
        self.fate.failures.store(failures, Ordering::Release);
        self.fate.rests.store(failures > 1, Ordering::Release);
        self.table.end();
        group.end().await;
        if failures > 1 {
            tracing::warn!(target: "handfast", child = self.born, "the child ends at once again and again");
            tokio::time::sleep(SHORTEST_REST.saturating_mul(1 << failures.min(16)).min(LONGEST_REST)).await;
            self.fate.rests.store(false, Ordering::Release);
        }
    }

    async fn until_idle(&self) {
        let table = &self.table;
        loop {
            tokio::select! {
                () = table.stirred.notified() => {}
                () = tokio::time::sleep(self.idle), if table.is_quiet() => {
                    if table.close_if_quiet() {
                        return;
                    }
                }
            }
        }
    }

    /// Reads until there is nothing more to read.
    async fn read(&self, stdout: impl AsyncRead + Unpin) {
        let (mut stdout, mut pen) = (BufReader::new(stdout), Pen::new("stdout", self.born));
        while let Ok(Some(line)) = lines::next(&mut stdout, self.longest).await {
            match line {
                Line::Whole(line) => self.hear(&line, &mut pen).await,
                Line::TooLong(skimmed) => {
                    pen.write(b"(a message that is too long)");
                    if let Some(number) = skimmed.answers().and_then(number) {
                        self.table.lose(number);
                    }
                }
            }
        }
    }

    async fn hear(&self, line: &[u8], pen: &mut Pen) {
        let text = std::str::from_utf8(line).map(super::message::one_line).unwrap_or_default();
        match Message::read(&text) {
            Some(message) => {
                if let (Some(reply), Some(replies)) = (self.table.hear(&message, &text), self.replies.upgrade()) {
                    // A child that asks much and reads nothing is not read either.
                    let _ = replies.send(reply).await;
                }
            }
            None if line.trim_ascii().is_empty() => {}
            // It may be half a message, with what is nobody's business in it.
            None if line.trim_ascii().starts_with(b"{") => pen.write(b"(what is no message)"),
            None => pen.write(line),
        }
    }
}

async fn write(mut stdin: ChildStdin, mut lines: mpsc::Receiver<String>) {
    while let Some(mut line) = lines.recv().await {
        line.push('\n');
        if stdin.write_all(line.as_bytes()).await.is_err() || stdin.flush().await.is_err() {
            // What it said last may still have to be read.
            tokio::time::sleep(GRACE).await;
            return;
        }
    }
    // Whoever let go of it says how it ends.
    std::future::pending().await
}

/// How many messages may wait until the child reads them.
const MOST_UNWRITTEN: usize = 16;
const GRACE: Duration = Duration::from_millis(500);
const SHORTEST_REST: Duration = Duration::from_millis(100);
const LONGEST_REST: Duration = Duration::from_secs(30);
