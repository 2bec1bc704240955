//! A twin on standard input and output: the same bodies, one to a line, no headers.

use std::{io, time::Duration};

use handfast_wire::{
    message::{Message, Request, Response, RpcError},
    meta,
    stdio::{Decoder, Line},
};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};

use crate::{
    caller::{Principal, Shown},
    conform,
    flaws::Twin,
    http::{BODY_LIMIT, Host},
    legacy::{self, Session},
    server::Server,
    sessions::Open,
};

/// Serves a twin until its input ends.
///
/// # Errors
/// When input or output fail.
pub async fn serve_stdio<R, W>(twin: &'static Twin, input: R, output: W) -> io::Result<()>
where
    R: AsyncRead + Unpin,
    W: AsyncWrite + Unpin,
{
    let host = twin.host();
    let manner = host.modern().map_or(crate::manner::Manner::PLAIN, Server::manner);
    if manner.slow_start {
        tokio::time::sleep(SLOW_START).await;
    }
    let mut pipe = Pipe {
        input,
        output,
        decoder: Decoder::new(BODY_LIMIT),
        session: Session::default(),
        kept: Open::of(Principal::local()),
    };
    if manner.noisy { noisy(&mut pipe, &host).await } else { orderly(&mut pipe, &host).await }
}

async fn orderly<R, W>(pipe: &mut Pipe<R, W>, host: &Host) -> io::Result<()>
where
    R: AsyncRead + Unpin,
    W: AsyncWrite + Unpin,
{
    while let Some(lines) = pipe.lines().await? {
        for line in lines {
            pipe.reply(host, line).await?;
        }
    }
    Ok(())
}

/// Talks besides the protocol, and answers whatever arrived together in reverse.
async fn noisy<R, W>(pipe: &mut Pipe<R, W>, host: &Host) -> io::Result<()>
where
    R: AsyncRead + Unpin,
    W: AsyncWrite + Unpin,
{
    pipe.write("workspaces: listening on standard input").await?;
    while let Some(mut lines) = pipe.lines().await? {
        while let Ok(more) = tokio::time::timeout(GATHER, pipe.lines()).await {
            match more? {
                Some(more) => lines.extend(more),
                None => break,
            }
        }
        for line in lines.into_iter().rev() {
            pipe.write("[info] handling a line {not json").await?;
            pipe.reply(host, line).await?;
            pipe.write("").await?;
            pipe.write("\"done\"").await?;
        }
    }
    Ok(())
}

struct Pipe<R, W> {
    input: R,
    output: W,
    decoder: Decoder,
    session: Session,
    /// What a twin with sessions keeps here.
    kept: Open,
}

impl<R: AsyncRead + Unpin, W: AsyncWrite + Unpin> Pipe<R, W> {
    /// The next lines, none when the input has ended. Safe to abandon: bytes are read whole or not at all.
    async fn lines(&mut self) -> io::Result<Option<Vec<Line>>> {
        let mut buffer = [0_u8; 8192];
        loop {
            let count = self.input.read(&mut buffer).await?;
            if count == 0 {
                return Ok(self.decoder.finish().map(|line| vec![line]));
            }
            let lines = self.decoder.push(&buffer[..count]);
            if !lines.is_empty() {
                return Ok(Some(lines));
            }
        }
    }

    async fn reply(&mut self, host: &Host, line: Line) -> io::Result<()> {
        let response = match line {
            Line::Message(Message::Request(request)) => {
                let response = self.answer(host, &request);
                host.modern().iter().for_each(|server| server.late.write_down());
                response
            }
            // Notifications and answers are not answered.
            Line::Message(_) => return Ok(()),
            Line::Noise(text) if serde_json::from_str::<serde_json::Value>(&text).is_ok() => {
                nameless(meta::INVALID_REQUEST, "not a JSON-RPC message")
            }
            Line::Noise(_) => nameless(meta::PARSE_ERROR, "not JSON"),
            Line::TooLong => nameless(meta::INVALID_REQUEST, "the line is too long"),
        };
        self.write(&response.to_value().to_string()).await
    }

    fn answer(&mut self, host: &Host, request: &Request) -> Response {
        let shown = Shown::Claimed(conform::principal_of(&request.params));
        let outcome = match (host, host.modern()) {
            (_, Some(server)) => match server.identify(shown) {
                Some(caller) => server.answer(request, &caller).map_err(|refused| refused.error),
                None => Err(error(meta::INVALID_REQUEST, "unauthenticated")),
            },
            (Host::Sessions(..), None) => self.session.answer(request, |request| self.kept.answer(request)),
            (_, None) => self.session.answer(request, legacy::answer),
        };
        Response { id: Some(request.id.clone()), outcome }
    }

    async fn write(&mut self, line: &str) -> io::Result<()> {
        self.output.write_all(line.as_bytes()).await?;
        self.output.write_all(b"\n").await?;
        self.output.flush().await
    }
}

fn nameless(code: i64, message: &str) -> Response {
    Response { id: None, outcome: Err(error(code, message)) }
}

fn error(code: i64, message: &str) -> RpcError {
    RpcError { code, message: message.to_owned(), data: None }
}

const SLOW_START: Duration = Duration::from_millis(300);
const GATHER: Duration = Duration::from_millis(15);
