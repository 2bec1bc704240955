//! Objects that others are meant to reach. None of it is a flaw: whoever opens a workspace knows who will read it.

use super::sound::Sound;
use crate::{
    caller::Principal,
    guards::Guards,
    manner::{Further, Manner},
    workspaces::{Door, Workspace},
};

/// Everybody's workspaces are listed to everybody, and everybody reads them.
struct Listed;

impl Guards for Listed {
    fn manner(&self) -> Manner {
        Manner { further: Further::Listing, ..Manner::PLAIN }
    }

    fn admits(&self, door: Door, caller: &Principal, workspace: &Workspace) -> bool {
        // Reading is public by design, and the tool says so; every other door is the owner's.
        door == Door::Read || workspace.admits(door, caller)
    }
}

pub(super) fn listed() -> Box<dyn Guards> {
    Box::new(Listed)
}

pub(super) fn share_link() -> Box<dyn Guards> {
    Box::new(Sound(Manner { further: Further::ShareLinks, ..Manner::PLAIN }))
}
