//! Every guard in place, in each manner of speaking: what a probe must find nothing about.

use crate::{
    guards::Guards,
    manner::{Asks, Further, Handles, Lifetime, Manner, View},
};

/// The honest server, speaking in some manner.
pub(super) struct Sound(pub(super) Manner);

impl Guards for Sound {
    fn manner(&self) -> Manner {
        self.0
    }
}

pub(super) fn plain() -> Box<dyn Guards> {
    Box::new(Sound(Manner::PLAIN))
}

pub(super) fn pages() -> Box<dyn Guards> {
    Box::new(Sound(super::cursors::PAGES))
}

pub(super) fn tasks() -> Box<dyn Guards> {
    Box::new(Sound(super::tasks::TASKS))
}

pub(super) fn own_tasks_listed() -> Box<dyn Guards> {
    Box::new(Sound(super::tasks::LISTED))
}

pub(super) fn two_rounds() -> Box<dyn Guards> {
    Box::new(Sound(Manner { asks: Asks::ConfirmThenReason, ..Manner::PLAIN }))
}

pub(super) fn url_elicitation() -> Box<dyn Guards> {
    Box::new(Sound(Manner { asks: Asks::Url, ..Manner::PLAIN }))
}

pub(super) fn sampling_and_roots() -> Box<dyn Guards> {
    Box::new(Sound(Manner { asks: Asks::SamplingAndRoots, ..Manner::PLAIN }))
}

pub(super) fn numeric_handles() -> Box<dyn Guards> {
    Box::new(Sound(Manner { handles: Handles::Numeric, ..Manner::PLAIN }))
}

pub(super) fn text_only_handles() -> Box<dyn Guards> {
    Box::new(Sound(Manner { handles: Handles::TextOnly, ..Manner::PLAIN }))
}

pub(super) fn renamed_handles() -> Box<dyn Guards> {
    Box::new(Sound(Manner { handles: Handles::Renamed, ..Manner::PLAIN }))
}

pub(super) fn nested_handles() -> Box<dyn Guards> {
    Box::new(Sound(Manner { handles: Handles::Nested, ..Manner::PLAIN }))
}

pub(super) fn several() -> Box<dyn Guards> {
    Box::new(Sound(Manner { further: Further::Several, ..Manner::PLAIN }))
}

pub(super) fn mirrored() -> Box<dyn Guards> {
    Box::new(Sound(Manner { mirrors: true, ..Manner::PLAIN }))
}

pub(super) fn unlabelled() -> Box<dyn Guards> {
    Box::new(Sound(Manner { handles: Handles::Unlabelled, shows_owner: false, ..Manner::PLAIN }))
}

pub(super) fn private_value() -> Box<dyn Guards> {
    Box::new(Sound(Manner { view: View::Code, shows_owner: false, ..Manner::PLAIN }))
}

pub(super) fn lists_everything() -> Box<dyn Guards> {
    Box::new(Sound(Manner { lists_everything: true, ..Manner::PLAIN }))
}

pub(super) fn names_owner() -> Box<dyn Guards> {
    Box::new(Sound(Manner { refers_to_owner: true, ..Manner::PLAIN }))
}

pub(super) fn noisy() -> Box<dyn Guards> {
    Box::new(Sound(Manner { noisy: true, ..Manner::PLAIN }))
}

pub(super) fn slow_start() -> Box<dyn Guards> {
    Box::new(Sound(Manner { slow_start: true, ..Manner::PLAIN }))
}

pub(super) fn refuses_by_protocol() -> Box<dyn Guards> {
    Box::new(Sound(Manner { refuses_by_protocol: true, ..Manner::PLAIN }))
}

pub(super) fn structured_only() -> Box<dyn Guards> {
    Box::new(Sound(Manner { handles: Handles::StructuredOnly, ..Manner::PLAIN }))
}

pub(super) fn record_handles() -> Box<dyn Guards> {
    Box::new(Sound(Manner { handles: Handles::Record, ..Manner::PLAIN }))
}

pub(super) fn unsaid_lifetime() -> Box<dyn Guards> {
    Box::new(Sound(Manner { lifetime: Lifetime::Unsaid, ..Manner::PLAIN }))
}

pub(super) fn endless() -> Box<dyn Guards> {
    Box::new(Sound(Manner { lifetime: Lifetime::Unsaid, ends: false, ..Manner::PLAIN }))
}
