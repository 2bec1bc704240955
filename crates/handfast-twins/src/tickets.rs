//! Whose a workspace is, and until when: the library's answers.
//!
//! What a twin shows as a handle has many forms, and none of them is the library's. So behind each of them stands a
//! ticket, a handle of the library's that never goes out: whoever presents the one is asked about by the other.

use std::{
    collections::BTreeMap,
    pin::pin,
    sync::Arc,
    task::{Context, Poll, Waker},
};

use async_trait::async_trait;
use handfast::{
    Asked, BackendDown, Caller, Grant, Handle, Handles, Issuer, Keys, Loaded, Need, NotAuthorized, Object,
    ObjectAuthority, Outward, Policy, Refused, Resolved, Setup,
    clock::Timestamp,
    store::{MemoryStore, SpendId, Store as _},
};

use crate::{caller::Principal, clock::Clock, state, tally::Tally, workspaces::Door};

const POLICY: &str = r#"
    version = "1"

    [objects.workspace]
    lifetime = "1h"
    scopes = ["workspace:read", "workspace:write"]
    bound = ["principal", "tenant", "client"]
    created_by = "open_workspace"
"#;

const WORKSPACE: &str = "workspace";

/// Where one server has its tickets from.
pub(crate) struct Tickets {
    handles: Arc<Handles<InHand>>,
    tally: Arc<Tally>,
    store: Arc<MemoryStore>,
}

/// One ticket.
#[derive(Clone)]
pub(crate) struct Ticket {
    handles: Arc<Handles<InHand>>,
    handle: Handle,
}

impl Tickets {
    pub(crate) fn new(clock: Arc<Clock>) -> Self {
        let tally = Arc::<Tally>::default();
        let store = Arc::new(MemoryStore::new(clock));
        let handles = Handles::new(Setup {
            store: Arc::clone(&store) as _,
            policy: Policy::from_toml(POLICY).expect("the policy above is one"),
            keys: Keys::dangerous_for_this_process_only(),
            authority: InHand,
            audit: Arc::clone(&tally) as _,
        });
        Self { handles: Arc::new(handles), tally, store }
    }

    /// Whether nothing was done by this state before; from now on something was. Of two that come at once, one is the first.
    pub(crate) fn uses_first(&self, nonce: &str) -> bool {
        let mut id = [0; 16];
        id.copy_from_slice(&state::digest(nonce)[..16]);
        at_once(self.store.spend(&SpendId::from_bytes(id), Timestamp::MAX)).is_some_and(|first| first.unwrap_or(false))
    }

    /// A ticket for what goes out as this handle; `None` where the library gives none.
    pub(crate) fn issue(&self, owner: &Principal, shown: &str) -> Option<Ticket> {
        let rules = self.handles.policy().rules_for(WORKSPACE)?;
        let reference = shown.parse().ok()?;
        let object = Object { kind: rules.object.clone(), reference, version: VERSION.parse().ok()? };
        let grant = Grant { object, scopes: rules.scopes.clone() };
        let minted = at_once(self.handles.mint(&known(owner)?, grant))?.ok()?;
        Some(Ticket { handles: Arc::clone(&self.handles), handle: minted.handle().clone() })
    }

    /// How often the library decided what.
    pub(crate) fn decisions(&self) -> BTreeMap<String, u64> {
        self.tally.decisions()
    }
}

impl Ticket {
    /// Whether it is this caller's to use by this door. That its time is over does not make it somebody else's.
    pub(crate) fn admits(&self, door: Door, caller: &Principal) -> bool {
        match self.ask(door, caller) {
            Some(Ok(_)) => true,
            Some(Err(refused)) => matches!(refused.outward(), Outward::Expired | Outward::Revoked),
            None => false,
        }
    }

    /// Whether its time is over. The library tells that to nobody but the owner, so it is asked as the owner.
    pub(crate) fn lapsed(&self, owner: &Principal) -> bool {
        !matches!(self.ask(Door::Read, owner), Some(Ok(_)))
    }

    fn ask(&self, door: Door, caller: &Principal) -> Option<Result<Resolved<()>, Refused>> {
        let need = Need::new(WORKSPACE.parse().ok()?, scope(door).parse().ok()?);
        at_once(self.handles.resolve(&known(caller)?, self.handle.expose(), &need))
    }
}

fn scope(door: Door) -> &'static str {
    match door {
        Door::Read | Door::First | Door::Beside | Door::Source | Door::Prompt | Door::Resource => "workspace:read",
        Door::Append | Door::Archive | Door::Purge | Door::Share | Door::Close => "workspace:write",
    }
}

/// The caller, as the library knows callers.
///
/// A name is whatever somebody showed: a token may be longer than any subject, and a claim may hold control characters.
/// Its digest is a subject in any case.
fn known(name: &Principal) -> Option<Caller> {
    let issuer = Issuer::new("urn:handfast:twin").ok()?;
    let subject = state::sha256(name.as_str());
    let caller = handfast::Principal::new(issuer, &subject).ok().map(Caller::trusted)?;
    Some(caller.in_tenant(name.tenant().parse().ok()?).by_client(name.client().parse().ok()?))
}

/// A twin asks about workspaces that it has in hand: none is gone, none has versions, and nobody has a say but the owner.
struct InHand;

const VERSION: &str = "1";

#[async_trait]
impl ObjectAuthority for InHand {
    type Object = ();

    async fn load(&self, _object: &Object) -> Result<Option<Loaded<()>>, BackendDown> {
        Ok(VERSION.parse().ok().map(|version| Loaded { object: (), version }))
    }

    async fn authorize(&self, _asked: Asked<'_, ()>) -> Result<(), NotAuthorized> {
        Ok(())
    }
}

/// The library waits for its store, and a store in memory answers at once: one look is enough. `None` would be a store
/// that wants to be waited for, and that is refused.
fn at_once<T>(answer: impl Future<Output = T>) -> Option<T> {
    match pin!(answer).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(answer) => Some(answer),
        Poll::Pending => None,
    }
}
