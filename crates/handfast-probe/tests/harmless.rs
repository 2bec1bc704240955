//! Harmless by default: nothing destructive is called, nothing that the operator denies, nothing at all on a dry run, and
//! never more or longer than the bounds of the run allow.

mod support;

use std::time::Duration;

use handfast_probe::{profile::Profile, runner::Run, verdict::Verdict};
use handfast_twins::{
    Answers,
    odd::{self, Odd},
};
use serde_json::{Value, json};
use support::{
    HANDLE, STATE, check,
    front::{Act, Front, Recorded},
    probed, reasons, run_on, served, timed, verdicts,
};

/// A server that lists these tools, and mints a handle whatever is called. Every call is on record.
async fn listing(tools: Value) -> Front {
    Front::start(None, move |number, request| match request.method() {
        "server/discover" => Act::Result(json!({
            "supportedVersions": ["2026-07-28"], "capabilities": {"tools": {}}, "resultType": "complete"
        })),
        "tools/list" => Act::Result(json!({"tools": tools, "resultType": "complete"})),
        _ => {
            let basket =
                json!({"basket_id": format!("b-{number:08}"), "label": request.body["params"]["arguments"]["label"]});
            Act::Result(json!({
                "content": [{"type": "text", "text": basket.to_string()}],
                "structuredContent": basket,
                "resultType": "complete"
            }))
        }
    })
    .await
}

fn tool(name: &str, description: &str, hint: Option<bool>) -> Value {
    let properties = json!({"basket_id": {"type": "string"}, "label": {"type": "string"}});
    let mut tool =
        json!({"name": name, "description": description, "inputSchema": {"type": "object", "properties": properties}});
    if let Some(hint) = hint {
        tool["annotations"] = json!({"destructiveHint": hint});
    }
    tool
}

/// The tools that were called.
fn called(front: &Front) -> Vec<String> {
    let mut names: Vec<String> =
        front.seen().iter().filter(|seen| seen.method() == "tools/call").map(|seen| seen.tool().to_owned()).collect();
    names.sort_unstable();
    names.dedup();
    names
}

#[tokio::test]
async fn the_tool_that_declares_itself_destructive_is_never_called() {
    for name in ["flawed", "sound", "noguard", "opaque", "task", "numeric-handles-flawed", "get-or-create"] {
        let served = served(name, Answers::Json).await;

        let report = probed(&run_on(&served.url())).await;

        assert_eq!(served.destructive_calls(), 0, "{name}");
        let left_out = &check(&report, HANDLE).observations;
        assert!(
            left_out.iter().any(|seen| seen.id == "entry-point-left-out" && seen.text.contains("purge_workspace")),
            "{name}: what was left out is on record: {left_out:?}"
        );
    }
}

#[tokio::test]
async fn it_is_called_when_the_operator_says_so() {
    let served = served("flawed", Answers::Json).await;
    let mut run = run_on(&served.url());
    run.include_destructive = true;

    let report = probed(&run).await;

    assert!(served.destructive_calls() > 0);
    assert!(check(&report, HANDLE).observations.iter().all(|seen| seen.id != "entry-point-left-out"));
}

#[tokio::test]
async fn tools_that_sound_destructive_are_not_called_either() {
    let tools = json!([
        tool("create_basket", "Makes a basket.", None),
        tool("get_basket", "Shows a basket.", None),
        tool("transform_basket", "Shows it in JSON format; does not delete anything. The payload is returned.", None),
        tool("delete_basket", "", None),
        tool("basketPurge", "", None),
        tool("basket.wipe", "", None),
        tool("tidy_basket", "Removes every item from the basket.", None),
        tool("settle_basket", "Charges the card of the customer.", None),
        tool("send_money", "For a basket.", None),
        tool("mark_basket", "A mark.", Some(true)),
    ]);
    let front = listing(tools).await;

    probed(&run_on(&front.url())).await;
    assert_eq!(called(&front), ["create_basket", "get_basket", "transform_basket"]);

    let mut run = run_on(&front.url());
    run.include_destructive = true;
    probed(&run).await;
    assert_eq!(called(&front).len(), 10, "all of them, when the operator says so: {:?}", called(&front));
}

#[tokio::test]
async fn a_hint_that_says_harmless_does_not_outweigh_a_word() {
    let front = listing(json!([
        tool("create_basket", "Makes a basket.", Some(false)),
        tool("get_basket", "Shows a basket.", Some(false)),
        tool("erase_basket", "", Some(false)),
    ]))
    .await;

    probed(&run_on(&front.url())).await;

    assert_eq!(called(&front), ["create_basket", "get_basket"]);
}

#[tokio::test]
async fn what_the_profile_denies_is_not_called() {
    let served = served("flawed", Answers::Json).await;
    for denied in ["append_note", "archive_workspace", "whoami", "read_workspace"] {
        let front = Front::of(&served.url(), |_, _| Act::Forward).await;
        let mut run = run_on(&front.url());
        run.profile = Profile::parse(&format!("[tools]\ndeny = [\"{denied}\"]\n")).expect("a profile");
        // Not even where the operator allows what is destructive.
        run.include_destructive = true;

        probed(&run).await;

        assert!(!called(&front).contains(&denied.to_owned()), "{denied}");
        assert!(called(&front).len() >= 4, "the others are called: {:?}", called(&front));
    }
}

#[tokio::test]
async fn a_dry_run_sends_nothing_but_listings() {
    for name in ["flawed", "legacy"] {
        let served = served(name, Answers::Json).await;
        let front = Front::of(&served.url(), |_, _| Act::Forward).await;
        let mut run = run_on(&front.url());
        run.include_destructive = true;

        let planned = run.plan(&|_| {}).await.expect("usable").expect("a server");

        let handshake = ["initialize", "notifications/initialized", ""];
        let beyond: Vec<Recorded> =
            front.seen().into_iter().filter(|seen| !seen.is_listing() && !handshake.contains(&seen.method())).collect();
        assert!(beyond.is_empty(), "{name}: {beyond:?}");
        assert!(front.seen().iter().any(|seen| seen.method() == "tools/list"));
        assert!(planned.calls.len() >= 2, "{name}: every tool is in the plan");
        assert_eq!(served.destructive_calls(), 0);
    }
}

#[tokio::test]
async fn a_plan_shows_arguments_and_what_is_left_out() {
    let served = served("sound", Answers::Json).await;
    let mut run = run_on(&served.url());
    run.profile = Profile::parse("[tools]\ndeny = [\"append_note\"]\n").expect("a profile");

    let planned = run.plan(&|_| {}).await.expect("usable").expect("a server");

    let of = |name: &str| {
        planned.calls.iter().find(|planned| planned.call == format!("tools/call {name}")).expect("it is listed")
    };
    let label = of("open_workspace").arguments.clone().expect("arguments")["label"].clone();
    assert!(label.as_str().is_some_and(|label| label.starts_with("hf-a") && label.ends_with("canary")), "{label}");
    assert_eq!(of("read_workspace").arguments, Ok(json!({"workspace_id": "<handle>"})));
    assert_eq!(of("purge_workspace").left_out.as_deref(), Some("declares destructiveHint"));
    assert_eq!(of("append_note").left_out.as_deref(), Some("denied by the profile"));
}

#[tokio::test]
async fn a_run_makes_no_more_calls_than_it_may() {
    let served = served("flawed", Answers::Json).await;
    for limit in [0, 1, 2, 10, 30, 60] {
        let front = Front::of(&served.url(), |_, _| Act::Forward).await;
        let mut run = run_on(&front.url());
        run.max_calls = limit;

        let report = probed(&run).await;

        let made = front.seen().iter().filter(|seen| !seen.is_listing()).count();
        assert!(made <= limit && report.calls <= limit, "{made} calls of {limit}");
        assert_eq!(check(&report, STATE).reason.slug(), "call-limit", "{limit}: {}", verdicts(&report));
        assert_eq!(check(&report, STATE).verdict, Verdict::Errored);
        for check in &report.checks {
            assert_ne!(check.verdict, Verdict::Refuted, "{limit}");
        }
    }
}

#[tokio::test]
async fn a_run_lasts_no_longer_than_it_may() {
    let ends = |url: String, max: Duration| async move {
        let mut run: Run = run_on(&url);
        run.max_time = max;
        let (report, took) = timed(probed(&run)).await;
        assert_eq!(reasons(&report), ["timed-out"; 2]);
        assert!(took < max + Duration::from_secs(3), "{took:?}");
    };
    // The time for one answer is 20 seconds: it is the time for the whole run that ends these.
    for honest in [0, 1, 3, 6, 12] {
        let server = odd::start(Odd::HangsAfter(honest)).await.expect("a free port");
        ends(server.url(), Duration::from_millis(400)).await;
    }
    let served = served("flawed", Answers::Json).await;
    ends(served.url(), Duration::from_millis(1)).await;
}

#[tokio::test]
async fn exploring_alone_calls_nothing_destructive() {
    let served = served("flawed", Answers::Json).await;

    let (surface, map) = run_on(&served.url()).discover(&|_| {}).await.expect("usable").expect("a server");

    assert_eq!(served.destructive_calls(), 0);
    assert_eq!(surface.tools.len(), 6);
    assert_eq!(map.left_out, [("purge_workspace".to_owned(), "declares destructiveHint".to_owned())]);
}

/// What a run minted it ends, where the server has a tool for that, each by whoever minted it; else it says what is left.
#[tokio::test]
async fn what_was_minted_is_ended_where_there_is_a_way() {
    for (twin, has_a_way) in [("closing", true), ("sound", false)] {
        let served = served(twin, Answers::Json).await;
        let front = Front::of(&served.url(), |_, _| Act::Forward).await;

        let report = probed(&run_on(&front.url())).await;

        let seen = front.seen();
        let calls = |tool: &str| seen.iter().filter(|call| call.tool() == tool).count();
        assert!(calls("open_workspace") > 0, "{twin}");
        let note = report.notes.iter().find(|note| note.starts_with("of what the run minted")).expect("it is said");
        assert_eq!(note.contains("left behind"), !has_a_way, "{twin}: {note}");
        assert_eq!(calls("close_workspace") >= calls("open_workspace") / 2, has_a_way, "{twin}: {note}");
    }
}
