//! Who did what to a store: audit events as the library writes them, appended to a file.

use std::{
    fs::{File, OpenOptions},
    path::{Path, PathBuf},
};

use handfast::{Action, AuditEvent, AuditSink, Denial, Digest, JsonLines, PolicyVersion, Why};

use crate::output::Failure;

/// Where events go, where that was asked for.
pub(super) struct Ledger {
    file: Option<(PathBuf, JsonLines<File>)>,
    event: AuditEvent,
}

impl Ledger {
    /// Makes sure before anything is done that it can be accounted for.
    pub(super) fn open(path: Option<&Path>, action: Action, why: Option<&Why>) -> Result<Self, Failure> {
        let file = path
            .map(|path| {
                let mut options = OpenOptions::new();
                options.create(true).append(true);
                std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
                let file = options.open(path);
                let file = file.map_err(|error| Failure(format!("cannot write {}: {error}", path.display())))?;
                Ok((path.to_owned(), JsonLines::new(file)))
            })
            .transpose()?;
        // An operator acts under no policy of a server's.
        let policy = PolicyVersion::new("operator").map_err(|error| Failure(error.to_string()))?;
        let mut event = AuditEvent::new(action, &policy);
        event.revocation = why.map(|why| (why.reason.clone(), why.receipt.clone()));
        Ok(Self { file, event })
    }

    /// Keeps an event for each of these handles.
    pub(super) fn each(&self, digests: &[Digest]) -> Result<(), String> {
        let mut event = self.event.clone();
        digests.iter().try_for_each(|digest| {
            event.handle = Some(*digest);
            self.keep(&event)
        })
    }

    /// Keeps the event that closes the rest: how many it were, and whether the store went along to the end.
    pub(super) fn close(&self, count: u64, finished: bool) -> Result<(), String> {
        let mut event = self.event.clone();
        event.count = Some(count);
        event.denial = (!finished).then_some(Denial::Unavailable);
        self.keep(&event)
    }

    fn keep(&self, event: &AuditEvent) -> Result<(), String> {
        let Some((path, lines)) = &self.file else { return Ok(()) };
        lines.record(event).map_err(|error| {
            let cause = std::error::Error::source(&error).map(|cause| format!(": {cause}")).unwrap_or_default();
            format!("{}: {error}{cause}", path.display())
        })
    }
}
