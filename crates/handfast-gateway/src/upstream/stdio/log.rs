//! What a child says beside its messages, for the log: printable, short, and not too much of it.

use std::time::Duration;

use futures_util::FutureExt;
use handfast_wire::text::is_printable;
use tokio::{
    io::{AsyncRead, BufReader},
    time::{Interval, MissedTickBehavior},
};

use super::lines::{self, Line};

/// Writes to the log, so many lines a second.
pub(super) struct Pen {
    what: &'static str,
    child: u64,
    second: Interval,
    left: usize,
    left_out: usize,
}

impl Pen {
    pub(super) fn new(what: &'static str, child: u64) -> Self {
        let mut second = tokio::time::interval(Duration::from_secs(1));
        second.set_missed_tick_behavior(MissedTickBehavior::Skip);
        Self { what, child, second, left: 0, left_out: 0 }
    }

    pub(super) fn write(&mut self, text: &[u8]) {
        if self.second.tick().now_or_never().is_some() {
            self.left = MOST_LINES;
            if std::mem::take(&mut self.left_out) > 0 {
                tracing::info!(target: "handfast", child = self.child, "{}: lines were left out here", self.what);
            }
        }
        if self.left == 0 {
            self.left_out += 1;
            return;
        }
        self.left -= 1;
        tracing::info!(target: "handfast", child = self.child, "{}: {}", self.what, shown(text));
    }
}

/// A child's standard error, for as long as the child lives: to close it is not to end.
pub(super) async fn follow(errors: impl AsyncRead + Unpin, child: u64) {
    let (mut errors, mut pen) = (BufReader::new(errors), Pen::new("stderr", child));
    while let Ok(Some(line)) = lines::next(&mut errors, LONGEST_READ).await {
        match line {
            Line::Whole(line) => pen.write(&line),
            Line::TooLong(_) => pen.write(b"(a line that is too long)"),
        }
    }
    std::future::pending().await
}

fn shown(text: &[u8]) -> String {
    String::from_utf8_lossy(text).trim().chars().filter(|c| is_printable(*c)).take(LONGEST_SHOWN).collect()
}

const MOST_LINES: usize = 50;
const LONGEST_SHOWN: usize = 2_000;
const LONGEST_READ: usize = 64 * 1024;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_shown_is_printable_and_short() {
        assert_eq!(shown("\u{1b}[31mred\u{202e}\r".as_bytes()), "[31mred");
        assert_eq!(shown(&[b'a'; 5_000]).len(), LONGEST_SHOWN);
    }

    #[tokio::test]
    async fn a_flood_is_not_written_down() {
        let mut pen = Pen::new("stderr", 1);

        (0..10_000).for_each(|_| pen.write(b"again"));

        assert!(pen.left_out > 9_000, "{}", pen.left_out);
    }
}
