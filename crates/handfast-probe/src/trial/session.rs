//! What the experiments of one run share: the server, what was learned of it, and what is left of the bounds.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use serde_json::Value;

use crate::{
    answers::Form,
    canary::Canaries,
    checks::state::origins::Asking,
    clock::Deadline,
    discovery::Map,
    errand::Errand,
    identity::Who,
    profile::Profile,
    redact::Redactor,
    runner::Run,
    surface::Surface,
    target::{self, Address, NoTarget, Target},
    verdict::{Halt, Reason},
};

/// Everything that the experiments of one run share.
pub struct Session<'p> {
    pub(crate) target: Target,
    /// What the server lists.
    pub surface: Surface,
    /// Which tool hands out what, and who takes it.
    pub map: Map,
    pub(crate) profile: &'p Profile,
    /// What was asked for.
    pub(crate) run: &'p Run,
    pub(crate) include_destructive: bool,
    pub(crate) canaries: Canaries,
    pub(crate) redactor: Redactor,
    pub(crate) form: Form,
    /// What there is to do in a session of the older revisions, once it was looked for.
    pub(crate) errand: Option<Errand>,
    /// What this run minted: by whom, of which kind.
    pub(crate) minted: Vec<(Who, usize, Value)>,
    /// What makes the server ask, once it was looked for.
    pub(crate) asking: Option<Result<Asking, Halt>>,
    /// Handles that fill the other arguments of a call: one for each caller and kind.
    pub(crate) purse: BTreeMap<(char, usize), Value>,
    /// Tools that answered with a task.
    pub(crate) answered_by_task: BTreeSet<String>,
    /// Kinds that are being minted right now: a profile may name a circle.
    pub(crate) minting: Vec<usize>,
    /// How long a check may wait for something to be over.
    pub(crate) max_wait: Duration,
    pub(super) budget: Budget,
    pub(super) progress: &'p dyn Fn(&str),
}

/// What is left of the bounds of a run.
#[derive(Debug)]
pub(super) struct Budget {
    pub(super) calls_left: usize,
    pub(super) calls_made: usize,
    pub(super) deadline: Deadline,
    pub(super) silent_in_a_row: usize,
    pub(super) put_off_in_a_row: usize,
}

impl<'p> Session<'p> {
    /// A session with a server that listed its surface.
    pub fn new(target: Target, surface: Surface, run: &'p Run, deadline: Deadline, progress: &'p dyn Fn(&str)) -> Self {
        Self {
            target,
            surface,
            map: Map::default(),
            profile: &run.profile,
            run,
            include_destructive: run.include_destructive,
            canaries: Canaries::new(),
            redactor: run.redactor(),
            form: Form::Specified,
            errand: None,
            minted: Vec::new(),
            asking: None,
            purse: BTreeMap::new(),
            answered_by_task: BTreeSet::new(),
            minting: Vec::new(),
            max_wait: run.max_wait,
            budget: Budget {
                calls_left: run.max_calls,
                calls_made: 0,
                deadline,
                silent_in_a_row: 0,
                put_off_in_a_row: 0,
            },
            progress,
        }
    }

    /// A connection of its own that is kept, to this server or to another of its replicas.
    ///
    /// # Errors
    /// A [`Halt`] where nothing answers there as it does here.
    pub async fn connect(&self, place: &Address) -> Result<Target, Halt> {
        let mut options = self.run.options.clone();
        options.http.keeps_connection = true;
        let connecting = target::connect(place, &self.run.identities, &options);
        let left = self.budget.deadline.left().unwrap_or_default();
        let connected = tokio::time::timeout(left, connecting).await;
        let late = || Halt::errored(Reason::TimedOut, "the time for the whole run is used up (--max-time)");
        let lost = |error: NoTarget| Halt::errored(Reason::Unreachable, format!("{}: {error}", place.shown()));
        connected.map_err(|_| late())?.map(|(target, _)| target).map_err(lost)
    }

    /// The options that allow to wait so long.
    pub fn option_to_wait(&self, wait: Duration) -> String {
        let (wait, whole) = (wait.as_secs() + 1, self.run.max_time.as_secs());
        match wait < whole {
            true => format!("--max-wait {wait}s"),
            false => format!("--max-wait {wait}s --max-time {}s", wait + whole),
        }
    }

    /// How many calls were made.
    pub fn calls(&self) -> usize {
        self.budget.calls_made
    }

    /// Ends the session and everything that it started.
    pub async fn close(self) {
        self.target.close().await;
    }

    /// Whether this tool may be called.
    pub fn may_call(&self, tool: &crate::surface::Tool) -> bool {
        self.why_not(tool).is_none()
    }

    /// Why this tool may not be called, if so.
    pub fn why_not(&self, tool: &crate::surface::Tool) -> Option<String> {
        if self.profile.denies(&tool.name) {
            return Some("denied by the profile".to_owned());
        }
        tool.destructive.clone().filter(|_| !self.include_destructive)
    }
}
