//! What happened to handles, for whoever has to answer for it: digests, partitions and decisions. No handle, no
//! subject and no token is ever in an event.

use std::{
    io::Write,
    sync::{Mutex, PoisonError},
};

use serde::Serialize;
use serde_json::Value;
use thiserror::Error;

use crate::{
    caller::{Caller, ClientId, Scope, Tenant, TraceId},
    clock::{Clock, SystemClock},
    keys::Keys,
    record::{Digest, ObjectType, PolicyVersion, Reason, Receipt, SubjectKey},
    refusal::Denial,
    seal::{RequestDigest, StateDenial},
    session::SessionDenial,
};

/// One event. Every call of [`Handles`](crate::Handles) makes exactly one; a bulk revocation one for each handle. Every
/// state that comes back makes one where a server has it audited.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct AuditEvent {
    /// What was asked.
    pub action: Action,
    /// `None`: it was allowed. Otherwise exactly why not.
    pub denial: Option<Denial>,
    /// The digest of the handle; `None` where what was presented has not the form of one.
    pub handle: Option<Digest>,
    /// A keyed digest of the object's type and reference, where a record was found.
    pub object: Option<[u8; 32]>,
    /// The object type, where the server named one.
    pub object_type: Option<ObjectType>,
    /// The caller's principal as a keyed digest.
    pub subject: Option<SubjectKey>,
    /// The caller's tenant.
    pub tenant: Option<Tenant>,
    /// The caller's OAuth client.
    pub client: Option<ClientId>,
    /// The scope that was needed.
    pub scope: Option<Scope>,
    /// The policy that was in force; states have none.
    pub policy: Option<PolicyVersion>,
    /// Exactly why a state was refused.
    pub state: Option<StateDenial>,
    /// Exactly why a session was refused.
    pub session: Option<SessionDenial>,
    /// The method, and the tool or prompt, that a state came back to. URIs are not told.
    pub request: Option<String>,
    /// The trace that the request belongs to.
    pub trace: Option<TraceId>,
    /// Why something was revoked, and the operator's receipt.
    pub revocation: Option<(Reason, Receipt)>,
    /// How many, where more than one record is concerned and none is named.
    pub count: Option<u64>,
}

/// What was asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Action {
    /// To make a handle.
    Mint,
    /// To use one.
    Resolve,
    /// To move its object's version forward.
    Advance,
    /// To revoke one or many.
    Revoke,
    /// To remove what has been dead for long.
    Purge,
    /// To take back a state that was sealed.
    Open,
    /// To begin a session.
    BeginSession,
    /// To use one.
    UseSession,
    /// To end one.
    EndSession,
}

impl Action {
    /// Its name in events.
    #[must_use]
    pub fn slug(self) -> &'static str {
        match self {
            Self::Mint => "mint",
            Self::Resolve => "resolve",
            Self::Advance => "advance",
            Self::Revoke => "revoke",
            Self::Purge => "purge",
            Self::Open => "open",
            Self::BeginSession => "session-begin",
            Self::UseSession => "session-use",
            Self::EndSession => "session-end",
        }
    }
}

/// Where events go. An event that cannot be kept means that the call is refused: what nobody can account for does not
/// happen.
pub trait AuditSink: Send + Sync {
    /// Keeps one event. Called on the path of every request, so it should not wait for long.
    ///
    /// # Errors
    /// The event could not be kept.
    fn record(&self, event: &AuditEvent) -> Result<(), AuditError>;
}

/// An audit event could not be kept.
#[derive(Debug, Error)]
#[error("the audit event could not be kept")]
pub struct AuditError(#[source] pub Box<dyn std::error::Error + Send + Sync>);

/// One JSON object on a line for each event.
pub struct JsonLines<W> {
    out: Mutex<Out<W>>,
    clock: Box<dyn Clock>,
}

/// A writer, and whether a part of a line may stand at its end.
struct Out<W> {
    writer: W,
    torn: bool,
}

impl<W: Write + Send> JsonLines<W> {
    /// Events go to this writer, with the time of the operating system.
    pub fn new(out: W) -> Self {
        Self::with_clock(out, SystemClock)
    }

    /// The same, with the time of this clock.
    pub fn with_clock(out: W, clock: impl Clock + 'static) -> Self {
        Self { out: Mutex::new(Out { writer: out, torn: false }), clock: Box::new(clock) }
    }
}

impl<W: Write + Send> AuditSink for JsonLines<W> {
    fn record(&self, event: &AuditEvent) -> Result<(), AuditError> {
        let event = serde_json::to_vec(&event.line(Some(self.clock.now().to_string())))
            .map_err(|error| AuditError(error.into()))?;
        let mut out = self.out.lock().unwrap_or_else(PoisonError::into_inner);
        // What could not be written to its end is not made part of the next event.
        let before: &[u8] = if out.torn { b"\n" } else { b"" };
        let line = [before, &event, b"\n"].concat();
        let written = out.writer.write_all(&line).and_then(|()| out.writer.flush());
        out.torn = written.is_err();
        written.map_err(|error| AuditError(error.into()))
    }
}

/// Events as `tracing` events with the target `handfast::audit`.
#[cfg(feature = "tracing")]
#[derive(Debug, Clone, Copy, Default)]
pub struct Tracing;

#[cfg(feature = "tracing")]
impl AuditSink for Tracing {
    fn record(&self, event: &AuditEvent) -> Result<(), AuditError> {
        let line = event.line(None);
        let text = |value: &Option<String>| value.clone().unwrap_or_default();
        tracing::info!(
            target: "handfast::audit",
            action = line.action,
            decision = line.decision,
            reason = line.reason,
            handle = text(&line.handle),
            object = text(&line.object),
            object_type = event.object_type.as_ref().map(ObjectType::as_str),
            subject = text(&line.subject),
            tenant = event.tenant.as_ref().map(Tenant::as_str),
            client = event.client.as_ref().map(ClientId::as_str),
            scope = event.scope.as_ref().map(Scope::as_str),
            policy = event.policy.as_ref().map(PolicyVersion::as_str),
            request = event.request.as_deref(),
            trace = event.trace.as_ref().map(TraceId::as_str),
            revocation = event.revocation.as_ref().map(|(reason, _)| reason.as_str()),
            receipt = event.revocation.as_ref().map(|(_, receipt)| receipt.as_str()),
            count = event.count,
        );
        Ok(())
    }
}

/// Keeps no event. For benchmarks and examples.
#[derive(Debug, Clone, Copy, Default)]
pub struct DangerousNoAudit;

impl AuditSink for DangerousNoAudit {
    fn record(&self, _: &AuditEvent) -> Result<(), AuditError> {
        Ok(())
    }
}

impl<S: AuditSink + ?Sized> AuditSink for std::sync::Arc<S> {
    fn record(&self, event: &AuditEvent) -> Result<(), AuditError> {
        (**self).record(event)
    }
}

/// An event as it is written.
#[derive(Serialize)]
struct Line<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    time: Option<String>,
    action: &'static str,
    decision: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    handle: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    object: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    object_type: &'a Option<ObjectType>,
    #[serde(skip_serializing_if = "Option::is_none")]
    subject: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tenant: &'a Option<Tenant>,
    #[serde(skip_serializing_if = "Option::is_none")]
    client: &'a Option<ClientId>,
    #[serde(skip_serializing_if = "Option::is_none")]
    scope: &'a Option<Scope>,
    #[serde(skip_serializing_if = "Option::is_none")]
    policy: &'a Option<PolicyVersion>,
    #[serde(skip_serializing_if = "Option::is_none")]
    request: &'a Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    trace: &'a Option<TraceId>,
    #[serde(skip_serializing_if = "Option::is_none")]
    revocation: Option<&'a Reason>,
    #[serde(skip_serializing_if = "Option::is_none")]
    receipt: Option<&'a Receipt>,
    #[serde(skip_serializing_if = "Option::is_none")]
    count: Option<u64>,
}

impl AuditEvent {
    /// An event in which nothing is said yet but what was asked, and under which policy: for tools that work on a store
    /// without [`Handles`](crate::Handles), and have to answer for it in the same way.
    #[must_use]
    pub fn new(action: Action, policy: &PolicyVersion) -> Self {
        Self { policy: Some(policy.clone()), ..Self::of(action) }
    }

    /// The event of a state that came back, from this caller and to this request.
    #[must_use]
    pub fn of_state(caller: &Caller, keys: &Keys, request: &RequestDigest<'_>, denial: Option<StateDenial>) -> Self {
        Self {
            state: denial,
            subject: caller.principal().and_then(|principal| SubjectKey::of(principal, keys, keys.current())),
            tenant: caller.tenant().cloned(),
            client: caller.client().cloned(),
            trace: caller.trace().cloned(),
            request: Some(request.told()),
            ..Self::of(Action::Open)
        }
    }

    /// The event of a session that was begun, ended or refused; its digest is in the place of a handle's.
    #[must_use]
    pub fn of_session(
        action: Action,
        caller: Option<&Caller>,
        keys: &Keys,
        session: Option<Digest>,
        denial: Option<SessionDenial>,
    ) -> Self {
        let principal = caller.and_then(Caller::principal);
        Self {
            session: denial,
            handle: session,
            subject: principal.and_then(|principal| SubjectKey::of(principal, keys, keys.current())),
            tenant: caller.and_then(Caller::tenant).cloned(),
            client: caller.and_then(Caller::client).cloned(),
            trace: caller.and_then(Caller::trace).cloned(),
            ..Self::of(action)
        }
    }

    fn of(action: Action) -> Self {
        Self {
            action,
            denial: None,
            state: None,
            session: None,
            request: None,
            handle: None,
            object: None,
            object_type: None,
            subject: None,
            tenant: None,
            client: None,
            scope: None,
            policy: None,
            trace: None,
            revocation: None,
            count: None,
        }
    }

    /// The event as JSON, without a time.
    #[must_use]
    pub fn json(&self) -> Value {
        serde_json::to_value(self.line(None)).unwrap_or_default()
    }

    /// The name of what it was refused for.
    fn reason(&self) -> Option<&'static str> {
        let state = || self.state.map(StateDenial::slug);
        self.denial.map(Denial::slug).or_else(state).or_else(|| self.session.map(SessionDenial::slug))
    }

    fn line(&self, time: Option<String>) -> Line<'_> {
        Line {
            time,
            action: self.action.slug(),
            decision: if self.reason().is_none() { "allowed" } else { "refused" },
            reason: self.reason(),
            handle: self.handle.map(|digest| digest.to_string()),
            object: self.object.map(|digest| crate::secret::hex(&digest)),
            object_type: &self.object_type,
            subject: self.subject.map(|subject| subject.to_string()),
            tenant: &self.tenant,
            client: &self.client,
            scope: &self.scope,
            policy: &self.policy,
            request: &self.request,
            trace: &self.trace,
            revocation: self.revocation.as_ref().map(|(reason, _)| reason),
            receipt: self.revocation.as_ref().map(|(_, receipt)| receipt),
            count: self.count,
        }
    }
}
