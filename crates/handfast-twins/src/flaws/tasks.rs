//! Answers that are fetched by the id of a task: whose it is, who may end it, who is told of it, and what it is called.

use crate::{caller::Principal, guards::Guards, manner::Manner, tasks::Deed};

/// Forgets the owner for one deed.
struct ForAnybody(Deed, Manner);

impl Guards for ForAnybody {
    fn manner(&self) -> Manner {
        self.1
    }

    fn admits_to_task(&self, deed: Deed, caller: &Principal, owner: &Principal) -> bool {
        // FLAW: for this deed the owner is not compared.
        deed == self.0 || caller == owner
    }
}

/// Binds a task to the token with which it was begun.
struct OfOneToken;

impl Guards for OfOneToken {
    fn manner(&self) -> Manner {
        TASKS
    }

    fn admits_to_task(&self, _deed: Deed, caller: &Principal, owner: &Principal) -> bool {
        // FLAW: a token is renewed long before a task is done, and the user stays the same.
        caller.token() == owner.token()
    }
}

/// Counts its tasks.
struct Counted;

impl Guards for Counted {
    fn manner(&self) -> Manner {
        TASKS
    }

    fn task_id(&self, number: u64) -> String {
        // FLAW: the next id is the last one and one.
        format!("task-{number}")
    }
}

pub(super) fn for_anybody() -> Box<dyn Guards> {
    Box::new(ForAnybody(Deed::Get, TASKS))
}

pub(super) fn cancelled_by_anybody() -> Box<dyn Guards> {
    Box::new(ForAnybody(Deed::Cancel, TASKS))
}

pub(super) fn listed_to_anybody() -> Box<dyn Guards> {
    Box::new(ForAnybody(Deed::List, LISTED))
}

pub(super) fn of_one_token() -> Box<dyn Guards> {
    Box::new(OfOneToken)
}

pub(super) fn counted() -> Box<dyn Guards> {
    Box::new(Counted)
}

pub(super) const TASKS: Manner = Manner { answers_with_tasks: true, ..Manner::PLAIN };
pub(super) const LISTED: Manner = Manner { lists_tasks: true, ..TASKS };
