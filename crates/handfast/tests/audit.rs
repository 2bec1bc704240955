//! What the audit says: one event for every call, exactly why, and nothing that anybody could use.

mod support;

use std::sync::{Arc, Mutex};

use handfast::{Action, AuditSink, Denial, JsonLines, store::Selector};
use support::{Bench, alice, caller, denied, grant, read, why};

#[tokio::test]
async fn every_call_has_one_event_with_its_exact_reason() {
    let bench = Bench::new();
    let handle = bench.minted().await;
    let bob = caller("bob", "acme", "desktop").traced(Some("00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"));

    assert_eq!(bench.log.count(), 1);
    assert_eq!((bench.log.last().action, bench.log.last().denial), (Action::Mint, None));
    bench.handles.resolve(&alice(), &handle, &read()).await.expect("resolved");
    assert_eq!((bench.log.last().action, bench.log.last().denial), (Action::Resolve, None));
    denied(&bench.handles, &bob, &handle, &read()).await;
    let event = bench.log.last();
    assert_eq!(event.denial, Some(Denial::ForeignPrincipal));
    assert_eq!(event.handle, bench.log.events.lock().expect("not poisoned")[0].handle, "the same digest");
    assert_eq!(event.object, bench.log.events.lock().expect("not poisoned")[0].object, "the same object");
    assert_ne!(event.subject, bench.log.events.lock().expect("not poisoned")[0].subject, "who tried, not whose it is");
    assert_eq!(event.trace.expect("a trace").as_str(), "0af7651916cd43dd8448eb211c80319c");
    denied(&bench.handles, &alice(), "nonsense", &read()).await;
    assert_eq!((bench.log.last().handle, bench.log.last().denial), (None, Some(Denial::Malformed)));
    let refused = bench.handles.mint(&alice(), grant("basket", "b-1", &["basket:fly"])).await;
    assert!(refused.is_err());
    assert_eq!((bench.log.last().action, bench.log.last().denial), (Action::Mint, Some(Denial::UnknownScope)));
    assert_eq!(bench.log.count(), 5);
}

#[tokio::test]
async fn a_bulk_revocation_has_an_event_for_each_handle_and_one_for_all() {
    let bench = Bench::new();
    for _ in 0..2500 {
        bench.minted().await;
    }
    let before = bench.log.count();

    let count = bench.handles.revoke_all(&Selector::everything(), &why("tenant left")).await.expect("revoked");

    assert_eq!(count, 2500);
    let events = bench.log.events.lock().expect("not poisoned").split_off(before);
    assert_eq!(events.len(), 2501);
    assert!(events[..2500].iter().all(|event| event.action == Action::Revoke && event.handle.is_some()));
    assert_eq!((events[2500].handle, events[2500].count), (None, Some(2500)));
    let (reason, receipt) = events[0].revocation.clone().expect("a reason");
    assert_eq!((reason.as_str(), receipt.as_str()), ("tenant left", "ticket-7"));
}

/// What nobody can account for does not happen.
#[tokio::test]
async fn without_an_audit_everything_is_refused() {
    let bench = Bench::new();
    let handle = bench.minted().await;
    *bench.log.broken.lock().expect("not poisoned") = true;

    let minted = bench.handles.mint(&alice(), grant("basket", "b-1", &["basket:read"])).await.expect_err("refused");
    assert_eq!(minted.denial(), Denial::Unavailable);
    assert_eq!(denied(&bench.handles, &alice(), &handle, &read()).await, Denial::Unavailable);
    assert_eq!(denied(&bench.handles, &alice(), "nonsense", &read()).await, Denial::Malformed, "refused anyway");
    assert!(bench.handles.revoke_all(&Selector::everything(), &why("x")).await.is_err());
    *bench.log.broken.lock().expect("not poisoned") = false;
    assert_eq!(denied(&bench.handles, &alice(), &handle, &read()).await, Denial::Revoked, "what was revoked stays so");
}

/// Of a batch whose second event cannot be kept, the others are, and the call says that something is missing.
#[tokio::test]
async fn an_event_that_is_lost_in_a_bulk_revocation_is_an_error_and_the_others_are_kept() {
    let bench = Bench::new();
    for _ in 0..5 {
        bench.minted().await;
    }
    let log = Arc::new(OneLost::default());
    let handles = handfast::Handles::new(handfast::Setup {
        store: bench.store.clone(),
        policy: bench.handles.policy().clone(),
        keys: bench.keys.clone(),
        authority: bench.shop.clone(),
        audit: log.clone(),
    });

    assert!(handles.revoke_all(&Selector::everything(), &why("x")).await.is_err());
    assert_eq!(*log.0.lock().expect("not poisoned"), 6, "five handles and the end");
}

/// Loses the second event.
#[derive(Default)]
struct OneLost(Mutex<u64>);

impl AuditSink for OneLost {
    fn record(&self, _: &handfast::AuditEvent) -> Result<(), handfast::AuditError> {
        let mut count = self.0.lock().expect("not poisoned");
        *count += 1;
        if *count == 2 { Err(handfast::AuditError("lost".into())) } else { Ok(()) }
    }
}

#[tokio::test]
async fn a_purge_goes_on_to_the_end_and_is_accounted_for() {
    let bench = Bench::new();
    for _ in 0..2500 {
        bench.minted().await;
    }
    bench.clock.advance(std::time::Duration::from_secs(8 * 24 * 3600));

    assert_eq!(bench.handles.purge(std::time::Duration::ZERO).await.expect("purged"), 2500);
    assert_eq!((bench.log.last().action, bench.log.last().count), (Action::Purge, Some(2500)));
    *bench.log.broken.lock().expect("not poisoned") = true;
    assert!(bench.handles.purge(std::time::Duration::ZERO).await.is_err());
}

/// A disk that was full for a moment does not spoil the event after it.
#[tokio::test]
async fn a_torn_line_is_not_made_part_of_the_next_event() {
    let bench = Bench::new();
    bench.minted().await;
    let (out, room) = (Arc::new(Mutex::new(Vec::new())), Arc::new(Mutex::new(10)));
    let lines = JsonLines::new(Small(out.clone(), room.clone()));

    assert!(lines.record(&bench.log.last()).is_err());
    *room.lock().expect("not poisoned") = usize::MAX;
    lines.record(&bench.log.last()).expect("kept");

    let text = String::from_utf8(out.lock().expect("not poisoned").clone()).expect("text");
    let last = text.lines().last().expect("a line");
    assert!(serde_json::from_str::<serde_json::Value>(last).is_ok(), "{text}");
}

/// A file on a disk with so much room.
struct Small(Arc<Mutex<Vec<u8>>>, Arc<Mutex<usize>>);

impl std::io::Write for Small {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        let mut room = self.1.lock().expect("not poisoned");
        let fits = bytes.len().min(*room);
        if fits == 0 {
            return Err(std::io::ErrorKind::StorageFull.into());
        }
        *room -= fits;
        self.0.lock().expect("not poisoned").extend_from_slice(&bytes[..fits]);
        Ok(fits)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

#[tokio::test]
async fn lines_are_json_and_tell_nothing_that_is_secret() {
    let bench = Bench::new();
    let handle = bench.minted().await;
    let presented = [handle.as_str(), "nonsense\u{0}", &handle[..46], "bob's secret text"];
    for text in presented {
        for who in [alice(), caller("bob\"'", "acme", "desktop").traced(Some("nonsense\n"))] {
            let _ = bench.handles.resolve(&who, text, &read()).await;
        }
    }
    let out = Arc::new(Mutex::new(Vec::new()));
    let lines = JsonLines::new(Shared(out.clone()));
    for event in bench.log.events.lock().expect("not poisoned").iter() {
        lines.record(event).expect("kept");
    }

    let text = String::from_utf8(out.lock().expect("not poisoned").clone()).expect("text");
    assert_eq!(text.lines().count(), 9);
    for line in text.lines() {
        let line: serde_json::Value = serde_json::from_str(line).expect("JSON");
        for member in ["time", "action", "decision", "object_type", "subject", "tenant", "client", "policy"] {
            assert!(line[member].is_string(), "{member} in {line}");
        }
    }
    for secret in [handle.as_str(), &handle[4..], &handle[..46], "alice", "bob", "example.com", "nonsense", "b-1"] {
        assert!(!text.contains(secret), "{secret}");
    }
}

#[test]
fn a_sink_that_cannot_write_says_so() {
    struct Full;
    impl std::io::Write for Full {
        fn write(&mut self, _: &[u8]) -> std::io::Result<usize> {
            Err(std::io::Error::from(std::io::ErrorKind::StorageFull))
        }
        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }
    let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
    let bench = Bench::new();
    runtime.block_on(bench.minted());

    assert!(JsonLines::new(Full).record(&bench.log.last()).is_err());
}

#[cfg(feature = "tracing")]
#[tokio::test]
async fn events_are_tracing_events_with_the_same_fields() {
    let bench = Bench::new();
    let handle = bench.minted().await;
    denied(&bench.handles, &caller("bob", "acme", "desktop"), &handle, &read()).await;
    let seen = Seen::default();

    tracing::subscriber::with_default(seen.clone(), || handfast::Tracing.record(&bench.log.last()).expect("kept"));

    let seen = seen.0.lock().expect("not poisoned");
    assert_eq!(seen[0], ("target".to_owned(), "handfast::audit".to_owned()));
    let json = bench.log.last().json();
    for (name, value) in json.as_object().expect("an object") {
        assert!(seen.contains(&(name.clone(), value.as_str().expect("text").to_owned())), "{name} in {seen:?}");
    }
    assert_eq!(json["reason"], "foreign-principal");
    assert!(!format!("{seen:?}").contains(&handle[4..]));
}

/// Keeps the fields of every event.
#[cfg(feature = "tracing")]
#[derive(Clone, Default)]
struct Seen(Arc<Mutex<Vec<(String, String)>>>);

#[cfg(feature = "tracing")]
impl tracing::field::Visit for Seen {
    fn record_debug(&mut self, field: &tracing::field::Field, value: &dyn std::fmt::Debug) {
        self.record_str(field, &format!("{value:?}"));
    }

    fn record_str(&mut self, field: &tracing::field::Field, value: &str) {
        self.0.lock().expect("not poisoned").push((field.name().to_owned(), value.to_owned()));
    }
}

#[cfg(feature = "tracing")]
impl tracing::Subscriber for Seen {
    fn enabled(&self, _: &tracing::Metadata<'_>) -> bool {
        true
    }

    fn new_span(&self, _: &tracing::span::Attributes<'_>) -> tracing::span::Id {
        tracing::span::Id::from_u64(1)
    }

    fn record(&self, _: &tracing::span::Id, _: &tracing::span::Record<'_>) {}

    fn record_follows_from(&self, _: &tracing::span::Id, _: &tracing::span::Id) {}

    fn event(&self, event: &tracing::Event<'_>) {
        self.0.lock().expect("not poisoned").push(("target".into(), event.metadata().target().into()));
        event.record(&mut self.clone());
    }

    fn enter(&self, _: &tracing::span::Id) {}

    fn exit(&self, _: &tracing::span::Id) {}
}

struct Shared(Arc<Mutex<Vec<u8>>>);

impl std::io::Write for Shared {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().expect("not poisoned").extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}
