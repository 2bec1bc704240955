//! The forms of a state that are unusual, each sound or flawed in a way of its own.

#[path = "support/rounds.rs"]
mod rounds;
mod support;

use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};
use rounds::{Accepted, Refused, Round, answers, ask, changed, fate, opened, random};
use serde_json::{Value, json};
use support::{Scene, is_accepted, scene};

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
    let none = URL_SAFE_NO_PAD.encode(r#"{"alg":"none","typ":"JWT"}"#);
    let shouted = URL_SAFE_NO_PAD.encode(r#"{"alg":"NONE","typ":"JWT"}"#);

    for (what, forged, fated) in [
        ("as issued", "{header}.{body}.{signature}", Accepted),
        ("none", "{none}.{body}.", Accepted),
        ("none, and more of it", "{none}.{more}.", Accepted),
        ("none, with a signature", "{none}.{body}.{signature}", Refused),
        ("none, without the last dot", "{none}.{body}", Refused),
        ("another case", "{shouted}.{body}.", Refused),
        ("signed, without a signature", "{header}.{body}.", Refused),
        ("signed, and cut", "{header}.{body}.{cut}", Refused),
        ("signed, and more of it", "{header}.{more}.{signature}", Refused),
    ] {
        // A state of its own for each: one that was used is refused for that.
        let round = ask(&a, argument).await;
        let state = round.state();
        let parts: Vec<&str> = state.split('.').collect();
        let [header, body, signature] = parts[..] else { panic!("three parts: {state}") };
        let (mut claims, _) = opened(&state).expect("a readable state");
        claims["items"] = json!(1007);
        let more = URL_SAFE_NO_PAD.encode(claims.to_string());
        let cut = &signature[..signature.len() - 1];
        let parts = [("none", &*none), ("shouted", &shouted), ("header", header), ("body", body)];
        let parts = parts.into_iter().chain([("signature", signature), ("more", &more), ("cut", cut)]);
        let forged = parts.fold(forged.to_owned(), |text, (name, part)| text.replace(&format!("{{{name}}}"), part));
        assert_eq!(fate(&round.retry(&forged).await), fated, "{what}");
    }
}

#[tokio::test]
async fn optional_signature_verifies_whatever_is_there() {
    let Scene { a, argument, served: _served, .. } = scene("optional-signature").await;
    let more = |body: &str| changed(body, "items", json!(1007)).expect("a readable state");
    type Forge<'f> = &'f dyn Fn(&str, &str) -> String;
    let cases: [(&str, Forge<'_>, _); 8] = [
        ("as issued", &|body, tag| format!("{body}.{tag}"), Accepted),
        ("no tag", &|body, _| body.to_owned(), Accepted),
        ("an empty tag", &|body, _| format!("{body}."), Accepted),
        ("no tag, and more of it", &|body, _| more(body), Accepted),
        ("more of it", &|body, tag| format!("{}.{tag}", more(body)), Refused),
        ("a short tag", &|body, tag| format!("{body}.{}", &tag[..tag.len() - 1]), Refused),
        ("a tag of one letter", &|body, _| format!("{body}.A"), Refused),
        ("another's name", &|body, _| changed(body, "principal", json!("mallory")).expect("a readable state"), Refused),
    ];
    for (what, forge, fated) in cases {
        // A state of its own for each: one that was used is refused for that.
        let round = ask(&a, argument).await;
        let state = round.state();
        let (body, tag) = state.split_once('.').expect("a body and a tag");
        assert_eq!(fate(&round.retry(&forge(body, tag)).await), fated, "{what}");
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
    for (name, new) in [("principal", json!("mallory")), ("items", json!(1007)), ("items", Value::Null)] {
        let round = ask(&a, argument).await;
        let message = round.retry(&changed(&round.state(), name, new).expect("a readable state")).await;
        let told = &message["result"]["structuredContent"];
        assert_eq!((&told["principal"], &told["archived"]), (&json!("alice"), &json!(1)), "{name}: {message}");
    }
    // Of one that was not used.
    let round = ask(&a, argument).await;
    let other = ask(&a, argument).await;
    let bobs = ask(&b, argument).await;
    let state = round.state();
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
        let first = ask(&a, argument).await;
        let second = first.retry(&first.state()).await["result"].clone();
        let second = Round { client: &a, arguments: first.arguments.clone(), asked: second };
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
        let first = params.clone();
        let asked = a.request(method, first.clone()).await.message()["result"].clone();
        assert_eq!(asked["resultType"], "input_required", "{name}");
        assert!(!asked.to_string().contains("the label"), "{name}");

        let state = asked["requestState"].as_str().expect("a state");
        params["inputResponses"] = answers(&asked);
        params["requestState"] = state.into();
        let untouched = a.request(method, params.clone()).await.message();
        params["requestState"] = random(state).into();
        let at_random = a.request(method, params.clone()).await.message();
        // One that was not used.
        let asked = a.request(method, first).await.message()["result"].clone();
        let state = asked["requestState"].as_str().expect("a state");
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
