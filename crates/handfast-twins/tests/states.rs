//! What each twin does with a `requestState` that comes back: untouched, at random, changed, from somebody else.

mod support;

use std::io::{Read, Write};

use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};
use flate2::{Compression, read::ZlibDecoder, write::ZlibEncoder};
use serde_json::{Value, json};
use support::{Client, Scene, is_accepted, plain_twins, scene};

/// What became of a retry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fate {
    Accepted,
    /// A JSON-RPC error.
    Refused,
    /// A tool result with `isError`.
    Told,
    /// Such a result that reads like a crash.
    Crashed,
    AskedAgain,
}

use Fate::{Accepted, AskedAgain, Crashed, Refused, Told};

fn fate(message: &Value) -> Fate {
    let result = &message["result"];
    if is_accepted(message) {
        Accepted
    } else if result["resultType"] == "input_required" {
        AskedAgain
    } else if message["error"].is_object() {
        assert_eq!(message["error"]["code"], -32602, "{message}");
        Refused
    } else if ["token", "TypeError", "invalid character"].iter().any(|word| message.to_string().contains(word)) {
        Crashed
    } else {
        Told
    }
}

/// A workspace of a caller, and the retry of archiving it.
struct Round<'a> {
    client: &'a Client,
    arguments: Value,
    asked: Value,
}

async fn ask<'a>(client: &'a Client, argument: &str) -> Round<'a> {
    let handle = client.open("one").await;
    let arguments = json!({argument: handle});
    let asked = client.tool("archive_workspace", arguments.clone()).await["result"].clone();
    assert_eq!(asked["resultType"], "input_required", "{asked}");
    Round { client, arguments, asked }
}

impl Round<'_> {
    fn state(&self) -> String {
        self.asked["requestState"].as_str().expect("a state").to_owned()
    }

    async fn retry(&self, state: &str) -> Value {
        let more = json!({"requestState": state, "inputResponses": answers(&self.asked)});
        self.client.call("archive_workspace", self.arguments.clone(), more).await
    }
}

/// The right answers to whatever was asked.
fn answers(asked: &Value) -> Value {
    let requests = asked["inputRequests"].as_object().expect("requests");
    let answer = |request: &Value| match (request["method"].as_str(), &request["params"]) {
        (Some("sampling/createMessage"), _) => {
            json!({"role": "assistant", "content": {"type": "text", "text": "fine"}, "model": "none"})
        }
        (Some("roots/list"), _) => json!({"roots": [{"uri": "file:///srv"}]}),
        (_, params) if params["mode"] == "url" => json!({"action": "accept"}),
        (_, params) if params["schema"].is_object() => json!(true),
        (_, params) if params["requestedSchema"]["properties"]["reason"].is_object() => {
            json!({"action": "accept", "content": {"reason": "because"}})
        }
        _ => json!({"action": "accept", "content": {"confirm": true}}),
    };
    Value::Object(requests.iter().map(|(key, request)| (key.clone(), answer(request))).collect())
}

/// Puts JSON back into what surrounded it.
type Wrap = Box<dyn Fn(&Value) -> String>;

/// The JSON in a state and what surrounds it; `None` where there is none to be read.
fn opened(state: &str) -> Option<(Value, Wrap)> {
    if let Ok(value) = serde_json::from_str(state) {
        return Some((value, Box::new(Value::to_string)));
    }
    let parts: Vec<String> = state.split('.').map(str::to_owned).collect();
    let place = if parts.len() == 3 { 1 } else { 0 };
    let bytes = URL_SAFE_NO_PAD.decode(&parts[place]).ok()?;
    if let Ok(value) = serde_json::from_slice(&bytes) {
        let wrap = move |value: &Value| {
            let mut parts = parts.clone();
            parts[place] = URL_SAFE_NO_PAD.encode(value.to_string());
            parts.join(".")
        };
        return Some((value, Box::new(wrap)));
    }
    let mut text = String::new();
    ZlibDecoder::new(&bytes[..]).read_to_string(&mut text).ok()?;
    let wrap = |value: &Value| {
        let mut packer = ZlibEncoder::new(Vec::new(), Compression::default());
        packer.write_all(value.to_string().as_bytes()).expect("a vector takes it");
        URL_SAFE_NO_PAD.encode(packer.finish().expect("a vector takes it"))
    };
    Some((serde_json::from_str(&text).ok()?, Box::new(wrap)))
}

fn changed(state: &str, name: &str, new: Value) -> Option<String> {
    let (mut value, wrap) = opened(state)?;
    value[name] = new;
    Some(wrap(&value))
}

/// As long, of the same classes of characters, and with the same separators.
fn random(state: &str) -> String {
    let mut seed = 12345_u32;
    let mut next = |bound: u32| {
        seed = seed.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        u8::try_from((seed >> 16) % bound).expect("a small bound")
    };
    let hex = state.bytes().all(|byte| byte.is_ascii_hexdigit());
    let mut replace = |letter: char| match letter {
        '0'..='9' | 'a'..='f' if hex => char::from(b"0123456789abcdef"[usize::from(next(16))]),
        '0'..='9' => char::from(b'0' + next(10)),
        'a'..='z' => char::from(b'a' + next(26)),
        'A'..='Z' => char::from(b'A' + next(26)),
        other => other,
    };
    state.chars().map(&mut replace).collect()
}

/// (random state, changed principal, changed items, later expiry, unknown member added)
fn expected(name: &str) -> (Fate, Option<[Fate; 4]>) {
    match name {
        "flawed" | "ignores-signature" | "raw-json-state" | "jwt-state" | "zlib-state" | "bare-answers" | "task" => {
            (Refused, Some([Accepted; 4]))
        }
        name if name.ends_with("-handles-flawed")
            || ["lists-everything-flawed", "private-value-flawed"].contains(&name) =>
        {
            (Refused, Some([Accepted; 4]))
        }
        "opaque" => (Refused, None),
        "tool-error-refusals" => (Told, Some([Told; 4])),
        "crashes-on-forgery" => (Crashed, Some([Crashed; 4])),
        "breaks-on-flip" => (Crashed, Some([Accepted; 4])),
        "asks-again" => (AskedAgain, Some([AskedAgain; 4])),
        "ignores-state" => (Accepted, Some([Accepted; 4])),
        "business-rules" => (Refused, Some([Refused, Refused, Refused, Accepted])),
        "mac-inside" => (Refused, Some([Refused, Refused, Refused, Accepted])),
        "mac-subset" => (Refused, Some([Refused, Accepted, Refused, Accepted])),
        "pipe-state" => (Refused, None),
        "display-state" => (Refused, Some([Accepted; 4])),
        _ => (Refused, Some([Refused; 4])),
    }
}

#[tokio::test]
async fn untouched_state_is_accepted_by_all_that_ask_once() {
    for twin in plain_twins().filter(|twin| !twin.name.starts_with("two-rounds")) {
        let Scene { a, argument, served: _served, .. } = scene(twin.name).await;
        let round = ask(&a, argument).await;

        let message = round.retry(&round.state()).await;

        assert_eq!(fate(&message), Accepted, "{}: {message}", twin.name);
        let who = match twin.name {
            "any-token" => "user",
            "ignores-identity" => "local",
            _ => "alice",
        };
        let text = message["result"]["content"][0]["text"].as_str().expect("a text block");
        assert!(text.starts_with(&format!("archived 1 items as principal {who}")), "{}: {text}", twin.name);
    }
}

#[tokio::test]
async fn changed_state_meets_the_fate_that_the_flaw_gives_it() {
    for twin in plain_twins() {
        let Scene { a, argument, served: _served, .. } = scene(twin.name).await;
        let (at_random, readable) = expected(twin.name);

        let round = ask(&a, argument).await;
        assert_eq!(fate(&round.retry(&random(&round.state())).await), at_random, "{}: random", twin.name);
        assert_eq!(opened(&round.state()).is_some(), readable.is_some(), "{}", twin.name);

        let changes = [
            ("principal", json!("mallory")),
            ("items", json!(1007)),
            ("exp", json!(4_000_000_000_u64)),
            ("added", json!(true)),
        ];
        for ((name, new), fated) in changes.into_iter().zip(readable.unwrap_or([Refused; 4])) {
            let round = ask(&a, argument).await;
            let Some(state) = changed(&round.state(), name, new) else { continue };
            let message = round.retry(&state).await;
            assert_eq!(fate(&message), fated, "{}: {name}: {message}", twin.name);
        }
    }
}

#[tokio::test]
async fn changed_value_comes_back_from_those_who_believe_it() {
    for name in ["flawed", "ignores-signature", "raw-json-state", "jwt-state", "zlib-state", "breaks-on-flip", "task"] {
        let Scene { a, argument, served: _served, .. } = scene(name).await;
        let round = ask(&a, argument).await;

        let state = changed(&round.state(), "principal", json!("mallory")).expect("a readable state");
        let message = round.retry(&state).await;

        assert_eq!(message["result"]["structuredContent"]["principal"], "mallory", "{name}");
        assert_eq!(message["result"]["content"][0]["text"], "archived 1 items as principal mallory", "{name}");
    }
    let Scene { a, argument, served: _served, .. } = scene("ignores-state").await;
    let round = ask(&a, argument).await;
    let state = changed(&round.state(), "principal", json!("mallory")).expect("a readable state");
    assert_eq!(round.retry(&state).await["result"]["structuredContent"]["principal"], "alice");
}

#[tokio::test]
async fn opaque_state_takes_flips_late_and_refuses_them_early() {
    let Scene { a, argument, served: _served, .. } = scene("opaque").await;
    let round = ask(&a, argument).await;
    let state = round.state();

    let flipped = |at: usize| {
        let mut bytes = state.clone().into_bytes();
        bytes[at] = if bytes[at] == b'a' { b'b' } else { b'a' };
        String::from_utf8(bytes).expect("hex digits")
    };
    for percent in [30, 50, 70, 88, 96] {
        let message = round.retry(&flipped(state.len() * percent / 100)).await;
        assert_eq!(fate(&message), Accepted, "{percent} %: {message}");
    }
    assert_eq!(fate(&round.retry(&flipped(0)).await), Refused);
    assert_eq!(fate(&round.retry(&state[..10]).await), Refused);
    assert_eq!(fate(&round.retry("not hex").await), Refused);
}

#[tokio::test]
async fn breaks_on_flip_breaks_on_some_flips() {
    let Scene { a, argument, served: _served, .. } = scene("breaks-on-flip").await;
    let round = ask(&a, argument).await;
    let state = round.state().replacen("eyJ", "eyK", 1);

    assert_eq!(fate(&round.retry(&state).await), Crashed);
}

#[tokio::test]
async fn signed_state_is_refused_when_anything_of_it_is_moved() {
    let Scene { a, b, argument, served } = scene("sound").await;
    let round = ask(&a, argument).await;
    let other = ask(&a, argument).await;
    let (state, others) = (round.state(), other.state());
    let (body, tag) = state.split_once('.').expect("a body and a tag");
    let (other_body, other_tag) = others.split_once('.').expect("a body and a tag");

    let forgeries = [
        ("no tag", body.to_owned()),
        ("empty tag", format!("{body}.")),
        ("short tag", state[..state.len() - 1].to_owned()),
        ("longer", format!("{state}A")),
        ("suffix", format!("{state}.x")),
        ("other's tag", format!("{body}.{other_tag}")),
        ("other's body", format!("{other_body}.{tag}")),
        ("other workspace's state", others.clone()),
        ("padded", format!("{state}=")),
        ("empty", String::new()),
    ];
    for (what, forgery) in forgeries {
        let message = round.retry(&forgery).await;
        assert_eq!(message["error"], json!({"code": -32602, "message": "invalid requestState"}), "{what}");
    }

    // The same state by another principal, on that principal's own workspace, and on the owner's.
    let bobs = ask(&b, argument).await;
    assert_eq!(fate(&bobs.retry(&state).await), Refused);
    let more = json!({"requestState": state, "inputResponses": answers(&round.asked)});
    let stolen = b.call("archive_workspace", round.arguments.clone(), more.clone()).await;
    assert_eq!(stolen["result"]["isError"], true);

    // On another tool it is not looked at; with other arguments it is refused.
    let mut arguments = round.arguments.clone();
    arguments["reason"] = "another".into();
    assert_eq!(fate(&a.call("archive_workspace", arguments, more).await), Refused);

    // In time, and out of it.
    served.advance(295);
    assert_eq!(fate(&round.retry(&state).await), Accepted);
    served.advance(10);
    assert_eq!(fate(&round.retry(&state).await), Refused);
}

#[tokio::test]
async fn flawed_state_is_good_for_anybody_and_for_ever() {
    let Scene { a, b, argument, served } = scene("flawed").await;
    let round = ask(&a, argument).await;
    let bobs = ask(&b, argument).await;

    served.advance(1_000_000);

    let message = bobs.retry(&round.state()).await;
    assert_eq!(message["result"]["structuredContent"]["principal"], "alice");
}

#[tokio::test]
async fn bad_state_has_status_400() {
    let Scene { a, argument, served: _served, .. } = scene("sound").await;
    let round = ask(&a, argument).await;

    for state in [json!("x"), json!(1), json!({}), Value::Null] {
        let params = json!({"name": "archive_workspace", "arguments": round.arguments, "requestState": state});
        let answer = a.request("tools/call", params).await;
        assert_eq!((answer.status, answer.code()), (400, -32602), "{state}");
    }
}

#[tokio::test]
async fn business_rules_believe_the_words() {
    let Scene { a, argument, served: _served, .. } = scene("business-rules").await;
    let round = ask(&a, argument).await;

    let state = changed(&round.state(), "reason", json!("no reason gives")).expect("a readable state");
    let message = round.retry(&state).await;
    assert_eq!(message["result"]["structuredContent"]["reason"], "no reason gives");

    for (name, new) in [
        ("workspace_id", json!("ws-0")),
        ("tool", json!("purge_workspace")),
        ("method", json!("prompts/get")),
        ("arguments", json!("")),
        ("round", json!(2)),
        ("exp", json!(1)),
    ] {
        let state = changed(&round.state(), name, new).expect("a readable state");
        assert_eq!(fate(&round.retry(&state).await), Refused, "{name}");
    }
}

#[tokio::test]
async fn mac_inside_covers_every_member_that_is_used_and_the_subset_all_but_one() {
    for (twin, items) in [("mac-inside", Refused), ("mac-subset", Accepted)] {
        let Scene { a, argument, served: _served, .. } = scene(twin).await;
        let round = ask(&a, argument).await;
        let (claims, _) = opened(&round.state()).expect("a readable state");

        for (name, new, fated) in [
            ("workspace_id", json!("ws-0"), Refused),
            ("tool", json!("purge_workspace"), Refused),
            ("method", json!("prompts/get"), Refused),
            ("arguments", json!(""), Refused),
            ("round", json!(2), Refused),
            ("mac", json!(""), Refused),
            ("mac", Value::Null, Refused),
            ("exp", json!(claims["exp"].as_u64().expect("a number") + 1), Refused),
            ("items", json!(1007), items),
        ] {
            let state = changed(&round.state(), name, new).expect("a readable state");
            let message = round.retry(&state).await;
            assert_eq!(fate(&message), fated, "{twin}: {name}");
            assert_eq!(message.to_string().contains("1007"), fated == Accepted, "{twin}: {name}: {message}");
        }
    }
}

#[tokio::test]
async fn alg_none_verifies_every_signature_that_the_header_names() {
    let Scene { a, argument, served: _served, .. } = scene("alg-none").await;
    let round = ask(&a, argument).await;
    let state = round.state();
    let parts: Vec<&str> = state.split('.').collect();
    let [header, body, signature] = parts[..] else { panic!("three parts: {state}") };
    let none = URL_SAFE_NO_PAD.encode(r#"{"alg":"none","typ":"JWT"}"#);
    let shouted = URL_SAFE_NO_PAD.encode(r#"{"alg":"NONE","typ":"JWT"}"#);
    let (mut claims, _) = opened(&state).expect("a readable state");
    claims["items"] = json!(1007);
    let more = URL_SAFE_NO_PAD.encode(claims.to_string());

    for (what, forged, fated) in [
        ("as issued", state.clone(), Accepted),
        ("none", format!("{none}.{body}."), Accepted),
        ("none, and more of it", format!("{none}.{more}."), Accepted),
        ("none, with a signature", format!("{none}.{body}.{signature}"), Refused),
        ("none, without the last dot", format!("{none}.{body}"), Refused),
        ("another case", format!("{shouted}.{body}."), Refused),
        ("signed, without a signature", format!("{header}.{body}."), Refused),
        ("signed, and cut", state[..state.len() - 1].to_owned(), Refused),
        ("signed, and more of it", format!("{header}.{more}.{signature}"), Refused),
    ] {
        assert_eq!(fate(&round.retry(&forged).await), fated, "{what}");
    }
}

#[tokio::test]
async fn optional_signature_verifies_whatever_is_there() {
    let Scene { a, argument, served: _served, .. } = scene("optional-signature").await;
    let round = ask(&a, argument).await;
    let state = round.state();
    let (body, tag) = state.split_once('.').expect("a body and a tag");
    let more = changed(body, "items", json!(1007)).expect("a readable state");

    for (what, forged, fated) in [
        ("as issued", state.clone(), Accepted),
        ("no tag", body.to_owned(), Accepted),
        ("an empty tag", format!("{body}."), Accepted),
        ("no tag, and more of it", more.clone(), Accepted),
        ("more of it", format!("{more}.{tag}"), Refused),
        ("a short tag", state[..state.len() - 1].to_owned(), Refused),
        ("a tag of one letter", format!("{body}.A"), Refused),
        ("another's name", changed(body, "principal", json!("mallory")).expect("a readable state"), Refused),
    ] {
        assert_eq!(fate(&round.retry(&forged).await), fated, "{what}");
    }
}

#[tokio::test]
async fn pipe_state_is_believed_where_it_can_be_read() {
    let Scene { a, argument, served: _served, .. } = scene("pipe-state").await;
    let round = ask(&a, argument).await;
    let state = round.state();
    assert!(state.starts_with("archive|alice|1|ws-"), "{state}");

    let renamed = round.retry(&state.replace("alice", "mallory")).await;
    assert_eq!(renamed["result"]["structuredContent"]["principal"], "mallory");
    let more = round.retry(&state.replace("|1|", "|1007|")).await;
    assert_eq!(more["result"]["structuredContent"]["archived"], 1007);
    for forged in [
        state.replace("|1|", "|one|"),
        state.replace("|1|", "|"),
        format!("{state}|x"),
        format!("{state}x"),
        state.replace("archive|", "archived|"),
    ] {
        assert_eq!(fate(&round.retry(&forged).await), Refused, "{forged}");
    }
}

#[tokio::test]
async fn display_state_is_looked_up_by_its_id_and_by_nothing_else() {
    let Scene { a, b, argument, served } = scene("display-state").await;
    let round = ask(&a, argument).await;
    let other = ask(&a, argument).await;
    let bobs = ask(&b, argument).await;
    let state = round.state();

    for (name, new) in [("principal", json!("mallory")), ("items", json!(1007)), ("items", Value::Null)] {
        let message = round.retry(&changed(&state, name, new).expect("a readable state")).await;
        let told = &message["result"]["structuredContent"];
        assert_eq!((&told["principal"], &told["archived"]), (&json!("alice"), &json!(1)), "{name}: {message}");
    }
    let id = |round: &Round<'_>| opened(&round.state()).expect("a readable state").0["id"].clone();
    for id in [id(&other), id(&bobs), "00000000000000000000000000000000".into(), "".into(), Value::Null] {
        let forged = changed(&state, "id", id.clone()).expect("a readable state");
        assert_eq!(fate(&round.retry(&forged).await), Refused, "{id}");
    }
    assert_eq!(fate(&bobs.retry(&state).await), Refused);
    served.advance(301);
    assert_eq!(fate(&round.retry(&state).await), Refused);
}

#[tokio::test]
async fn second_round_is_signed_in_one_and_not_in_the_other() {
    for (name, fated) in [("two-rounds", Refused), ("two-rounds-flawed", Accepted)] {
        let Scene { a, argument, served: _served, .. } = scene(name).await;
        let first = ask(&a, argument).await;

        let second = first.retry(&first.state()).await["result"].clone();
        assert_eq!(second["resultType"], "input_required", "{name}");
        assert!(second["inputRequests"]["reason"].is_object(), "{name}");
        let second = Round { client: &a, arguments: first.arguments.clone(), asked: second };

        let done = second.retry(&second.state()).await;
        assert_eq!(done["result"]["structuredContent"]["reason"], "because", "{name}");
        let state = changed(&second.state(), "principal", json!("mallory")).expect("a readable state");
        assert_eq!(fate(&second.retry(&state).await), fated, "{name}");
        // Without its signature, the first round's state is good for nothing in either.
        let unsigned = first.state().split_once('.').expect("signed").0.to_owned();
        assert_eq!(fate(&first.retry(&unsigned).await), Refused, "{name}");
    }
}

#[tokio::test]
async fn prompts_and_resources_ask_with_a_state_that_is_believed() {
    for (name, method) in [("prompt-state", "prompts/get"), ("resource-state", "resources/read")] {
        let Scene { a, served: _served, .. } = scene(name).await;
        let handle = a.open("the label").await;
        let uri = format!("workspace://{}/notes", handle.as_str().expect("a textual handle"));
        let mut params = match method {
            "prompts/get" => json!({"name": "summarise_workspace", "arguments": {"workspace_id": handle}}),
            _ => json!({"uri": uri}),
        };
        let asked = a.request(method, params.clone()).await.message()["result"].clone();
        assert_eq!(asked["resultType"], "input_required", "{name}");
        assert!(!asked.to_string().contains("the label"), "{name}");

        let state = asked["requestState"].as_str().expect("a state");
        params["inputResponses"] = answers(&asked);
        params["requestState"] = state.into();
        let untouched = a.request(method, params.clone()).await.message();
        params["requestState"] = random(state).into();
        let at_random = a.request(method, params.clone()).await.message();
        params["requestState"] = changed(state, "principal", json!("mallory")).expect("a readable state").into();
        let forged = a.request(method, params.clone()).await.message();
        params["requestState"] = state.into();
        params["inputResponses"] = json!({"confirm": {"action": "decline"}});
        let declined = a.request(method, params).await.message();

        assert!(untouched.to_string().contains("confirmed by principal alice"), "{name}: {untouched}");
        assert!(untouched.to_string().contains("the label"), "{name}");
        assert_eq!(fate(&at_random), Refused, "{name}");
        assert!(forged.to_string().contains("confirmed by principal mallory"), "{name}");
        assert!(is_accepted(&declined) && !declined.to_string().contains("the label"), "{name}: {declined}");
    }
}
