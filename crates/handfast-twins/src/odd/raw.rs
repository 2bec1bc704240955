//! HTTP/1.1 by hand, as little of it as an odd server needs: one request to a connection.

use std::io;

use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
};

use crate::http::{BODY_LIMIT, Headers, Reply};

/// A request, read whole.
pub(super) struct Received {
    pub(super) method: String,
    pub(super) path: String,
    pub(super) headers: Headers,
    pub(super) body: Vec<u8>,
}

/// Reads one request; `None` when it is none, or too long.
pub(super) async fn read(socket: &mut TcpStream) -> io::Result<Option<Received>> {
    let mut bytes = Vec::new();
    let head = loop {
        if let Some(end) = bytes.windows(4).position(|window| window == b"\r\n\r\n") {
            break end;
        }
        if bytes.len() > HEAD_LIMIT || socket.read_buf(&mut bytes).await? == 0 {
            return Ok(None);
        }
    };
    let text = String::from_utf8_lossy(&bytes[..head]).into_owned();
    let mut lines = text.split("\r\n");
    let mut first = lines.next().unwrap_or_default().split(' ');
    let (Some(method), Some(path)) = (first.next(), first.next()) else { return Ok(None) };
    let headers = Headers(
        lines
            .filter_map(|line| line.split_once(':'))
            .map(|(name, value)| (name.to_ascii_lowercase(), value.trim().to_owned()))
            .collect(),
    );
    let length = headers.one("content-length").and_then(|length| length.parse::<usize>().ok()).unwrap_or(0);
    if length > BODY_LIMIT {
        return Ok(None);
    }
    let mut body = bytes.split_off(head + 4);
    while body.len() < length {
        if socket.read_buf(&mut body).await? == 0 {
            return Ok(None);
        }
    }
    Ok(Some(Received { method: method.to_owned(), path: path.to_owned(), headers, body }))
}

/// Writes one whole answer.
pub(super) async fn write(socket: &mut TcpStream, reply: &Reply) -> io::Result<()> {
    let mut head =
        format!("HTTP/1.1 {} Odd\r\nconnection: close\r\ncontent-length: {}\r\n", reply.status, reply.body.len());
    for (name, value) in &reply.headers {
        head.push_str(&format!("{name}: {value}\r\n"));
    }
    head.push_str("\r\n");
    socket.write_all(head.as_bytes()).await?;
    socket.write_all(&reply.body).await?;
    socket.shutdown().await
}

/// Opens an answer of unknown length.
pub(super) async fn open(socket: &mut TcpStream, kind: &str) -> io::Result<()> {
    let head =
        format!("HTTP/1.1 200 Odd\r\ncontent-type: {kind}\r\nconnection: close\r\ntransfer-encoding: chunked\r\n\r\n");
    socket.write_all(head.as_bytes()).await
}

/// Writes one piece of it.
pub(super) async fn piece(socket: &mut TcpStream, bytes: &[u8]) -> io::Result<()> {
    socket.write_all(format!("{:x}\r\n", bytes.len()).as_bytes()).await?;
    socket.write_all(bytes).await?;
    socket.write_all(b"\r\n").await
}

/// Ends it.
pub(super) async fn close(socket: &mut TcpStream) -> io::Result<()> {
    socket.write_all(b"0\r\n\r\n").await?;
    socket.shutdown().await
}

const HEAD_LIMIT: usize = 65_536;
