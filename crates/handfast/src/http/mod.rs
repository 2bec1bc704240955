//! What stands in front of a server over HTTP: two layers for `tower`, and so for `axum`.
//!
//! [`BearerLayer`] lets in whoever shows a good token, and says who that is ([`Caller`](crate::Caller), in the extensions of
//! the request). [`SessionLayer`] comes after it, in front of a server of protocol 2025-11-25 or older that has sessions of
//! its own, and makes each of them belong to whoever began it.
//!
//! ```
//! # use std::sync::Arc;
//! # use handfast::{Audience, Issuer, JsonLines, Keys, clock::SystemClock, session::{SessionAuthority, SessionOptions, SessionSetup}, store::MemoryStore};
//! # #[cfg(feature = "tokens")]
//! # fn app(mcp: axum::Router, keys: Keys) -> Result<axum::Router, Box<dyn std::error::Error>> {
//! use handfast::{
//!     http::{BearerLayer, SessionLayer},
//!     token::{Algorithm, Jwks, JwtVerifier, ProtectedResource, TokenRules},
//! };
//!
//! let audience: Audience = "https://mcp.example.com/mcp".parse()?;
//! let issuer: Issuer = "https://id.example.com".parse()?;
//! let jwks = Jwks::at("https://id.example.com/jwks")?;
//! let rules = TokenRules::new(issuer.clone(), audience.clone());
//! let verifier = JwtVerifier::new(rules, &[Algorithm::Es256], jwks);
//! let sessions = SessionAuthority::new(SessionSetup {
//!     store: Arc::new(MemoryStore::new(Arc::new(SystemClock))),
//!     keys,
//!     audience: audience.clone(),
//!     audit: Arc::new(JsonLines::new(std::io::stderr())),
//!     options: SessionOptions::default(),
//! });
//! let app = mcp
//!     .layer(SessionLayer::new(Arc::new(sessions)))
//!     .layer(BearerLayer::new(Arc::new(verifier), ProtectedResource::new(audience, vec![issuer])?));
//! # Ok(app)
//! # }
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod answer;
#[cfg(feature = "tokens")]
mod bearer;
mod peek;
mod sessions;
mod stream;

use std::{future::Future, pin::Pin};

use axum_core::body::Body;
use http::{Request, Response};

#[cfg(feature = "tokens")]
pub use bearer::{Bearer, BearerLayer};
pub use sessions::{SessionLayer, Sessions};

/// An error of a body or of a server behind.
type BoxError = Box<dyn std::error::Error + Send + Sync>;

/// An answer on its way.
type Answering<E> = Pin<Box<dyn Future<Output = Result<Response<Body>, E>> + Send>>;

/// A request with the body that layers hand on.
type Asking = Request<Body>;
