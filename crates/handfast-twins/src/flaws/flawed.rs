//! The server as an afternoon's migration leaves it: everything works, and nothing that crosses the caller's hands is
//! checked when it comes back.

use crate::{
    caller::Principal,
    guards::Guards,
    manner::{Asks, Handles, Manner, View},
    state::{self, BadState, Claims, Key, Retry},
    workspaces::{Door, Workspace},
};

/// The flawed server, speaking in some manner.
pub(super) struct Flawed(pub(super) Manner);

impl Guards for Flawed {
    fn manner(&self) -> Manner {
        self.0
    }

    fn admits(&self, _door: Door, _caller: &Principal, _workspace: &Workspace) -> bool {
        // FLAW: the owner is recorded and never compared.
        true
    }

    fn lapsed(&self, _workspace: &Workspace) -> bool {
        // FLAW: the handle never expires.
        false
    }

    fn seal(&self, claims: &Claims, _key: &Key) -> String {
        // FLAW: no signature.
        state::unsigned(claims)
    }

    fn open(&self, presented: &str, _retry: &Retry<'_>) -> Result<Claims, BadState> {
        // FLAW: what parses is believed, whoever presents it, for whatever request, whenever.
        state::decoded(presented)
    }

    fn once(&self, _first: bool) -> Result<(), BadState> {
        // FLAW: and as often.
        Ok(())
    }
}

pub(super) fn plain() -> Box<dyn Guards> {
    Box::new(Flawed(Manner::PLAIN))
}

pub(super) fn bare_answers() -> Box<dyn Guards> {
    Box::new(Flawed(Manner { asks: Asks::Bare, ..Manner::PLAIN }))
}

pub(super) fn task() -> Box<dyn Guards> {
    Box::new(Flawed(Manner { answers_with_tasks: true, ..Manner::PLAIN }))
}

pub(super) fn numeric_handles() -> Box<dyn Guards> {
    Box::new(Flawed(Manner { handles: Handles::Numeric, ..Manner::PLAIN }))
}

pub(super) fn text_only_handles() -> Box<dyn Guards> {
    Box::new(Flawed(Manner { handles: Handles::TextOnly, ..Manner::PLAIN }))
}

pub(super) fn renamed_handles() -> Box<dyn Guards> {
    Box::new(Flawed(Manner { handles: Handles::Renamed, ..Manner::PLAIN }))
}

pub(super) fn nested_handles() -> Box<dyn Guards> {
    Box::new(Flawed(Manner { handles: Handles::Nested, ..Manner::PLAIN }))
}

pub(super) fn unlabelled() -> Box<dyn Guards> {
    Box::new(Flawed(Manner { handles: Handles::Unlabelled, shows_owner: false, ..Manner::PLAIN }))
}

pub(super) fn private_value() -> Box<dyn Guards> {
    Box::new(Flawed(Manner { view: View::Code, shows_owner: false, ..Manner::PLAIN }))
}

pub(super) fn lists_everything() -> Box<dyn Guards> {
    Box::new(Flawed(Manner { lists_everything: true, ..Manner::PLAIN }))
}
