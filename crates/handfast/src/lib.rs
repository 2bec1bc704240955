//! State handles for MCP servers that are worth nothing to anybody but their owner.
//!
//! Since revision 2026-07-28 the Model Context Protocol has no sessions: a tool that keeps state hands out a handle
//! (`basket_id`), and the model passes it back. Whoever can put text in front of a model can write one, so possession
//! must not be permission. [`Handles::mint`] makes a handle for a caller, [`Handles::resolve`] gives its object back
//! to the same caller and to nobody else, and [`Handles::revoke`] ends it on every replica.
//!
//! ```
//! # use std::sync::Arc;
//! use handfast::{
//!     Asked, BackendDown, Caller, Grant, Handles, Keys, Loaded, NotAuthorized, Object, ObjectAuthority, ObjectVersion,
//!     Policy, Principal, ScopeSet, Setup, async_trait, clock::SystemClock, store::MemoryStore,
//! };
//!
//! struct Baskets;
//!
//! #[async_trait]
//! impl ObjectAuthority for Baskets {
//!     type Object = String;
//!
//!     async fn load(&self, object: &Object) -> Result<Option<Loaded<String>>, BackendDown> {
//!         let basket = format!("what is in {}", object.reference);
//!         Ok(Some(Loaded { object: basket, version: ObjectVersion::unversioned() }))
//!     }
//!
//!     async fn authorize(&self, _: Asked<'_, String>) -> Result<(), NotAuthorized> {
//!         Ok(())
//!     }
//! }
//!
//! # let runtime = tokio::runtime::Builder::new_current_thread().build()?;
//! # runtime.block_on(async {
//! let policy = Policy::from_toml(r#"
//!     version = "1"
//!     [objects.basket]
//!     lifetime = "24h"
//!     scopes = ["read"]
//!     created_by = "create_basket"
//!     bound = ["principal"]
//! "#)?;
//! let read = policy.need("basket", "read")?;
//! let handles = Handles::new(Setup {
//!     store: Arc::new(MemoryStore::new(Arc::new(SystemClock))),
//!     policy,
//!     keys: Keys::dangerous_for_this_process_only(),
//!     authority: Baskets,
//!     audit: Arc::new(handfast::JsonLines::new(std::io::stderr())),
//! });
//! let caller = |subject| Principal::new("https://id.example".parse()?, subject).map(Caller::trusted);
//! let (alice, bob) = (caller("alice")?, caller("bob")?);
//!
//! let object = Object { kind: "basket".parse()?, reference: "b-1".parse()?, version: ObjectVersion::unversioned() };
//! let minted = handles.mint(&alice, Grant { object, scopes: ScopeSet::new(["read"])? }).await?;
//! let basket_id = minted.handle().expose();
//!
//! assert_eq!(handles.resolve(&alice, basket_id, &read).await?.object(), "what is in b-1");
//! let refused = handles.resolve(&bob, basket_id, &read).await.expect_err("it is not his");
//! assert_eq!(refused.to_string(), "there is no such basket; make a new one with `create_basket`");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! # })?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! Nothing here knows JSON-RPC, transports or an SDK. What never lives here: a cache of decisions.

mod audience;
mod audit;
mod caller;
pub mod clock;
mod describe;
mod handle;
#[cfg(feature = "http")]
pub mod http;
mod keys;
pub mod names;
mod policy;
mod record;
mod refusal;
#[cfg(feature = "rmcp")]
pub mod rmcp;
pub mod seal;
mod secret;
pub mod session;
pub mod store;
mod tally;
mod text;
#[cfg(feature = "tokens")]
pub mod token;
mod vault;
#[cfg(feature = "verify")]
pub mod verify;

/// For implementations of [`ObjectAuthority`] and [`store::Store`].
pub use async_trait::async_trait;
#[cfg(feature = "tracing")]
pub use audit::Tracing;
pub use audit::{Action, AuditError, AuditEvent, AuditSink, DangerousNoAudit, JsonLines};
pub use caller::{
    Audience, Caller, ClientId, Issuer, Principal, Scope, ScopeError, ScopeSet, Tenant, TokenId, TraceId,
};
pub use handle::{
    Asked, BackendDown, Grant, Handle, Handles, Loaded, MintError, Minted, Need, NotAuthorized, ObjectAuthority,
    Resolved, Revoked, Setup, TOMBSTONE, text::parse as parse_handle,
};
pub use keys::{KeyId, KeyUse, Keys, KeysError};
pub use policy::{Bound, NoSuchNeed, Policy, PolicyError, Prefix, Rules, RulesError, ToolName};
pub use record::{
    Digest, Key, NewRecord, NotADigest, Object, ObjectRef, ObjectType, ObjectVersion, Partition, PolicyVersion, Reason,
    Receipt, Record, Revocation, SubjectKey, Why,
};
pub use refusal::{Denial, Outward, Refused};
pub use secret::SecretText;
pub use store::Selector;
#[cfg(feature = "metrics")]
pub use tally::describe as describe_metrics;
pub use text::TextError;
