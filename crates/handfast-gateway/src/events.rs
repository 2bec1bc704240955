//! A stream of events, rewritten event by event as it arrives: nothing waits for the end of the stream, and no more than one
//! event is held.

use std::collections::VecDeque;

use axum_core::body::Body;
use bytes::{Bytes, BytesMut};
use futures_util::stream;
use http_body_util::BodyExt;

use crate::{
    gateway::{Answering, is_answer},
    respond::Rejection,
    tally,
};

/// The stream as the client is to read it.
pub(crate) fn body(theirs: Body, answering: Answering) -> Body {
    let stream =
        Stream { theirs, answering, blocks: Blocks::default(), ready: VecDeque::new(), answered: false, over: false };
    Body::from_stream(stream::unfold(stream, |mut stream| async move {
        let next = stream.next().await?;
        Some((Ok::<_, std::convert::Infallible>(next), stream))
    }))
}

struct Stream {
    theirs: Body,
    answering: Answering,
    blocks: Blocks,
    ready: VecDeque<Bytes>,
    answered: bool,
    over: bool,
}

impl Stream {
    async fn next(&mut self) -> Option<Bytes> {
        loop {
            if let Some(bytes) = self.ready.pop_front() {
                return Some(bytes);
            }
            if self.over {
                return None;
            }
            match self.theirs.frame().await {
                Some(Ok(frame)) => {
                    let Ok(data) = frame.into_data() else { continue };
                    self.take(&data).await;
                }
                // Broken off, or over: what was not a whole event is none. A CR at the very end is a line end.
                end => {
                    if end.is_none() && self.blocks.held.ends_with(b"\r") {
                        self.take(b"\n").await;
                    }
                    if !self.over && !self.answered && self.answering.is_owed() {
                        self.stop(&Rejection::Upstream("the server behind broke off before it had answered"));
                    }
                    self.over = true;
                }
            }
        }
    }

    async fn take(&mut self, data: &[u8]) {
        for block in self.blocks.push(data) {
            match self.event(&block).await {
                Ok(bytes) => self.ready.push_back(bytes),
                Err(rejection) => return self.stop(&rejection),
            }
        }
        if self.blocks.held() > self.answering.longest() {
            self.stop(&Rejection::Upstream("the server's answer is too long"));
        }
    }

    /// Says why the stream ends here.
    fn stop(&mut self, rejection: &Rejection) {
        tally::stopped();
        let told = self.answering.instead(rejection);
        self.ready.push_back(Bytes::from(format!("data: {told}\n\n")));
        self.over = true;
        self.theirs = Body::empty();
    }

    async fn event(&mut self, block: &[u8]) -> Result<Bytes, Rejection> {
        let unreadable = || Rejection::Upstream("the server's answer cannot be read");
        let text = std::str::from_utf8(block).map_err(|_| unreadable())?;
        // A reader takes the mark away that may stand before everything, and what comes after it is a field.
        let lines: Vec<&str> = text.trim_start_matches('\u{feff}').split(['\n', '\r']).collect();
        let values: Vec<&str> = lines.iter().filter(|line| field(line) == "data").map(|line| value(line)).collect();
        let message = values.join("\n");
        let told = match message.trim() {
            "" => message.clone(),
            _ => {
                let told = self.answering.message(&message).await?;
                self.answered = self.answered || is_answer(&told);
                tally::event();
                told
            }
        };
        let kept = |line: &&&str| ["id", "event", "retry"].contains(&field(line));
        if lines.iter().filter(kept).any(|line| self.answering.leaks(line)) {
            return Err(Rejection::Upstream("the server's answer could not be made safe"));
        }
        let known = |line: &&str| line.is_empty() || KNOWN.contains(line) || KNOWN.contains(&field(line));
        if told == message && !text.starts_with('\u{feff}') && lines.iter().all(known) {
            return Ok(Bytes::copy_from_slice(block));
        }
        // What no reader reads is not told either: of a comment only that there was one.
        let rest = |line: &&str| match *line {
            line if line.starts_with(':') => Some(":".to_owned()),
            line => Some(line.to_owned()).filter(|line| kept(&&line.as_str())),
        };
        let mut event: Vec<String> = lines.iter().filter_map(rest).collect();
        if !values.is_empty() {
            event.extend(told.split('\n').map(|line| format!("data: {line}")));
        }
        Ok(Bytes::from(format!("{}\n\n", event.join("\n"))))
    }
}

/// The name of the field that a line holds; empty for a comment.
fn field(line: &str) -> &str {
    line.split_once(':').map_or(line, |(name, _)| name)
}

/// What may stand in an event that is passed on as it is; of comments the empty one.
const KNOWN: [&str; 5] = ["data", "id", "event", "retry", ":"];

fn value(line: &str) -> &str {
    let value = line.split_once(':').map_or("", |(_, value)| value);
    value.strip_prefix(' ').unwrap_or(value)
}

/// Cuts bytes into events, at empty lines.
#[derive(Default)]
struct Blocks {
    held: BytesMut,
    /// How much of it has been searched.
    seen: usize,
}

impl Blocks {
    fn held(&self) -> usize {
        self.held.len()
    }

    /// The events that these bytes complete, each with the empty line that ends it.
    fn push(&mut self, bytes: &[u8]) -> Vec<Bytes> {
        self.held.extend_from_slice(bytes);
        let mut blocks = Vec::new();
        while let Some(end) = self.end() {
            blocks.push(self.held.split_to(end).freeze());
            self.seen = 0;
        }
        // A line end may be cut in the middle.
        self.seen = self.held.len().saturating_sub(3);
        blocks
    }

    /// Where the first event ends: after two line ends, each of them LF, CR or CR LF.
    fn end(&self) -> Option<usize> {
        let bytes = &self.held[..];
        let line_end = |at: usize| match (bytes.get(at), bytes.get(at + 1)) {
            (Some(b'\r'), Some(b'\n')) => Some(2),
            // Whether a line feed comes after it is not known yet.
            (Some(b'\r'), None) => None,
            (Some(b'\r' | b'\n'), _) => Some(1),
            _ => None,
        };
        let mut at = self.seen;
        while at < bytes.len() {
            match line_end(at) {
                Some(first) => match line_end(at + first) {
                    Some(second) => return Some(at + first + second),
                    None => at += first,
                },
                None => at += 1,
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::Blocks;

    proptest! {
        #[test]
        fn events_are_the_same_however_they_arrive(
            ends in prop::collection::vec(prop::sample::select(vec!["\n", "\r\n"]), 1..6),
            cuts in prop::collection::vec(1_usize..9, 1..40),
        ) {
            let stream: String =
                ends.iter().enumerate().map(|(n, end)| format!("id: {n}{end}data: {{\"n\":{n}}}{end}{end}")).collect();
            let (mut blocks, mut found, mut rest) = (Blocks::default(), Vec::new(), stream.as_bytes());
            for cut in cuts.iter().cycle() {
                if rest.is_empty() {
                    break;
                }
                let (now, later) = rest.split_at((*cut).min(rest.len()));
                found.extend(blocks.push(now));
                rest = later;
            }
            prop_assert_eq!(found.len(), ends.len());
            prop_assert_eq!(found.concat(), stream.into_bytes());
            prop_assert_eq!(blocks.held(), 0);
        }
    }
}
