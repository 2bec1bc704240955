//! Handles in front of a server that cannot be changed: what it calls its objects never leaves, and what leaves in their
//! place is worth nothing to anybody but the caller to whom the server gave it.
//!
//! The same name becomes the same handle whenever the same caller is given it, and whoever was given it first owns it:
//! to everybody else it becomes a handle that opens nothing.
//!
//! ```
//! # use std::sync::Arc;
//! # use handfast::{clock::SystemClock, names::{Form, Names, NamesSetup}, store::MemoryStore, *};
//! # tokio::runtime::Runtime::new()?.block_on(async {
//! let policy = Policy::from_toml(r#"
//!     version = "1"
//!
//!     [objects.basket]
//!     lifetime = "7d"
//!     scopes = ["use"]
//!     bound = ["principal"]
//!     created_by = "create_basket"
//!     prefix = "basket"
//! "#)?;
//! let names = Names::new(NamesSetup {
//!     store: Arc::new(MemoryStore::new(Arc::new(SystemClock))),
//!     policy,
//!     keys: Keys::dangerous_for_this_process_only(),
//!     audience: "https://mcp.example.com/mcp".parse()?,
//!     audit: Arc::new(DangerousNoAudit),
//! })?;
//! let caller = |subject| Principal::new("https://id.example".parse()?, subject).map(Caller::trusted);
//! let (alice, bob) = (caller("alice")?, caller("bob")?);
//!
//! let shown = names.conceal(&alice, &"basket".parse()?, "17", Form::Text).await?;
//! assert_eq!(names.reveal(&alice, shown.handle().expose()).await?.inner().expose(), "17");
//! assert!(names.reveal(&bob, shown.handle().expose()).await.is_err());
//!
//! let told = names.conceal(&bob, &"basket".parse()?, "17", Form::Text).await?;
//! assert!(!told.is_own() && names.reveal(&bob, told.handle().expose()).await.is_err());
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! # })?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

use std::{sync::Arc, time::Duration};

use thiserror::Error;

use crate::{
    audit::{Action, AuditSink},
    caller::{Audience, Caller, ScopeSet, Tenant},
    handle::{
        Asked, BackendDown, Handle, Handles, Loaded, MintError, Need, NotAuthorized, ObjectAuthority, Setup,
        decide::owned, partition,
    },
    keys::Keys,
    policy::{Policy, Rules},
    record::{Digest, Key, NewRecord, Object, ObjectType, ObjectVersion, Partition, Record},
    refusal::{Denial, Refused},
    secret::SecretText,
    store::{Found, Store, StoreError},
    vault::Vault,
};

/// Conceals what a server calls its objects, and reveals it to their owners.
pub struct Names {
    handles: Handles<Whatever>,
    vault: Vault,
    scopes: ScopeSet,
    /// What a caller may present, by how it begins.
    needs: Vec<(String, Need)>,
}

/// What [`Names`] are made of.
pub struct NamesSetup {
    /// Where records are kept: a store that is shared where there are several replicas.
    pub store: Arc<dyn Store>,
    /// Every kind of object, each with a prefix of its own and the scope `use`.
    pub policy: Policy,
    /// The operator's keys.
    pub keys: Keys,
    /// The server in front of which this stands.
    pub audience: Audience,
    /// Where events go.
    pub audit: Arc<dyn AuditSink>,
}

/// Why there are no [`Names`] under a policy.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum NamesError {
    /// A kind of object has no prefix: what a caller presents would not say what it is.
    #[error("objects.{0}: there must be a prefix")]
    NoPrefix(ObjectType),
    /// Two kinds of objects have one prefix.
    #[error("objects.{0}: another kind of object has this prefix")]
    SamePrefix(ObjectType),
    /// A kind of object has not the scope `use`.
    #[error("objects.{0}: the scopes must be [\"use\"]")]
    Scopes(ObjectType),
}

/// What a caller is shown in the place of a name.
#[derive(Debug)]
pub struct Concealed {
    handle: Handle,
    own: bool,
}

impl Concealed {
    /// What is shown.
    #[must_use]
    pub fn handle(&self) -> &Handle {
        &self.handle
    }

    /// Whether the name is the caller's. Where it is not, what is shown opens nothing.
    #[must_use]
    pub fn is_own(&self) -> bool {
        self.own
    }
}

/// How the server behind writes a name in JSON. The same name in the other form is the same name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    /// As a string.
    Text,
    /// As a number.
    Number,
}

/// A name that was revealed to its owner.
#[derive(Debug)]
pub struct Revealed {
    kind: ObjectType,
    inner: SecretText,
    form: Form,
}

impl Revealed {
    /// Which kind of object it names.
    #[must_use]
    pub fn kind(&self) -> &ObjectType {
        &self.kind
    }

    /// The name, as the server behind knows it.
    #[must_use]
    pub fn inner(&self) -> &SecretText {
        &self.inner
    }

    /// How the server behind wrote it when it was first concealed.
    #[must_use]
    pub fn form(&self) -> Form {
        self.form
    }
}

impl Names {
    /// Names of the objects of this policy.
    ///
    /// # Errors
    /// Says which kind of object cannot be told apart, or not be used.
    pub fn new(setup: NamesSetup) -> Result<Self, NamesError> {
        let NamesSetup { store, policy, keys, audience, audit } = setup;
        let mut needs: Vec<(String, Need)> = Vec::new();
        let mut longest = Duration::ZERO;
        for rules in policy.all_rules() {
            let kind = rules.object.clone();
            let Some(prefix) = &rules.prefix else { return Err(NamesError::NoPrefix(kind)) };
            let prefix = format!("{prefix}_");
            if needs.iter().any(|(known, _)| *known == prefix) {
                return Err(NamesError::SamePrefix(kind));
            }
            let scope = rules.scopes.iter().find(|scope| scope.as_str() == USE).cloned();
            let Some(scope) = scope else { return Err(NamesError::Scopes(kind)) };
            longest = longest.max(rules.lifetime);
            needs.push((prefix, Need::new(kind, scope)));
        }
        let vault = Vault::new(&keys, &audience, longest);
        let scopes = ScopeSet::new([USE]).expect("one scope");
        let handles = Handles::new(Setup { store, policy, keys, authority: Whatever, audit });
        Ok(Self { handles, vault, scopes, needs })
    }

    /// How what is shown begins, for each kind of object: after it come 43 characters of base64url.
    pub fn prefixes(&self) -> impl Iterator<Item = (&str, &ObjectType)> {
        self.needs.iter().map(|(prefix, need)| (prefix.as_str(), &need.object))
    }

    /// What this caller is shown in the place of what the server behind has called an object of this kind.
    ///
    /// Whoever is the first to be given a name owns it, for as long as a handle to it lives.
    ///
    /// # Errors
    /// The caller lacks what the policy binds, the policy knows no such kind, the name is too long, or the store or the
    /// audit cannot keep it. Nothing may be shown then.
    pub async fn conceal(
        &self,
        caller: &Caller,
        kind: &ObjectType,
        inner: &str,
        form: Form,
    ) -> Result<Concealed, MintError> {
        let answer = self.try_conceal(caller, kind, (inner, form)).await;
        // What the caller has been shown before is no event.
        let denial = match &answer {
            Ok((_, News::Known)) => None,
            Ok((_, News::Minted)) => Some(None),
            Ok((_, News::Foreign)) => Some(Some(Denial::ForeignPrincipal)),
            Err(error) => Some(Some(error.denial())),
        };
        if let Some(denial) = denial {
            let mut event = self.handles.event(Action::Mint, caller, kind);
            event.handle = answer.as_ref().ok().map(|(handle, _)| handle.digest());
            event.keep(denial)?;
        }
        let (handle, news) = answer?;
        Ok(Concealed { handle, own: news != News::Foreign })
    }

    async fn try_conceal(
        &self,
        caller: &Caller,
        kind: &ObjectType,
        (inner, form): (&str, Form),
    ) -> Result<(Handle, News), MintError> {
        let rules = self.handles.policy.rules(kind).ok_or_else(|| MintError::ObjectType(kind.clone()))?;
        let subject = self.handles.subject(caller, self.handles.keys.current()).unwrap_or_default();
        let partition = partition(caller, subject, rules).map_err(|_| MintError::IdentityIncomplete(kind.clone()))?;
        let claims = self.claims(kind, inner);
        for _ in 0..MOST_TRIES {
            match self.claimed(caller, rules, &partition, &claims).await? {
                Claimed::Foreign => return Ok((Handle::random(rules.prefix.as_ref()), News::Foreign)),
                Claimed::Own(handle) => return Ok((handle, News::Known)),
                Claimed::Free => {}
            }
            if let Some(handle) = self.claim(rules, &partition, &claims, (inner, form)).await? {
                return Ok((handle, News::Minted));
            }
        }
        Err(StoreError::Duplicate.into())
    }

    /// By what it is found whose a name is: under every key, so that a replica with a newer one finds it as well.
    fn claims(&self, kind: &ObjectType, inner: &str) -> Vec<Digest> {
        let keys = &self.handles.keys;
        let under = |id| keys.name_mac(id, &[kind.as_str().as_bytes(), inner.as_bytes()]).map(Digest);
        let mut claims: Vec<Digest> = keys.ids().filter_map(under).collect();
        // In one order for all replicas: of two that claim at once one is second everywhere.
        claims.sort_unstable();
        claims
    }

    /// Whose a name is. What is over is removed on the way.
    async fn claimed(
        &self,
        caller: &Caller,
        rules: &Rules,
        partition: &Partition,
        claims: &[Digest],
    ) -> Result<Claimed, StoreError> {
        let store = &self.handles.store;
        let (mut known, mut over) = (None, Vec::new());
        for &digest in claims {
            let Some(Found { record, now }) = store.find(&Key { tenant: None, digest }).await? else { continue };
            if record.dead_since(now).is_some() {
                over.push(digest);
                continue;
            }
            // It cannot be read without its key: whosever it is, nobody can show that it is theirs.
            let kept = self.vault.take(digest, &record.object.reference).and_then(read_claim);
            let Some((tenant, handle)) = kept else { return Ok(Claimed::Foreign) };
            let record = Record { partition: Partition { tenant, ..record.partition.clone() }, ..record };
            let mine = self.handles.seen_by(&record, caller, partition.clone());
            // This is the line: a name that somebody else was given is never the caller's.
            if mine.and_then(|mine| owned(&record, &mine, rules)).is_err() {
                return Ok(Claimed::Foreign);
            }
            known = Some(handle);
        }
        if let Some(handle) = known {
            let found = store.find(&Key { tenant: partition.tenant.clone(), digest: handle.digest() }).await?;
            // What was revoked stays so, and its owner is told.
            if found.is_some_and(|found| found.record.revoked.is_some() || found.record.dead_since(found.now).is_none())
            {
                return Ok(Claimed::Own(handle));
            }
            over = claims.to_vec();
            over.push(handle.digest());
        }
        if !over.is_empty() {
            store.erase(&over).await?;
        }
        Ok(Claimed::Free)
    }

    /// Makes a name the caller's, and a handle to it; `None` where somebody was quicker.
    async fn claim(
        &self,
        rules: &Rules,
        partition: &Partition,
        claims: &[Digest],
        (inner, form): (&str, Form),
    ) -> Result<Option<Handle>, MintError> {
        let store = &self.handles.store;
        let handle = Handle::random(rules.prefix.as_ref());
        let version = match form {
            Form::Text => ObjectVersion::unversioned(),
            Form::Number => NUMBER.parse().map_err(|_| MintError::NameTooLong)?,
        };
        let record = |digest, partition, kind: ObjectType, reference, idle| NewRecord {
            digest,
            partition,
            object: Object { kind, reference, version: version.clone() },
            scopes: self.scopes.clone(),
            policy: self.handles.policy.version().clone(),
            lifetime: rules.lifetime,
            idle,
        };
        let kind: ObjectType = CLAIM.parse().map_err(|_| MintError::NameTooLong)?;
        let mut made = Vec::new();
        for &digest in claims {
            let kept = self.vault.keep(digest, &write_claim(partition.tenant.as_ref(), &handle));
            let kept = kept.ok_or(MintError::NameTooLong)?;
            // Whoever asks for it is of any tenant.
            let owner = Partition { tenant: None, ..partition.clone() };
            match store.insert(&record(digest, owner, kind.clone(), kept, None)).await {
                Ok(_) => made.push(digest),
                Err(StoreError::Duplicate) => {
                    store.erase(&made).await?;
                    return Ok(None);
                }
                Err(error) => return Err(error.into()),
            }
        }
        let digest = handle.digest();
        let kept = self.vault.keep(digest, inner.as_bytes()).ok_or(MintError::NameTooLong)?;
        let new = record(digest, partition.clone(), rules.object.clone(), kept, rules.idle);
        store.insert(&new).await?;
        Ok(Some(handle))
    }

    /// What the server behind calls what this caller presents.
    ///
    /// # Errors
    /// A refusal that tells the caller no more than they may know: as of [`Handles::resolve`].
    pub async fn reveal(&self, caller: &Caller, presented: &str) -> Result<Revealed, Refused> {
        // What begins like none of them is refused as any other malformed one.
        let known = self.needs.iter().find(|(prefix, _)| presented.starts_with(prefix));
        let (_, need) = known.unwrap_or(&self.needs[0]);
        self.revealed(caller, presented, need).await
    }

    /// The same where only an object of this kind will do.
    ///
    /// # Errors
    /// As of [`Names::reveal`].
    pub async fn reveal_as(&self, caller: &Caller, kind: &ObjectType, presented: &str) -> Result<Revealed, Refused> {
        match self.needs.iter().find(|(_, need)| need.object == *kind) {
            Some((_, need)) => self.revealed(caller, presented, need).await,
            None => Err(Refused::new(Denial::UnknownScope, kind, None)),
        }
    }

    async fn revealed(&self, caller: &Caller, presented: &str, need: &Need) -> Result<Revealed, Refused> {
        let resolved = self.handles.resolve(caller, presented, need).await?;
        let named = resolved.named();
        let lost = || Refused::new(Denial::UnknownKey, &need.object, self.handles.policy.rules(&need.object));
        let inner = self.vault.take(Digest::of(presented), &named.reference).ok_or_else(lost)?;
        let inner = String::from_utf8(inner).map_err(|_| lost())?;
        let form = if named.version.as_str() == NUMBER { Form::Number } else { Form::Text };
        Ok(Revealed { kind: need.object.clone(), inner: SecretText::new(inner), form })
    }
}

/// Whose a name is, and by which handle: what a claim keeps.
fn write_claim(tenant: Option<&Tenant>, handle: &Handle) -> Vec<u8> {
    let tenant = tenant.map_or("", Tenant::as_str);
    format!("{}\n{tenant}", handle.expose()).into_bytes()
}

fn read_claim(kept: Vec<u8>) -> Option<(Option<Tenant>, Handle)> {
    let kept = String::from_utf8(kept).ok()?;
    let (handle, tenant) = kept.split_once('\n')?;
    let tenant = match tenant {
        "" => None,
        tenant => Some(tenant.parse().ok()?),
    };
    Some((tenant, Handle::known(handle)))
}

/// Whose a name is.
enum Claimed {
    /// Nobody's.
    Free,
    /// The caller's, who has this handle to it.
    Own(Handle),
    /// Somebody else's.
    Foreign,
}

/// What became of a name.
#[derive(Clone, Copy, PartialEq, Eq)]
enum News {
    /// The caller has a handle to it already.
    Known,
    /// A handle was made.
    Minted,
    /// It is somebody else's.
    Foreign,
}

/// Nothing is known of the objects of a server behind: whether they are still there, it says itself.
struct Whatever;

#[async_trait::async_trait]
impl ObjectAuthority for Whatever {
    type Object = ();

    async fn load(&self, object: &Object) -> Result<Option<Loaded<()>>, BackendDown> {
        Ok(Some(Loaded { object: (), version: object.version.clone() }))
    }

    async fn authorize(&self, _: Asked<'_, ()>) -> Result<(), NotAuthorized> {
        Ok(())
    }
}

/// The scope of every handle.
const USE: &str = "use";
/// Of what type the records are that say whose a name is.
const CLAIM: &str = "name";
/// The version of what the server behind names by a number.
const NUMBER: &str = "number";
/// How often it is tried to be the first, or to learn who was.
const MOST_TRIES: usize = 4;
