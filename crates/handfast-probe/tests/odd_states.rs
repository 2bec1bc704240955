//! A shop whose baskets are checked out after a question: with states under an opaque id, kept by the shop, that each test
//! issues and takes in its own way.

mod support;

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex},
    time::Duration,
};

use handfast_probe::{checks, clock, report::CheckReport};
use handfast_twins::Answers;
use handfast_wire::meta;
use serde_json::{Value, json};
use support::{
    check,
    front::{Act, Front, Recorded},
    probed, served, verdict, whole_run_on,
};

/// What a state stands for.
#[derive(Debug, Clone)]
struct Pending {
    basket: String,
    issued: Duration,
    /// The answer that was given to it.
    answered: Option<Value>,
}

#[derive(Debug, Default)]
struct Shop {
    baskets: BTreeMap<String, u64>,
    pending: BTreeMap<String, Pending>,
    made: usize,
}

impl Shop {
    fn number(&mut self) -> String {
        self.made += 1;
        format!("{:08x}", self.made * 7_919_357 + 0x1a2b_3c4d)
    }

    /// A new state for a basket.
    fn issue(&mut self, basket: &str) -> String {
        let state = format!("pending-{}{}", self.number(), self.number());
        self.keep(state, basket)
    }

    fn keep(&mut self, state: String, basket: &str) -> String {
        let pending = Pending { basket: basket.to_owned(), issued: clock::since_1970(), answered: None };
        self.pending.insert(state.clone(), pending);
        state
    }

    /// Checks a basket out.
    fn check_out(&mut self, basket: &str) -> Value {
        let times = self.baskets.entry(basket.to_owned()).or_default();
        *times += 1;
        let data = json!({"done": "checked out", "orders": times});
        let text = format!("checked out {basket}");
        json!({"resultType": "complete", "content": [{"type": "text", "text": text}], "structuredContent": data})
    }
}

fn refused() -> Act {
    Act::Error(-32602, "invalid requestState")
}

/// How a shop issues states, and how it takes them back.
#[derive(Clone, Copy)]
struct Manner {
    issue: fn(&mut Shop, &str) -> String,
    take: fn(&mut Shop, &str, &str) -> Act,
}

/// Sound: a state does once, and for its own basket.
const SOUND: Manner = Manner { issue: |shop, basket| shop.issue(basket), take: once };

fn once(shop: &mut Shop, state: &str, basket: &str) -> Act {
    match shop.pending.remove(state) {
        Some(pending) if pending.basket == basket => Act::Result(shop.check_out(basket)),
        Some(pending) => {
            shop.pending.insert(state.to_owned(), pending);
            refused()
        }
        None => refused(),
    }
}

async fn judged(manner: Manner, id: &str, max_wait: Duration) -> CheckReport {
    let shop = Arc::<Mutex<Shop>>::default();
    let front =
        Front::start(None, move |_, request| answer(&mut shop.lock().expect("nobody panics"), manner, request)).await;
    let mut run = whole_run_on(&front.url());
    run.checks.retain(|check| check.id == id);
    run.max_wait = max_wait;
    let report = probed(&run).await;
    check(&report, id).clone()
}

fn answer(shop: &mut Shop, manner: Manner, request: &Recorded) -> Act {
    let text = json!({"type": "string"});
    let takes = |name: &str| json!({"type": "object", "properties": {name: text}, "required": [name]});
    let params = &request.body["params"];
    match (request.method(), request.tool()) {
        ("server/discover", _) => Act::Result(
            json!({"supportedVersions": [meta::MODERN], "capabilities": {"tools": {}}, "resultType": "complete"}),
        ),
        ("tools/list", _) => Act::Result(json!({"resultType": "complete", "tools": [
            {"name": "create_basket", "inputSchema": takes("label")},
            {"name": "checkout_basket", "inputSchema": takes("basket_id")},
            {"name": "get_basket", "inputSchema": takes("basket_id")}
        ]})),
        (_, "get_basket") => {
            let orders = params["arguments"]["basket_id"].as_str().and_then(|basket| shop.baskets.get(basket));
            orders.map_or(Act::Error(-32602, "no such basket"), |orders| {
                let data = json!({"orders": orders});
                let content = json!([{"type": "text", "text": data.to_string()}]);
                Act::Result(json!({"resultType": "complete", "content": content, "structuredContent": data}))
            })
        }
        (_, "create_basket") => {
            let basket = format!("bsk-{}", shop.number());
            shop.baskets.insert(basket.clone(), 0);
            let data = json!({"basket_id": basket});
            let content = json!([{"type": "text", "text": data.to_string()}]);
            Act::Result(json!({"resultType": "complete", "content": content, "structuredContent": data}))
        }
        (_, "checkout_basket") => {
            let basket = params["arguments"]["basket_id"].as_str().unwrap_or_default().to_owned();
            match params["requestState"].as_str() {
                _ if !shop.baskets.contains_key(&basket) => Act::Error(-32602, "no such basket"),
                Some(state) if params["inputResponses"].is_object() => (manner.take)(shop, state, &basket),
                _ => {
                    let state = (manner.issue)(shop, &basket);
                    let schema = json!({"type": "object", "properties": {"confirm": {"type": "boolean"}}, "required": ["confirm"]});
                    let asks = json!({"confirm": {"method": "elicitation/create", "params": {"mode": "form", "message": "Go on?", "requestedSchema": schema}}});
                    Act::Result(json!({"resultType": "input_required", "inputRequests": asks, "requestState": state}))
                }
            }
        }
        _ => Act::Error(-32601, "method not found"),
    }
}

const REPLAYED: &str = "state-replayed";
const FOREIGN: &str = "state-foreign-request";
const EXPIRY: &str = "state-outlives-expiry";

#[tokio::test]
async fn states_under_an_id_are_found_sound() {
    for (id, said) in [
        (REPLAYED, "refuted state-single-use"),
        (FOREIGN, "refuted state-bound"),
        (EXPIRY, "skipped needs-wait"),
        ("state-spliced", "skipped no-signature-seen"),
        ("state-readable", "refuted no-secret-seen"),
        ("state-overbound", "refuted follows-its-owner"),
    ] {
        assert_eq!(verdict(&judged(SOUND, id, Duration::ZERO).await), said, "{id}");
    }
}

#[tokio::test]
async fn a_repetition_that_is_answered_and_not_carried_out_is_no_finding() {
    let take = |shop: &mut Shop, state: &str, basket: &str| {
        let Some(pending) = shop.pending.get(state).cloned().filter(|pending| pending.basket == basket) else {
            return refused();
        };
        let answer = pending.answered.unwrap_or_else(|| shop.check_out(basket));
        shop.pending.get_mut(state).expect("just seen").answered = Some(answer.clone());
        Act::Result(answer)
    };
    let judged = judged(Manner { take, ..SOUND }, REPLAYED, Duration::ZERO).await;
    assert_eq!(verdict(&judged), "refuted state-accepted-twice +state-accepted-twice");
    assert!(judged.detail.contains("done once all the same"), "{}", judged.detail);
}

#[tokio::test]
async fn a_repetition_that_is_carried_out_is_counted_whatever_is_answered() {
    let take = |shop: &mut Shop, state: &str, basket: &str| {
        let Some(pending) = shop.pending.get(state).cloned().filter(|pending| pending.basket == basket) else {
            return refused();
        };
        let now = shop.check_out(basket);
        // The second answer is the first one: only the next order tells.
        let answer = pending.answered.unwrap_or(now);
        shop.pending.get_mut(state).expect("just seen").answered = Some(answer.clone());
        Act::Result(answer)
    };
    let judged = judged(Manner { take, ..SOUND }, REPLAYED, Duration::ZERO).await;
    assert_eq!(verdict(&judged), "confirmed state-used-again medium");
}

/// The answers say nothing but that it was done. Who looks at the basket sees how often.
#[tokio::test]
async fn a_repetition_is_counted_where_the_object_is_shown() {
    let take = |shop: &mut Shop, state: &str, basket: &str| match shop.pending.get(state) {
        Some(pending) if pending.basket == basket => {
            shop.check_out(basket);
            Act::Result(json!({"resultType": "complete", "content": [{"type": "text", "text": "checked out"}]}))
        }
        _ => refused(),
    };
    let found = judged(Manner { take, ..SOUND }, REPLAYED, Duration::ZERO).await;
    assert_eq!(verdict(&found), "confirmed state-used-again medium", "{}", found.detail);

    let take = |shop: &mut Shop, state: &str, basket: &str| {
        let Some(pending) = shop.pending.get(state).cloned().filter(|pending| pending.basket == basket) else {
            return refused();
        };
        if pending.answered.is_none() {
            shop.check_out(basket);
            shop.pending.get_mut(state).expect("just seen").answered = Some(Value::Null);
        }
        Act::Result(json!({"resultType": "complete", "content": [{"type": "text", "text": "checked out"}]}))
    };
    let found = judged(Manner { take, ..SOUND }, REPLAYED, Duration::ZERO).await;
    assert_eq!(verdict(&found), "refuted state-accepted-twice +state-accepted-twice");
    assert!(found.detail.contains("done once all the same"), "{}", found.detail);
}

#[tokio::test]
async fn the_same_state_for_as_long_as_it_waits_is_no_replay() {
    let issue = |shop: &mut Shop, basket: &str| {
        let waiting = shop.pending.iter().find(|(_, pending)| pending.basket == basket).map(|(state, _)| state.clone());
        waiting.unwrap_or_else(|| shop.issue(basket))
    };
    let judged = judged(Manner { issue, ..SOUND }, REPLAYED, Duration::ZERO).await;
    assert_eq!(verdict(&judged), "refuted state-single-use");
}

#[tokio::test]
async fn a_state_that_does_for_another_basket_is_told_by_the_answer() {
    let take = |shop: &mut Shop, state: &str, basket: &str| match shop.pending.remove(state) {
        Some(_) => Act::Result(shop.check_out(basket)),
        None => refused(),
    };
    let judged = judged(Manner { take, ..SOUND }, FOREIGN, Duration::ZERO).await;
    assert_eq!(verdict(&judged), "confirmed state-not-bound high");
}

#[tokio::test]
async fn a_state_that_does_what_it_was_issued_for_is_no_finding() {
    let take = |shop: &mut Shop, state: &str, _: &str| match shop.pending.remove(state) {
        Some(pending) => Act::Result(shop.check_out(&pending.basket)),
        None => refused(),
    };
    let judged = judged(Manner { take, ..SOUND }, FOREIGN, Duration::ZERO).await;
    assert_eq!(verdict(&judged), "refuted state-carries-its-request +state-carries-its-request");
}

#[tokio::test]
async fn one_state_for_every_request_shows_nothing_about_two() {
    let issue = |shop: &mut Shop, basket: &str| shop.keep("pending-checkout-0123456789".to_owned(), basket);
    let take = |shop: &mut Shop, state: &str, basket: &str| match shop.pending.contains_key(state) {
        true => Act::Result(shop.check_out(basket)),
        false => refused(),
    };
    let judged = judged(Manner { issue, take }, FOREIGN, Duration::ZERO).await;
    assert_eq!(verdict(&judged), "skipped no-other-request");
}

#[tokio::test]
async fn not_now_is_no_refusal_of_a_state() {
    let take = |shop: &mut Shop, state: &str, basket: &str| match shop.pending.get(state) {
        Some(pending) if pending.basket != basket => Act::Error(-32000, "rate limit exceeded, try again later"),
        _ => once(shop, state, basket),
    };
    let judged = judged(Manner { take, ..SOUND }, FOREIGN, Duration::ZERO).await;
    assert_eq!(verdict(&judged), "errored unclear");
}

#[tokio::test]
async fn when_a_state_ends_that_does_not_say_so_is_found_out() {
    let take = |shop: &mut Shop, state: &str, basket: &str| {
        let is_old = |pending: &Pending| clock::since_1970() - pending.issued >= Duration::from_millis(900);
        if shop.pending.get(state).is_some_and(is_old) { refused() } else { once(shop, state, basket) }
    };
    let judged = judged(Manner { take, ..SOUND }, EXPIRY, Duration::from_secs(1)).await;
    assert_eq!(verdict(&judged), "refuted state-ends");
    assert!(judged.detail.contains("refused after 1 s"), "{}", judged.detail);
}

/// A verifier that allows for clocks that differ is excused by that for so long, and no longer.
#[tokio::test]
async fn what_no_difference_of_clocks_excuses_is_worse() {
    let said = async |max_wait: u64| {
        let served = served("brief-states-for-ever", Answers::Json).await;
        let mut run = whole_run_on(&served.url());
        run.checks = vec![checks::find("state-outlives-expiry").expect("a check")];
        (run.max_wait, run.leeway) = (Duration::from_secs(max_wait), Duration::from_secs(1));
        let report = probed(&run).await;
        verdict(check(&report, "state-outlives-expiry"))
    };
    assert_eq!(said(0).await, "confirmed state-outlived-expiry low");
    assert_eq!(said(20).await, "confirmed state-outlived-expiry medium");
}
