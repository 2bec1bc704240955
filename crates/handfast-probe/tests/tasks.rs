//! The checks of tasks on odd servers: tasks that can be looked at once, that never end, that are everybody's, that are refused
//! for other reasons; and how little is asked of a server that has none.

mod support;

use std::{collections::BTreeSet, sync::Mutex};

use handfast_probe::{checks, report::CheckReport};
use handfast_twins::Answers;
use serde_json::{Value, json};
use support::{
    check, entry,
    front::{Act, Front, Recorded},
    probed, served, verdict, whole_run_on,
};

const FOREIGN: &str = "task-foreign-principal";

/// One check through a front.
async fn through(twin: &str, id: &str, act: impl Fn(usize, &Recorded) -> Act + Send + Sync + 'static) -> CheckReport {
    let served = served(twin, Answers::Json).await;
    let front = Front::of(&served.url(), act).await;
    let mut run = whole_run_on(&front.url());
    run.checks = vec![checks::find(id).expect("a check")];
    check(&probed(&run).await, id).clone()
}

#[tokio::test]
async fn each_method_is_a_row_of_its_own() {
    for (twin, rows) in [
        ("tasks", ["refuted", "refuted", "refuted"]),
        ("task-for-anybody", ["confirmed", "refuted", "refuted"]),
        ("task-cancelled-by-anybody", ["refuted", "refuted", "confirmed"]),
    ] {
        let found = through(twin, FOREIGN, |_, _| Act::Forward).await;

        let seen = ["tasks/get", "tasks/update", "tasks/cancel"].map(|row| entry(&found, row).row.verdict.word());
        assert_eq!(seen, rows, "{twin}: {}", found.detail);
    }
}

/// Baskets: opened, closed, and exported by a task. The tool that closes one is listed before the one that begins a task.
fn baskets() -> impl Fn(usize, &Recorded) -> Act + Send + Sync + 'static {
    let open: Mutex<Vec<String>> = Mutex::default();
    let text = |text: &str| json!({"resultType": "complete", "content": [{"type": "text", "text": text}]});
    let takes = |name: &str| json!({"type": "object", "properties": {name: {"type": "string"}}, "required": [name]});
    move |number, request| {
        let mut open = open.lock().expect("no panic");
        let basket = request.body["params"]["arguments"]["basket_id"].as_str().unwrap_or_default().to_owned();
        let at = open.iter().position(|known| *known == basket);
        match (request.method(), request.tool(), at) {
            ("server/discover", ..) => Act::Result(json!({
                "resultType": "complete",
                "supportedVersions": ["2026-07-28"],
                "capabilities": {"tools": {}, "extensions": {"io.modelcontextprotocol/tasks": {}}},
            })),
            ("tools/list", ..) => Act::Result(json!({"resultType": "complete", "tools": [
                {"name": "open_basket", "inputSchema": takes("label")},
                {"name": "close_basket", "inputSchema": takes("basket_id")},
                {"name": "export_basket", "inputSchema": takes("basket_id")},
            ]})),
            (_, "open_basket", _) => {
                open.push(format!("bsk-{:032x}", number * 7919 + 1));
                let minted = open.last().expect("just pushed");
                let mut result = text(minted);
                result["structuredContent"] = json!({"basket_id": minted});
                Act::Result(result)
            }
            (_, "close_basket", Some(at)) => {
                open.remove(at);
                Act::Result(text("closed"))
            }
            (_, "export_basket", Some(_)) => Act::Result(
                json!({"resultType": "task", "taskId": format!("task-{number}-of-{basket}"), "status": "completed"}),
            ),
            _ => Act::Refusal("there is no such thing".to_owned()),
        }
    }
}

#[tokio::test]
async fn a_task_is_begun_about_nothing_that_was_ended() {
    let found = through("sound", FOREIGN, baskets()).await;

    assert_ne!(found.reason.slug(), "no-task-returned", "{}", found.detail);
}

/// Whoever looks first is told, and nobody after.
fn once() -> impl Fn(usize, &Recorded) -> Act + Send + Sync + 'static {
    let seen = Mutex::new(BTreeSet::new());
    move |_, request| {
        if request.method() != "tasks/get" {
            return Act::Forward;
        }
        let id = request.body["params"]["taskId"].as_str().unwrap_or_default().to_owned();
        let foreign = request.token() == Some("bob") && seen.lock().expect("no panic").contains(&format!("tried {id}"));
        let first = seen.lock().expect("no panic").insert(id);
        if first || foreign { Act::Forward } else { Act::Refusal("unknown task".to_owned()) }
    }
}

#[tokio::test]
async fn a_task_that_can_be_looked_at_once_hides_no_flaw() {
    let found = through("task-for-anybody", FOREIGN, once()).await;

    assert_eq!(verdict(&found), "confirmed task-not-bound high", "{}", found.detail);
}

#[tokio::test]
async fn a_task_that_never_ends_shows_nothing_of_its_owner() {
    // Who somebody is, is told; what comes of a workspace is not.
    let never = |body: &str| {
        let mut message: Value = serde_json::from_str(body).unwrap_or_default();
        if !body.contains("workspace_id") {
            return body.to_owned();
        }
        let result = &mut message["result"];
        result["status"] = "working".into();
        result["pollIntervalMs"] = 0.into();
        result.as_object_mut().expect("an object").remove("result");
        message.to_string()
    };

    let found = through("task-for-anybody", FOREIGN, move |_, request| match request.method() {
        "tasks/get" => Act::Changed(never),
        _ => Act::Forward,
    })
    .await;

    let get = entry(&found, "tasks/get");
    assert_eq!(
        (get.row.verdict.word(), get.row.reason.slug()),
        ("refuted", "cross-use-unattributable"),
        "{}",
        found.detail
    );
    assert!(found.observations.iter().any(|observation| observation.id == "cross-use-unattributable"));
}

#[tokio::test]
async fn where_both_are_one_caller_nothing_is_anybodys() {
    let found = through("tasks", FOREIGN, |_, _| Act::As("alice")).await;

    assert_eq!(verdict(&found), "skipped identities-not-distinguished", "{}", found.detail);
}

#[tokio::test]
async fn a_refusal_that_meets_the_owner_as_well_is_no_guard() {
    // From B's look at A's task on, it is gone for everybody; or all tasks are.
    for all in [false, true] {
        let (own, gone) = (Mutex::new(BTreeSet::new()), Mutex::new(None::<String>));
        let found = through("task-for-anybody", FOREIGN, move |_, request| {
            let id = request.body["params"]["taskId"].as_str().unwrap_or_default().to_owned();
            if request.method() != "tasks/get" {
                return Act::Forward;
            }
            let (mut own, mut gone) = (own.lock().expect("no panic"), gone.lock().expect("no panic"));
            match request.token() {
                Some("alice") => drop(own.insert(id.clone())),
                Some("bob") if own.contains(&id) => *gone = Some(id.clone()),
                _ => {}
            }
            match &*gone {
                Some(first) if all || *first == id => Act::Refusal("no such task".to_owned()),
                _ => Act::Forward,
            }
        })
        .await;

        let get = entry(&found, "tasks/get");
        assert_eq!((get.row.verdict.word(), get.row.reason.slug()), ("errored", "control-failed"), "{}", found.detail);
    }
}

#[tokio::test]
async fn refusals_that_differ_tell_which_tasks_there_are() {
    let known = Mutex::new(BTreeSet::new());
    let found = through("tasks", FOREIGN, move |_, request| {
        let id = request.body["params"]["taskId"].as_str().unwrap_or_default().to_owned();
        match (request.method(), request.token()) {
            ("tasks/get", Some("alice")) => drop(known.lock().expect("no panic").insert(id)),
            ("tasks/get", Some("bob")) if known.lock().expect("no panic").contains(&id) => {
                return Act::Refusal("this task is somebody else's".to_owned());
            }
            _ => {}
        }
        Act::Forward
    })
    .await;

    assert_eq!(verdict(&found), "refuted task-bound +task-oracle", "{}", found.detail);
}

#[tokio::test]
async fn a_new_token_of_somebody_else_is_none_of_as() {
    use handfast_probe::identity::Who;
    let served = served("task-of-one-token", Answers::Json).await;
    let mut run = whole_run_on(&served.url());
    run.checks = vec![checks::find("task-overbound").expect("a check")];
    run.identities = run.identities.clone().with(Who::NewToken, "carol".into());

    let report = probed(&run).await;

    assert_eq!(verdict(check(&report, "task-overbound")), "skipped needs-identity:a-new-token");
}

#[tokio::test]
async fn a_server_without_tasks_is_asked_nothing_about_them() {
    let served = served("sound", Answers::Json).await;
    let front = Front::of(&served.url(), |_, _| Act::Forward).await;
    let mut run = whole_run_on(&front.url());
    run.checks.retain(|check| check.id.starts_with("task-") || check.id.starts_with("cursor-"));
    assert!(run.checks.len() >= 7);

    let report = probed(&run).await;
    run.checks.clear();
    let calls = front.seen().len();
    let without = probed(&run).await;

    assert!(report.checks.iter().all(|check| check.verdict.word() == "skipped"));
    assert_eq!(calls, front.seen().len() - calls, "{} and {} calls", report.calls, without.calls);
}
