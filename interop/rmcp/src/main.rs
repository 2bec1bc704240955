//! A ticket desk on rmcp, the official Rust SDK, made to be probed.
//!
//! This file reads the options and serves; `desk.rs` is the MCP server, `state.rs` is what travels between two rounds.
//! The SDK authenticates nobody, so over HTTP the middleware in `gate.rs` turns a bearer token into a user.

mod desk;
mod gate;
mod options;
mod state;

use std::error::Error;
use std::sync::Arc;

use rmcp::ServiceExt;
use rmcp::transport::StreamableHttpService;
use rmcp::transport::streamable_http_server::StreamableHttpServerConfig;
use rmcp::transport::streamable_http_server::session::local::LocalSessionManager;

use desk::Desk;
use options::{Options, Transport};

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let options = match Options::parse(std::env::args().skip(1)) {
        Ok(options) => options,
        Err(problem) => {
            eprintln!("{problem}");
            std::process::exit(2);
        }
    };
    let desk = Desk::new(&options)?;
    match options.transport {
        Transport::Stdio => {
            desk.serve(rmcp::transport::stdio()).await?.waiting().await?;
            Ok(())
        }
        Transport::Http => over_http(desk, options.port).await,
    }
}

async fn over_http(desk: Desk, port: u16) -> Result<(), Box<dyn Error>> {
    // Every request gets a clone of one desk: tickets are shared by all, whatever connection they come on.
    let mcp = StreamableHttpService::new(
        move || Ok(desk.clone()),
        Arc::new(LocalSessionManager::default()),
        // The SDK guards `Host` by default and `Origin` only when told whom to let in.
        StreamableHttpServerConfig::default().with_allowed_origins(["http://127.0.0.1:*", "http://localhost:*"]),
    );
    gate::serve(axum::Router::new().route_service("/mcp", mcp), port).await
}
