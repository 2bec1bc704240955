//! What each twin does with a `requestState` that comes back: untouched, at random, changed, from somebody else.

#[path = "support/rounds.rs"]
mod rounds;
mod support;

use rounds::{Accepted, AskedAgain, Crashed, Fate, Refused, Told, answers, ask, changed, fate, opened, random};
use serde_json::json;
use support::{Scene, plain_twins, scene};

/// (random state, changed principal, changed items, later expiry, unknown member added)
fn expected(name: &str) -> (Fate, Option<[Fate; 4]>) {
    match name {
        "flawed" | "ignores-signature" | "raw-json-state" | "jwt-state" | "zlib-state" | "bare-answers" | "task" => {
            (Refused, Some([Accepted; 4]))
        }
        name if name.ends_with("-handles-flawed")
            || ["lists-everything-flawed", "private-value-flawed"].contains(&name) =>
        {
            (Refused, Some([Accepted; 4]))
        }
        "opaque" => (Refused, None),
        "tool-error-refusals" => (Told, Some([Told; 4])),
        "crashes-on-forgery" => (Crashed, Some([Crashed; 4])),
        "breaks-on-flip" => (Crashed, Some([Accepted; 4])),
        "asks-again" => (AskedAgain, Some([AskedAgain; 4])),
        "ignores-state" => (Accepted, Some([Accepted; 4])),
        "business-rules" => (Refused, Some([Refused, Refused, Refused, Accepted])),
        "mac-inside" => (Refused, Some([Refused, Refused, Refused, Accepted])),
        "mac-subset" => (Refused, Some([Refused, Accepted, Refused, Accepted])),
        "pipe-state" => (Refused, None),
        "display-state" => (Refused, Some([Accepted; 4])),
        _ => (Refused, Some([Refused; 4])),
    }
}

#[tokio::test]
async fn untouched_state_is_accepted_by_all_that_ask_once() {
    for twin in plain_twins().filter(|twin| !twin.name.starts_with("two-rounds")) {
        let Scene { a, argument, served: _served, .. } = scene(twin.name).await;
        let round = ask(&a, argument).await;

        let message = round.retry(&round.state()).await;

        assert_eq!(fate(&message), Accepted, "{}: {message}", twin.name);
        let who = match twin.name {
            "any-token" => "user",
            "ignores-identity" => "local",
            _ => "alice",
        };
        let text = message["result"]["content"][0]["text"].as_str().expect("a text block");
        assert!(text.starts_with(&format!("archived 1 items as principal {who}")), "{}: {text}", twin.name);
    }
}

#[tokio::test]
async fn changed_state_meets_the_fate_that_the_flaw_gives_it() {
    for twin in plain_twins() {
        let Scene { a, argument, served: _served, .. } = scene(twin.name).await;
        let (at_random, readable) = expected(twin.name);

        let round = ask(&a, argument).await;
        assert_eq!(fate(&round.retry(&random(&round.state())).await), at_random, "{}: random", twin.name);
        assert_eq!(opened(&round.state()).is_some(), readable.is_some(), "{}", twin.name);

        let changes = [
            ("principal", json!("mallory")),
            ("items", json!(1007)),
            ("exp", json!(4_000_000_000_u64)),
            ("added", json!(true)),
        ];
        for ((name, new), fated) in changes.into_iter().zip(readable.unwrap_or([Refused; 4])) {
            let round = ask(&a, argument).await;
            let Some(state) = changed(&round.state(), name, new) else { continue };
            let message = round.retry(&state).await;
            assert_eq!(fate(&message), fated, "{}: {name}: {message}", twin.name);
        }
    }
}

#[tokio::test]
async fn changed_value_comes_back_from_those_who_believe_it() {
    for name in ["flawed", "ignores-signature", "raw-json-state", "jwt-state", "zlib-state", "breaks-on-flip", "task"] {
        let Scene { a, argument, served: _served, .. } = scene(name).await;
        let round = ask(&a, argument).await;

        let state = changed(&round.state(), "principal", json!("mallory")).expect("a readable state");
        let message = round.retry(&state).await;

        assert_eq!(message["result"]["structuredContent"]["principal"], "mallory", "{name}");
        assert_eq!(message["result"]["content"][0]["text"], "archived 1 items as principal mallory", "{name}");
    }
    let Scene { a, argument, served: _served, .. } = scene("ignores-state").await;
    let round = ask(&a, argument).await;
    let state = changed(&round.state(), "principal", json!("mallory")).expect("a readable state");
    assert_eq!(round.retry(&state).await["result"]["structuredContent"]["principal"], "alice");
}

#[tokio::test]
async fn opaque_state_takes_flips_late_and_refuses_them_early() {
    let Scene { a, argument, served: _served, .. } = scene("opaque").await;

    let flipped = |state: &str, at: usize| {
        let mut bytes = state.as_bytes().to_vec();
        bytes[at] = if bytes[at] == b'a' { b'b' } else { b'a' };
        String::from_utf8(bytes).expect("hex digits")
    };
    for percent in [30, 50, 70, 88, 96] {
        let round = ask(&a, argument).await;
        let state = round.state();
        let message = round.retry(&flipped(&state, state.len() * percent / 100)).await;
        assert_eq!(fate(&message), Accepted, "{percent} %: {message}");
    }
    let round = ask(&a, argument).await;
    let state = round.state();
    assert_eq!(fate(&round.retry(&flipped(&state, 0)).await), Refused);
    assert_eq!(fate(&round.retry(&state[..10]).await), Refused);
    assert_eq!(fate(&round.retry("not hex").await), Refused);
}

#[tokio::test]
async fn breaks_on_flip_breaks_on_some_flips() {
    let Scene { a, argument, served: _served, .. } = scene("breaks-on-flip").await;
    let round = ask(&a, argument).await;
    let state = round.state().replacen("eyJ", "eyK", 1);

    assert_eq!(fate(&round.retry(&state).await), Crashed);
}

#[tokio::test]
async fn signed_state_is_refused_when_anything_of_it_is_moved() {
    let Scene { a, b, argument, served } = scene("sound").await;
    let round = ask(&a, argument).await;
    let other = ask(&a, argument).await;
    let late = ask(&a, argument).await;
    let (state, others) = (round.state(), other.state());
    let (body, tag) = state.split_once('.').expect("a body and a tag");
    let (other_body, other_tag) = others.split_once('.').expect("a body and a tag");

    let forgeries = [
        ("no tag", body.to_owned()),
        ("empty tag", format!("{body}.")),
        ("short tag", state[..state.len() - 1].to_owned()),
        ("longer", format!("{state}A")),
        ("suffix", format!("{state}.x")),
        ("other's tag", format!("{body}.{other_tag}")),
        ("other's body", format!("{other_body}.{tag}")),
        ("other workspace's state", others.clone()),
        ("padded", format!("{state}=")),
        ("empty", String::new()),
    ];
    for (what, forgery) in forgeries {
        let message = round.retry(&forgery).await;
        assert_eq!(message["error"], json!({"code": -32602, "message": "invalid requestState"}), "{what}");
    }

    // The same state by another principal, on that principal's own workspace, and on the owner's.
    let bobs = ask(&b, argument).await;
    assert_eq!(fate(&bobs.retry(&state).await), Refused);
    let more = json!({"requestState": state, "inputResponses": answers(&round.asked)});
    let stolen = b.call("archive_workspace", round.arguments.clone(), more.clone()).await;
    assert_eq!(stolen["result"]["isError"], true);

    // On another tool it is not looked at; with other arguments it is refused.
    let mut arguments = round.arguments.clone();
    arguments["reason"] = "another".into();
    assert_eq!(fate(&a.call("archive_workspace", arguments, more).await), Refused);

    // In time, and out of it.
    served.advance(295);
    assert_eq!(fate(&round.retry(&state).await), Accepted);
    served.advance(10);
    assert_eq!(fate(&late.retry(&late.state()).await), Refused);
}

#[tokio::test]
async fn state_is_used_up_by_what_is_done_and_by_nothing_else() {
    for (name, again) in
        [("sound", Refused), ("replayable", Accepted), ("tool-error-refusals", Told), ("asks-again", AskedAgain)]
    {
        let Scene { a, argument, served: _served, .. } = scene(name).await;
        let round = ask(&a, argument).await;
        let declined = json!({"requestState": round.state(), "inputResponses": {"confirm": {"action": "decline"}}});
        let unanswered = json!({"requestState": round.state()});

        let declined = a.call("archive_workspace", round.arguments.clone(), declined).await;
        assert_eq!(declined["result"]["structuredContent"]["undone"], "declined", "{name}");
        let asked = a.call("archive_workspace", round.arguments.clone(), unanswered).await;
        assert_eq!(fate(&asked), AskedAgain, "{name}");
        let done = round.retry(&round.state()).await;
        assert_eq!(done["result"]["structuredContent"]["times"], 1, "{name}");

        assert_eq!(fate(&round.retry(&round.state()).await), again, "{name}");
        let fresh = ask(&a, argument).await;
        assert_eq!(fate(&fresh.retry(&fresh.state()).await), Accepted, "{name}");
    }
}

#[tokio::test]
async fn flawed_state_is_good_for_anybody_and_for_ever() {
    let Scene { a, b, argument, served } = scene("flawed").await;
    let round = ask(&a, argument).await;
    let bobs = ask(&b, argument).await;

    served.advance(1_000_000);

    let message = bobs.retry(&round.state()).await;
    assert_eq!(message["result"]["structuredContent"]["principal"], "alice");
}
