//! The checks of approvals on odd servers: whose questions carry no state, who say the same whatever was answered, who want a
//! name and no consent, who are busy, who do without asking whom they cannot ask.

mod support;

use handfast_probe::{checks, report::CheckReport};
use handfast_twins::Answers;
use serde_json::{Value, json};
use support::{
    check,
    front::{Act, Front, Recorded},
    probed, served, verdict, whole_run_on,
};

/// One check through a front.
async fn through(twin: &str, id: &str, act: impl Fn(usize, &Recorded) -> Act + Send + Sync + 'static) -> CheckReport {
    let served = served(twin, Answers::Json).await;
    let front = Front::of(&served.url(), act).await;
    let mut run = whole_run_on(&front.url());
    run.checks = vec![checks::find(id).expect("a check")];
    check(&probed(&run).await, id).clone()
}

fn answers(request: &Recorded) -> Option<&Value> {
    Some(&request.body["params"]["inputResponses"]).filter(|answers| answers.is_object())
}

fn state(request: &Recorded) -> bool {
    request.body["params"]["requestState"].is_string()
}

fn archives(request: &Recorded) -> bool {
    request.tool() == "archive_workspace"
}

fn says(text: &str) -> Act {
    Act::Result(json!({"resultType": "complete", "content": [{"type": "text", "text": text}]}))
}

#[tokio::test]
async fn answers_without_a_state_cannot_be_told_from_unasked_ones() {
    let without_state = |body: &str| {
        let mut message: Value = serde_json::from_str(body).expect("JSON");
        if let Some(result) = message["result"].as_object_mut() {
            result.remove("requestState");
        }
        message.to_string()
    };

    let found = through("answers-first", "approval-skipped", move |_, _| Act::Changed(without_state)).await;

    assert_eq!(verdict(&found), "skipped question-without-state +question-without-state", "{}", found.detail);
}

/// The same front, before a server that waits until it has asked.
#[tokio::test]
async fn a_refusal_for_load_says_nothing_about_unasked_answers() {
    let found = through("answers-first", "approval-skipped", |_, request| {
        match archives(request) && answers(request).is_some() && !state(request) {
            true => Act::Refusal("rate limit exceeded, try again in 3 s".to_owned()),
            false => Act::Forward,
        }
    })
    .await;

    assert_eq!(verdict(&found), "errored unclear", "{}", found.detail);
}

#[tokio::test]
async fn a_server_that_always_sounds_alike_confirms_nothing() {
    let found =
        through("sound", "decline-ignored", |_, request| match archives(request) && answers(request).is_some() {
            true => says("Thank you, your answer was noted."),
            false => Act::Forward,
        })
        .await;

    let expected = "skipped approval-witness-unusable +approval-witness-unusable";
    assert_eq!(verdict(&found), expected, "{}", found.detail);
}

/// What an honest end of the sound twin says, of so many items.
fn archived(items: u64) -> Act {
    let text = format!("archived {items} items as principal alice");
    let data = json!({"archived": items, "principal": "alice", "workspace_id": "ws-1", "times": 1});
    Act::Result(
        json!({"resultType": "complete", "content": [{"type": "text", "text": text}], "structuredContent": data}),
    )
}

#[tokio::test]
async fn what_archives_nothing_skips_no_approval_and_ignores_no_decline() {
    let unasked = through("sound", "approval-skipped", |_, request| {
        if archives(request) && answers(request).is_some() && !state(request) { archived(0) } else { Act::Forward }
    })
    .await;
    assert_eq!(verdict(&unasked), "refuted approval-held", "{}", unasked.detail);

    let declined = through("sound", "decline-ignored", |_, request| {
        let action = answers(request).map(|answers| &answers["confirm"]["action"]);
        if action == Some(&json!("decline")) { archived(0) } else { Act::Forward }
    })
    .await;
    assert_eq!(verdict(&declined), "refuted approval-held", "{}", declined.detail);
}

#[tokio::test]
async fn what_will_be_done_or_would_be_was_not_done() {
    for text in [
        "Thank you. Your choice was recorded; if you agreed, the workspace will be archived tonight.",
        "If you agreed, the workspace was archived.",
        "Answer recorded: what is not declined is archived.",
        "Answer noted. 0 items archived.",
    ] {
        let found = through("sound", "decline-ignored", move |_, request| {
            if archives(request) && answers(request).is_some() { says(text) } else { Act::Forward }
        })
        .await;

        let expected = "skipped approval-witness-unusable +approval-witness-unusable";
        assert_eq!(verdict(&found), expected, "{text}: {}", found.detail);
    }
}

#[tokio::test]
async fn what_says_that_it_was_done_was_done() {
    let found =
        through("sound", "decline-ignored", |_, request| match archives(request) && answers(request).is_some() {
            true => says("archived 3 items"),
            false => Act::Forward,
        })
        .await;

    assert_eq!(verdict(&found), "confirmed declined-yet-done high", "{}", found.detail);
}

#[tokio::test]
async fn a_decline_that_is_taken_every_other_time_is_unstable() {
    let declines = std::sync::atomic::AtomicUsize::new(0);
    let found = through("sound", "decline-ignored", move |_, request| {
        let action = answers(request).map(|answers| &answers["confirm"]["action"]);
        if action != Some(&json!("decline")) {
            return Act::Forward;
        }
        match declines.fetch_add(1, std::sync::atomic::Ordering::Relaxed) % 2 {
            0 => Act::Result(json!({"resultType": "complete", "content": [{"type": "text", "text": "archived 1 items as principal alice"}],
                "structuredContent": {"archived": 1, "principal": "alice", "workspace_id": "ws-1", "times": 1}})),
            _ => Act::Forward,
        }
    })
    .await;

    assert_eq!(verdict(&found), "errored unstable", "{}", found.detail);
}

/// What is your name? Whoever sends the name along has skipped nothing.
#[tokio::test]
async fn a_question_for_information_is_no_approval() {
    for id in ["approval-skipped", "decline-ignored", "answers-cross"] {
        let found = through("sound", id, |_, request| match (archives(request), answers(request)) {
            (true, None) => Act::Result(json!({"resultType": "input_required", "requestState": "s", "inputRequests": {"name":
                {"method": "elicitation/create", "params": {"mode": "form", "message": "What is your name?", "requestedSchema":
                    {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]}}}}})),
            (true, Some(_)) => says("archived 3 items"),
            _ => Act::Forward,
        })
        .await;

        assert_eq!(verdict(&found), "skipped no-approval-asked", "{id}: {}", found.detail);
    }
}

#[tokio::test]
async fn a_client_that_cannot_be_asked_is_not_asked_but_served() {
    let can_be_asked = |request: &Recorded| {
        let capabilities = &request.body["params"]["_meta"]["io.modelcontextprotocol/clientCapabilities"];
        capabilities["elicitation"]["form"].is_object()
    };

    let found = through("sound", "asks-undeclared-client", move |_, request| {
        if archives(request) && !can_be_asked(request) { says("archived 3 items") } else { Act::Forward }
    })
    .await;

    assert_eq!(verdict(&found), "refuted declared-kinds-only +done-for-want-of-a-question", "{}", found.detail);
}

#[tokio::test]
async fn a_server_that_falls_over_was_not_seen_to_ask() {
    let found = through("asks-undeclared", "asks-undeclared-client", |_, request| {
        let capabilities = &request.body["params"]["_meta"]["io.modelcontextprotocol/clientCapabilities"];
        match archives(request) && !capabilities["elicitation"]["form"].is_object() {
            true => Act::Status(500, Vec::new()),
            false => Act::Forward,
        }
    })
    .await;

    assert_eq!(verdict(&found), "errored unclear", "{}", found.detail);
}

/// An approval with a second question behind it: the first is skipped, and the second still asked.
#[tokio::test]
async fn a_first_question_that_is_skipped_is_found_behind_a_second() {
    let ask = |key: &str, message: &str| {
        let properties = json!({key: {"type": "boolean"}});
        Act::Result(json!({"resultType": "input_required", "requestState": format!("s-{key}"), "inputRequests": {key:
            {"method": "elicitation/create", "params": {"message": message, "requestedSchema":
                {"type": "object", "properties": properties, "required": [key]}}}}}))
    };
    let found = through("sound", "approval-skipped", move |_, request| {
        if !archives(request) {
            return Act::Forward;
        }
        let agreed = |key: &str| answers(request).is_some_and(|answers| answers[key]["content"][key] == json!(true));
        match request.body["params"]["requestState"].as_str() {
            // Answers to the first question are taken without a state; the second has to be asked.
            None if agreed("confirm") => ask("really", "Are you sure?"),
            Some("s-confirm") if agreed("confirm") => ask("really", "Are you sure?"),
            Some("s-really") if agreed("really") => says("archived 3 items"),
            None => ask("confirm", "Go on?"),
            Some(_) => says("nothing was done"),
        }
    })
    .await;

    assert_eq!(verdict(&found), "confirmed approval-not-asked high", "{}", found.detail);
}

/// The same call, and what the client declares is the one difference: whoever reads the evidence has to see it.
#[tokio::test]
async fn what_a_client_declares_stands_in_the_evidence() {
    let found = through("asks-undeclared", "asks-undeclared-client", |_, _| Act::Forward).await;

    assert_eq!(found.verdict.word(), "confirmed", "{}", found.detail);
    let story: Vec<_> =
        found.evidence.entry_points[0].row.story.iter().map(|&at| &found.evidence.exchanges[at]).collect();
    let declared: Vec<bool> = story.iter().map(|step| step.arguments.get("declared").is_some()).collect();
    assert_eq!(
        story.iter().map(|step| step.step.as_str()).collect::<Vec<_>>(),
        ["first-round", "subject", "declared-again"]
    );
    assert_eq!(declared, [false, true, false]);
}
