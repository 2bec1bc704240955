//! A refusal that quotes what A wrote gave it away: of a state, of a task, of a cursor.

mod support;

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex},
};

use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};
use handfast_probe::{checks, report::CheckReport};
use handfast_twins::Answers;
use serde_json::{Value, json};
use support::{
    check, entry,
    front::{Act, Front, Recorded},
    probed, served, verdict, whole_run_on,
};

fn error(text: &str) -> Act {
    Act::Result(json!({"resultType": "complete", "isError": true, "content": [{"type": "text", "text": text}]}))
}

fn data(data: Value) -> Act {
    let text = data.to_string();
    Act::Result(
        json!({"resultType": "complete", "content": [{"type": "text", "text": text}], "structuredContent": data}),
    )
}

async fn tested(front: &Front, id: &str) -> CheckReport {
    let mut run = whole_run_on(&front.url());
    run.checks = vec![checks::find(id).expect("a check")];
    check(&probed(&run).await, id).clone()
}

/// An archive that asks before it acts, with states that it keeps; `state` makes one, `foreign` is what somebody else's brings.
async fn archive(state: fn(usize, &str) -> String, foreign: fn(&str, &str) -> Act) -> Front {
    let pending = Arc::new(Mutex::new(BTreeMap::<String, (String, String)>::new()));
    Front::start(None, move |number, request: &Recorded| {
        let caller = request.token().unwrap_or_default().to_owned();
        let params = &request.body["params"];
        let mut pending = pending.lock().expect("no test panics while it holds this");
        let takes = |name: &str| json!({"type": "object", "properties": {name: {"type": "string"}}, "required": [name]});
        match (request.method(), request.tool()) {
            ("server/discover", _) => Act::Result(
                json!({"resultType": "complete", "supportedVersions": ["2026-07-28"], "capabilities": {"tools": {}}}),
            ),
            ("tools/list", _) => Act::Result(json!({"resultType": "complete", "tools": [
                {"name": "archive_items", "inputSchema": takes("folder")},
                {"name": "whoami", "inputSchema": {"type": "object", "properties": {}}},
            ]})),
            (_, "whoami") => data(json!({"user": caller})),
            (_, "archive_items") => match params["requestState"].as_str() {
                None => {
                    let folder = params["arguments"]["folder"].as_str().unwrap_or_default().to_owned();
                    let state = state(number, &folder);
                    pending.insert(state.clone(), (caller, folder));
                    let schema = json!({"type": "object", "properties": {"confirm": {"type": "boolean"}}, "required": ["confirm"]});
                    let asks = json!({"confirm": {"method": "elicitation/create", "params": {"mode": "form", "message": "Go on?", "requestedSchema": schema}}});
                    Act::Result(json!({"resultType": "input_required", "inputRequests": asks, "requestState": state}))
                }
                Some(state) => match pending.get(state) {
                    None => error("unknown requestState"),
                    Some((owner, folder)) if *owner != caller => foreign(state, folder),
                    Some((_, folder)) => data(json!({"archived": folder})),
                },
            },
            _ => Act::Error(-32601, "method not found"),
        }
    })
    .await
}

fn opaque(number: usize, _: &str) -> String {
    format!("{:032x}", (number as u128 + 1) * 0x0123_4567_89ab_cdef_0123_4567_89ab_cdef)
}

fn of_its_folder(number: usize, folder: &str) -> String {
    URL_SAFE_NO_PAD.encode(format!("{folder}/{number}"))
}

#[tokio::test]
async fn a_refused_state_that_quotes_its_owner_gives_it_away() {
    const STATE: &str = "state-foreign-principal";
    let quoting = |_: &str, folder: &str| error(&format!("this question, about the folder '{folder}', is not yours"));
    let told = tested(&archive(opaque, quoting).await, STATE).await;
    assert_eq!(verdict(&told), "confirmed state-not-bound medium", "{}", told.detail);
    let sound = archive(opaque, |_, _| error("unknown requestState")).await;
    assert_eq!(verdict(&tested(&sound, STATE).await), "refuted state-bound");
    // What stands in the state is nothing that B did not have.
    let echoing = |state: &str, _: &str| {
        let state = URL_SAFE_NO_PAD.decode(state).unwrap_or_default();
        error(&format!("no question {} of yours", String::from_utf8_lossy(&state).to_uppercase()))
    };
    let echoing = archive(of_its_folder, echoing).await;
    assert_eq!(verdict(&tested(&echoing, STATE).await), "refuted state-bound");
}

/// What is asked about A's tasks by B is refused with the labels of all of A's tasks.
async fn task_front(method: &'static str, quoting: bool) -> CheckReport {
    let served = served("tasks", Answers::Json).await;
    let labels = Mutex::new(Vec::<String>::new());
    let of_a = Mutex::new(Vec::<String>::new());
    let front = Front::of(&served.url(), move |_, request| {
        let mut labels = labels.lock().expect("no test panics while it holds this");
        let mut of_a = of_a.lock().expect("no test panics while it holds this");
        let id = request.body["params"]["taskId"].as_str().map(str::to_owned);
        let is_a = request.token() == Some("alice");
        if is_a {
            of_a.extend(id.clone());
            labels.push(request.body["params"]["arguments"].to_string());
        }
        match id {
            Some(id) if !is_a && request.method() == method && of_a.contains(&id) => {
                let labels = if quoting { labels.join(", ") } else { String::new() };
                Act::Refusal(format!("the task, about {labels}, belongs to somebody else"))
            }
            _ => Act::Forward,
        }
    })
    .await;
    tested(&front, "task-foreign-principal").await
}

#[tokio::test]
async fn a_refused_task_that_quotes_its_owner_gives_it_away() {
    for method in ["tasks/get", "tasks/update"] {
        let told = task_front(method, true).await;
        assert_eq!(verdict(&told), "confirmed task-not-bound medium", "{}", told.detail);
        assert_eq!(entry(&told, method).row.verdict.word(), "confirmed");
        let sound = task_front(method, false).await;
        assert_eq!(entry(&sound, method).row.verdict.word(), "refuted", "{}", sound.detail);
    }
}

/// Notes that are listed two by two; a cursor is the title of the last one, `owned` with whose list it is.
async fn notes(owned: bool) -> Front {
    let notes = Arc::new(Mutex::new(Vec::<(String, String)>::new()));
    Front::start(None, move |number, request: &Recorded| {
        let caller = request.token().unwrap_or_default().to_owned();
        let arguments = &request.body["params"]["arguments"];
        let mut notes = notes.lock().expect("no test panics while it holds this");
        let text = json!({"type": "string"});
        match (request.method(), request.tool()) {
            ("server/discover", _) => Act::Result(
                json!({"resultType": "complete", "supportedVersions": ["2026-07-28"], "capabilities": {"tools": {}}}),
            ),
            ("tools/list", _) => Act::Result(json!({"resultType": "complete", "tools": [
                {"name": "create_note", "inputSchema": {"type": "object", "properties": {"title": text}, "required": ["title"]}},
                {"name": "get_note", "inputSchema": {"type": "object", "properties": {"note_id": text}, "required": ["note_id"]}},
                {"name": "list_notes", "inputSchema": {"type": "object", "properties": {"cursor": text}}},
            ]})),
            (_, "create_note") => {
                notes.push((caller, arguments["title"].as_str().unwrap_or_default().to_owned()));
                data(json!({"note_id": format!("note-{:016x}", number * 7_919_357 + 0x1a2b_3c4d)}))
            }
            (_, "list_notes") => {
                let cursor = arguments["cursor"].as_str().map(|cursor| URL_SAFE_NO_PAD.decode(cursor).unwrap_or_default());
                let cursor = match cursor.map(String::from_utf8) {
                    None => String::new(),
                    Some(Ok(cursor)) if cursor.is_ascii() && cursor.contains(':') => cursor,
                    Some(_) => return error("invalid cursor"),
                };
                let (whose, after) = cursor.split_once(':').unwrap_or((&caller, ""));
                if owned && whose != caller {
                    // The next one of a list that is not B's.
                    let next = notes.iter().find(|(owner, title)| owner == whose && title.as_str() > after);
                    let next = next.map(|(_, title)| title.as_str()).unwrap_or_default();
                    return error(&format!("the list that goes on with {next} is not yours"));
                }
                let mut own: Vec<&String> = notes.iter().filter(|note| note.0 == caller).map(|note| &note.1).collect();
                own.sort();
                let rest: Vec<&String> = own.into_iter().filter(|title| title.as_str() > after).collect();
                let mut page = json!({"notes": &rest[..rest.len().min(2)], "after": after});
                if rest.len() > 2 {
                    page["nextCursor"] = URL_SAFE_NO_PAD.encode(format!("{caller}:{}", rest[1])).into();
                }
                data(page)
            }
            _ => error("no such note"),
        }
    })
    .await
}

#[tokio::test]
async fn a_cursor_is_no_evidence_when_it_is_read_aloud_and_what_comes_after_it_is() {
    const CURSOR: &str = "cursor-foreign-principal";
    let sound = tested(&notes(false).await, CURSOR).await;
    assert_eq!(verdict(&sound), "refuted cursor-held", "{}", sound.detail);
    let quoting = tested(&notes(true).await, CURSOR).await;
    assert_eq!(verdict(&quoting), "confirmed cursor-not-bound low", "{}", quoting.detail);
}
