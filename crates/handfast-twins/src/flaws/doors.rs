//! One door of many where the owner is forgotten: a guard has to stand at each.

use crate::{
    caller::Principal,
    guards::Guards,
    manner::{Further, Manner, View},
    workspaces::{Door, Workspace},
};

/// Guards every door but one.
struct Forgets {
    door: Door,
    manner: Manner,
}

impl Guards for Forgets {
    fn manner(&self) -> Manner {
        self.manner
    }

    fn admits(&self, door: Door, caller: &Principal, workspace: &Workspace) -> bool {
        // FLAW: the owner is not compared at this door.
        door == self.door || workspace.admits(door, caller)
    }
}

pub(super) fn one_door() -> Box<dyn Guards> {
    Box::new(Forgets { door: Door::Append, manner: Manner::PLAIN })
}

pub(super) fn silent_writer() -> Box<dyn Guards> {
    Box::new(Forgets { door: Door::Append, manner: Manner { writer_tells: false, ..Manner::PLAIN } })
}

pub(super) fn silent_view() -> Box<dyn Guards> {
    let manner = Manner { writer_tells: false, view: View::Count, shows_owner: false, ..Manner::PLAIN };
    Box::new(Forgets { door: Door::Append, manner })
}

const SEVERAL: Manner = Manner { further: Further::Several, ..Manner::PLAIN };

pub(super) fn first_of_several() -> Box<dyn Guards> {
    Box::new(Forgets { door: Door::Beside, manner: SEVERAL })
}

pub(super) fn unchecked_source() -> Box<dyn Guards> {
    Box::new(Forgets { door: Door::Source, manner: SEVERAL })
}

/// Reads whatever it is told to: the one in front of it has looked at the header.
struct TrustsHeader;

impl Guards for TrustsHeader {
    fn manner(&self) -> Manner {
        Manner { mirrors: true, ..Manner::PLAIN }
    }

    fn compares_headers(&self) -> bool {
        // FLAW: header and body may differ.
        false
    }

    fn admits(&self, door: Door, caller: &Principal, workspace: &Workspace) -> bool {
        // Over stdio nobody stands in front of it.
        (door == Door::Read && caller.connection() > 0) || workspace.admits(door, caller)
    }
}

pub(super) fn trusts_header() -> Box<dyn Guards> {
    Box::new(TrustsHeader)
}

pub(super) fn resource_door() -> Box<dyn Guards> {
    Box::new(Forgets { door: Door::Resource, manner: Manner::PLAIN })
}

pub(super) fn prompt_door() -> Box<dyn Guards> {
    Box::new(Forgets { door: Door::Prompt, manner: Manner::PLAIN })
}
