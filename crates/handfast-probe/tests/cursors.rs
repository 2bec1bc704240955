//! The checks of cursors on odd servers: plain offsets, cursors that are ignored, lists that are everybody's.

mod support;

use handfast_probe::{checks, report::CheckReport};
use handfast_twins::Answers;
use serde_json::{Value, json};
use support::{
    check,
    front::{Act, Front, Recorded},
    probed, served, verdict, whole_run_on,
};

/// One check against the twin with pages, whose lists are those of the test.
async fn of_lists(id: &str, list: impl Fn(&Recorded, Option<&str>) -> Act + Send + Sync + 'static) -> CheckReport {
    let served = served("pages", Answers::Json).await;
    let front = Front::of(&served.url(), move |_, request| match request.tool() {
        "list_workspaces" | "list_labels" => list(request, request.body["params"]["arguments"]["cursor"].as_str()),
        _ => Act::Forward,
    })
    .await;
    let mut run = whole_run_on(&front.url());
    run.checks = vec![checks::find(id).expect("a check")];
    check(&probed(&run).await, id).clone()
}

/// Two of five items of somebody's, and the cursor that comes with them.
fn page(whose: &str, from: usize, cursor: impl Fn(usize) -> String) -> Act {
    let items: Vec<String> = (from..(from + 2).min(5)).map(|number| format!("item {number} of {whose}")).collect();
    let mut content = json!({"items": items});
    if from + 2 < 5 {
        content["nextCursor"] = Value::from(cursor(from + 2));
    }
    Act::Result(
        json!({"resultType": "complete", "content": [{"type": "text", "text": "a page"}], "structuredContent": content}),
    )
}

fn refused() -> Act {
    Act::Refusal("invalid cursor".to_owned())
}

fn plain(request: &Recorded, cursor: Option<&str>) -> Act {
    let whose = format!("{} {}", request.tool(), request.token().unwrap_or_default());
    match cursor.map_or(Some(0), |cursor| cursor.strip_prefix("page:")?.parse().ok()) {
        Some(from) if from < 5 => page(&whose, from, |next| format!("page:{next}")),
        _ => refused(),
    }
}

#[tokio::test]
async fn a_plain_offset_says_where_and_neither_whose_nor_in_what() {
    for (id, expected) in [
        ("cursor-tampered", "confirmed altered-cursor-taken low"),
        ("cursor-foreign-principal", "skipped cursor-witness-unusable"),
        ("cursor-foreign-list", "skipped cursor-witness-unusable"),
    ] {
        let found = of_lists(id, plain).await;

        assert_eq!(verdict(&found), expected, "{id}: {}", found.detail);
    }
}

/// What it does not know it answers with the first page, and what is beyond the end with none.
#[tokio::test]
async fn an_empty_last_page_is_another_page() {
    let found = of_lists("cursor-tampered", |_, cursor| {
        let offset = cursor.and_then(|cursor| cursor.strip_prefix("offset=")).and_then(|offset| offset.parse().ok());
        let from = offset.filter(|offset: &usize| *offset > 9 || offset.is_multiple_of(2)).unwrap_or(0);
        page("alice", from, |next| format!("offset={next}"))
    })
    .await;

    assert_eq!(verdict(&found), "confirmed altered-cursor-taken low", "{}", found.detail);
    assert!(found.detail.contains("an empty page"), "{}", found.detail);
}

#[tokio::test]
async fn a_cursor_that_is_ignored_shows_nothing() {
    for id in ["cursor-tampered", "cursor-foreign-principal"] {
        let found = of_lists(id, |_, _| page("alice", 0, |next| format!("offset={next}"))).await;

        assert_eq!(verdict(&found), "skipped cursor-witness-unusable", "{id}: {}", found.detail);
    }
}

/// A name for each place, another one for each caller.
#[tokio::test]
async fn a_list_that_is_everybodys_leaks_nothing() {
    let list = |request: &Recorded, cursor: Option<&str>| {
        let name = |place: usize| match request.token() {
            Some("alice") => format!("kfjwpq{}", ["a", "b", "c", "d", "e"][place]),
            _ => format!("zmxncb{}", ["a", "b", "c", "d", "e"][place]),
        };
        match cursor {
            None => page("everybody", 0, name),
            Some(cursor) => match (0..5).find(|&place| {
                ["kfjwpq", "zmxncb"]
                    .iter()
                    .any(|start| cursor == format!("{start}{}", ["a", "b", "c", "d", "e"][place]))
            }) {
                Some(place) => page("everybody", place, name),
                None => refused(),
            },
        }
    };

    let foreign = of_lists("cursor-foreign-principal", list).await;
    let tampered = of_lists("cursor-tampered", list).await;

    assert_eq!(verdict(&foreign), "skipped cursor-witness-unusable", "{}", foreign.detail);
    assert_eq!(verdict(&tampered), "skipped cursor-not-readable", "{}", tampered.detail);
}

/// The same names, each for the list of whoever was given it.
#[tokio::test]
async fn a_cursor_that_leads_to_its_own_list_is_found_however_it_is_written() {
    let found = of_lists("cursor-foreign-principal", |request, cursor| {
        let token = request.token().unwrap_or_default();
        match cursor.map(|cursor| (&cursor[..6.min(cursor.len())], cursor.ends_with("xb"))) {
            None => page(token, 0, |_| format!("{}xb", if token == "alice" { "kfjwpq" } else { "zmxncb" })),
            Some(("kfjwpq", true)) => page("alice", 3, |_| String::new()),
            Some(("zmxncb", true)) => page("bob", 3, |_| String::new()),
            Some(_) => refused(),
        }
    })
    .await;

    assert_eq!(verdict(&found), "confirmed cursor-not-bound medium", "{}", found.detail);
}
