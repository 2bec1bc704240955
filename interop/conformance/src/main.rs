//! What the official conformance suite asks a server for, on rmcp, with its handler behind the seam: whatever the suite
//! says of the states of this server, it says of `handfast::rmcp::Sealed`. With `--unsealed` there is no seam, and states are
//! believed: then it says it of whatever stands in front.
//!
//! This file serves. `fixture.rs` is the MCP server; `asking.rs` asks in rounds, `asking_live.rs` in the way of older
//! revisions; `tools.rs`, `prompts.rs` and `resources.rs` are what the suite wants to find; `changes.rs` tells of changes,
//! and `tasks.rs` lets a client wait.

mod asking;
mod asking_live;
mod changes;
mod fixture;
mod prompts;
mod resources;
mod tasks;
mod tools;

use std::{error::Error, io::Write, sync::Arc};

use handfast::{Audience, Caller, Keys, rmcp::Sealed, seal::Sealer};
use rmcp::{
    ServerHandler,
    transport::{
        StreamableHttpService,
        streamable_http_server::{StreamableHttpServerConfig, session::local::LocalSessionManager},
    },
};
use serde::de::DeserializeOwned;
use serde_json::Value;
use tokio::net::TcpListener;

use fixture::Fixture;

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let Some((port, sealed)) = asked(std::env::args().skip(1)) else {
        eprintln!("usage: conformance-server [--port N | --unsealed]");
        std::process::exit(2);
    };
    let listener = TcpListener::bind(("127.0.0.1", port)).await?;
    let url = format!("http://{}/mcp", listener.local_addr()?);

    // Listening began with `bind`; from here on a connection waits for `serve` at worst.
    println!("listening on {url}");
    std::io::stdout().flush()?;
    if !sealed {
        return serve(listener, Fixture::default()).await;
    }
    let sealer = Sealer::new(Keys::dangerous_for_this_process_only(), Audience::new(&*url)?);
    // The suite has no tokens: all who call are one.
    serve(listener, Sealed::by(Fixture::default(), sealer, |_| Some(Caller::anonymous()))).await
}

async fn serve<H: ServerHandler + Clone>(listener: TcpListener, handler: H) -> Result<(), Box<dyn Error>> {
    let mcp = StreamableHttpService::new(
        move || Ok(handler.clone()),
        Arc::new(LocalSessionManager::default()),
        // The SDK guards `Host` by default and `Origin` only when told whom to let in.
        StreamableHttpServerConfig::default().with_allowed_origins(["http://127.0.0.1:*", "http://localhost:*"]),
    );
    axum::serve(listener, axum::Router::new().route_service("/mcp", mcp)).await?;
    Ok(())
}

/// The port that the command line asks for, 0, a free one, if it asks for none; and whether states are sealed.
fn asked(mut words: impl Iterator<Item = String>) -> Option<(u16, bool)> {
    match (words.next().as_deref(), words.next(), words.next()) {
        (None, ..) => Some((0, true)),
        (Some("--unsealed"), None, None) => Some((0, false)),
        (Some("--port"), Some(port), None) => Some((port.parse().ok()?, true)),
        _ => None,
    }
}

/// A value of the SDK, written as it stands in the protocol's schema, which is how the suite describes what it wants.
fn wire<T: DeserializeOwned>(value: Value) -> T {
    serde_json::from_value(value).expect("it is written by hand, and every run of the suite reads it")
}

/// A picture of one red pixel.
const PNG: &str = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAIAAACQd1PeAAAADElEQVR4nGP4z8AAAAMBAQDJ/pLvAAAAAElFTkSuQmCC";
/// One sample of silence.
const WAV: &str = "UklGRiYAAABXQVZFZm10IBAAAAABAAEAQB8AAIA+AAACABAAZGF0YQIAAAAAAA==";
