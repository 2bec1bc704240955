//! The server behind, however it is reached: as one that speaks Streamable HTTP.

mod http;
mod stdio;

use ::http::{Request, Response};
use async_trait::async_trait;
use axum_core::body::Body;
use bytes::Bytes;
use handfast::Caller;
use thiserror::Error;

pub use self::http::{HttpUpstream, Identity, NoUpstream};
pub use self::stdio::{Children, StdioOptions, StdioUpstream};

/// A server behind the gateway. What it is asked and what it answers are requests and responses of Streamable HTTP, also
/// where it is a child process that speaks on its standard input and output.
#[async_trait]
pub trait Upstream: Send + Sync {
    /// Asks it. The body of the answer may be a stream that lasts; to drop it is to be no longer interested.
    ///
    /// # Errors
    /// It cannot be reached, or it said nothing in time.
    async fn ask(&self, caller: &Caller, request: Request<Bytes>) -> Result<Response<Body>, Down>;
}

/// Why the server behind has not answered. Never what it said.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum Down {
    /// It could not be reached, or it broke off.
    #[error("the server behind cannot be reached")]
    Unreachable(#[source] Box<dyn std::error::Error + Send + Sync>),
    /// It took too long.
    #[error("the server behind said nothing in time")]
    Late,
    /// Nobody in particular asks, and what it keeps for one must not reach another.
    #[error("the server behind answers nobody in particular")]
    Nobody,
    /// It has as much to do as it may have.
    #[error("the server behind has no room for another caller")]
    Full,
}
