//! A small shop: baskets, and the callers who want them.
#![allow(dead_code, reason = "no test needs all of it")]

use std::{
    collections::BTreeMap,
    sync::{
        Arc, LazyLock, Mutex,
        atomic::{AtomicU64, Ordering},
    },
};

use handfast::{
    Asked, AuditError, AuditEvent, AuditSink, BackendDown, Caller, ClientId, Denial, Grant, Handles, Issuer, Keys,
    Loaded, Need, NotAuthorized, Object, ObjectAuthority, ObjectRef, ObjectVersion, Policy, Principal, Reason, Receipt,
    Scope, ScopeSet, Setup, Tenant, Why, async_trait,
    clock::{ManualClock, Timestamp},
    store::{MemoryStore, Store},
};
use tokio::sync::Notify;

pub(crate) const POLICY: &str = r#"
version = "2026-11"

[objects.basket]
lifetime = "7d"
idle = "24h"
scopes = ["basket:read", "basket:write", "basket:sell"]
most_scopes = 2
created_by = "create_basket"
prefix = "bsk"

[objects.order]
lifetime = "1h"
scopes = ["order:read", "basket:read"]
created_by = "place_order"
prefix = "bsk"

[objects.pad]
lifetime = "1h"
scopes = ["pad:read"]
bearer = true
created_by = "open_pad"
"#;

/// Read once: some tests make thousands of shops.
static USUAL: LazyLock<Policy> = LazyLock::new(|| Policy::from_toml(POLICY).expect("a policy"));

/// What the shop has, what it was asked, and what it answers.
#[derive(Default)]
pub(crate) struct Shop {
    pub(crate) versions: Mutex<BTreeMap<String, String>>,
    pub(crate) loads: AtomicU64,
    pub(crate) asks: AtomicU64,
    pub(crate) down: Mutex<bool>,
    pub(crate) refuses: Mutex<Option<NotAuthorized>>,
    /// Tells that it was asked, and waits until it may answer.
    pub(crate) gate: Mutex<Option<(Arc<Notify>, Arc<Notify>)>>,
}

impl Shop {
    pub(crate) fn set(&self, reference: &str, version: Option<&str>) {
        let mut versions = self.versions.lock().expect("not poisoned");
        match version {
            Some(version) => versions.insert(reference.into(), version.into()),
            None => versions.remove(reference),
        };
    }

    async fn passed(&self) {
        let gate = self.gate.lock().expect("not poisoned").take();
        if let Some((reached, gate)) = gate {
            reached.notify_one();
            gate.notified().await;
        }
    }

    /// How often the shop was asked for anything.
    pub(crate) fn calls(&self) -> u64 {
        self.loads.load(Ordering::SeqCst) + self.asks.load(Ordering::SeqCst)
    }
}

#[async_trait]
impl ObjectAuthority for Shop {
    type Object = String;

    async fn load(&self, object: &Object) -> Result<Option<Loaded<String>>, BackendDown> {
        self.loads.fetch_add(1, Ordering::SeqCst);
        self.passed().await;
        if *self.down.lock().expect("not poisoned") {
            return Err(BackendDown);
        }
        let version = self.versions.lock().expect("not poisoned").get(object.reference.as_str()).cloned();
        let loaded = |version: String| Loaded {
            object: format!("{} {}", object.kind, object.reference),
            version: ObjectVersion::new(version).expect("a version"),
        };
        Ok(version.map(loaded))
    }

    async fn authorize(&self, asked: Asked<'_, String>) -> Result<(), NotAuthorized> {
        self.asks.fetch_add(1, Ordering::SeqCst);
        if matches!(asked, Asked::Mint { .. }) {
            self.passed().await;
        }
        self.refuses.lock().expect("not poisoned").map_or(Ok(()), Err)
    }
}

/// Keeps events, or says that it cannot.
#[derive(Default)]
pub(crate) struct Log {
    pub(crate) events: Mutex<Vec<AuditEvent>>,
    pub(crate) broken: Mutex<bool>,
}

impl Log {
    pub(crate) fn last(&self) -> AuditEvent {
        self.events.lock().expect("not poisoned").last().cloned().expect("an event")
    }

    pub(crate) fn count(&self) -> usize {
        self.events.lock().expect("not poisoned").len()
    }
}

impl AuditSink for Log {
    fn record(&self, event: &AuditEvent) -> Result<(), AuditError> {
        if *self.broken.lock().expect("not poisoned") {
            return Err(AuditError("the disk is full".into()));
        }
        self.events.lock().expect("not poisoned").push(event.clone());
        Ok(())
    }
}

pub(crate) type Baskets = Handles<Arc<Shop>>;

/// Handles over a store, with the shop and the log behind them.
pub(crate) struct Bench {
    pub(crate) handles: Baskets,
    pub(crate) shop: Arc<Shop>,
    pub(crate) log: Arc<Log>,
    pub(crate) clock: Arc<ManualClock>,
    pub(crate) store: Arc<dyn Store>,
    pub(crate) keys: Keys,
}

impl Bench {
    /// Over an empty store in memory.
    pub(crate) fn new() -> Self {
        let clock = clock();
        let store = Arc::new(MemoryStore::new(clock.clone()));
        Self::over(store, clock)
    }

    pub(crate) fn over(store: Arc<dyn Store>, clock: Arc<ManualClock>) -> Self {
        let keys = Keys::parse(Keys::generate().expose()).expect("a key");
        let (shop, log) = (Arc::new(Shop::default()), Arc::new(Log::default()));
        shop.set("b-1", Some("1"));
        let handles = handles(store.clone(), POLICY, &keys, &shop, &log);
        Self { handles, shop, log, clock, store, keys }
    }

    /// The same store, shop and log, under another policy or other keys.
    pub(crate) fn under(&self, policy: &str, keys: &Keys) -> Baskets {
        handles(self.store.clone(), policy, keys, &self.shop, &self.log)
    }

    /// The same shop, log and keys over another store: another replica.
    pub(crate) fn beside(&self, store: Arc<dyn Store>) -> Baskets {
        handles(store, POLICY, &self.keys, &self.shop, &self.log)
    }

    /// A handle of Alice to the basket `b-1`, for reading and writing.
    pub(crate) async fn minted(&self) -> String {
        let minted = self.handles.mint(&alice(), grant("basket", "b-1", &["basket:read", "basket:write"])).await;
        minted.expect("minted").handle().expose().to_owned()
    }
}

fn handles(store: Arc<dyn Store>, policy: &str, keys: &Keys, shop: &Arc<Shop>, log: &Arc<Log>) -> Baskets {
    Handles::new(Setup {
        store,
        policy: if policy == POLICY { USUAL.clone() } else { Policy::from_toml(policy).expect("a policy") },
        keys: keys.clone(),
        authority: shop.clone(),
        audit: log.clone(),
    })
}

/// Why this is refused.
pub(crate) async fn denied(handles: &Baskets, who: &Caller, presented: &str, need: &Need) -> Denial {
    handles.resolve(who, presented, need).await.map(drop).expect_err("refused").denial()
}

pub(crate) fn clock() -> Arc<ManualClock> {
    Arc::new(ManualClock::at("2026-11-30T12:00:00Z".parse::<Timestamp>().expect("a time")))
}

pub(crate) const ISSUER: &str = "https://id.example";

pub(crate) fn principal(subject: &str) -> Principal {
    Principal::new(Issuer::new(ISSUER).expect("an issuer"), subject).expect("a principal")
}

pub(crate) fn caller(subject: &str, tenant: &str, client: &str) -> Caller {
    Caller::trusted(principal(subject))
        .in_tenant(Tenant::new(tenant).expect("a tenant"))
        .by_client(ClientId::new(client).expect("a client"))
}

pub(crate) fn alice() -> Caller {
    caller("alice@example.com", "acme", "desktop")
}

pub(crate) fn grant(kind: &str, reference: &str, scopes: &[&str]) -> Grant {
    let object = Object {
        kind: kind.parse().expect("a type"),
        reference: ObjectRef::new(reference).expect("a reference"),
        version: "1".parse().expect("a version"),
    };
    Grant { object, scopes: ScopeSet::new(scopes.iter().copied()).expect("scopes") }
}

pub(crate) fn need(kind: &str, scope: &str) -> Need {
    Need::new(kind.parse().expect("a type"), Scope::new(scope).expect("a scope"))
}

pub(crate) fn read() -> Need {
    need("basket", "basket:read")
}

pub(crate) fn why(reason: &str) -> Why {
    Why { reason: Reason::new(reason).expect("a reason"), receipt: Receipt::new("ticket-7").expect("a receipt") }
}
