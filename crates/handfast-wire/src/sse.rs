//! Server-Sent Events, decoded as they arrive: any split, any of the three line ends, comments, several data lines,
//! a missing `event:` line, empty priming events. Bounded: an event longer than the limit is an error, not memory.

use thiserror::Error;

/// One dispatched event.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Event {
    /// The `event:` field; `None` when the line was missing (rmcp omits it).
    pub name: Option<String>,
    /// The `data:` lines joined by line feeds. Empty for a priming event, which carries no message.
    pub data: String,
    /// The `id:` field.
    pub id: Option<String>,
}

/// An event, or one line of it, grew past the limit.
#[derive(Debug, Error, PartialEq, Eq)]
#[error("an event of the stream is longer than {limit} bytes")]
pub struct TooLong {
    /// The limit, in bytes.
    pub limit: usize,
}

/// An incremental decoder.
#[derive(Debug)]
pub struct Decoder {
    limit: usize,
    line: Vec<u8>,
    event: Event,
    has_data: bool,
    after_return: bool,
    at_start: bool,
}

impl Decoder {
    /// A decoder that refuses events longer than `limit` bytes.
    pub fn new(limit: usize) -> Self {
        Self { limit, line: Vec::new(), event: Event::default(), has_data: false, after_return: false, at_start: true }
    }

    /// Takes the next bytes and returns the events that they complete.
    ///
    /// # Errors
    /// [`TooLong`] when an event exceeds the limit; the decoder is of no use after that.
    pub fn push(&mut self, bytes: &[u8]) -> Result<Vec<Event>, TooLong> {
        let mut events = Vec::new();
        for &byte in bytes {
            // "CR LF", "LF" and "CR" each end a line; the LF of a CR LF pair ends none of its own.
            let closes_pair = std::mem::take(&mut self.after_return) && byte == b'\n';
            match byte {
                b'\n' if closes_pair => {}
                b'\n' | b'\r' => {
                    self.after_return = byte == b'\r';
                    events.extend(self.end_line());
                }
                _ => {
                    if self.line.len() + self.event.data.len() >= self.limit {
                        return Err(TooLong { limit: self.limit });
                    }
                    self.line.push(byte);
                }
            }
        }
        Ok(events)
    }

    fn end_line(&mut self) -> Option<Event> {
        let bytes = std::mem::take(&mut self.line);
        let text = String::from_utf8_lossy(&bytes);
        let mut line: &str = &text;
        if std::mem::take(&mut self.at_start) {
            line = line.strip_prefix('\u{feff}').unwrap_or(line);
        }
        if line.is_empty() {
            let event = std::mem::take(&mut self.event);
            return std::mem::take(&mut self.has_data).then_some(event);
        }
        let (field, value) = line.split_once(':').unwrap_or((line, ""));
        let value = value.strip_prefix(' ').unwrap_or(value);
        match field {
            "data" => {
                if std::mem::replace(&mut self.has_data, true) {
                    self.event.data.push('\n');
                }
                self.event.data.push_str(value);
            }
            "event" => self.event.name = Some(value.to_owned()),
            "id" if !value.contains('\0') => self.event.id = Some(value.to_owned()),
            // A comment, `retry`, or a field that nobody knows.
            _ => {}
        }
        None
    }
}

/// Writes one event, and never more than one: line ends of any kind in the data become line feeds, and a name or an id
/// ends at its first line end.
pub fn encode(event: &Event) -> String {
    let one_line = |text: &str| text.split(['\r', '\n']).next().unwrap_or_default().to_owned();
    let mut text = String::new();
    if let Some(name) = &event.name {
        text.push_str(&format!("event: {}\n", one_line(name)));
    }
    if let Some(id) = &event.id {
        text.push_str(&format!("id: {}\n", one_line(id)));
    }
    for line in event.data.replace("\r\n", "\n").split(['\r', '\n']) {
        text.push_str(&format!("data: {line}\n"));
    }
    text.push('\n');
    text
}
