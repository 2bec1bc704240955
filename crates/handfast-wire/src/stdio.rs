//! Newline-delimited messages of the stdio transport, decoded as they arrive. Lines that are no message (servers and
//! their launchers print there) are noise: handed back as such, never an error. Bounded: a line over the limit is
//! dropped while it is read.

use crate::message::{self, Message};

/// One line of a server's standard output.
#[derive(Debug, Clone, PartialEq)]
pub enum Line {
    /// A JSON-RPC message.
    Message(Message),
    /// Anything else, shortened to 200 characters.
    Noise(String),
    /// A line longer than the limit, of which nothing was kept.
    TooLong,
}

/// An incremental decoder.
#[derive(Debug)]
pub struct Decoder {
    limit: usize,
    line: Vec<u8>,
    overflow: bool,
}

impl Decoder {
    /// A decoder that drops lines longer than `limit` bytes.
    pub fn new(limit: usize) -> Self {
        Self { limit, line: Vec::new(), overflow: false }
    }

    /// Takes the next bytes and returns the lines that they complete. Empty lines are not lines.
    pub fn push(&mut self, bytes: &[u8]) -> Vec<Line> {
        let mut lines = Vec::new();
        let mut rest = bytes;
        while let Some(end) = rest.iter().position(|&byte| byte == b'\n') {
            self.keep(&rest[..end]);
            rest = &rest[end + 1..];
            lines.extend(self.end_line());
        }
        self.keep(rest);
        lines
    }

    /// The line that the end of the stream completes, if any.
    pub fn finish(&mut self) -> Option<Line> {
        self.end_line()
    }

    fn keep(&mut self, bytes: &[u8]) {
        if self.overflow || self.line.len() + bytes.len() > self.limit {
            self.overflow = true;
            self.line = Vec::new();
        } else {
            self.line.extend_from_slice(bytes);
        }
    }

    fn end_line(&mut self) -> Option<Line> {
        let line = std::mem::take(&mut self.line);
        if std::mem::take(&mut self.overflow) {
            return Some(Line::TooLong);
        }
        let trimmed = line.trim_ascii();
        if trimmed.is_empty() {
            return None;
        }
        Some(match message::parse(trimmed) {
            Ok(message) => Line::Message(message),
            Err(_) => Line::Noise(String::from_utf8_lossy(trimmed).chars().take(NOISE_SHOWN).collect()),
        })
    }
}

const NOISE_SHOWN: usize = 200;
