//! What belongs to one request or to one caller, and is kept in a place that others share.

use super::sound::Sound;
use crate::{
    caller::Principal,
    guards::Guards,
    manner::{Further, Manner},
};

const MEMORY: Manner = Manner { further: Further::Memory, ..Manner::PLAIN };

/// Handles are looked up under a header that means nothing in this revision.
struct HeedsSessions;

impl Guards for HeedsSessions {
    fn place(&self, caller: &Principal, presented: &str) -> String {
        // FLAW: a handle is good for one `Mcp-Session-Id`, which no client of this revision sends.
        format!("{}\n{presented}", caller.session())
    }
}

/// One memory for all.
struct SharedMemory;

impl Guards for SharedMemory {
    fn manner(&self) -> Manner {
        MEMORY
    }

    fn memory_of(&self, _caller: &Principal) -> String {
        // FLAW: whoever asks, it is the same memory.
        String::new()
    }
}

/// One list of those who wait, by the ids of their requests, for all connections.
struct Misroutes;

impl Guards for Misroutes {
    fn answers_by_connection(&self) -> bool {
        // FLAW: every client counts its requests from one.
        false
    }
}

pub(super) fn heeds_sessions() -> Box<dyn Guards> {
    Box::new(HeedsSessions)
}

pub(super) fn memory() -> Box<dyn Guards> {
    Box::new(Sound(MEMORY))
}

pub(super) fn shared_memory() -> Box<dyn Guards> {
    Box::new(SharedMemory)
}

pub(super) fn misroutes() -> Box<dyn Guards> {
    Box::new(Misroutes)
}
