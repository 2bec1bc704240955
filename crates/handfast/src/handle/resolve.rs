//! Resolving: what is asked of every presented handle, in order, before the object behind it is touched.

use crate::{
    audit::{Action, AuditEvent},
    caller::{Caller, Scope},
    clock::Timestamp,
    handle::{
        Asked, Handles, Loaded, NotAuthorized, ObjectAuthority,
        decide::{decide, owned},
        partition, text,
        witness::Witness,
    },
    policy::Rules,
    record::{Digest, Key, Object, ObjectType, ObjectVersion, Partition, Record, SubjectKey},
    refusal::{Denial, Refused},
    store::{Found, StoreError},
};

/// What a tool needs of a handle: the type of the object, and one scope.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Need {
    pub(crate) object: ObjectType,
    pub(crate) scope: Scope,
}

impl Need {
    /// This scope on an object of this type.
    #[must_use]
    pub fn new(object: ObjectType, scope: Scope) -> Self {
        Self { object, scope }
    }
}

/// A handle that was checked for this caller, this need and this moment, with its object. Holding one is the proof:
/// there is no other way to make one.
#[derive(Debug)]
pub struct Resolved<T> {
    object: T,
    record: Record,
    need: Need,
}

impl<T> Resolved<T> {
    /// The object as the [`ObjectAuthority`] loaded it.
    #[must_use]
    pub fn object(&self) -> &T {
        &self.object
    }

    /// The object itself.
    #[must_use]
    pub fn into_object(self) -> T {
        self.object
    }

    /// Which object it is, in the words of the server.
    #[must_use]
    pub fn named(&self) -> &Object {
        &self.record.object
    }

    /// When the handle ends in any case.
    #[must_use]
    pub fn expires(&self) -> Timestamp {
        self.record.expires
    }
}

/// Why not, and what the store said where it was the store.
pub(super) struct No(pub(super) Denial, pub(super) Option<StoreError>);

impl From<Denial> for No {
    fn from(denial: Denial) -> Self {
        Self(denial, None)
    }
}

impl From<StoreError> for No {
    fn from(error: StoreError) -> Self {
        Self(Denial::Unavailable, Some(error))
    }
}

impl<A: ObjectAuthority> Handles<A> {
    /// Checks a presented handle for this caller and this need, and loads its object.
    ///
    /// # Errors
    /// A refusal that tells the caller no more than they may know. Its [`Refused::denial`] is the first check that
    /// failed, of these, in this order: the text has the form of a handle; the scope is one that the policy knows; the
    /// caller's tenant has such a record; its principal and client are the caller's; it is neither revoked nor
    /// expired nor idle; it was made under this policy; its type and scopes are those needed; the object has the
    /// version that it was made for; the [`ObjectAuthority`] agrees. The object's backend is not touched before all
    /// that comes before it has passed.
    pub async fn resolve(&self, caller: &Caller, presented: &str, need: &Need) -> Result<Resolved<A::Object>, Refused> {
        let mut event = self.event(Action::Resolve, caller, &need.object);
        event.scope = Some(need.scope.clone());
        let answer = self.try_resolve(caller, presented, need, &mut event).await;
        self.answered(answer, event, &need.object)
    }

    async fn try_resolve(
        &self,
        caller: &Caller,
        presented: &str,
        need: &Need,
        event: &mut AuditEvent,
    ) -> Result<Resolved<A::Object>, No> {
        let rules = self.policy.rules(&need.object).ok_or(Denial::UnknownScope)?;
        let digest = text::parse(presented.as_bytes(), rules.prefix.as_ref()).ok_or(Denial::Malformed)?;
        event.handle = Some(digest);
        if !rules.allows(&need.scope) {
            return Err(Denial::UnknownScope.into());
        }
        let (record, now) = self.checked(caller, digest, need, rules, event).await?;
        let loaded = self.authority.load(&record.object).await.map_err(|_| Denial::Unavailable)?;
        let Loaded { object, version } = loaded.ok_or(Denial::ObjectGone)?;
        if version != record.object.version {
            return Err(Denial::StaleVersion.into());
        }
        let asked = Asked::Resolve { caller, object: &object, scope: &need.scope };
        self.authority.authorize(asked).await.map_err(|refused| match refused {
            NotAuthorized::Refused => Denial::NotAuthorized,
            NotAuthorized::Down => Denial::Unavailable,
        })?;
        if let Some(ends) = record.slid(now)
            && !self.store.touch(&record.key(), ends).await?
        {
            // It did not move: somebody else moved it, or it has ended or was revoked while the object was asked for.
            self.checked(caller, digest, need, rules, event).await?;
        }
        Ok(Resolved { object, record, need: need.clone() })
    }

    /// The record behind a digest, once everything that can be known without the object has passed.
    async fn checked(
        &self,
        caller: &Caller,
        digest: Digest,
        need: &Need,
        rules: &Rules,
        event: &mut AuditEvent,
    ) -> Result<(Record, Timestamp), No> {
        let (Found { record, now }, partition) = self.found(caller, digest, rules, event).await?;
        decide(&record, &partition, (&self.policy, rules), need, now)?;
        Ok((record, now))
    }

    /// The record behind a digest, if the caller's tenant has one, and the caller as that record would have them.
    pub(super) async fn found(
        &self,
        caller: &Caller,
        digest: Digest,
        rules: &Rules,
        event: &mut AuditEvent,
    ) -> Result<(Found, Partition), No> {
        let mine = partition(caller, event.subject, rules)?;
        let key = Key { tenant: mine.tenant.clone(), digest };
        let found = self.store.find(&key).await?.ok_or(Denial::Unknown)?;
        event.object = Some(self.object_digest(&found.record.object));
        let mine = self.seen_by(&found.record, caller, mine)?;
        Ok((found, mine))
    }

    /// The caller as the record would have them: under the key that it was made under.
    pub(crate) fn seen_by(&self, record: &Record, caller: &Caller, mine: Partition) -> Result<Partition, Denial> {
        match record.partition.subject {
            Some(SubjectKey { key, .. }) if key != self.keys.current() => {
                Ok(Partition { subject: self.subject(caller, key)?, ..mine })
            }
            _ => Ok(mine),
        }
    }

    /// Moves the version that a handle is made for forward, after a tool has changed the object.
    ///
    /// Compare-and-set: of two tools that changed the same version one succeeds. Other handles to the same object stay
    /// at the version that they were made for, and are refused as changed.
    ///
    /// # Errors
    /// The handle has another version by now (somebody else was first), or was revoked or has ended since it was
    /// resolved, or the store cannot be reached.
    pub async fn advance(
        &self,
        caller: &Caller,
        resolved: Resolved<A::Object>,
        to: ObjectVersion,
    ) -> Result<Object, Refused> {
        let Resolved { record, need, .. } = resolved;
        let mut event = self.event(Action::Advance, caller, &need.object);
        event.scope = Some(need.scope.clone());
        event.handle = Some(record.digest);
        let answer = self.try_advance(caller, &record, &need, to, &mut event).await;
        self.answered(answer, event, &need.object)
    }

    async fn try_advance(
        &self,
        caller: &Caller,
        record: &Record,
        need: &Need,
        to: ObjectVersion,
        event: &mut AuditEvent,
    ) -> Result<Object, No> {
        let rules = self.policy.rules(&need.object).ok_or(Denial::UnknownScope)?;
        let mine = self.seen_by(record, caller, partition(caller, event.subject, rules)?)?;
        owned(record, &mine, rules)?;
        if self.store.advance(&record.key(), &record.object.version, &to).await? {
            event.object = Some(self.object_digest(&record.object));
            return Ok(Object { version: to, ..record.object.clone() });
        }
        // Why it did not move: whatever now speaks against the handle, or else somebody who was first.
        self.checked(caller, record.digest, need, rules, event).await?;
        Err(Denial::StaleVersion.into())
    }

    /// Keeps the event, and only then gives the answer: what nobody can account for does not happen.
    pub(super) fn answered<T>(
        &self,
        answer: Result<T, No>,
        event: Witness<'_>,
        object: &ObjectType,
    ) -> Result<T, Refused> {
        let kept = event.keep(answer.as_ref().err().map(|No(denial, _)| *denial));
        let refused = |denial| Refused::new(denial, object, self.policy.rules(object));
        let answer = answer.map_err(|No(denial, source)| refused(denial).because(source))?;
        kept.map_err(|_| refused(Denial::Unavailable))?;
        Ok(answer)
    }
}
