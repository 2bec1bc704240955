//! Where the verifier works: its callers, its objects, both replicas, and a ledger of everything that it asked of them.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Arc, Mutex, MutexGuard, PoisonError, atomic::AtomicBool},
    time::Duration,
};

use super::{
    Replicas, Target,
    target::{Cut, Watch, World},
};
use crate::{
    audit::Action,
    caller::{Caller, ClientId, Issuer, Principal, Scope, ScopeSet, Tenant},
    clock::{Clock, ManualClock, later},
    handle::{Grant, Handles, Need, Setup},
    keys::Keys,
    policy::Policy,
    record::{Digest, Object, ObjectRef, ObjectType, ObjectVersion, Reason, Receipt, Why},
    refusal::Denial,
    secret::{hex, random},
    store::{Selector, Store},
};

/// What a property says: what was seen, or what speaks against it.
pub(super) type Outcome = Result<String, String>;

/// Where the verifier works.
pub struct Lab {
    targets: [Arc<dyn Target>; 2],
    /// The same store as the first target's, under another version of the policy.
    pub(super) other_policy: Arc<dyn Target>,
    /// The same store as the first target's, as long as it is not cut off.
    pub(super) cut: (Arc<dyn Target>, Arc<Cut>),
    pub(super) stores: [Arc<dyn Store>; 2],
    pub(super) clock: Arc<ManualClock>,
    pub(super) world: Arc<World>,
    watch: Arc<Watch>,
    ledger: Mutex<Ledger>,
    /// Part of every name that the verifier uses, and of nobody else's.
    pub(super) run: String,
}

/// What was asked, and what came of it.
#[derive(Default)]
struct Ledger {
    entries: Vec<Entry>,
    handles: BTreeSet<String>,
}

type Entry = (Action, Option<Digest>, Option<Denial>);

/// Which replica.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum On {
    One,
    Other,
}

/// How long the verifier's handles live, and how long unused.
pub(super) const LIFETIME: Duration = Duration::from_secs(10);
pub(super) const IDLE: Duration = Duration::from_secs(4);
/// What stands before them.
pub(super) const PREFIX: &str = "hfv";

impl Lab {
    /// A laboratory over this store.
    ///
    /// # Panics
    /// When the operating system gives no random bytes.
    #[must_use]
    pub fn new(replicas: Replicas) -> Self {
        Self::sabotaged(replicas, |target| target)
    }

    /// The same, with every target wrapped: to see the verifier find what is wrong with the wrapper.
    ///
    /// # Panics
    /// When the operating system gives no random bytes.
    #[must_use]
    pub fn sabotaged(replicas: Replicas, wrap: impl Fn(Arc<dyn Target>) -> Arc<dyn Target>) -> Self {
        let Replicas { one, other, clock } = replicas;
        let run = hex(&random()[..6]);
        let (world, watch, keys) =
            (Arc::new(World::default()), Arc::new(Watch::default()), Keys::dangerous_for_this_process_only());
        let target = |store: &Arc<dyn Store>, version: &str| {
            let setup = Setup {
                store: store.clone(),
                policy: policy(&format!("verify-{run}-{version}")),
                keys: keys.clone(),
                authority: world.clone(),
                audit: watch.clone(),
            };
            wrap(Arc::new(Handles::new(setup)))
        };
        let cut = Arc::new(Cut { inner: one.clone(), off: AtomicBool::new(false) });
        let cut_store: Arc<dyn Store> = cut.clone();
        Self {
            targets: [target(&one, "1"), target(&other, "1")],
            other_policy: target(&one, "2"),
            cut: (target(&cut_store, "1"), cut),
            stores: [one, other],
            clock,
            world,
            watch,
            ledger: Mutex::default(),
            run,
        }
    }

    /// Sets the clock to the time by which the store judges: never before its newest record.
    pub(super) async fn set_clock(&self) {
        for store in &self.stores {
            // A store that does not answer is found out by every property.
            if let Ok(listed) = store.list(&Selector::everything(), None, 0).await {
                self.clock.set(listed.now.max(Clock::now(&*self.clock)));
            }
        }
    }

    /// The verifier's first user, with everything complete.
    pub(super) fn owner(&self) -> Caller {
        self.caller(&format!("alice-{}", self.run), "client-1", &self.tenant("1"))
    }

    pub(super) fn caller(&self, subject: &str, client: &str, tenant: &Tenant) -> Caller {
        let issuer = Issuer::new(format!("urn:handfast:verify:{}", self.run)).expect("an issuer");
        let principal = Principal::new(issuer, subject).expect("a principal");
        let client = ClientId::new(format!("verify-{}-{client}", self.run)).expect("a client");
        Caller::trusted(principal).in_tenant(tenant.clone()).by_client(client)
    }

    /// A tenant of the verifier's own.
    pub(super) fn tenant(&self, name: &str) -> Tenant {
        Tenant::new(format!("handfast-verify-{}-{name}", self.run)).expect("a tenant")
    }

    /// A new object, which exists.
    pub(super) fn object(&self) -> Object {
        let reference = ObjectRef::new(format!("object-{}", hex(&random()[..8]))).expect("a reference");
        self.world.set(reference.clone(), Some(version("1")));
        Object { kind: kind("basket"), reference, version: version("1") }
    }

    /// A handle of the owner to a new object, for reading only, minted on the first replica.
    pub(super) async fn handle(&self) -> Result<(String, Object), String> {
        let object = self.object();
        let handle = self.mint(&self.owner(), object.clone()).await?;
        Ok((handle, object))
    }

    pub(super) async fn mint(&self, caller: &Caller, object: Object) -> Result<String, String> {
        let minted = self.mint_at(&*self.targets[0], caller, object).await;
        minted.map_err(|denial| format!("a handle that is allowed was not made: {denial}"))
    }

    pub(super) async fn mint_at(&self, at: &dyn Target, caller: &Caller, object: Object) -> Result<String, Denial> {
        let scopes = ScopeSet::new(["read"]).expect("a scope");
        let minted = at.mint(caller, Grant { object, scopes }).await;
        if let Ok(handle) = &minted {
            self.ledger().handles.insert(handle.clone());
        }
        self.note(Action::Mint, minted.as_ref().ok().map(|handle| Digest::of(handle)), minted.as_ref().err());
        minted
    }

    pub(super) async fn resolve(
        &self,
        on: On,
        caller: &Caller,
        presented: &str,
        need: &Need,
    ) -> Result<ObjectVersion, Denial> {
        self.resolve_at(self.target(on), caller, presented, need).await
    }

    pub(super) async fn resolve_at(
        &self,
        at: &dyn Target,
        caller: &Caller,
        presented: &str,
        need: &Need,
    ) -> Result<ObjectVersion, Denial> {
        let resolved = at.resolve(caller, presented, need).await;
        self.note(Action::Resolve, digest(presented), resolved.as_ref().err());
        resolved
    }

    /// A stranger's attempt, on both replicas: it must be refused with this denial, and no object may be fetched.
    pub(super) async fn refused(
        &self,
        who: &str,
        caller: &Caller,
        presented: &str,
        need: &Need,
        expected: Denial,
    ) -> Result<(), String> {
        let loads = self.world.loads();
        for on in [On::One, On::Other] {
            match self.resolve(on, caller, presented, need).await {
                Ok(_) => return Err(format!("{who} was accepted")),
                Err(denial) if denial != expected => {
                    return Err(format!("{who} was refused as {denial}, not as {expected}"));
                }
                Err(_) => {}
            }
        }
        if self.world.loads() != loads {
            return Err(format!("{who} was refused, but the object was fetched before that"));
        }
        Ok(())
    }

    /// The owner's attempt, on both replicas: it must succeed.
    pub(super) async fn accepted(&self, what: &str, presented: &str) -> Result<(), String> {
        for on in [On::One, On::Other] {
            if let Err(denial) = self.resolve(on, &self.owner(), presented, &read()).await {
                return Err(format!("{what}: the owner was refused as {denial}"));
            }
        }
        Ok(())
    }

    pub(super) async fn advance(&self, on: On, presented: &str, to: &str) -> Result<(), Denial> {
        let advanced = self.target(on).advance(&self.owner(), presented, &read(), version(to)).await;
        self.note_advance(presented, advanced)
    }

    pub(super) fn note_advance(&self, presented: &str, advanced: Result<(), (Action, Denial)>) -> Result<(), Denial> {
        let refused = |at| advanced.as_ref().err().filter(|(action, _)| *action == at).map(|(_, denial)| denial);
        self.note(Action::Resolve, digest(presented), refused(Action::Resolve));
        if refused(Action::Resolve).is_none() {
            self.note(Action::Advance, digest(presented), refused(Action::Advance));
        }
        advanced.map_err(|(_, denial)| denial)
    }

    pub(super) async fn revoke(&self, on: On, caller: &Caller, presented: &str, reason: &str) -> Result<(), Denial> {
        let revoked = self.target(on).revoke(caller, &kind("basket"), presented, why(reason)).await;
        self.note(Action::Revoke, digest(presented), revoked.as_ref().err());
        revoked
    }

    pub(super) async fn revoke_all(&self, which: &Selector, expected: &[&str]) -> Result<(), String> {
        let revoked = self.targets[0].revoke_all(which, &why("verified in bulk")).await;
        for handle in expected {
            self.note(Action::Revoke, digest(handle), None);
        }
        self.note(Action::Revoke, None, revoked.as_ref().err());
        match revoked {
            Ok(count) if count == expected.len() as u64 => Ok(()),
            Ok(count) => Err(format!("{count} were revoked, not {}", expected.len())),
            Err(denial) => Err(format!("the store did not revoke: {denial}")),
        }
    }

    pub(super) fn target(&self, on: On) -> &dyn Target {
        match on {
            On::One => &*self.targets[0],
            On::Other => &*self.targets[1],
        }
    }

    /// A target that can be taken into a task.
    pub(super) fn shared(&self, on: On) -> Arc<dyn Target> {
        self.targets[usize::from(on == On::Other)].clone()
    }

    pub(super) fn wait(&self, by: Duration) {
        self.clock.set(later(Clock::now(&*self.clock), by));
    }

    pub(super) fn note(&self, action: Action, handle: Option<Digest>, denial: Option<&Denial>) {
        self.ledger().entries.push((action, handle, denial.copied()));
    }

    fn ledger(&self) -> MutexGuard<'_, Ledger> {
        self.ledger.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Every call has its event, every event its call, and no event says what it must not.
    pub(super) async fn audit_reconciled(&self) -> Outcome {
        let (ledger, events) = (self.ledger(), self.watch.events());
        let mut open: BTreeMap<(Action, Option<Digest>, &str), i64> = BTreeMap::new();
        let decision = |denial: Option<Denial>| denial.map_or("allowed", Denial::slug);
        for (action, handle, denial) in &ledger.entries {
            *open.entry((*action, *handle, decision(*denial))).or_default() += 1;
        }
        for event in &events {
            *open.entry((event.action, event.handle, decision(event.denial))).or_default() -= 1;
        }
        if let Some(((action, _, decision), count)) = open.into_iter().find(|(_, count)| *count != 0) {
            let side = if count > 0 { "calls without an event" } else { "events without a call" };
            return Err(format!("{} {side}: {} {decision}", count.abs(), action.slug()));
        }
        let told: String = events.iter().map(|event| event.json().to_string()).collect();
        let subject = format!("alice-{}", self.run);
        let secrets = ledger.handles.iter().map(String::as_str).chain([subject.as_str()]);
        if secrets.into_iter().any(|secret| told.contains(secret)) {
            return Err("an event tells a handle or a subject".into());
        }
        Ok(format!("{} calls, {} events, and none tells a handle or a subject", ledger.entries.len(), events.len()))
    }

    /// Removes every record that the verifier made, and looks whether one is left.
    pub(super) async fn nothing_left_behind(&self) -> Outcome {
        let digests: Vec<Digest> = self.ledger().handles.iter().map(|handle| Digest::of(handle)).collect();
        let removed = self.stores[0].erase(&digests).await.map_err(|error| error.to_string())?;
        for tenant in ["1", "2"] {
            let which = Selector::everything().and_tenant(self.tenant(tenant));
            let left = self.stores[1].list(&which, None, 10).await.map_err(|error| error.to_string())?.records;
            if !left.is_empty() {
                return Err(format!("{} records of the tenant {} are left", left.len(), self.tenant(tenant)));
            }
        }
        Ok(format!("{removed} records were removed, and none is left"))
    }
}

fn policy(version: &str) -> Policy {
    let (lifetime, idle) = (LIFETIME.as_secs(), IDLE.as_secs());
    let rules = format!(
        "lifetime = \"{lifetime}s\"\nidle = \"{idle}s\"\nscopes = [\"read\", \"write\"]\nprefix = \"{PREFIX}\"\n\
         created_by = \"create\"\n"
    );
    Policy::from_toml(&format!("version = \"{version}\"\n[objects.basket]\n{rules}[objects.order]\n{rules}"))
        .expect("the verifier's own policy is one")
}

/// The digest of what has the form of a handle of the verifier.
pub(super) fn digest(presented: &str) -> Option<Digest> {
    let prefix = PREFIX.parse().expect("a prefix");
    crate::handle::text::parse(presented.as_bytes(), Some(&prefix))
}

pub(super) fn kind(name: &str) -> ObjectType {
    ObjectType::new(name).expect("a type")
}

pub(super) fn version(text: &str) -> ObjectVersion {
    ObjectVersion::new(text).expect("a version")
}

/// What the verifier's handles allow.
pub(super) fn read() -> Need {
    need("basket", "read")
}

pub(super) fn need(object: &str, scope: &str) -> Need {
    Need::new(kind(object), Scope::new(scope).expect("a scope"))
}

pub(super) fn why(reason: &str) -> Why {
    Why { reason: Reason::new(reason).expect("a reason"), receipt: Receipt::new("handfast-verify").expect("a receipt") }
}
