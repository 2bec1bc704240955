//! The audit of a twin: how often the library decided what. It stays small, however long a twin runs.

use std::{
    collections::BTreeMap,
    sync::{Mutex, MutexGuard, PoisonError},
};

use handfast::{AuditError, AuditEvent, AuditSink, Denial};

/// Decisions, each with its number.
#[derive(Debug, Default)]
pub(crate) struct Tally {
    counted: Mutex<BTreeMap<String, u64>>,
}

impl Tally {
    /// `resolve workspace:read foreign-principal`, and how often that was.
    pub(crate) fn decisions(&self) -> BTreeMap<String, u64> {
        self.counted().clone()
    }

    fn counted(&self) -> MutexGuard<'_, BTreeMap<String, u64>> {
        self.counted.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl AuditSink for Tally {
    fn record(&self, event: &AuditEvent) -> Result<(), AuditError> {
        let decision = event.denial.map_or("allowed", Denial::slug);
        let scope = event.scope.iter().map(|scope| scope.as_str());
        let words: Vec<&str> = [event.action.slug()].into_iter().chain(scope).chain([decision]).collect();
        *self.counted().entry(words.join(" ")).or_default() += 1;
        Ok(())
    }
}
