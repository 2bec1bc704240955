//! What a server only repeats is no evidence, and what it lets slip is, in whichever words. A shop with baskets, whose guard and
//! whose words each test chooses.

mod support;

use std::{
    collections::HashMap,
    sync::{Arc, Mutex},
};

use handfast_probe::report::CheckReport;
use handfast_wire::meta;
use serde_json::{Value, json};
use support::{
    HANDLE, check,
    front::{Act, Front, Recorded},
    probed, run_on, verdict,
};

/// A basket and whose it is.
#[derive(Debug, Clone)]
struct Basket {
    owner: String,
    label: String,
}

/// How a shop behaves.
#[derive(Clone, Copy)]
struct Shop {
    /// The handle of a new basket.
    handle: fn(label: &str, number: usize) -> String,
    /// What a stranger gets for the handle of somebody's basket; forged handles get `unknown`.
    stranger: fn(request: &Recorded, handle: &str, basket: &Basket) -> Act,
    /// What anybody gets for a handle that nobody minted.
    unknown: fn(request: &Recorded, handle: &str) -> Act,
}

fn plain_handle(_: &str, number: usize) -> String {
    format!("bsk-{:08x}", number * 7_919_357 + 0x1a2b_3c4d)
}

fn error(text: &str) -> Act {
    Act::Result(json!({"resultType": "complete", "isError": true, "content": [{"type": "text", "text": text}]}))
}

fn shown(handle: &str, basket: &Basket) -> Act {
    let data = json!({"basket_id": handle, "label": basket.label, "owner": basket.owner});
    let text = data.to_string();
    Act::Result(
        json!({"resultType": "complete", "content": [{"type": "text", "text": text}], "structuredContent": data}),
    )
}

fn tools() -> Value {
    let text = json!({"type": "string"});
    json!([
        {"name": "create_basket", "inputSchema": {"type": "object", "properties": {"label": text}, "required": ["label"]}},
        {"name": "get_basket", "inputSchema": {"type": "object", "properties": {"basket_id": text}, "required": ["basket_id"]}}
    ])
}

/// The verdict on the handles of a shop.
async fn judged(shop: Shop) -> CheckReport {
    let baskets: Arc<Mutex<HashMap<String, Basket>>> = Arc::default();
    let front = Front::start(None, move |number, request| {
        let mut baskets = baskets.lock().expect("nobody panics");
        let owner = request.token().unwrap_or("nobody").to_owned();
        let argument = |name: &str| request.body["params"]["arguments"][name].as_str().unwrap_or_default().to_owned();
        match (request.method(), request.tool()) {
            ("server/discover", _) => Act::Result(
                json!({"supportedVersions": [meta::MODERN], "capabilities": {"tools": {}}, "resultType": "complete"}),
            ),
            ("tools/list", _) => Act::Result(json!({"tools": tools(), "resultType": "complete"})),
            (_, "create_basket") => {
                let basket = Basket { owner, label: argument("label") };
                let handle = (shop.handle)(&basket.label, number);
                baskets.insert(handle.clone(), basket.clone());
                shown(&handle, &basket)
            }
            (_, "get_basket") => {
                let handle = argument("basket_id");
                match baskets.get(&handle) {
                    Some(basket) if basket.owner == owner => shown(&handle, basket),
                    Some(basket) => (shop.stranger)(request, &handle, basket),
                    None => (shop.unknown)(request, &handle),
                }
            }
            _ => Act::Error(-32602, "unknown tool"),
        }
    })
    .await;
    check(&probed(&run_on(&front.url())).await, HANDLE).clone()
}

const SOUND: Shop =
    Shop { handle: plain_handle, stranger: |_, _, _| error("no such basket"), unknown: |_, _| error("no such basket") };

#[tokio::test]
async fn a_shop_with_its_guard_is_refuted_and_one_without_is_confirmed() {
    let flawed = Shop { stranger: |_, handle, basket| shown(handle, basket), ..SOUND };

    assert_eq!(verdict(&judged(SOUND).await), "refuted handle-bound");
    assert_eq!(verdict(&judged(flawed).await), "confirmed handle-not-bound high");
}

#[tokio::test]
async fn a_handle_that_holds_the_owners_canary_is_no_evidence_when_it_is_repeated() {
    let repeats = |_: &Recorded, handle: &str, _: &Basket| error(&format!("no such basket: {handle}"));
    let shop = Shop {
        handle: |label, number| format!("{label}-{number}"),
        stranger: repeats,
        unknown: |_, handle| error(&format!("no such basket: {handle}")),
    };

    assert_eq!(verdict(&judged(shop).await), "refuted handle-bound");
}

#[tokio::test]
async fn nor_is_the_whole_request_when_it_comes_back() {
    let in_text = Shop {
        handle: |label, number| format!("{label}-{number}"),
        stranger: |request, _, _| error(&format!("cannot do this: {}", request.body)),
        unknown: |request, _| error(&format!("cannot do this: {}", request.body)),
    };
    let in_meta = Shop {
        stranger: |request, _, _| {
            Act::Result(
                json!({"resultType": "complete", "isError": true, "content": [], "_meta": {"request": request.body}}),
            )
        },
        ..in_text
    };

    assert_eq!(verdict(&judged(in_text).await), "refuted handle-bound");
    assert_eq!(verdict(&judged(in_meta).await), "refuted handle-bound");
}

#[tokio::test]
async fn an_error_that_carries_the_owners_data_is_a_finding_of_less_weight() {
    let told = Shop {
        stranger: |_, _, basket| error(&format!("the basket `{}` belongs to somebody else", basket.label)),
        ..SOUND
    };

    assert_eq!(verdict(&judged(told).await), "confirmed handle-not-bound medium");
}

#[tokio::test]
async fn an_error_that_only_names_the_owner_is_a_refusal() {
    let told = Shop { stranger: |_, _, basket| error(&format!("this basket belongs to {}", basket.owner)), ..SOUND };

    assert_eq!(verdict(&judged(told).await), "refuted handle-bound");
}

#[tokio::test]
async fn an_error_of_the_protocol_that_carries_the_owners_data_is_a_finding_too() {
    // The message is the only thing that a client sees of it.
    let told = Shop { stranger: |_, _, basket| Act::Refusal(format!("`{}` is not yours", basket.label)), ..SOUND };

    assert_eq!(verdict(&judged(told).await), "confirmed handle-not-bound medium");
}

#[tokio::test]
async fn a_complete_answer_that_says_no_is_a_refusal_with_a_remark() {
    const NO: &str = "there is no basket of that name";
    let shop = Shop {
        stranger: |_, _, _| Act::Result(json!({"resultType": "complete", "content": [{"type": "text", "text": NO}]})),
        unknown: |_, _| Act::Result(json!({"resultType": "complete", "content": [{"type": "text", "text": NO}]})),
        ..SOUND
    };

    assert_eq!(verdict(&judged(shop).await), "refuted handle-bound +refusal-is-no-error");
}

#[tokio::test]
async fn an_empty_answer_shows_nothing() {
    let shop = Shop { stranger: |_, _, _| Act::Result(json!({"resultType": "complete", "content": []})), ..SOUND };

    assert_eq!(verdict(&judged(shop).await), "refuted cross-use-unattributable +cross-use-unattributable");
}

#[tokio::test]
async fn the_owners_data_in_another_spelling_is_still_the_owners() {
    let shouting = Shop {
        stranger: |_, handle, basket| {
            shown(handle, &Basket { label: basket.label.to_uppercase(), owner: String::new() })
        },
        ..SOUND
    };
    let in_a_blob = Shop {
        stranger: |_, _, basket| {
            use base64::{Engine, engine::general_purpose::STANDARD};
            let blob = STANDARD.encode(format!("label: {}", basket.label));
            let resource = json!({"uri": "basket://x", "mimeType": "application/octet-stream", "blob": blob});
            Act::Result(json!({"resultType": "complete", "content": [{"type": "resource", "resource": resource}]}))
        },
        ..SOUND
    };

    for shop in [shouting, in_a_blob] {
        assert!(
            verdict(&judged(shop).await).starts_with("confirmed handle-not-bound"),
            "{}",
            verdict(&judged(shop).await)
        );
    }
}
