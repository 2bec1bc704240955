//! Small servers by hand, each odd in one way: they say by a number whether anything was done, or compare one field of a state
//! and believe the next.

mod support;

use std::{collections::BTreeMap, sync::Mutex};

use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};
use handfast_probe::{checks, report::Report};
use serde_json::{Value, json};
use support::{
    HANDLE, STATE, check,
    front::Act,
    mini::{data, mini, no, tool},
    probed, verdict, whole_run_on,
};

/// What a desk keeps.
#[derive(Debug, Default)]
struct Desk {
    made: usize,
    /// Whose, under which title, and how often it was changed.
    objects: BTreeMap<String, (String, String, u64)>,
    /// The states that were issued.
    issued: Vec<String>,
}

impl Desk {
    fn id(&mut self, kind: &str) -> String {
        self.made += 1;
        let number = self.made * 7_919_357 + 0x1a2b_3c4d;
        format!("{kind}_{number:08x}{:08x}", number ^ 0x5a5a_5a5a)
    }

    /// A new object of a caller's.
    fn open(&mut self, kind: &str, who: &str, title: &Value) -> String {
        let (id, title) = (self.id(kind), title.as_str().unwrap_or_default().to_owned());
        self.objects.insert(id.clone(), (who.to_owned(), title, 0));
        id
    }
}

/// How a desk answers a call: of whom, of which tool, with which parameters.
type Answer = fn(&mut Desk, &str, &str, &Value) -> Act;

/// These checks against a desk with these tools, each with the texts that it takes.
async fn judged(tools: &'static [(&str, &[&str])], ids: &[&str], answer: Answer) -> Report {
    let desk = Mutex::<Desk>::default();
    let tools: Vec<Value> = tools.iter().map(|(name, takes)| tool(name, takes)).collect();
    let front = mini(tools.into(), false, move |who, request| match request.tool() {
        "whoami" => data(json!({"user": who})),
        name => answer(&mut desk.lock().expect("nobody panics"), who, name, &request.body["params"]),
    })
    .await;
    let mut run = whole_run_on(&front.url());
    run.checks = ids.iter().map(|id| checks::find(id).expect("a check")).collect();
    probed(&run).await
}

fn says(text: &str) -> Act {
    Act::Result(json!({"resultType": "complete", "content": [{"type": "text", "text": text}]}))
}

fn asks(state: &str) -> Act {
    let schema = json!({"type": "object", "properties": {"confirm": {"type": "boolean"}}, "required": ["confirm"]});
    let confirm = json!({"method": "elicitation/create", "params": {"mode": "form", "message": "Really?", "requestedSchema": schema}});
    Act::Result(json!({"resultType": "input_required", "inputRequests": {"confirm": confirm}, "requestState": state}))
}

fn agreed(params: &Value) -> bool {
    let answer = &params["inputResponses"]["confirm"];
    answer["action"] == "accept" && answer["content"]["confirm"] == true
}

fn written(document: &Value) -> String {
    URL_SAFE_NO_PAD.encode(document.to_string())
}

fn read(state: &str) -> Option<Value> {
    serde_json::from_slice(&URL_SAFE_NO_PAD.decode(state).ok()?).ok()
}

/// The verdicts on some checks.
fn verdicts(report: &Report, ids: &[&str]) -> Vec<String> {
    ids.iter().map(|id| format!("{id}: {}", verdict(check(report, id)))).collect()
}

const ARCHIVE: &[(&str, &[&str])] = &[("archive_items", &["folder"]), ("whoami", &[])];

/// Sound: a state that was altered, or is another one's, archives 0 items, and that is no error.
#[tokio::test]
async fn a_state_that_archives_nothing_was_not_taken() {
    let ids = [STATE, "state-foreign-principal", "state-foreign-request", "state-spliced", "decline-ignored"];
    let report = judged(ARCHIVE, &ids, |desk, who, _, params| {
        let folder = &params["arguments"]["folder"];
        let Some(state) = params["requestState"].as_str() else {
            let document = json!({"user": who, "folder": folder, "items": 3, "n": desk.id("n")});
            let state = format!("{}.{}", written(&document), URL_SAFE_NO_PAD.encode(desk.id("tag")));
            desk.issued.push(state.clone());
            return asks(&state);
        };
        let Some(document) = state.split_once('.').and_then(|(body, _)| read(body)) else { return no("invalid") };
        let bound = document["user"] == who && document["folder"] == *folder;
        let taken = desk.issued.iter().any(|issued| issued == state) && bound && agreed(params);
        says(&format!("archived {} items", if taken { 3 } else { 0 }))
    })
    .await;

    let expected = [
        "state-tampered: refuted state-integrity-held",
        "state-foreign-principal: refuted state-bound",
        "state-foreign-request: refuted state-bound",
        "state-spliced: refuted state-integrity-held",
        "decline-ignored: refuted approval-held",
    ];
    assert_eq!(verdicts(&report, &ids), expected);
}

/// Flawed: the state is not signed and nobody's. What cannot be read archives 0 items, and that is no error.
#[tokio::test]
async fn a_random_state_that_archives_nothing_was_consulted() {
    let ids = [STATE, "state-foreign-principal"];
    let report = judged(ARCHIVE, &ids, |desk, who, _, params| {
        let Some(state) = params["requestState"].as_str() else {
            let folder = &params["arguments"]["folder"];
            return asks(&written(&json!({"user": who, "folder": folder, "items": 3, "n": desk.id("n")})));
        };
        let items = read(state).and_then(|document| document["items"].as_u64()).filter(|_| agreed(params));
        says(&format!("archived {} items", items.unwrap_or(0)))
    })
    .await;

    let expected = [
        "state-tampered: confirmed altered-state-accepted high",
        "state-foreign-principal: confirmed state-not-bound high",
    ];
    assert_eq!(verdicts(&report, &ids), expected);
}

/// `UPDATE tasks SET priority = ? WHERE id = ?`, and perhaps `AND owner = ?`.
fn sets_a_priority(desk: &mut Desk, who: &str, tool: &str, params: &Value, owned: bool) -> Act {
    let arguments = &params["arguments"];
    if tool == "create_task" {
        let id = desk.open("tsk", who, &arguments["title"]);
        return data(json!({"task_id": id, "title": arguments["title"], "owner": who}));
    }
    let id = arguments["task_id"].as_str().unwrap_or_default();
    let task = desk.objects.get_mut(id);
    match (tool, task) {
        ("set_priority", task) => {
            let task = task.filter(|(owner, ..)| !owned || owner == who);
            let rows = task.map_or(0, |task| {
                task.2 += 1;
                1
            });
            data(json!({"rows_updated": rows}))
        }
        (_, Some((owner, title, revision))) if owner == who => {
            data(json!({"task_id": id, "title": title, "owner": owner, "revision": revision}))
        }
        _ => no("no such task"),
    }
}

const TASKS: &[(&str, &[&str])] =
    &[("create_task", &["title"]), ("get_task", &["task_id"]), ("set_priority", &["task_id", "priority"])];

#[tokio::test]
async fn an_update_that_asks_nobody_whose_is_seen_by_the_owner() {
    let report =
        judged(TASKS, &[HANDLE], |desk, who, tool, params| sets_a_priority(desk, who, tool, params, false)).await;
    assert_eq!(verdict(check(&report, HANDLE)), "confirmed handle-not-bound medium");

    let report =
        judged(TASKS, &[HANDLE], |desk, who, tool, params| sets_a_priority(desk, who, tool, params, true)).await;
    assert_eq!(verdict(check(&report, HANDLE)), "refuted handle-bound +refusal-is-no-error");
}

/// `UPDATE carts SET open = false WHERE id = ? AND open`, and perhaps `AND owner = ?`.
fn closes_carts(desk: &mut Desk, who: &str, tool: &str, params: &Value, owned: bool) -> Act {
    let arguments = &params["arguments"];
    if tool == "open_cart" {
        let id = desk.open("crt", who, &arguments["title"]);
        return data(json!({"cart_id": id, "title": arguments["title"], "owner": who}));
    }
    let id = arguments["cart_id"].as_str().unwrap_or_default();
    let cart = desk.objects.get_mut(id).filter(|(_, _, closed)| *closed == 0);
    match (tool, cart) {
        ("close_cart", cart) => {
            let cart = cart.filter(|(owner, ..)| !owned || owner == who);
            let carts = cart.map_or(0, |cart| {
                cart.2 = 1;
                1
            });
            data(json!({"carts_closed": carts}))
        }
        (_, Some((owner, title, _))) if owner == who => data(json!({"cart_id": id, "title": title, "owner": owner})),
        _ => no("no such cart"),
    }
}

const CARTS: &[(&str, &[&str])] =
    &[("open_cart", &["title"]), ("get_cart", &["cart_id"]), ("close_cart", &["cart_id"])];

#[tokio::test]
async fn a_cart_that_anybody_closes_is_gone_for_its_owner() {
    let report = judged(CARTS, &[HANDLE], |desk, who, tool, params| closes_carts(desk, who, tool, params, false)).await;
    assert_eq!(verdict(check(&report, HANDLE)), "confirmed handle-not-bound high");

    let report = judged(CARTS, &[HANDLE], |desk, who, tool, params| closes_carts(desk, who, tool, params, true)).await;
    assert_eq!(verdict(check(&report, HANDLE)), "refuted handle-bound +refusal-is-no-error");
}

/// Orders that are paid after a question, with a state that names its caller and the order. Only `trusted` believes the order.
fn pays_orders(desk: &mut Desk, who: &str, params: &Value, trusted: bool) -> Act {
    let Some(state) = params["requestState"].as_str() else {
        let order = desk.open("ord", who, &params["arguments"]["title"]);
        return asks(&written(&json!({"user": who, "order": order})));
    };
    let document = read(state).unwrap_or_default();
    let whole = document.as_object().is_some_and(|document| document.keys().eq(["user", "order"]));
    let order = desk.objects.get(document["order"].as_str().unwrap_or_default());
    match order.filter(|(owner, ..)| trusted || owner == who) {
        Some((owner, title, _)) if whole && document["user"] == who && agreed(params) => {
            data(json!({"title": title, "owner": owner, "paid": true}))
        }
        _ => no("no such order"),
    }
}

const CHECKOUT: &[(&str, &[&str])] = &[("start_checkout", &["title"]), ("whoami", &[])];

#[tokio::test]
async fn an_order_of_as_in_a_state_of_bs_is_found() {
    let report = judged(CHECKOUT, &[STATE], |desk, who, _, params| pays_orders(desk, who, params, true)).await;
    let found = check(&report, STATE);
    assert_eq!(verdict(found), "confirmed altered-state-accepted high");
    assert!(found.detail.contains("B's own state with /order of a state of A's in it"), "{}", found.detail);

    let report = judged(CHECKOUT, &[STATE], |desk, who, _, params| pays_orders(desk, who, params, false)).await;
    assert_eq!(verdict(check(&report, STATE)), "refuted state-integrity-held");
}
