//! What a server only repeats is no evidence, and what it lets slip is, in whichever words. A shop with baskets, whose guard and
//! whose words each test chooses.

mod support;

use std::{
    collections::HashMap,
    sync::{Arc, Mutex},
};

use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};
use handfast_probe::{checks, report::CheckReport};
use handfast_wire::meta;
use serde_json::{Value, json};
use support::{
    HANDLE, check,
    front::{Act, Front, Recorded, logged, page},
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
    /// What the owner gets.
    own: fn(handle: &str, basket: &Basket) -> Act,
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
    judged_by(shop, HANDLE).await
}

async fn judged_by(shop: Shop, id: &str) -> CheckReport {
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
                    Some(basket) if basket.owner == owner => (shop.own)(&handle, basket),
                    Some(basket) => (shop.stranger)(request, &handle, basket),
                    None => (shop.unknown)(request, &handle),
                }
            }
            _ => Act::Error(-32602, "unknown tool"),
        }
    })
    .await;
    let mut run = run_on(&front.url());
    run.checks = vec![checks::find(id).expect("a check")];
    check(&probed(&run).await, id).clone()
}

const SOUND: Shop = Shop {
    handle: plain_handle,
    stranger: |_, _, _| error("no such basket"),
    unknown: |_, _| error("no such basket"),
    own: shown,
};

/// The same with handles that are made of labels.
const SLUGS: Shop = Shop { handle: |label, number| format!("{label}-{number}"), ..SOUND };

#[tokio::test]
async fn a_shop_with_its_guard_is_refuted_and_one_without_is_confirmed() {
    let flawed = Shop { stranger: |_, handle, basket| shown(handle, basket), ..SOUND };

    assert_eq!(verdict(&judged(SOUND).await), "refuted handle-bound");
    assert_eq!(verdict(&judged(flawed).await), "confirmed handle-not-bound high");
}

#[tokio::test]
async fn a_handle_that_holds_the_owners_canary_is_no_evidence_when_it_is_repeated() {
    let repeats = |_: &Recorded, handle: &str, _: &Basket| error(&format!("no such basket: {handle}"));
    let shop = Shop { stranger: repeats, unknown: |_, handle| error(&format!("no such basket: {handle}")), ..SLUGS };

    assert_eq!(verdict(&judged(shop).await), "refuted handle-bound");
}

#[tokio::test]
async fn nor_is_it_in_another_spelling() {
    let shouted = Shop {
        stranger: |_, handle, _| error(&format!("NO BASKET '{}'", handle.to_uppercase())),
        unknown: |_, handle| error(&format!("NO BASKET '{}'", handle.to_uppercase())),
        ..SLUGS
    };
    let cut = Shop {
        stranger: |_, handle, _| error(&format!("no basket `{}...`", &handle[..handle.len().min(18)])),
        unknown: |_, handle| error(&format!("no basket `{}...`", &handle[..handle.len().min(18)])),
        ..SLUGS
    };
    let decoded = Shop {
        handle: |label, number| format!("{label}-{number}").replace('-', "%2D"),
        stranger: |_, handle, _| error(&format!("no basket called \"{}\"", handle.replace("%2D", "-"))),
        unknown: |_, handle| error(&format!("no basket called \"{}\"", handle.replace("%2D", "-"))),
        own: shown,
    };
    let in_base64 = Shop {
        handle: |label, number| URL_SAFE_NO_PAD.encode(format!("{label}/{number}")),
        stranger: |_, handle, _| error(&format!("no basket {}", opened(handle))),
        unknown: |_, handle| error(&format!("no basket {}", opened(handle))),
        own: shown,
    };

    for (shop, how) in [(shouted, "shouted"), (cut, "cut"), (decoded, "decoded"), (in_base64, "in base64")] {
        assert_eq!(verdict(&judged(shop).await), "refuted handle-bound", "{how}");
    }
}

fn opened(handle: &str) -> String {
    String::from_utf8_lossy(&URL_SAFE_NO_PAD.decode(handle).unwrap_or_default()).into_owned()
}

#[tokio::test]
async fn a_name_that_opens_a_basket_of_ones_own_gives_nobody_anything() {
    // Everybody has baskets of their own, under any name, and a title is made of the name.
    fn titled(owner: &str, handle: &str) -> Act {
        let data = json!({"basket_id": handle, "title": handle.replace('-', " ").to_uppercase(), "owner": owner});
        Act::Result(json!({"resultType": "complete", "content": [], "structuredContent": data}))
    }
    let shop = Shop {
        stranger: |request, handle, _| titled(request.token().unwrap_or_default(), handle),
        unknown: |request, handle| titled(request.token().unwrap_or_default(), handle),
        own: |handle, basket| titled(&basket.owner, handle),
        ..SLUGS
    };

    assert_eq!(verdict(&judged(shop).await), "refuted handle-witness-unusable +forged-handle-honoured");
}

#[tokio::test]
async fn a_handle_that_is_made_of_a_label_hides_no_flaw() {
    let named = Shop { stranger: |_, handle, basket| shown(handle, basket), ..SLUGS };
    // Nothing but what stands in the handle, and still to the letter what its owner gets.
    fn bare(handle: &str, basket: &Basket) -> Act {
        let data = json!({"basket_id": handle, "label": basket.label});
        Act::Result(json!({"resultType": "complete", "content": [], "structuredContent": data}))
    }
    let unnamed = Shop { stranger: |_, handle, basket| bare(handle, basket), own: bare, ..SLUGS };

    for shop in [named, unnamed] {
        assert_eq!(verdict(&judged(shop).await), "confirmed handle-not-bound high");
    }
}

#[tokio::test]
async fn nor_is_the_whole_request_when_it_comes_back() {
    let in_text = Shop {
        stranger: |request, _, _| error(&format!("cannot do this: {}", request.body)),
        unknown: |request, _| error(&format!("cannot do this: {}", request.body)),
        ..SLUGS
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
    // Whoever else is told it: another tenant, and, of even less weight, another client of the same user.
    assert_eq!(verdict(&judged_by(told, "handle-foreign-tenant").await), "confirmed handle-not-bound medium");
    assert_eq!(verdict(&judged_by(told, "handle-foreign-client").await), "confirmed handle-not-bound info");
    assert_eq!(verdict(&judged_by(SOUND, "handle-foreign-tenant").await), "refuted handle-bound");
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
async fn whatever_carries_the_owners_data_gives_it_away() {
    let in_a_page = Shop {
        stranger: |_, _, basket| Act::Raw(vec![page(403, &format!("<h1>basket {} is not yours</h1>", basket.label))]),
        ..SOUND
    };
    let far_down = Shop {
        stranger: |_, _, basket| Act::Raw(vec![page(403, &format!("{}<p>{}", " ".repeat(2000), basket.label))]),
        ..SOUND
    };
    let in_a_crash = Shop {
        stranger: |_, _, basket| Act::Raw(vec![page(500, &format!("assertion failed: owner of {}", basket.label))]),
        ..SOUND
    };
    let in_a_log = Shop {
        stranger: |request, _, basket| {
            let no = json!({"resultType": "complete", "isError": true, "content": []});
            let answer = json!({"jsonrpc": "2.0", "id": request.body["id"], "result": no});
            Act::Raw(vec![logged(&format!("loaded basket {} of {}", basket.label, basket.owner), &answer)])
        },
        ..SOUND
    };

    for (shop, how) in [(in_a_page, "page"), (far_down, "long page"), (in_a_crash, "crash"), (in_a_log, "log")] {
        assert_eq!(verdict(&judged(shop).await), "confirmed handle-not-bound medium", "{how}");
    }
}

#[tokio::test]
async fn a_log_that_only_repeats_the_call_gives_nothing_away() {
    fn logs(request: &Recorded, handle: &str) -> Act {
        let no = json!({"resultType": "complete", "isError": true, "content": []});
        let answer = json!({"jsonrpc": "2.0", "id": request.body["id"], "result": no});
        Act::Raw(vec![logged(&format!("asked for {}", handle.to_uppercase()), &answer)])
    }
    let shop = Shop {
        stranger: |request, handle, _| logs(request, handle),
        unknown: |request, handle| logs(request, handle),
        ..SLUGS
    };

    assert_eq!(verdict(&judged(shop).await), "refuted handle-bound");
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
