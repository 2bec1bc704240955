//! stdio: a child process that speaks one JSON message a line. Its whole process tree ends with the run.

use std::{
    collections::VecDeque,
    process::Stdio as Piped,
    sync::{Arc, Mutex},
    time::Duration,
};

use handfast_wire::{
    message::{Message, Notification, Request, Response, RpcError},
    meta,
    stdio::{Decoder, Line},
};
use process_wrap::tokio::{ChildWrapper, CommandWrap, KillOnDrop, ProcessGroup};
use serde_json::{Value, json};
use tokio::{
    io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader},
    process::{ChildStderr, ChildStdin, ChildStdout},
    task::JoinHandle,
};

use super::{
    Body, Fault, Heard, Reply,
    http::answered,
    tree::{self, Process},
};

/// Options of the stdio transport.
#[derive(Debug, Clone, Default)]
pub struct StdioOptions {
    /// Environment variables for the child, beside the inherited ones.
    pub environment: Vec<(String, String)>,
    /// Variables that the child does not inherit: those that a profile takes credentials from.
    pub hidden: Vec<String>,
}

/// A running child.
#[derive(Debug)]
pub(super) struct Stdio {
    program: String,
    child: Box<dyn ChildWrapper>,
    input: Option<ChildStdin>,
    output: ChildStdout,
    decoder: Decoder,
    max_body: usize,
    waiting: VecDeque<Line>,
    noise: Option<(String, usize)>,
    errors: Arc<Mutex<VecDeque<String>>>,
    /// Reads the child's standard error.
    listener: Option<JoinHandle<()>>,
    /// What the child started, as far as it was seen before the end.
    descendants: Vec<Process>,
}

impl Stdio {
    /// Starts the program, in a process group of its own.
    pub(super) fn start(
        program: &str,
        arguments: &[String],
        options: &StdioOptions,
        max_body: usize,
    ) -> std::io::Result<Self> {
        let mut command = CommandWrap::with_new(program, |command| {
            command.args(arguments).stdin(Piped::piped()).stdout(Piped::piped()).stderr(Piped::piped());
            // The credentials of both users are ours; the server learns only what a call carries.
            for secret in NOT_INHERITED.into_iter().chain(options.hidden.iter().map(String::as_str)) {
                command.env_remove(secret);
            }
            command.envs(options.environment.iter().map(|(name, value)| (name, value)));
        });
        command.wrap(ProcessGroup::leader()).wrap(KillOnDrop);
        let mut child = command.spawn()?;
        let missing = || std::io::Error::other("the child has no pipes");
        let input = child.stdin().take().ok_or_else(missing)?;
        let output = child.stdout().take().ok_or_else(missing)?;
        let errors = Arc::new(Mutex::new(VecDeque::new()));
        let listener = child.stderr().take().map(|stderr| tokio::spawn(keep_tail(stderr, Arc::clone(&errors))));
        Ok(Self {
            program: program.to_owned(),
            child,
            input: Some(input),
            output,
            decoder: Decoder::new(max_body),
            max_body,
            waiting: VecDeque::new(),
            noise: None,
            errors,
            listener,
            descendants: Vec::new(),
        })
    }

    pub(super) fn shown(&self) -> String {
        self.program.clone()
    }

    pub(super) fn noise(&self) -> Option<(String, usize)> {
        self.noise.clone()
    }

    /// Why the child is gone, with what it said last. Its standard error is read by a task of its own: let that catch up.
    async fn obituary(&mut self, reason: &str) -> String {
        let ended = tokio::time::timeout(GRACE, self.child.inner_mut().wait()).await;
        if let Some(listener) = self.listener.take() {
            let _ = tokio::time::timeout(CATCHING_UP, listener).await;
        }
        let status = ended.ok().and_then(Result::ok).map(|status| format!(", {status}")).unwrap_or_default();
        let words = self.last_words();
        let words = if words.is_empty() { String::new() } else { format!("; its last words: {words}") };
        format!("{reason}{status}{words}")
    }

    /// The last lines of the child's standard error, for messages to a person.
    fn last_words(&self) -> String {
        let lines = self.errors.lock().map(|lines| lines.iter().cloned().collect::<Vec<_>>()).unwrap_or_default();
        lines.join(" | ")
    }

    /// Sends one request and waits for the answer with its id; answers to earlier requests may come in between.
    pub(super) async fn send(&mut self, request: &Request, timeout: Duration) -> Reply {
        let mut heard = Heard::default();
        // What still waits was told before this request.
        let mut older = self.waiting.len();
        let exchange = async {
            let line = format!("{}\n", request.to_value());
            if let Err(fault) = self.write(line.as_bytes()).await {
                return Body::Fault(fault);
            }
            loop {
                let line = self.next_line().await;
                if let (Ok(Line::Message(message)), 0) = (&line, older) {
                    heard.note(message);
                }
                older = older.saturating_sub(1);
                match line {
                    Err(fault) => return Body::Fault(fault),
                    Ok(Line::Message(Message::Response(answer))) if answer.id.as_ref() == Some(&request.id) => {
                        return answered(answer);
                    }
                    Ok(Line::Message(Message::Response(answer))) if answer.id.is_none() => return answered(answer),
                    Ok(Line::Message(Message::Request(question))) => {
                        let reply = format!("{}\n", answer_for(&question).to_value());
                        if let Err(fault) = self.write(reply.as_bytes()).await {
                            return Body::Fault(fault);
                        }
                    }
                    Ok(Line::Message(_)) => {}
                    Ok(Line::Noise(text)) => self.hear(text),
                    Ok(Line::TooLong) => return Body::Fault(Fault::TooLarge(self.max_body)),
                }
            }
        };
        let body = match tokio::time::timeout(timeout, exchange).await {
            Ok(Body::Fault(Fault::Closed(reason))) => Body::Fault(Fault::Unreachable(self.obituary(&reason).await)),
            Ok(body) => body,
            Err(_) => Body::Fault(Fault::TimedOut(timeout)),
        };
        Reply { heard: heard.0, ..Reply::new(None, body) }
    }

    /// Sends a notification.
    pub(super) async fn notify(&mut self, notification: &Notification) -> Result<(), Fault> {
        let line = format!("{}\n", notification.to_value());
        self.write(line.as_bytes()).await
    }

    /// Writes, and keeps reading meanwhile: a child that cannot get rid of its output does not read its input.
    async fn write(&mut self, bytes: &[u8]) -> Result<(), Fault> {
        let Some(input) = self.input.as_mut() else { return Err(Fault::Closed("already closed".to_owned())) };
        let writing = async {
            input.write_all(bytes).await?;
            input.flush().await
        };
        tokio::pin!(writing);
        let mut buffer = [0u8; 8192];
        loop {
            tokio::select! {
                biased;
                written = &mut writing => {
                    return written.map_err(|error| Fault::Closed(error.to_string()));
                }
                read = self.output.read(&mut buffer) => match read {
                    Ok(0) | Err(_) => return Err(Fault::Closed("the process closed its output".to_owned())),
                    Ok(count) => self.waiting.extend(self.decoder.push(&buffer[..count])),
                },
            }
        }
    }

    async fn next_line(&mut self) -> Result<Line, Fault> {
        let mut buffer = [0u8; 8192];
        loop {
            if let Some(line) = self.waiting.pop_front() {
                return Ok(line);
            }
            match self.output.read(&mut buffer).await {
                Ok(0) => match self.decoder.finish() {
                    Some(line) => return Ok(line),
                    None => return Err(Fault::Closed("the process closed its output".to_owned())),
                },
                Ok(count) => self.waiting.extend(self.decoder.push(&buffer[..count])),
                Err(error) => return Err(Fault::Closed(error.to_string())),
            }
        }
    }

    fn hear(&mut self, text: String) {
        match &mut self.noise {
            Some((_, count)) => *count += 1,
            None => self.noise = Some((text, 1)),
        }
    }

    /// Closes the child's input, gives it a moment, then ends its whole process group.
    pub(super) async fn close(mut self) {
        // While their parents live: an orphan no longer tells whose it was.
        self.descendants = self.child.id().map(tree::descendants).unwrap_or_default();
        self.input = None;
        if tokio::time::timeout(GRACE, self.drained_and_gone()).await.is_err() {
            let _ = self.child.signal(SIGTERM);
            let _ = tokio::time::timeout(GRACE, self.drained_and_gone()).await;
        }
        // Also where the leader is gone: what it started may live on in its group.
        self.kill();
        let _ = tokio::time::timeout(GRACE, self.child.wait()).await;
    }

    fn kill(&mut self) {
        // Also what was started since the end was announced, while its parent still lives.
        self.descendants.extend(self.child.id().map(tree::descendants).unwrap_or_default());
        let _ = self.child.start_kill();
        tree::end(&self.descendants);
    }

    async fn drained_and_gone(&mut self) {
        let mut buffer = [0u8; 8192];
        while matches!(self.output.read(&mut buffer).await, Ok(count) if count > 0) {}
        let _ = self.child.inner_mut().wait().await;
    }
}

/// However a run ends, nothing that it started lives on.
impl Drop for Stdio {
    fn drop(&mut self) {
        self.kill();
    }
}

/// What a client that declared nothing answers to a server's own request.
fn answer_for(question: &Request) -> Response {
    let outcome = match question.method.as_str() {
        "ping" => Ok(json!({})),
        "roots/list" => Ok(json!({"roots": []})),
        _ => Err(RpcError { code: meta::METHOD_NOT_FOUND, message: "not supported".to_owned(), data: None::<Value> }),
    };
    Response { id: Some(question.id.clone()), outcome }
}

async fn keep_tail(stderr: ChildStderr, tail: Arc<Mutex<VecDeque<String>>>) {
    let mut reader = BufReader::new(stderr).take(u64::MAX);
    let mut line = Vec::new();
    loop {
        line.clear();
        reader.set_limit(LONGEST_ERROR_LINE);
        match reader.read_until(b'\n', &mut line).await {
            Ok(0) | Err(_) => return,
            Ok(_) => {}
        }
        let text = String::from_utf8_lossy(line.trim_ascii()).into_owned();
        if let (false, Ok(mut lines)) = (text.is_empty(), tail.lock()) {
            if lines.len() == TAIL_LINES {
                lines.pop_front();
            }
            lines.push_back(text);
        }
    }
}

const NOT_INHERITED: [&str; 4] =
    ["HANDFAST_IDENTITY_A", "HANDFAST_IDENTITY_B", "CXG_MCP_IDENTITY_A", "CXG_MCP_IDENTITY_B"];
const TAIL_LINES: usize = 8;
const LONGEST_ERROR_LINE: u64 = 2048;
const CATCHING_UP: Duration = Duration::from_millis(200);
const GRACE: Duration = Duration::from_millis(500);
const SIGTERM: i32 = 15;
