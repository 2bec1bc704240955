//! Lines of a child's output, each within a bound. Of a longer one only is kept whose answer it would have been.

use tokio::io::{AsyncBufRead, AsyncBufReadExt};

/// A line, without its end.
pub(super) enum Line {
    Whole(Vec<u8>),
    /// Longer than the bound.
    TooLong(Skimmed),
}

/// What a message is called at its outermost level.
#[derive(Debug, Default)]
pub(super) struct Skimmed {
    depth: usize,
    string: bool,
    escaped: bool,
    /// What is written at the outermost level since the last comma or colon there, as far as it matters.
    word: Vec<u8>,
    name: Vec<u8>,
    id: Vec<u8>,
    is_call: bool,
}

/// The next line; `None` at the end.
pub(super) async fn next(output: &mut (impl AsyncBufRead + Unpin), longest: usize) -> std::io::Result<Option<Line>> {
    let (mut line, mut skimmed) = (Vec::new(), None::<Skimmed>);
    loop {
        let chunk = output.fill_buf().await?;
        if chunk.is_empty() {
            return Ok(match skimmed {
                Some(skimmed) => Some(Line::TooLong(skimmed)),
                None => (!line.is_empty()).then_some(Line::Whole(line)),
            });
        }
        let end = chunk.iter().position(|byte| *byte == b'\n');
        let part = &chunk[..end.unwrap_or(chunk.len())];
        if skimmed.is_none() && line.len() + part.len() > longest {
            let mut begun = Skimmed::default();
            begun.read(&line);
            line = Vec::new();
            skimmed = Some(begun);
        }
        match &mut skimmed {
            Some(skimmed) => skimmed.read(part),
            None => line.extend_from_slice(part),
        }
        let used = part.len() + usize::from(end.is_some());
        output.consume(used);
        if end.is_some() {
            return Ok(Some(skimmed.map_or_else(|| Line::Whole(line), Line::TooLong)));
        }
    }
}

impl Skimmed {
    /// The id that it answers, as it is written; `None` where it is no answer.
    pub(super) fn answers(&self) -> Option<&str> {
        (!self.is_call).then(|| std::str::from_utf8(&self.id).ok()).flatten()
    }

    fn read(&mut self, part: &[u8]) {
        part.iter().for_each(|byte| self.step(*byte));
    }

    fn step(&mut self, byte: u8) {
        let outermost = self.depth == 1;
        if self.string {
            if outermost && self.word.len() < LONGEST_WORD {
                self.word.push(byte);
            }
            match byte {
                _ if self.escaped => self.escaped = false,
                b'\\' => self.escaped = true,
                b'"' => self.string = false,
                _ => {}
            }
            return;
        }
        match byte {
            b'{' | b'[' => self.depth += 1,
            b':' if outermost => {
                self.name = std::mem::take(&mut self.word);
                self.is_call |= self.name == b"\"method\"";
            }
            b',' | b'}' if outermost => {
                let word = std::mem::take(&mut self.word);
                if self.name == b"\"id\"" {
                    self.id = word;
                }
                self.name.clear();
            }
            _ if byte.is_ascii_whitespace() => {}
            _ => {
                self.string = byte == b'"';
                if outermost && self.word.len() < LONGEST_WORD {
                    self.word.push(byte);
                }
            }
        }
        if matches!(byte, b'}' | b']') {
            self.depth = self.depth.saturating_sub(1);
        }
    }
}

/// Longer ids and names are none that matter.
const LONGEST_WORD: usize = 32;

#[cfg(test)]
mod tests {
    use super::*;

    fn answers(text: &str) -> Option<String> {
        let mut skimmed = Skimmed::default();
        skimmed.read(text.as_bytes());
        skimmed.answers().map(str::to_owned)
    }

    #[test]
    fn whom_a_long_line_answers_is_seen_wherever_it_says_so() {
        assert_eq!(answers(r#"{"jsonrpc":"2.0","id":7,"result":{"id":8}}"#).as_deref(), Some("7"));
        assert_eq!(
            answers(r#"{"result":{"a":["\"id\":9,",{"id":8}]},"jsonrpc":"2.0", "id" : 7 }"#).as_deref(),
            Some("7")
        );
        assert_eq!(answers(r#"{"x":"},\"id\":9,{","id":7,"error":{}}"#).as_deref(), Some("7"));
        assert_eq!(answers(r#"{"id":7,"method":"x","params":{}}"#), None);
        assert_eq!(answers(r#"{"params":{},"method":"x"}"#), None);
    }
}
