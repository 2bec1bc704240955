//! What children say beside their messages is in the log.

use serde_json::json;
use tokio::sync::mpsc::{UnboundedSender, unbounded_channel};
use tracing::{Event, Level, Metadata, Subscriber, field, span};

use crate::lab::{Lab, within};

#[tokio::test]
async fn what_a_child_says_aside_is_in_the_log_printable_and_short() {
    let (tell, mut told) = unbounded_channel();
    tracing::subscriber::set_global_default(Log(tell)).expect("the first");
    let lab = Lab::new(|_| {});
    let long = "b".repeat(5_000);

    lab.call("alice", "noise", json!({})).await;
    lab.call(
        "alice",
        "stderr",
        json!({"lines": ["aside: \u{1b}[1mloud\u{7}", format!("aside: {long}"), "aside: end"]}),
    )
    .await;

    let mut lines = Vec::new();
    while !lines.iter().any(|line: &String| line.contains("aside: end")) {
        lines.push(within(told.recv()).await.expect("a line"));
    }
    assert!(lines.iter().any(|line| line == "stdout: Server is ready!"), "{lines:?}");
    assert!(lines.iter().all(|line| !line.contains("a secret")), "half a message is nobody's business: {lines:?}");
    assert!(lines.iter().any(|line| line == "stderr: aside: [1mloud"), "{lines:?}");
    assert!(lines.iter().any(|line| line.contains("aside: bbb") && line.len() == "stderr: ".len() + 2_000));
}

/// Tells the messages of ours that a log would have.
struct Log(UnboundedSender<String>);

impl Subscriber for Log {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.target() == "handfast" && *metadata.level() <= Level::INFO
    }

    fn event(&self, event: &Event<'_>) {
        struct Message(String);
        impl field::Visit for Message {
            fn record_debug(&mut self, field: &field::Field, value: &dyn std::fmt::Debug) {
                if field.name() == "message" {
                    self.0 = format!("{value:?}");
                }
            }
        }
        let mut message = Message(String::new());
        event.record(&mut message);
        let _ = self.0.send(message.0);
    }

    fn new_span(&self, _: &span::Attributes<'_>) -> span::Id {
        span::Id::from_u64(1)
    }

    fn record(&self, _: &span::Id, _: &span::Record<'_>) {}
    fn record_follows_from(&self, _: &span::Id, _: &span::Id) {}
    fn enter(&self, _: &span::Id) {}
    fn exit(&self, _: &span::Id) {}
}
