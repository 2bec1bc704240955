//! The guards of the honest server. A flaw overrides one of them; whatever it leaves alone stays sound. Whose a
//! handle is and whether its time is over, the sound ones ask the library.

use crate::{
    caller::{Principal, Shown},
    manner::Manner,
    pages::{self, Place},
    state::{self, BadState, Claims, Key, Retry},
    tasks::Deed,
    workspaces::{self, Door, Workspace},
};

/// Everything that a server of this kind has to check, each with its sound answer.
pub(crate) trait Guards: Send + Sync {
    /// How it speaks. Not a guard.
    fn manner(&self) -> Manner {
        Manner::PLAIN
    }

    /// Who is calling; `None` is answered by 401.
    fn identify(&self, shown: Shown<'_>) -> Option<Principal> {
        match shown {
            Shown::Bearer(token) => token.map(Principal::new),
            Shown::Claimed(name) => Some(name.map_or_else(Principal::local, Principal::new)),
        }
    }

    /// Whether what is minted is also kept.
    fn remembers(&self) -> bool {
        true
    }

    /// Where a presented handle is looked up: one name space for all callers.
    fn place(&self, _caller: &Principal, presented: &str) -> String {
        presented.to_owned()
    }

    /// What a handle that nobody minted opens: nothing.
    fn unknown(&self, _caller: &Principal, _presented: &str) -> Option<Workspace> {
        None
    }

    /// Whether this caller may use this workspace by this door.
    fn admits(&self, door: Door, caller: &Principal, workspace: &Workspace) -> bool {
        // Possession of a handle is not authentication: the caller must be the one it was minted for.
        workspace.admits(door, caller)
    }

    /// Whether the handle's time is over.
    fn lapsed(&self, workspace: &Workspace) -> bool {
        workspace.lapsed()
    }

    /// Whether this use is the handle's last.
    fn spends(&self, _door: Door) -> bool {
        false
    }

    /// Whether what is closed is gone.
    fn closes(&self) -> bool {
        true
    }

    /// Whether the number of what was closed is given out again.
    fn reuses_numbers(&self) -> bool {
        false
    }

    /// Whether a header that repeats an argument has to say the same.
    fn compares_headers(&self) -> bool {
        true
    }

    /// Under whose name notes are kept that belong to no workspace.
    fn memory_of(&self, caller: &Principal) -> String {
        caller.to_string()
    }

    /// Whether an answer goes to the connection that the request came by.
    fn answers_by_connection(&self) -> bool {
        true
    }

    /// Whether answers without a state are answers to a question that was never asked.
    fn waits_to_be_asked(&self) -> bool {
        true
    }

    /// Whether a no leaves it undone; `why` is how it was said.
    fn heeds(&self, _why: &str) -> bool {
        true
    }

    /// Whether an answer has to name what the question is about, where the question wants that.
    fn compares_name(&self) -> bool {
        true
    }

    /// Whether a client is asked only what it declared that it can answer.
    fn minds_capabilities(&self) -> bool {
        true
    }

    /// Whether this caller may do this to somebody's task.
    fn admits_to_task(&self, _deed: Deed, caller: &Principal, owner: &Principal) -> bool {
        // "Servers MUST perform authentication and authorization checks on each task-related request."
        caller == owner
    }

    /// What the task of this number is called.
    fn task_id(&self, _number: u64) -> String {
        format!("task-{}", workspaces::random_hex())
    }

    /// What goes into a state to make it one of its kind: what else is the same in two of them, this is not.
    fn nonce(&self, _caller: &Principal) -> String {
        workspaces::random_hex()[..NONCE].to_owned()
    }

    /// What is said to a state by which something would be done: good, the first time.
    fn once(&self, first: bool) -> Result<(), BadState> {
        // "Servers for which a given `requestState` must be consumed at most once MUST enforce that invariant server-side."
        if first { Ok(()) } else { Err(BadState::Invalid) }
    }

    /// Whether a use is written down in the same step in which it is looked up.
    fn writes_at_once(&self) -> bool {
        true
    }

    /// Writes where a list goes on.
    fn seal_cursor(&self, place: &Place, key: &Key) -> String {
        pages::signed(place, key)
    }

    /// Reads where a list is to go on, for this caller.
    fn open_cursor(&self, presented: &str, list: &str, caller: &Principal, key: &Key) -> Option<Place> {
        pages::verified(presented, key).filter(|place| place.list == list && place.owner == caller.as_str())
    }

    /// Writes a state that will come back through somebody else's hands.
    fn seal(&self, claims: &Claims, key: &Key) -> String {
        state::signed(claims, key)
    }

    /// Reads a state that came back.
    fn open(&self, presented: &str, retry: &Retry<'_>) -> Result<Claims, BadState> {
        // "Servers MUST treat `requestState` as an attacker-controlled input."
        let claims = state::verified(presented, retry.key)?;
        retry.covers(&claims)?;
        Ok(claims)
    }
}

/// Short enough to be no signature.
const NONCE: usize = 16;
