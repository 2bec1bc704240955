//! Refusals of a live handle that is somebody else's, and of one that nobody minted: by a number, by data, by form alone.

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

/// How a shop behaves where it matters.
#[derive(Clone, Copy)]
struct Shop {
    /// The handle of the basket of this number, from 1.
    handle: fn(u64) -> Value,
    /// What is answered to somebody who has no such basket: `Some` where there is one.
    refusal: fn(Option<&Basket>, handle: &Value, request: usize) -> Act,
    /// There is a tool that ends a basket.
    closes: bool,
    /// Somebody else opens a basket whenever one is asked for.
    busy: bool,
}

/// A basket.
#[derive(Debug, Clone)]
struct Basket {
    owner: String,
    closed: bool,
}

fn random(number: u64) -> Value {
    format!("bsk_{:016x}", number.wrapping_mul(0x9e37_79b9_7f4a_7c15)).into()
}

fn tag(number: u64) -> u64 {
    (number ^ 0x5bd1_e995).wrapping_mul(0xc2b2_ae3d_27d4_eb4f)
}

fn signed(number: u64) -> Value {
    let id = number.wrapping_mul(0x9e37_79b9) & 0xffff_ffff;
    format!("{id:08x}.{:016x}", tag(id)).into()
}

fn is_in_order(handle: &Value) -> bool {
    let parts = handle.as_str().and_then(|handle| handle.split_once('.'));
    parts.is_some_and(|(id, seal)| u64::from_str_radix(id, 16).is_ok_and(|id| seal == format!("{:016x}", tag(id))))
}

fn error(text: &str) -> Act {
    Act::Result(json!({"resultType": "complete", "isError": true, "content": [{"type": "text", "text": text}]}))
}

const SHOP: Shop = Shop { handle: random, refusal: |_, _, _| error("no such basket"), closes: false, busy: false };

async fn tested(shop: Shop) -> CheckReport {
    let baskets = Arc::new(Mutex::new((0_u64, BTreeMap::<String, Basket>::new())));
    let front = Front::start(None, move |number, request: &Recorded| {
        let caller = request.token().unwrap_or_default().to_owned();
        let arguments = &request.body["params"]["arguments"];
        let handle = &arguments["basket_id"];
        let mut shelf = baskets.lock().expect("no test panics while it holds this");
        let (made, baskets) = &mut *shelf;
        let mut open = |owner: &str| {
            *made += 1;
            let handle = (shop.handle)(*made);
            baskets.insert(handle.to_string(), Basket { owner: owner.to_owned(), closed: false });
            handle
        };
        let kind = if (shop.handle)(1).is_number() { "integer" } else { "string" };
        let takes = json!({"type": "object", "properties": {"basket_id": {"type": kind}}, "required": ["basket_id"]});
        let data =
            |data: Value| Act::Result(json!({"resultType": "complete", "content": [], "structuredContent": data}));
        match (request.method(), request.tool()) {
            ("server/discover", _) => Act::Result(
                json!({"resultType": "complete", "supportedVersions": ["2026-07-28"], "capabilities": {"tools": {}}}),
            ),
            ("tools/list", _) => {
                let label =
                    json!({"type": "object", "properties": {"label": {"type": "string"}}, "required": ["label"]});
                let mut tools = vec![
                    json!({"name": "create_basket", "inputSchema": label}),
                    json!({"name": "get_basket", "inputSchema": takes}),
                ];
                if shop.closes {
                    let says = "Closes a basket, whose id is worth nothing from then on.";
                    tools.push(json!({"name": "close_basket", "description": says, "inputSchema": takes}));
                }
                Act::Result(json!({"resultType": "complete", "tools": tools}))
            }
            (_, "create_basket") => {
                let handle = open(&caller);
                data(json!({"basket_id": handle, "owner": caller}))
            }
            (_, tool) => {
                if shop.busy {
                    open("carol");
                }
                match baskets.get_mut(&handle.to_string()) {
                    Some(basket) if basket.owner == caller && !basket.closed => {
                        basket.closed = tool == "close_basket";
                        data(json!({"basket_id": handle, "owner": caller}))
                    }
                    other => (shop.refusal)(other.as_deref(), handle, number),
                }
            }
        }
    })
    .await;
    let mut run = run_on(&front.url());
    run.checks = vec![checks::find("handle-oracle").expect("a check")];
    probed(&run).await.checks.remove(0)
}

async fn said(shop: Shop) -> String {
    verdict(&tested(shop).await)
}

const TOLD: &str = "confirmed handle-oracle low";
const ALIKE: &str = "refuted handles-refused-alike";

#[tokio::test]
async fn a_number_or_a_datum_tells_as_words_do() {
    let by_number = Shop {
        refusal: |basket, _, request| {
            let status = if basket.is_some() { 403 } else { 404 };
            error(&format!("request {request} failed with status code {status}"))
        },
        ..SHOP
    };
    let by_data = Shop {
        refusal: |basket, _, request| {
            let reason = if basket.is_some() { "forbidden" } else { "not_found" };
            Act::ErrorWith(json!({"code": -32602, "message": "cannot open", "data": {"reason": reason, "at": request}}))
        },
        ..SHOP
    };

    assert_eq!(said(by_number).await, TOLD);
    let by_data = tested(by_data).await;
    assert_eq!(verdict(&by_data), TOLD);
    assert!(by_data.detail.contains("`forbidden` and not `not_found` at /data/reason"), "{}", by_data.detail);
}

#[tokio::test]
async fn a_number_that_varies_by_itself_tells_nothing() {
    // The number of a request, and one that is the same for a while.
    let counting = Shop { refusal: |_, _, request| error(&format!("request {request} failed")), ..SHOP };
    let slowly = Shop { refusal: |_, _, request| error(&format!("load {}", request / 3)), ..SHOP };
    let derived = Shop {
        refusal: |_, handle, _| {
            let shard: u32 = handle.to_string().bytes().map(u32::from).sum();
            Act::ErrorWith(json!({"code": -32602, "message": "no such basket", "data": {"shard": shard}}))
        },
        ..SHOP
    };

    for shop in [SHOP, counting, slowly, derived] {
        assert_eq!(said(shop).await, ALIKE);
    }
}

#[tokio::test]
async fn a_number_far_beyond_is_no_measure() {
    let counted = Shop {
        handle: |number| number.into(),
        refusal: |_, handle, _| match handle.as_u64() {
            Some(number) if number > 65_535 => error("basket_id is out of range"),
            _ => error("no such basket"),
        },
        ..SHOP
    };
    let tells = Shop {
        refusal: |basket, _, _| error(if basket.is_some() { "not yours" } else { "no such basket" }),
        ..counted
    };

    assert_eq!(said(counted).await, ALIKE);
    assert_eq!(said(Shop { busy: true, ..counted }).await, "skipped handle-witness-unusable");
    assert_eq!(said(tells).await, TOLD);
    assert_eq!(said(Shop { handle: |number| format!("basket_{number}").into(), ..tells }).await, TOLD);
}

#[tokio::test]
async fn a_signature_that_does_not_fit_is_refused_for_itself() {
    let sound = Shop {
        handle: signed,
        refusal: |_, handle, _| error(if is_in_order(handle) { "no such basket" } else { "malformed basket id" }),
        ..SHOP
    };
    let tells = Shop {
        refusal: |basket, handle, _| match basket {
            _ if !is_in_order(handle) => error("malformed basket id"),
            Some(basket) if !basket.closed => error("not yours"),
            _ => error("no such basket"),
        },
        ..sound
    };

    assert_eq!(said(sound).await, "skipped handle-witness-unusable");
    assert_eq!(said(Shop { closes: true, ..sound }).await, ALIKE);
    assert_eq!(said(Shop { closes: true, ..tells }).await, TOLD);
}
