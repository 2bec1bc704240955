//! Baskets that are closed, in the many ways in which servers close, and refusals that tell too much: what is a finding, and
//! what only looks like one.

mod support;

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex},
};

use handfast_probe::{checks, report::CheckReport};
use serde_json::{Value, json};
use support::{
    front::{Act, Front, Recorded},
    probed, run_on, verdict,
};

const CLOSE: &str = "handle-outlives-close";
const ORACLE: &str = "handle-oracle";
const PLAIN: &str = "Closes a basket, whose id is worth nothing from then on.";

/// A basket.
#[derive(Debug, Clone, Default)]
struct Basket {
    owner: String,
    label: String,
    closed: bool,
    read: usize,
}

/// How a shop behaves where it matters.
#[derive(Clone, Copy)]
struct Shop {
    closer: (&'static str, &'static str),
    /// What the closing says; `None` closes.
    closing: fn() -> Option<Act>,
    /// What a closed basket is answered with; `None` as if it were open.
    closed: fn(&Basket) -> Option<Act>,
    /// What an open basket is answered with; `None` shows it.
    open: fn(&Basket) -> Option<Act>,
    /// What somebody else's basket is answered with, or one that there is not.
    foreign: fn(Option<&Basket>, &str) -> Act,
}

const SHOP: Shop = Shop {
    closer: ("close_basket", PLAIN),
    closing: || None,
    closed: |_| Some(error("unknown basket")),
    open: |_| None,
    foreign: |_, _| error("unknown basket"),
};

fn result(text: &str) -> Act {
    Act::Result(json!({"resultType": "complete", "content": [{"type": "text", "text": text}]}))
}

fn error(text: &str) -> Act {
    Act::Result(json!({"resultType": "complete", "isError": true, "content": [{"type": "text", "text": text}]}))
}

fn data(data: Value) -> Act {
    let text = data.to_string();
    Act::Result(
        json!({"resultType": "complete", "content": [{"type": "text", "text": text}], "structuredContent": data}),
    )
}

fn shown(handle: &str, basket: &Basket, status: &str) -> Act {
    data(json!({"basket_id": handle, "label": basket.label, "owner": basket.owner, "status": status}))
}

fn tools(shop: &Shop) -> Value {
    let text = json!({"type": "string"});
    let takes = |name: &str| json!({"type": "object", "properties": {name: text}, "required": [name]});
    json!([
        {"name": "create_basket", "description": "Creates a basket.", "inputSchema": takes("label")},
        {"name": "get_basket", "description": "Shows a basket.", "inputSchema": takes("basket_id")},
        {"name": shop.closer.0, "description": shop.closer.1, "inputSchema": takes("basket_id")}
    ])
}

async fn opened(shop: Shop) -> Front {
    let baskets = Arc::new(Mutex::new(BTreeMap::<String, Basket>::new()));
    Front::start(None, move |number, request: &Recorded| {
        let caller = request.token().unwrap_or_default().to_owned();
        let arguments = &request.body["params"]["arguments"];
        let handle = arguments["basket_id"].as_str().unwrap_or_default();
        let mut baskets = baskets.lock().expect("no test panics while it holds this");
        match (request.method(), request.tool()) {
            ("server/discover", _) => Act::Result(
                json!({"resultType": "complete", "supportedVersions": [handfast_wire::meta::MODERN], "capabilities": {"tools": {}}}),
            ),
            ("tools/list", _) => Act::Result(json!({"resultType": "complete", "tools": tools(&shop)})),
            (method, "") if method.ends_with("/list") => Act::Error(-32601, "no such method"),
            (_, "create_basket") => {
                let handle = format!("bsk-{:08x}{:08x}", number * 7_919_357 + 0x1a2b_3c4d, number * 104_729 + 0x5e6f_7a8b);
                let label = arguments["label"].as_str().unwrap_or_default().to_owned();
                let basket = Basket { owner: caller, label, ..Basket::default() };
                let answer = shown(&handle, &basket, "open");
                baskets.insert(handle, basket);
                answer
            }
            (_, tool) => match baskets.get_mut(handle).filter(|basket| basket.owner == caller) {
                None => (shop.foreign)(baskets.get(handle), handle),
                Some(basket) if tool == shop.closer.0 => (shop.closing)().unwrap_or_else(|| {
                    basket.closed = true;
                    result("closed")
                }),
                Some(basket) => {
                    basket.read += 1;
                    let answer = if basket.closed { (shop.closed)(basket) } else { (shop.open)(basket) };
                    answer.unwrap_or_else(|| shown(handle, basket, "open"))
                }
            },
        }
    })
    .await
}

async fn tested(shop: Shop, id: &str, destructive: bool) -> CheckReport {
    let front = opened(shop).await;
    let mut run = run_on(&front.url());
    run.checks = vec![checks::find(id).expect("a check")];
    run.include_destructive = destructive;
    let mut report = probed(&run).await;
    report.checks.remove(0)
}

#[tokio::test]
async fn what_was_closed_is_over_or_it_is_not() {
    let said = |shop: Shop| async move { verdict(&tested(shop, CLOSE, false).await) };

    assert_eq!(said(SHOP).await, "refuted ended-handle-refused");
    assert_eq!(said(Shop { closed: |_| None, ..SHOP }).await, "confirmed ended-handle-served medium");
    assert_eq!(
        said(Shop { closed: |_| Some(result("there is no such basket")), ..SHOP }).await,
        "refuted ended-handle-refused"
    );
    // Closed, and still to be read: that is a design, and it is told.
    let told = Shop { closed: |basket| Some(shown("bsk-0", basket, "closed")), ..SHOP };
    assert_eq!(said(told).await, "refuted ended-handle-refused +ended-object-shown");
}

#[tokio::test]
async fn what_says_neither_yes_nor_no_is_neither() {
    let said = |closed| async move { verdict(&tested(Shop { closed, ..SHOP }, CLOSE, false).await) };

    assert_eq!(said(|_| Some(error("Traceback (most recent call last): KeyError"))).await, "errored unclear");
    assert_eq!(said(|_| Some(error("rate limit exceeded, try again later"))).await, "errored unclear");
    assert_eq!(said(|_| Some(Act::Status(429, Vec::new()))).await, "errored unclear");
    assert_eq!(said(|_| Some(Act::Status(503, Vec::new()))).await, "errored unclear");
}

#[tokio::test]
async fn where_nothing_is_closed_nothing_is_said() {
    let politely = Shop { closing: || Some(result("cannot be closed while it is in use")), closed: |_| None, ..SHOP };
    let refused = Shop { closing: || Some(error("not now")), closed: |_| None, ..SHOP };

    for shop in [politely, refused] {
        assert_eq!(verdict(&tested(shop, CLOSE, false).await), "skipped control-failed");
    }
}

#[tokio::test]
async fn what_only_sounds_like_an_end_is_none() {
    for closer in [
        ("close_basket", "Closes a basket."),
        ("archive_basket", PLAIN),
        ("close_basket", "Closes a basket, which can be reopened; nothing is deleted."),
    ] {
        let shop = Shop { closer, closed: |_| None, ..SHOP };

        assert_eq!(verdict(&tested(shop, CLOSE, false).await), "skipped no-tool-ends-a-handle", "{closer:?}");
    }
}

#[tokio::test]
async fn what_destroys_is_called_only_where_that_is_allowed() {
    let shop = Shop { closer: ("delete_basket", "Deletes a basket."), closed: |_| None, ..SHOP };

    let careful = tested(shop, CLOSE, false).await;
    assert_eq!(careful.reason.slug(), "no-tool-ends-a-handle");
    assert!(careful.detail.contains("delete_basket"), "{}", careful.detail);
    assert_eq!(verdict(&tested(shop, CLOSE, true).await), "confirmed ended-handle-served medium");
}

#[tokio::test]
async fn a_handle_that_reads_once_was_not_ended_by_being_read() {
    let once = |basket: &Basket| (basket.read > 1).then(|| error("unknown basket"));

    let sound = Shop { open: once, ..SHOP };
    assert_eq!(verdict(&tested(sound, CLOSE, false).await), "refuted ended-handle-refused");
    let flawed = Shop { closed: once, ..sound };
    assert_eq!(verdict(&tested(flawed, CLOSE, false).await), "confirmed ended-handle-served medium");
}

#[tokio::test]
async fn a_difference_in_status_or_words_tells_which_handles_exist() {
    let said = |foreign| async move { verdict(&tested(Shop { foreign, ..SHOP }, ORACLE, false).await) };

    assert_eq!(said(|_, _| error("unknown basket")).await, "refuted handles-refused-alike");
    assert_eq!(said(|_, handle| error(&format!("no basket {handle} here"))).await, "refuted handles-refused-alike");
    let by_status =
        |basket: Option<&Basket>, _: &str| Act::Status(if basket.is_some() { 403 } else { 404 }, Vec::new());
    assert_eq!(said(by_status).await, "confirmed handle-oracle low");
    let by_words =
        |basket: Option<&Basket>, _: &str| error(if basket.is_some() { "not yours" } else { "unknown basket" });
    assert_eq!(said(by_words).await, "confirmed handle-oracle low");
    let politely = |basket: Option<&Basket>, _: &str| match basket {
        Some(_) => result("somebody else is using this basket"),
        None => error("unknown basket"),
    };
    assert_eq!(said(politely).await, "confirmed handle-oracle low");
}

#[tokio::test]
async fn what_is_given_away_or_falls_over_is_no_refusal() {
    let said = |foreign| async move { verdict(&tested(Shop { foreign, ..SHOP }, ORACLE, false).await) };

    let given_away = |basket: Option<&Basket>, handle: &str| match basket {
        Some(basket) => shown(handle, basket, "open"),
        None => error("unknown basket"),
    };
    assert_eq!(said(given_away).await, "skipped nothing-was-refused");
    assert_eq!(said(|_, _| Act::Status(503, Vec::new())).await, "errored unclear");
    assert_eq!(said(|_, _| error("too many attempts")).await, "errored unclear");
}
