//! The honest server: one request in, one result or refusal out. Knows no transport.

use std::sync::{
    Arc, Mutex, MutexGuard, PoisonError,
    atomic::{AtomicU64, Ordering},
};

use handfast_wire::message::{Object, Request};
use serde_json::Value;

use crate::{
    answer::Refused,
    caller::{Principal, Shown},
    clock::Clock,
    conform,
    gate::Gate,
    guards::Guards,
    late::Late,
    manner::Manner,
    prompts,
    state::{Claims, Key},
    surface,
    tasks::Tasks,
    tickets::Tickets,
    tools,
    workspaces::{Door, Keeper, Workspace},
};

/// One server, with its guards and all that it keeps.
pub(crate) struct Server {
    pub(crate) guards: Box<dyn Guards>,
    pub(crate) clock: Arc<Clock>,
    pub(crate) tickets: Tickets,
    pub(crate) key: Key,
    pub(crate) tasks: Tasks,
    pub(crate) late: Late,
    /// Who gets in over HTTP, where tokens are known.
    pub(crate) gate: Option<Box<dyn Gate>>,
    keeper: Mutex<Keeper>,
    purges: AtomicU64,
}

impl Server {
    pub(crate) fn new(guards: Box<dyn Guards>) -> Self {
        let clock = Arc::<Clock>::default();
        Self {
            guards,
            tickets: Tickets::new(Arc::clone(&clock)),
            clock,
            key: Key::random(),
            tasks: Tasks::default(),
            late: Late::default(),
            gate: None,
            keeper: Mutex::default(),
            purges: AtomicU64::new(0),
        }
    }

    /// The same behind a gate.
    pub(crate) fn gated(guards: Box<dyn Guards>, gate: Box<dyn Gate>) -> Self {
        Self { gate: Some(gate), ..Self::new(guards) }
    }

    pub(crate) fn manner(&self) -> Manner {
        self.guards.manner()
    }

    pub(crate) fn identify(&self, shown: Shown<'_>) -> Option<Principal> {
        self.guards.identify(shown)
    }

    /// Answers one request of an identified caller.
    pub(crate) fn answer(&self, request: &Request, caller: &Principal) -> Result<Value, Refused> {
        let Request { method, params, .. } = request;
        let manner = self.manner();
        conform::method(method, manner)?;
        let client = conform::metadata(params)?;
        match method.as_str() {
            "server/discover" => Ok(surface::discover(manner.answers_with_tasks)),
            "tools/list" => conform::no_cursor(params).map(|()| surface::tools(&manner)),
            "prompts/list" => conform::no_cursor(params).map(|()| surface::prompts(manner.handles)),
            "resources/list" => conform::no_cursor(params).map(|()| surface::resources()),
            "resources/templates/list" => conform::no_cursor(params).map(|()| surface::templates(manner.handles)),
            "tools/call" => {
                let result = tools::call(self, caller, &client, params)?;
                let finished = result["resultType"] == "complete";
                let as_task = manner.answers_with_tasks && client.tasks() && finished;
                Ok(if as_task { self.tasks.begin(&*self.guards, caller, result) } else { result })
            }
            "prompts/get" => prompts::prompt(self, caller, &client, params),
            "resources/read" => prompts::resource(self, caller, &client, params),
            _ => self.tasks.answer(&*self.guards, method, caller, params),
        }
    }

    pub(crate) fn keeper(&self) -> MutexGuard<'_, Keeper> {
        self.keeper.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Opens the workspace behind a handle for this caller by this door, and uses it.
    ///
    /// `None` means unknown, foreign or expired; from outside these are one and the same.
    pub(crate) fn resolve<T>(
        &self,
        door: Door,
        caller: &Principal,
        presented: &str,
        use_it: impl FnOnce(&mut Workspace) -> T,
    ) -> Option<T> {
        let mut keeper = self.keeper();
        let place = self.guards.place(caller, presented);
        if keeper.at(&place).is_none() {
            let mut unminted = self.guards.unknown(caller, presented)?;
            if !self.guards.remembers() {
                return Some(use_it(&mut unminted));
            }
            keeper.put(place.clone(), unminted);
        }
        let workspace = keeper.at(&place)?;
        if self.guards.lapsed(workspace) || !self.guards.admits(door, caller, workspace) {
            return None;
        }
        workspace.touched = self.clock.milliseconds();
        let used = use_it(workspace);
        if self.guards.spends(door) {
            keeper.forget(&place);
        }
        Some(used)
    }

    /// Whether nothing was done by these claims before. What has no nonce cannot be told from others.
    pub(crate) fn uses_first(&self, claims: &Claims) -> bool {
        claims.nonce.is_empty()
            || match self.guards.writes_at_once() {
                true => self.tickets.uses_first(&claims.nonce),
                false => self.late.uses_first(&claims.nonce),
            }
    }

    pub(crate) fn count_purge(&self) {
        self.purges.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn purges(&self) -> u64 {
        self.purges.load(Ordering::Relaxed)
    }
}

/// A parameter that must be a text.
pub(crate) fn text<'p>(params: &'p Object, name: &str) -> Result<&'p str, Refused> {
    params.get(name).and_then(Value::as_str).ok_or_else(|| Refused::params(format!("`{name}` must be a string")))
}
