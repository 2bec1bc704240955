//! Minting: everything that is checked before a handle exists, and what is handed out.

use serde_json::{Value, json};
use thiserror::Error;

use super::{Asked, Handle, Handles, NotAuthorized, ObjectAuthority, partition};
use crate::{
    audit::{Action, AuditError},
    caller::{Caller, Scope, ScopeSet},
    clock::Timestamp,
    policy::{EXPIRES, Rules},
    record::{NewRecord, Object, ObjectType, SubjectKey},
    refusal::Denial,
    store::StoreError,
};

/// What a handle is to name, and what it is to allow.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Grant {
    /// The object, with the version that it has now.
    pub object: Object,
    /// The scopes.
    pub scopes: ScopeSet,
}

/// Why no handle was made. Nothing is outside of the server yet, so it may be told in full.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum MintError {
    /// The caller lacks a principal, tenant or client that the policy binds.
    #[error("the caller lacks a principal, tenant or client, which the policy binds handles to a {0} to")]
    IdentityIncomplete(ObjectType),
    /// The policy has no rules for this type.
    #[error("the policy does not allow handles to a {0}")]
    ObjectType(ObjectType),
    /// The policy does not allow this scope for this type.
    #[error("the policy does not allow the scope `{0}` here")]
    Scope(Scope),
    /// The policy allows fewer scopes at once.
    #[error("the policy allows {most} scopes at once, not {asked}")]
    TooManyScopes {
        /// As many.
        most: usize,
        /// So many were asked for.
        asked: usize,
    },
    /// The object's own authorization said no.
    #[error("the caller may not have a handle to this object")]
    NotAuthorized,
    /// The object's own authorization could not say.
    #[error("the authorization of the object cannot be reached")]
    AuthorityDown,
    /// What the server behind calls its object is longer than a record can keep.
    #[error("the name is too long: at most 1,000 bytes are kept")]
    NameTooLong,
    /// The store could not keep it.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The event could not be kept, so the handle was not handed out.
    #[error(transparent)]
    Audit(#[from] AuditError),
}

impl MintError {
    /// Why, as an audit event has it.
    #[must_use]
    pub fn denial(&self) -> Denial {
        match self {
            Self::IdentityIncomplete(_) => Denial::IdentityIncomplete,
            Self::ObjectType(_) => Denial::WrongObject,
            Self::Scope(_) => Denial::UnknownScope,
            Self::TooManyScopes { .. } => Denial::MissingScope,
            Self::NotAuthorized => Denial::NotAuthorized,
            Self::NameTooLong => Denial::Malformed,
            Self::AuthorityDown | Self::Store(_) | Self::Audit(_) => Denial::Unavailable,
        }
    }

    /// The refusal as the result of a tool, with `isError: true`. It says only whether to try again.
    #[must_use]
    pub fn tool_result(&self) -> Value {
        let text = match self.denial() {
            Denial::Unavailable => "nothing was created; try again later",
            _ => "nothing was created: it is not allowed",
        };
        json!({"content": [{"type": "text", "text": text}], "isError": true})
    }
}

/// A new handle: the only time that it is seen.
#[derive(Debug)]
pub struct Minted {
    handle: Handle,
    expires: Timestamp,
    rules: Rules,
}

impl<A: ObjectAuthority> Handles<A> {
    /// Makes a handle to an object for this caller.
    ///
    /// # Errors
    /// Says which check failed, of these, in this order: the caller's identity is complete; the policy allows the
    /// object type and the scopes; the [`ObjectAuthority`] agrees; the store and the audit have kept it.
    pub async fn mint(&self, caller: &Caller, grant: Grant) -> Result<Minted, MintError> {
        let mut event = self.event(Action::Mint, caller, &grant.object.kind);
        let minted = self.try_mint(caller, event.subject, &grant).await;
        event.object = Some(self.object_digest(&grant.object));
        event.handle = minted.as_ref().ok().map(|minted| minted.handle.digest());
        let kept = event.keep(minted.as_ref().err().map(MintError::denial));
        let minted = minted?;
        kept?;
        Ok(minted)
    }

    async fn try_mint(&self, caller: &Caller, subject: Option<SubjectKey>, grant: &Grant) -> Result<Minted, MintError> {
        let Grant { object, scopes } = grant;
        let incomplete = || MintError::IdentityIncomplete(object.kind.clone());
        let rules = match self.policy.rules(&object.kind) {
            Some(rules) => rules,
            None if caller.principal().is_none() => return Err(incomplete()),
            None => return Err(MintError::ObjectType(object.kind.clone())),
        };
        let partition = partition(caller, subject, rules).map_err(|_| incomplete())?;
        if let Some(other) = scopes.iter().find(|scope| !rules.allows(scope)) {
            return Err(MintError::Scope(other.clone()));
        }
        let (most, asked) = (rules.most_scopes, scopes.iter().len());
        if asked > most {
            return Err(MintError::TooManyScopes { most, asked });
        }
        self.authority.authorize(Asked::Mint { caller, grant }).await.map_err(|refused| match refused {
            NotAuthorized::Refused => MintError::NotAuthorized,
            NotAuthorized::Down => MintError::AuthorityDown,
        })?;
        let handle = Handle::random(rules.prefix.as_ref());
        let lifespan = self
            .store
            .insert(&NewRecord {
                digest: handle.digest(),
                partition,
                object: object.clone(),
                scopes: scopes.clone(),
                policy: self.policy.version().clone(),
                lifetime: rules.lifetime,
                idle: rules.idle,
            })
            .await?;
        Ok(Minted { handle, expires: lifespan.expires, rules: rules.clone() })
    }
}

impl Minted {
    /// The handle.
    #[must_use]
    pub fn handle(&self) -> &Handle {
        &self.handle
    }

    /// When it ends in any case.
    #[must_use]
    pub fn expires(&self) -> Timestamp {
        self.expires
    }

    /// How long such handles live, as a sentence for people and models.
    #[must_use]
    pub fn retention_sentence(&self) -> String {
        self.rules.retention_sentence(self.rules.object.as_str())
    }

    /// The handle as data, for `structuredContent`: under the name of the argument that takes it.
    #[must_use]
    pub fn structured_content(&self) -> Value {
        json!({self.rules.argument.as_str(): self.handle.expose(), EXPIRES: self.expires.to_string()})
    }

    /// The handle as the result of a tool, in both forms: "a handle returned only in a text blob is easy to lose".
    /// Whatever else your revision of the protocol wants in a result (`resultType`) is your server's to add.
    #[must_use]
    pub fn tool_result(&self) -> Value {
        let data = self.structured_content();
        json!({"content": [{"type": "text", "text": data.to_string()}], "structuredContent": data})
    }
}
