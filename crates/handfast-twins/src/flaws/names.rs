//! Handles that are names: one that nobody minted is honoured by making what it names.

use crate::{
    caller::Principal,
    guards::Guards,
    workspaces::{Door, Workspace},
};

/// One name space for all: who knows the name shares the object.
struct GetOrCreate;

impl Guards for GetOrCreate {
    fn unknown(&self, caller: &Principal, presented: &str) -> Option<Workspace> {
        // FLAW: a handle that was never minted is honoured,
        Some(created(caller, presented))
    }

    fn admits(&self, _door: Door, _caller: &Principal, _workspace: &Workspace) -> bool {
        // FLAW: and what it opens belongs to everybody.
        true
    }
}

/// A name space for each: the same name opens something else for somebody else.
struct Partitioned;

impl Guards for Partitioned {
    fn place(&self, caller: &Principal, presented: &str) -> String {
        format!("{caller}\n{presented}")
    }

    fn unknown(&self, caller: &Principal, presented: &str) -> Option<Workspace> {
        Some(created(caller, presented))
    }

    fn admits(&self, _door: Door, caller: &Principal, workspace: &Workspace) -> bool {
        // Sound, without the library: it answers for what was minted, and a name was not. The place has the caller in
        // it; that nobody has talked themselves into somebody else's is compared here.
        workspace.owner == *caller
    }
}

fn created(caller: &Principal, presented: &str) -> Workspace {
    Workspace::new(presented, "untitled", caller)
}

pub(super) fn get_or_create() -> Box<dyn Guards> {
    Box::new(GetOrCreate)
}

pub(super) fn partitioned() -> Box<dyn Guards> {
    Box::new(Partitioned)
}
