//! A handle on standard input: so that it stands in no shell history and in no list of processes. Only its digest is kept.

use std::io::{BufRead, Read};

use handfast::{Digest, Prefix, parse_handle};
use tokio::sync::oneshot;

use crate::output::Failure;

/// Reads one handle: a line, and nothing after it.
pub(super) async fn digest() -> Result<Digest, Failure> {
    let (tell, told) = oneshot::channel();
    // A thread of its own, which nobody waits for when a person ends the program instead.
    std::thread::spawn(move || tell.send(text()));
    let text = told.await.map_err(|_| Failure("standard input cannot be read".to_owned()))?;
    let text = text.map_err(|error| Failure(format!("standard input: {error}")))?;
    let handle = text.strip_suffix(b"\n").map_or(&*text, |line| line.strip_suffix(b"\r").unwrap_or(line));
    // The text is not repeated, whatever it is.
    of(handle).ok_or_else(|| {
        Failure("--handle-stdin: standard input must be one handle, as the server gave it, and nothing else".to_owned())
    })
}

fn text() -> std::io::Result<Vec<u8>> {
    let mut input = std::io::stdin().lock().take(LONGEST);
    let mut text = Vec::new();
    input.read_until(b'\n', &mut text)?;
    if !std::io::IsTerminal::is_terminal(&std::io::stdin()) {
        // A second line is no part of a handle, and is found out by that.
        input.read_to_end(&mut text)?;
    }
    Ok(text)
}

/// The digest of a handle whose prefix, if it has one, is what stands before its last 43 characters.
fn of(handle: &[u8]) -> Option<Digest> {
    if handle.len() == BODY {
        return parse_handle(handle, None);
    }
    let (prefix, _) = handle.split_at_checked(handle.len().checked_sub(BODY + 1)?)?;
    let prefix = Prefix::new(std::str::from_utf8(prefix).ok()?).ok()?;
    parse_handle(handle, Some(&prefix))
}

/// 32 bytes in base64url.
const BODY: usize = 43;
/// More than any handle has.
const LONGEST: u64 = 4096;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_handle_is_read_with_its_prefix_or_without() {
        let body = "A".repeat(BODY);

        assert!(of(body.as_bytes()).is_some());
        assert!(of(format!("bsk_{body}").as_bytes()).is_some());
        assert!(of(format!("a_b-c_{body}").as_bytes()).is_some());
        assert_ne!(of(body.as_bytes()), of(format!("bsk_{body}").as_bytes()), "another text is another handle");
    }

    #[test]
    fn nothing_else_is_one() {
        let body = "A".repeat(BODY);
        for other in [
            "",
            "_",
            &body[1..],
            &format!("_{body}"),
            &format!("BSK_{body}"),
            &format!("bsk{body}"),
            &format!("bsk_{body} "),
            &format!("bsk_{body}\nbsk_{body}"),
            &format!("bsk_{body}\0"),
            &format!("{}_{body}", "b".repeat(17)),
            &"A".repeat(4096),
        ] {
            assert_eq!(of(other.as_bytes()), None, "{other:?}");
        }
        assert_eq!(of(&[0xff; 50]), None);
    }
}
