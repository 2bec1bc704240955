//! Servers whose handles are odd, and what is said of them all the same.

mod support;

use std::{
    collections::HashMap,
    sync::{
        Mutex,
        atomic::{AtomicU64, Ordering},
    },
};

use handfast_probe::{checks, report::CheckReport};
use serde_json::json;
use support::{
    HANDLE, check,
    front::Front,
    mini::{argument, data, mini, mini_for_guests, no, tool},
    probed, verdict, whole_run_on,
};

async fn said(front: &Front, id: &str) -> CheckReport {
    let mut run = whole_run_on(&front.url());
    run.identities = support::alice_and_bob();
    run.checks = vec![checks::find(id).expect("a check")];
    check(&probed(&run).await, id).clone()
}

/// Whose each thing is, what was said of it, and within what it stands.
type Things = Mutex<HashMap<String, (String, String, String)>>;

/// Projects, and documents within them. A sound one asks at every door whose the project is; the other asks at one of them
/// only whether the document stands in it.
async fn projects(sound: bool) -> Front {
    let (things, count): (Things, AtomicU64) = (Mutex::default(), AtomicU64::new(1));
    let tools = json!([
        tool("create_project", &["title"]),
        tool("get_project", &["project_id"]),
        tool("create_document", &["project_id", "title"]),
        tool("get_document", &["project_id", "document_id"]),
    ]);
    mini(tools, false, move |user, request| {
        let mut things = things.lock().expect("no panic");
        let (project, document, title) =
            (argument(request, "project_id"), argument(request, "document_id"), argument(request, "title"));
        let is_own = things.get(project).is_some_and(|(owner, ..)| owner == user);
        let mut mint = |name: &str, within: &str| {
            let id =
                format!("{name}-{:032x}", count.fetch_add(1, Ordering::Relaxed).wrapping_mul(0x9e37_79b9_7f4a_7c15));
            things.insert(id.clone(), (user.to_owned(), title.to_owned(), within.to_owned()));
            data(json!({format!("{name}_id"): id, "title": title}))
        };
        match request.tool() {
            "create_project" => mint("project", ""),
            "create_document" if is_own => mint("document", project),
            "get_project" if is_own => data(json!({"title": things[project].1, "owner": user})),
            "get_document" if is_own || !sound => match things.get(document) {
                Some((_, title, within)) if within == project => data(json!({"title": title})),
                _ => no("no such document in this project"),
            },
            _ => no("no such project"),
        }
    })
    .await
}

#[tokio::test]
async fn that_two_handles_belong_together_says_nothing_of_whose_they_are() {
    let found = said(&projects(false).await, HANDLE).await;
    assert!(verdict(&found).starts_with("confirmed handle-not-bound high"), "{}: {}", verdict(&found), found.detail);
    assert!(found.detail.contains("with all handles of A's"), "{}", found.detail);

    let found = said(&projects(true).await, HANDLE).await;
    assert!(verdict(&found).starts_with("refuted handle-bound"), "{}: {}", verdict(&found), found.detail);
}

/// Reports that show how old they are, in tenths of a second, and a tool that takes its time with what there is.
async fn reports(bound: bool) -> Front {
    let (things, clock): (Things, AtomicU64) = (Mutex::default(), AtomicU64::new(0));
    let tools = json!([
        tool("create_report", &["title"]),
        tool("get_report", &["report_id"]),
        tool("ping_report", &["report_id"]),
    ]);
    let pings: Mutex<HashMap<String, u64>> = Mutex::default();
    mini(tools, false, move |user, request| {
        let mut things = things.lock().expect("no panic");
        let mut pings = pings.lock().expect("no panic");
        let id = argument(request, "report_id").to_owned();
        let owner = things.get(&id).map(|(owner, ..)| owner.clone());
        match (request.tool(), owner) {
            ("create_report", _) => {
                let number = clock.fetch_add(1, Ordering::Relaxed).wrapping_mul(0x9e37_79b9_7f4a_7c15);
                let id = format!("rep-{number:032x}");
                things.insert(id.clone(), (user.to_owned(), argument(request, "title").to_owned(), String::new()));
                data(json!({"report_id": id}))
            }
            ("get_report", Some(owner)) if owner == user => {
                // Time passes with pings, of whatever: nobody has to wait for that here.
                let age = if bound { clock.load(Ordering::Relaxed) } else { pings.get(&id).copied().unwrap_or(0) };
                data(json!({"state": "ready", "age": age, "owner": user}))
            }
            ("ping_report", Some(_)) => {
                clock.fetch_add(7, Ordering::Relaxed);
                *pings.entry(id).or_default() += 1;
                data(json!({"pong": true}))
            }
            _ => no("no such report"),
        }
    })
    .await
}

#[tokio::test]
async fn a_clock_that_goes_on_is_no_effect_and_a_count_of_uses_is() {
    let found = said(&reports(true).await, HANDLE).await;
    assert_ne!(found.verdict.word(), "confirmed", "{}: {}", verdict(&found), found.detail);

    let found = said(&reports(false).await, HANDLE).await;
    assert!(verdict(&found).starts_with("confirmed handle-not-bound medium"), "{}: {}", verdict(&found), found.detail);
}

/// One basket for each user, named after the user; opening it again gives the same one, empty.
#[tokio::test]
async fn a_name_of_ones_own_that_is_given_again_is_not_repointed() {
    let things: Things = Mutex::default();
    let tools = json!([
        tool("open_basket_session", &["note"]),
        tool("get_basket_session", &["basket_session_id"]),
        tool("close_basket_session", &["basket_session_id"]),
    ]);
    let front = mini(tools, false, move |user, request| {
        let mut things = things.lock().expect("no panic");
        let id = argument(request, "basket_session_id").to_owned();
        let is_own = things.get(&id).is_some_and(|(owner, ..)| owner == user);
        match request.tool() {
            "open_basket_session" => {
                let (id, note) = (format!("basket-0f3a-of-{user}"), argument(request, "note").to_owned());
                things.insert(id.clone(), (user.to_owned(), note.clone(), String::new()));
                data(json!({"basket_session_id": id, "note": note}))
            }
            "close_basket_session" if is_own => {
                things.remove(&id);
                data(json!({"closed": true}))
            }
            "get_basket_session" if is_own => data(json!({"note": things[&id].1, "owner": user})),
            _ => no("no such basket session"),
        }
    })
    .await;

    let found = said(&front, "handle-repointed").await;
    assert_eq!(verdict(&found), "refuted handle-not-repointed", "{}", found.detail);
}

/// What the server lists it lists to everybody; a token that is none is refused, and baskets are for whoever has one.
#[tokio::test]
async fn a_public_listing_is_no_open_door() {
    let things: Things = Mutex::default();
    let count = AtomicU64::new(1);
    let tools = json!([tool("create_basket", &["name"]), tool("get_basket", &["basket_id"])]);
    let front = mini(tools, true, move |user, request| {
        let mut things = things.lock().expect("no panic");
        let id = argument(request, "basket_id").to_owned();
        match request.tool() {
            "create_basket" => {
                let number = count.fetch_add(1, Ordering::Relaxed).wrapping_mul(0x9e37_79b9_7f4a_7c15);
                let (id, name) = (format!("bsk-{number:032x}"), argument(request, "name").to_owned());
                things.insert(id.clone(), (user.to_owned(), name, String::new()));
                data(json!({"basket_id": id}))
            }
            "get_basket" if things.get(&id).is_some_and(|(owner, ..)| owner == user) => {
                data(json!({"name": things[&id].1}))
            }
            _ => no("no such basket"),
        }
    })
    .await;

    for id in ["token-none", "token-absent-stronger"] {
        let found = said(&front, id).await;
        assert_eq!(verdict(&found), "refuted token-refused +public-call", "{id}: {}", found.detail);
    }
}

/// Carts: whoever shows no token is a guest with carts of their own, and a token that is none is refused. `shown` says
/// whether a guest may also read what is not theirs.
async fn carts(shown: bool) -> Front {
    let (things, count): (Things, AtomicU64) = (Mutex::default(), AtomicU64::new(1));
    let tools = json!([
        tool("create_cart", &["name"]),
        tool("get_cart", &["cart_id"]),
        json!({"name": "list_offers", "inputSchema": {"type": "object"}, "annotations": {"readOnlyHint": true}}),
    ]);
    mini_for_guests(tools, move |user, request| {
        let mut things = things.lock().expect("no panic");
        let id = argument(request, "cart_id").to_owned();
        match request.tool() {
            "create_cart" => {
                let number = count.fetch_add(1, Ordering::Relaxed).wrapping_mul(0x9e37_79b9_7f4a_7c15);
                let (id, name) = (format!("cart-{number:032x}"), argument(request, "name").to_owned());
                things.insert(id.clone(), (user.to_owned(), name, String::new()));
                data(json!({"cart_id": id}))
            }
            "list_offers" => data(json!({"offers": ["apples", "pears"]})),
            "get_cart" => match things.get(&id) {
                Some((owner, name, _)) if owner == user || (shown && user == "guest") => data(json!({"name": name})),
                _ => no("no such cart"),
            },
            _ => no("no such tool"),
        }
    })
    .await
}

#[tokio::test]
async fn a_guest_with_things_of_their_own_is_less_than_a_door_to_as() {
    for (shown, severity) in [(false, "medium"), (true, "high")] {
        let front = carts(shown).await;
        for id in ["token-none", "token-absent-stronger"] {
            let found = said(&front, id).await;
            assert_eq!(verdict(&found), format!("confirmed no-token-needed {severity}"), "{id}: {}", found.detail);
        }
    }
}

/// A tool that answers with a digest of the id that it is given, for whatever there is.
#[tokio::test]
async fn a_digest_of_what_was_sent_is_no_secret_of_as() {
    let (things, count): (Things, AtomicU64) = (Mutex::default(), AtomicU64::new(1));
    let tools = json!([
        tool("create_report", &["title"]),
        tool("get_report", &["report_id"]),
        tool("watch_report", &["report_id"]),
    ]);
    let front = mini(tools, false, move |user, request| {
        let mut things = things.lock().expect("no panic");
        let id = argument(request, "report_id").to_owned();
        match (request.tool(), things.get(&id)) {
            ("create_report", _) => {
                let number = count.fetch_add(1, Ordering::Relaxed).wrapping_mul(0x9e37_79b9_7f4a_7c15);
                let id = format!("rep-{number:032x}");
                things.insert(id.clone(), (user.to_owned(), argument(request, "title").to_owned(), String::new()));
                data(json!({"report_id": id}))
            }
            ("get_report", Some((owner, title, _))) if owner == user => data(json!({"title": title})),
            ("watch_report", Some(_)) => data(json!({"watching": true, "etag": crc32(&id)})),
            _ => no("no such report"),
        }
    })
    .await;

    let found = said(&front, HANDLE).await;
    assert!(verdict(&found).starts_with("refuted "), "{}: {}", verdict(&found), found.detail);
}

/// CRC-32 as everybody makes it, bit by bit.
fn crc32(text: &str) -> String {
    let mut sum = u32::MAX;
    for byte in text.bytes() {
        sum ^= u32::from(byte);
        for _ in 0..8 {
            sum = if sum & 1 == 1 { (sum >> 1) ^ 0xedb8_8320 } else { sum >> 1 };
        }
    }
    format!("{:08x}", !sum)
}

/// What B asks for is thrown away, and counted.
#[tokio::test]
async fn what_is_thrown_away_and_counted_is_no_effect() {
    for bound in [true, false] {
        let (things, count): (Things, AtomicU64) = (Mutex::default(), AtomicU64::new(1));
        let sums: Mutex<HashMap<String, [u64; 2]>> = Mutex::default();
        let tools = json!([
            tool("create_queue", &["title"]),
            tool("get_queue", &["queue_id"]),
            tool("push_queue", &["queue_id"]),
        ]);
        let front = mini(tools, false, move |user, request| {
            let mut things = things.lock().expect("no panic");
            let mut sums = sums.lock().expect("no panic");
            let id = argument(request, "queue_id").to_owned();
            match (request.tool(), things.get(&id).map(|(owner, ..)| owner == user)) {
                ("create_queue", _) => {
                    let number = count.fetch_add(1, Ordering::Relaxed).wrapping_mul(0x9e37_79b9_7f4a_7c15);
                    let id = format!("que-{number:032x}");
                    things.insert(id.clone(), (user.to_owned(), argument(request, "title").to_owned(), String::new()));
                    data(json!({"queue_id": id}))
                }
                ("get_queue", Some(true)) => {
                    let [pushed, rejected] = sums.get(&id).copied().unwrap_or_default();
                    data(json!({"owner": user, "pushed": pushed, "rejected": rejected}))
                }
                ("push_queue", Some(is_own)) => {
                    sums.entry(id).or_default()[usize::from(bound && !is_own)] += 1;
                    data(json!({"queued": true}))
                }
                _ => no("no such queue"),
            }
        })
        .await;

        let found = said(&front, HANDLE).await;
        let expected = if bound { "refuted " } else { "confirmed handle-not-bound medium" };
        assert!(verdict(&found).starts_with(expected), "{bound}: {}: {}", verdict(&found), found.detail);
    }
}
