//! A server between the binary and a twin that changes what passes through, or answers in its own words.
#![allow(dead_code, reason = "each test file uses its part of this")]

use std::{
    io::{Read, Write},
    net::{TcpListener, TcpStream},
};

/// A request as it came: head and body.
pub(crate) struct Received {
    pub(crate) head: String,
    pub(crate) body: String,
}

/// What becomes of a request.
pub(crate) enum Answer {
    /// The twin's answer, changed in this way.
    Changed(fn(&str) -> String),
    /// A status and a body.
    Own(u16, String),
}

/// Starts one; it ends with the test's process. Gives its URL.
pub(crate) fn relay(upstream: &str, answer: impl Fn(&Received) -> Answer + Send + 'static) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let url = format!("http://{}/mcp", listener.local_addr().expect("bound"));
    let authority = upstream.trim_start_matches("http://").trim_end_matches("/mcp").to_owned();
    std::thread::spawn(move || {
        for mut socket in listener.incoming().flatten() {
            let Some(received) = read(&mut socket) else { continue };
            let (status, body) = match answer(&received) {
                Answer::Own(status, body) => (status, body),
                Answer::Changed(change) => {
                    let (status, body) = asked(&authority, &received);
                    (status, change(&body))
                }
            };
            let length = body.len();
            let head = format!("HTTP/1.1 {status} so\r\ncontent-type: application/json\r\ncontent-length: {length}");
            // A client that went away is no failure of the test.
            let _ = socket.write_all(format!("{head}\r\nconnection: close\r\n\r\n{body}").as_bytes());
        }
    });
    url
}

fn read(socket: &mut TcpStream) -> Option<Received> {
    let (mut bytes, mut buffer) = (Vec::new(), [0; 8192]);
    loop {
        if let Some(end) = bytes.windows(4).position(|window| window == b"\r\n\r\n") {
            let head = String::from_utf8_lossy(&bytes[..end]).into_owned();
            let length = head.lines().find_map(|line| {
                let (name, value) = line.split_once(": ")?;
                name.eq_ignore_ascii_case("content-length").then(|| value.trim().parse::<usize>().ok())?
            });
            if bytes.len() >= end + 4 + length.unwrap_or(0) {
                return Some(Received { head, body: String::from_utf8_lossy(&bytes[end + 4..]).into_owned() });
            }
        }
        match socket.read(&mut buffer) {
            Ok(count) if count > 0 => bytes.extend_from_slice(&buffer[..count]),
            _ => return None,
        }
    }
}

/// The twin's status and body.
fn asked(authority: &str, received: &Received) -> (u16, String) {
    let mut twin = TcpStream::connect(authority).expect("the twin listens");
    let head: Vec<&str> =
        received.head.lines().filter(|line| !line.to_ascii_lowercase().starts_with("connection:")).collect();
    let request = format!("{}\r\nconnection: close\r\n\r\n{}", head.join("\r\n"), received.body);
    twin.write_all(request.as_bytes()).expect("the twin reads");
    let mut reply = String::new();
    twin.read_to_string(&mut reply).expect("the twin answers in text");
    let (head, body) = reply.split_once("\r\n\r\n").expect("a whole head");
    let status = head.split(' ').nth(1).and_then(|code| code.parse().ok()).expect("a status");
    (status, body.to_owned())
}
