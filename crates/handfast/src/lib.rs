//! State handles for MCP servers that are worth nothing to anybody but their owner.
//!
//! Since revision 2026-07-28 the Model Context Protocol has no sessions: a tool that keeps state hands out a handle
//! (`basket_id`), and the model passes it back. Whoever can put text in front of a model can write one, so possession
//! must not be permission. [`Handles::mint`] makes a handle for a caller, [`Handles::resolve`] gives its object back
//! to the same caller and to nobody else, and [`Handles::revoke`] ends it on every replica.

mod audit;
mod caller;
pub mod clock;
mod describe;
mod handle;
mod policy;
mod record;
mod refusal;
mod secret;
pub mod store;
mod text;
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
pub use policy::{Bound, NoSuchNeed, Policy, PolicyError, Prefix, Rules, RulesError, ToolName};
pub use record::{
    Digest, Key, NewRecord, Object, ObjectRef, ObjectType, ObjectVersion, Partition, PolicyVersion, Reason, Receipt,
    Record, Revocation, SubjectKey, Why,
};
pub use refusal::{Denial, Outward, Refused};
pub use secret::{KeyId, Keys, KeysError, SecretText};
pub use text::TextError;
