//! What the library says by `tracing`, as lines.
#![allow(dead_code, reason = "each test file uses its part of this")]

use std::{
    fmt::{Debug, Write},
    sync::{Arc, Mutex},
};

use tracing::{
    Event, Level, Metadata, Subscriber,
    field::{Field, Visit},
    span::{Attributes, Id, Record},
};

/// Keeps `LEVEL field=value ...` of every event under the target `handfast`.
#[derive(Clone, Default)]
pub(crate) struct Log(Arc<Mutex<Vec<String>>>);

impl Log {
    /// What was said so far at this level.
    pub(crate) fn at(&self, level: Level) -> Vec<String> {
        let lines = self.0.lock().expect("not poisoned");
        lines.iter().filter(|line| line.starts_with(level.as_str())).cloned().collect()
    }
}

struct Line(String);

impl Visit for Line {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        #[expect(clippy::use_debug, reason = "that is what it is given")]
        write!(self.0, " {}={value:?}", field.name()).expect("a line grows");
    }
}

impl Subscriber for Log {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.target() == "handfast"
    }

    fn new_span(&self, _: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn event(&self, event: &Event<'_>) {
        let mut line = Line(event.metadata().level().to_string());
        event.record(&mut line);
        self.0.lock().expect("not poisoned").push(line.0);
    }

    fn enter(&self, _: &Id) {}

    fn exit(&self, _: &Id) {}
}
