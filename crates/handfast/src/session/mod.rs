//! Sessions of protocol 2025-11-25 and older (`Mcp-Session-Id`): each belongs to whoever began it.
//!
//! A token says that its holder may talk to this server. It does not say that a session is theirs, and it does not make a
//! session that is gone come back: whoever shows one that is not there is told 404 and begins again. That rule is
//! [`decide`], one function without a store, a clock or HTTP.
//!
//! Sessions are kept apart from handles, in the same stores: as records of an object type of their own. The id that a
//! client gets is random and never the one that the server behind has; of that one the store keeps a sealed text.
//! Revision 2026-07-28 has no sessions: [`Handles`](crate::Handles) are for state there.
//!
//! What never lives here: HTTP. The layer that asks is in `http` (feature `http`).

mod decide;
mod denial;

use std::{fmt, sync::Arc, time::Duration};

pub use decide::{Asked, Decision, Shown, decide};
pub use denial::{SessionDenial, SessionRefused};

use crate::{
    audience::same,
    audit::{Action, AuditEvent, AuditSink},
    caller::{Audience, Caller, Principal, ScopeSet},
    clock::Timestamp,
    handle::{decide::same_subject, text},
    keys::Keys,
    policy::Prefix,
    record::{Digest, Key, NewRecord, Object, ObjectRef, ObjectVersion, Partition, Record, SubjectKey},
    secret::SecretText,
    store::{Found, Selector, Store},
    tally,
    vault::Vault,
};

/// Decides about every request of a server with sessions: who may begin, use and end one.
pub struct SessionAuthority {
    store: Arc<dyn Store>,
    keys: Keys,
    audience: Audience,
    audit: Arc<dyn AuditSink>,
    options: SessionOptions,
    vault: Vault,
    prefix: Prefix,
}

/// What a [`SessionAuthority`] is made of.
pub struct SessionSetup {
    /// Where sessions are kept: one that is shared where there are several replicas.
    pub store: Arc<dyn Store>,
    /// The operator's keys.
    pub keys: Keys,
    /// The server's canonical URI. A caller whose token is for another one has no business here.
    pub audience: Audience,
    /// Where events go.
    pub audit: Arc<dyn AuditSink>,
    /// How long sessions live, and how many there may be.
    pub options: SessionOptions,
}

/// How long sessions live, and how many there may be.
#[derive(Debug, Clone)]
pub struct SessionOptions {
    /// How long one lives in any case: 12 hours.
    pub lifetime: Duration,
    /// How long one lives unused: 30 minutes. An open stream is a use.
    pub idle: Duration,
    /// How many a principal may have at once, on all replicas: 100.
    pub most: u32,
}

impl Default for SessionOptions {
    fn default() -> Self {
        Self { lifetime: Duration::from_secs(12 * 3600), idle: Duration::from_secs(30 * 60), most: 100 }
    }
}

/// What a request may do.
#[derive(Debug)]
pub enum Admission {
    /// Begin: let it through without a session, and when it has succeeded, [`SessionAuthority::begin`].
    Begin,
    /// Go on, in this session.
    Proceed(Session),
    /// Nothing more: this session was the caller's, and has ended. The server behind should be told.
    Ended(Session),
}

/// A session that was checked for this caller and this moment, or has just begun.
#[derive(Clone)]
pub struct Session {
    digest: Digest,
    inner: Option<SecretText>,
}

/// A session that has just begun.
#[derive(Debug)]
pub struct Begun {
    /// What the client is to show from now on: the only time that it is seen.
    pub id: SecretText,
    /// The session itself.
    pub session: Session,
}

impl Session {
    /// The id by which the server behind knows it, if it has one.
    #[must_use]
    pub fn inner(&self) -> Option<&SecretText> {
        self.inner.as_ref()
    }

    /// What stores and audit events know it by.
    #[must_use]
    pub fn digest(&self) -> Digest {
        self.digest
    }
}

impl fmt::Debug for Session {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_tuple("Session").field(&self.digest).finish()
    }
}

/// How sessions are told apart from handles, in stores and in what operators see.
const KIND: &str = "mcp-session";
/// How session ids begin, so that people and scanners recognise them.
const PREFIX: &str = "mcps";
/// How long the id of a server behind is at most, in bytes.
const LONGEST_INNER: usize = 1024;
/// What stands before the id of the server behind, in the text that is sealed; alone where it has none.
const INNER: u8 = 1;
/// How many records are read at once, and how often. Whoever has more than that has too many.
const PAGE: u32 = 1000;
const MOST_PAGES: usize = 10;

impl SessionAuthority {
    /// Sessions of this server.
    #[must_use]
    pub fn new(setup: SessionSetup) -> Self {
        let SessionSetup { store, keys, audience, audit, options } = setup;
        let vault = Vault::new(&keys, &audience, options.lifetime);
        let prefix = Prefix::new(PREFIX).expect("it is one");
        Self { store, keys, audience, audit, options, vault, prefix }
    }

    /// Whether this caller has a token for this server: the first of the two predicates.
    #[must_use]
    pub fn vouched(&self, caller: Option<&Caller>) -> bool {
        let audience = caller.filter(|caller| caller.principal().is_some()).and_then(Caller::audience);
        audience.is_some_and(|audience| same(self.audience.as_str(), audience.as_str()))
    }

    /// What this request may do, which comes from this caller and shows this session id.
    ///
    /// # Errors
    /// It may do nothing. The caller is told [`SessionDenial::status`], which says no more than they may know.
    pub async fn admit(
        &self,
        caller: Option<&Caller>,
        asked: Asked,
        shown: Option<&str>,
    ) -> Result<Admission, SessionRefused> {
        let answer = self.try_admit(caller, asked, shown).await;
        // The use of a session is a request like any other: what it does, its server accounts for.
        if let Err(refused) = &answer {
            let digest = shown.and_then(|shown| self.parse(shown));
            self.counted(refused.denial);
            self.record(action(asked), caller, digest, Some(refused.denial))?;
        }
        answer
    }

    async fn try_admit(
        &self,
        caller: Option<&Caller>,
        asked: Asked,
        shown: Option<&str>,
    ) -> Result<Admission, SessionRefused> {
        let audience_ok = self.vouched(caller);
        let Some(caller) = caller.filter(|_| audience_ok) else { return Err(SessionDenial::Unauthorized.into()) };
        tally::count(tally::AUTHENTICATED);
        let found = match shown {
            Some(shown) if asked != Asked::Begin => self.found(caller, shown).await,
            _ => Err(SessionDenial::Missing.into()),
        };
        let shown = match &found {
            Ok(_) => Some(Shown::Own),
            Err(refused) => refused.denial.shown(),
        };
        let Some(shown) = shown else { return found.map(Admission::Proceed) };
        match (decide(audience_ok, asked, shown), found) {
            (Decision::Begin, _) => {
                if self.living(caller).await?.len() >= self.options.most as usize {
                    return Err(SessionDenial::TooMany.into());
                }
                Ok(Admission::Begin)
            }
            (Decision::Proceed, Ok(session)) => Ok(Admission::Proceed(session)),
            (Decision::End, Ok(session)) => {
                // What nobody can account for does not happen.
                self.record(Action::EndSession, Some(caller), Some(session.digest()), None)?;
                self.store.erase(&[session.digest()]).await?;
                Ok(Admission::Ended(session))
            }
            (_, Err(refused)) => Err(refused),
            (_, Ok(_)) => Err(SessionDenial::Unauthorized.into()),
        }
    }

    /// Makes a session for this caller, whose `initialize` has succeeded; the server behind knows it by this id.
    ///
    /// # Errors
    /// The store or the audit cannot keep it, the caller has too many, or what the server behind gave is no session id.
    /// Nothing is kept then.
    pub async fn begin(&self, caller: &Caller, inner: Option<&str>) -> Result<Begun, SessionRefused> {
        let answer = self.try_begin(caller, inner).await;
        let (digest, denial) = match &answer {
            Ok(begun) => (Some(begun.session.digest), None),
            Err(refused) => (None, Some(refused.denial)),
        };
        if let Err(unheard) = self.record(Action::BeginSession, Some(caller), digest, denial) {
            if let Some(digest) = digest {
                self.store.erase(&[digest]).await?;
            }
            return Err(unheard);
        }
        if answer.is_ok() {
            tally::count(tally::CREATED);
        }
        answer
    }

    async fn try_begin(&self, caller: &Caller, inner: Option<&str>) -> Result<Begun, SessionRefused> {
        if !self.vouched(Some(caller)) {
            return Err(SessionDenial::Unauthorized.into());
        }
        let id = text::Handle::random(Some(&self.prefix));
        let digest = id.digest();
        let reference = self.sealed(digest, inner)?;
        let record = NewRecord {
            digest,
            partition: self.partition(caller)?,
            object: Object { kind: parsed(KIND)?, reference, version: ObjectVersion::unversioned() },
            scopes: ScopeSet::new([KIND]).map_err(|_| SessionDenial::Unavailable)?,
            policy: parsed(KIND)?,
            lifetime: self.options.lifetime,
            idle: Some(self.options.idle),
        };
        let created = self.store.insert(&record).await?.created;
        // Of many that begin at once those that were first stay; of two at the same microsecond neither may.
        let living = self.living(caller).await?.into_iter();
        let before = living.filter(|(since, other)| *other != digest && *since <= created).count();
        if before >= self.options.most as usize {
            self.store.erase(&[digest]).await?;
            return Err(SessionDenial::TooMany.into());
        }
        let session = Session { digest, inner: inner.map(SecretText::new) };
        Ok(Begun { id: SecretText::new(id.expose()), session })
    }

    /// Ends a session that the server behind has lost ([`SessionDenial::Lost`]), or made another one in the place of
    /// ([`SessionDenial::Forked`]).
    ///
    /// # Errors
    /// The store does not answer.
    pub async fn gone(&self, caller: &Caller, session: &Session, why: SessionDenial) -> Result<(), SessionRefused> {
        self.store.erase(&[session.digest()]).await?;
        self.counted(why);
        self.record(Action::UseSession, Some(caller), Some(session.digest()), Some(why))
    }

    /// Whether this session is still there and still this caller's: asked now and then while a stream is open, which is a
    /// use.
    pub async fn goes_on(&self, caller: &Caller, session: &Session) -> bool {
        self.checked(caller, session.digest()).await.is_ok()
    }

    /// The caller's session of this id.
    async fn found(&self, caller: &Caller, shown: &str) -> Result<Session, SessionRefused> {
        let digest = self.parse(shown).ok_or(SessionDenial::Malformed)?;
        let record = self.checked(caller, digest).await?;
        let inner = self.opened(digest, &record.object.reference)?;
        Ok(Session { digest, inner })
    }

    /// The record of this digest, if it is a session, the caller's, and not over.
    async fn checked(&self, caller: &Caller, digest: Digest) -> Result<Record, SessionRefused> {
        let mine = self.partition(caller)?;
        // A session of another tenant is a miss.
        let key = Key { tenant: mine.tenant.clone(), digest };
        let Found { record, now } = self.store.find(&key).await?.ok_or(SessionDenial::Unknown)?;
        if record.object.kind.as_str() != KIND || record.partition.tenant != mine.tenant {
            return Err(SessionDenial::Unknown.into());
        }
        // This is the line: the session's principal is the token's. "Does this token's holder own this session."
        if !self.is_of(caller.principal(), record.partition.subject.as_ref()) {
            return Err(SessionDenial::ForeignPrincipal.into());
        }
        if record.partition.client != mine.client {
            return Err(SessionDenial::ForeignClient.into());
        }
        if record.dead_since(now).is_some() {
            return Err(SessionDenial::Over.into());
        }
        if let Some(ends) = record.slid(now)
            && !self.store.touch(&key, ends).await?
        {
            // It did not move: somebody else has moved it, or it has just ended.
            let again = self.store.find(&key).await?.ok_or(SessionDenial::Unknown)?;
            if again.record.dead_since(again.now).is_some() {
                return Err(SessionDenial::Over.into());
            }
        }
        Ok(record)
    }

    fn is_of(&self, principal: Option<&Principal>, owner: Option<&SubjectKey>) -> bool {
        let (Some(principal), Some(owner)) = (principal, owner) else { return false };
        SubjectKey::of(principal, &self.keys, owner.key).is_some_and(|caller| same_subject(owner, &caller))
    }

    fn partition(&self, caller: &Caller) -> Result<Partition, SessionRefused> {
        let principal = caller.principal().ok_or(SessionDenial::Unauthorized)?;
        Ok(Partition {
            subject: SubjectKey::of(principal, &self.keys, self.keys.current()),
            tenant: caller.tenant().cloned(),
            client: caller.client().cloned(),
        })
    }

    /// The caller's sessions that are not over, each with the time at which it began. What is over is removed on the way.
    async fn living(&self, caller: &Caller) -> Result<Vec<(Timestamp, Digest)>, SessionRefused> {
        let principal = caller.principal().ok_or(SessionDenial::Unauthorized)?;
        let subjects = self.keys.ids().filter_map(|id| SubjectKey::of(principal, &self.keys, id)).collect();
        let which = Selector { subjects: Some(subjects), object: Some((parsed(KIND)?, None)), ..Selector::default() };
        let (mut living, mut after) = (Vec::new(), None);
        for _ in 0..MOST_PAGES {
            let listed = self.store.list(&which, after, PAGE).await?;
            let (over, alive): (Vec<&Record>, Vec<&Record>) =
                listed.records.iter().partition(|record| record.dead_since(listed.now).is_some());
            let over: Vec<Digest> = over.iter().map(|record| record.digest).collect();
            if !over.is_empty() {
                self.store.erase(&over).await?;
            }
            living.extend(alive.iter().map(|record| (record.created, record.digest)));
            after = match listed.records.last() {
                Some(last) if listed.records.len() == PAGE as usize => Some(last.digest),
                _ => return Ok(living),
            };
        }
        Err(SessionDenial::TooMany.into())
    }

    fn parse(&self, shown: &str) -> Option<Digest> {
        text::parse(shown.as_bytes(), Some(&self.prefix))
    }

    /// The id of the server behind, as the store keeps it: good for this session alone.
    fn sealed(&self, digest: Digest, inner: Option<&str>) -> Result<ObjectRef, SessionRefused> {
        let state = match inner {
            // "The session ID MUST only contain visible ASCII characters (ranging from 0x21 to 0x7E)."
            Some(id)
                if id.len() <= LONGEST_INNER && !id.is_empty() && id.bytes().all(|byte| byte.is_ascii_graphic()) =>
            {
                [&[INNER], id.as_bytes()].concat()
            }
            Some(_) => return Err(SessionDenial::Unusable.into()),
            None => Vec::new(),
        };
        self.vault.keep(digest, &state).ok_or_else(|| SessionDenial::Unavailable.into())
    }

    fn opened(&self, digest: Digest, reference: &ObjectRef) -> Result<Option<SecretText>, SessionRefused> {
        // Its key is gone, or it is not of this session: then the way to the server behind is lost.
        let opened = self.vault.take(digest, reference).ok_or(SessionDenial::Lost)?;
        match opened.split_first() {
            Some((&INNER, id)) => {
                let id = std::str::from_utf8(id).map_err(|_| SessionDenial::Lost)?;
                Ok(Some(SecretText::new(id)))
            }
            _ => Ok(None),
        }
    }

    fn record(
        &self,
        action: Action,
        caller: Option<&Caller>,
        digest: Option<Digest>,
        denial: Option<SessionDenial>,
    ) -> Result<(), SessionRefused> {
        let event = AuditEvent::of_session(action, caller, &self.keys, digest, denial);
        self.audit.record(&event).map_err(|_| SessionDenial::Unavailable.into())
    }

    fn counted(&self, denial: SessionDenial) {
        match denial {
            SessionDenial::Malformed | SessionDenial::Unknown | SessionDenial::Over | SessionDenial::Lost => {
                tally::count(tally::REINIT_REJECTED);
            }
            SessionDenial::Forked => tally::count(tally::SILENT_REINIT),
            SessionDenial::ForeignPrincipal | SessionDenial::ForeignClient => tally::count(tally::MISMATCH),
            _ => {}
        }
    }
}

fn action(asked: Asked) -> Action {
    match asked {
        Asked::Begin => Action::BeginSession,
        Asked::Use => Action::UseSession,
        Asked::End => Action::EndSession,
    }
}

/// An identifier that this module has written.
fn parsed<T: std::str::FromStr>(text: &str) -> Result<T, SessionRefused> {
    text.parse().map_err(|_| SessionDenial::Unavailable.into())
}

impl fmt::Debug for SessionAuthority {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut out = out.debug_struct("SessionAuthority");
        out.field("audience", &self.audience).field("options", &self.options).finish_non_exhaustive()
    }
}
