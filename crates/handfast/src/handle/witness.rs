//! The event of a call, which is kept even when nobody waits for the call to end: a future that is dropped halfway may
//! have taken effect, and somebody has to answer for that.

use std::ops::{Deref, DerefMut};

use crate::{
    audit::{AuditError, AuditEvent, AuditSink},
    refusal::Denial,
};

/// The event of a call that has not ended yet.
pub(crate) struct Witness<'a> {
    audit: &'a dyn AuditSink,
    event: Option<AuditEvent>,
}

impl<'a> Witness<'a> {
    pub(crate) fn of(event: AuditEvent, audit: &'a dyn AuditSink) -> Self {
        Self { audit, event: Some(event) }
    }

    /// Keeps the event, with what came of the call.
    pub(crate) fn keep(mut self, denial: Option<Denial>) -> Result<(), AuditError> {
        self.denial = denial;
        self.event.take().map_or(Ok(()), |event| self.audit.record(&event))
    }
}

impl Deref for Witness<'_> {
    type Target = AuditEvent;

    fn deref(&self) -> &AuditEvent {
        self.event.as_ref().expect("it is there until it is kept, and then this is gone")
    }
}

impl DerefMut for Witness<'_> {
    fn deref_mut(&mut self) -> &mut AuditEvent {
        self.event.as_mut().expect("it is there until it is kept, and then this is gone")
    }
}

impl Drop for Witness<'_> {
    fn drop(&mut self) {
        if let Some(mut event) = self.event.take() {
            event.denial = Some(Denial::Unavailable);
            // There is nobody left to tell that it could not be kept.
            let _ = self.audit.record(&event);
        }
    }
}
