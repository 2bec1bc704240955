//! What the server keeps: workspaces with an owner, notes and a ticket, each behind a random handle.

use std::collections::BTreeMap;

use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};
use serde_json::json;

use crate::{caller::Principal, manner::Handles, tickets::Ticket};

/// The ways by which a handle can be used. Each is guarded on its own, so each can be forgotten on its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Door {
    Read,
    Append,
    Archive,
    Purge,
    Share,
    Close,
    /// As the first of several handles.
    First,
    /// As one after the first.
    Beside,
    /// As that from which something is copied into another.
    Source,
    Prompt,
    Resource,
}

/// One workspace.
#[derive(Clone)]
pub(crate) struct Workspace {
    pub(crate) handle: String,
    /// The library's handle behind the one that is shown; none where nothing was minted.
    pub(crate) ticket: Option<Ticket>,
    pub(crate) label: String,
    pub(crate) owner: Principal,
    pub(crate) notes: Vec<String>,
    pub(crate) archived: u64,
    /// When it was last used, in milliseconds.
    pub(crate) touched: u64,
    /// Twelve random digits that are its own.
    pub(crate) code: String,
}

impl Workspace {
    pub(crate) fn new(handle: &str, label: &str, owner: &Principal) -> Self {
        let (handle, label, owner) = (handle.to_owned(), label.to_owned(), owner.clone());
        Self { handle, ticket: None, label, owner, notes: Vec::new(), archived: 0, touched: 0, code: random_digits() }
    }

    /// Whether it is this caller's to use by this door. What was not minted was minted for nobody.
    pub(crate) fn admits(&self, door: Door, caller: &Principal) -> bool {
        self.ticket.as_ref().is_some_and(|ticket| ticket.admits(door, caller))
    }

    /// Whether its time is over. What was not minted was given none.
    pub(crate) fn lapsed(&self) -> bool {
        self.ticket.as_ref().is_some_and(|ticket| ticket.lapsed(&self.owner))
    }

    /// The workspace itself and its notes.
    pub(crate) fn items(&self) -> u64 {
        1 + self.notes.len() as u64
    }
}

/// All workspaces of one server. Decides nothing.
#[derive(Default)]
pub(crate) struct Keeper {
    all: BTreeMap<String, Workspace>,
    /// Where a share link leads.
    links: BTreeMap<String, String>,
    minted: u64,
    /// Numbers of what was closed, to be given out again.
    freed: Vec<String>,
    /// Notes that belong to no workspace, by whose they are.
    notes: BTreeMap<String, Vec<String>>,
}

impl Keeper {
    /// A handle that nobody has yet.
    pub(crate) fn mint(&mut self, handles: Handles, owner: &Principal) -> String {
        if let Some(freed) = self.freed.pop() {
            return freed;
        }
        self.minted += 1;
        match handles {
            Handles::Numeric => (1000 + self.minted).to_string(),
            Handles::Record => {
                let record = json!({"table": "workspaces", "owner": owner.as_str(), "key": random_hex()});
                format!("ws-{}", URL_SAFE_NO_PAD.encode(record.to_string()))
            }
            _ => format!("ws-{}", random_hex()),
        }
    }

    pub(crate) fn put(&mut self, place: String, workspace: Workspace) {
        self.all.insert(place, workspace);
    }

    pub(crate) fn at(&mut self, place: &str) -> Option<&mut Workspace> {
        self.all.get_mut(place)
    }

    /// The number of what was closed may be given out again.
    pub(crate) fn free(&mut self, handle: String) {
        self.freed.push(handle);
    }

    /// The notes that are kept under a name and belong to no workspace.
    pub(crate) fn notes_of(&mut self, name: String) -> &mut Vec<String> {
        self.notes.entry(name).or_default()
    }

    pub(crate) fn forget(&mut self, place: &str) {
        self.all.remove(place);
    }

    /// A share link to the workspace at this place.
    pub(crate) fn link(&mut self, place: String) -> String {
        let token = random_hex();
        self.links.insert(token.clone(), place);
        token
    }

    pub(crate) fn linked(&self, token: &str) -> Option<&Workspace> {
        self.all.get(self.links.get(token)?)
    }

    pub(crate) fn everything(&self) -> impl Iterator<Item = &Workspace> {
        self.all.values()
    }
}

/// 128 random bits as text.
pub(crate) fn random_hex() -> String {
    let mut bytes = [0_u8; 16];
    fill(&mut bytes);
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn random_digits() -> String {
    let mut bytes = [0_u8; 12];
    fill(&mut bytes);
    bytes.iter().map(|byte| char::from(b'0' + byte % 10)).collect()
}

/// The one source of randomness.
pub(crate) fn fill(bytes: &mut [u8]) {
    getrandom::fill(bytes).expect("the operating system gives random bytes");
}
