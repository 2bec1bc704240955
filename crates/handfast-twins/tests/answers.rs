//! What counts as an answer to a question, and when a question may be asked at all.

mod support;

use serde_json::{Value, json};
use support::{Client, Scene, is_accepted, scene};

const ARCHIVE: &str = "archive_workspace";

async fn asked(client: &Client) -> (Value, Value) {
    let handle = client.open("one").await;
    let arguments = json!({"workspace_id": handle});
    let result = client.tool(ARCHIVE, arguments.clone()).await["result"].clone();
    assert_eq!(result["resultType"], "input_required", "{result}");
    (arguments, result)
}

async fn answered(name: &str, answers: Value) -> Value {
    let Scene { a, served: _served, .. } = scene(name).await;
    let (arguments, asked) = asked(&a).await;
    a.call(ARCHIVE, arguments, json!({"requestState": asked["requestState"], "inputResponses": answers})).await
}

#[tokio::test]
async fn form_asks_for_one_required_boolean() {
    let Scene { a, served: _served, .. } = scene("sound").await;

    let (_, asked) = asked(&a).await;

    let request = &asked["inputRequests"]["confirm"];
    assert_eq!(request["method"], "elicitation/create");
    assert_eq!(request["params"]["mode"], "form");
    let schema = &request["params"]["requestedSchema"];
    assert_eq!(
        (&schema["properties"]["confirm"]["type"], &schema["required"]),
        (&json!("boolean"), &json!(["confirm"]))
    );
}

#[tokio::test]
async fn accepted_answer_does_it() {
    for answers in [
        json!({"confirm": {"action": "accept", "content": {"confirm": true}}}),
        json!({"confirm": {"action": "accept", "content": {"confirm": true, "more": 1}}, "unasked": 1}),
    ] {
        let message = answered("sound", answers.clone()).await;

        assert_eq!(message["result"]["structuredContent"]["archived"], 1, "{answers}");
    }
}

#[tokio::test]
async fn declined_answer_leaves_it_undone_and_says_so() {
    for answers in [
        json!({"confirm": {"action": "decline"}}),
        json!({"confirm": {"action": "cancel"}}),
        json!({"confirm": {"action": "decline", "content": {"confirm": true}}}),
        json!({"confirm": {"action": "accept", "content": {"confirm": false}}}),
    ] {
        let message = answered("sound", answers.clone()).await;

        assert!(is_accepted(&message), "{answers}");
        assert_eq!(message["result"]["structuredContent"]["archived"], 0, "{answers}");
        let text = message["result"]["content"][0]["text"].as_str().expect("a text block");
        assert!(text.starts_with("nothing was archived"), "{answers}");
    }
}

#[tokio::test]
async fn what_is_no_elicit_result_is_refused() {
    for answer in [
        json!(true),
        json!("yes"),
        json!(null),
        json!({}),
        json!({"confirm": true}),
        json!({"action": "Accept", "content": {"confirm": true}}),
        json!({"action": "accept"}),
        json!({"action": "accept", "content": {}}),
        json!({"action": "accept", "content": {"confirm": "true"}}),
        json!({"action": "accept", "content": true}),
    ] {
        let message = answered("sound", json!({"confirm": answer})).await;

        assert_eq!(message["error"]["code"], -32602, "{answer}");
    }
    assert_eq!(answered("sound", json!([])).await["error"]["code"], -32602);
}

#[tokio::test]
async fn missing_answer_is_asked_for_again() {
    for answers in [json!({}), json!({"other": {"action": "accept", "content": {"confirm": true}}})] {
        let message = answered("sound", answers).await;

        assert_eq!(message["result"]["resultType"], "input_required");
        assert!(message["result"]["inputRequests"]["confirm"].is_object());
    }
}

#[tokio::test]
async fn answers_to_a_question_never_asked_are_not_taken() {
    let Scene { a, served: _served, .. } = scene("sound").await;
    let handle = a.open("one").await;

    let more = json!({"inputResponses": {"confirm": {"action": "accept", "content": {"confirm": true}}}});
    let message = a.call(ARCHIVE, json!({"workspace_id": handle}), more).await;

    assert_eq!(message["result"]["resultType"], "input_required");
}

#[tokio::test]
async fn nothing_is_asked_that_the_client_did_not_declare() {
    // (twin, capabilities, what is missing)
    let cases = [
        ("sound", json!({}), Some(json!({"elicitation": {"form": {}}}))),
        ("sound", json!({"elicitation": {"url": {}}}), Some(json!({"elicitation": {"form": {}}}))),
        ("sound", json!({"sampling": {}, "roots": {}}), Some(json!({"elicitation": {"form": {}}}))),
        ("sound", json!({"elicitation": true}), Some(json!({"elicitation": {"form": {}}}))),
        ("sound", json!({"elicitation": {}}), None),
        ("sound", json!({"elicitation": {"form": {}}}), None),
        ("url-elicitation", json!({"elicitation": {}}), Some(json!({"elicitation": {"url": {}}}))),
        ("url-elicitation", json!({"elicitation": {"form": {}}}), Some(json!({"elicitation": {"url": {}}}))),
        ("url-elicitation", json!({"elicitation": {"url": {}}}), None),
        ("asks-sampling-and-roots", json!({"elicitation": {}}), Some(json!({"sampling": {}, "roots": {}}))),
        ("asks-sampling-and-roots", json!({"sampling": {}}), Some(json!({"roots": {}}))),
        ("asks-sampling-and-roots", json!({"sampling": {}, "roots": {}}), None),
    ];
    for (name, capabilities, missing) in cases {
        let Scene { mut a, served: _served, .. } = scene(name).await;
        let handle = a.open("one").await;
        a.capabilities = capabilities.clone();

        let params = json!({"name": ARCHIVE, "arguments": {"workspace_id": handle}});
        let answer = a.request("tools/call", params).await;

        let message = answer.message();
        match missing {
            None => assert_eq!(message["result"]["resultType"], "input_required", "{name} {capabilities}"),
            Some(missing) => {
                assert_eq!((answer.status, answer.code()), (400, -32021), "{name} {capabilities}");
                assert_eq!(message["error"]["data"]["requiredCapabilities"], missing, "{name} {capabilities}");
            }
        }
    }
}

#[tokio::test]
async fn other_kinds_of_answers_are_read_as_strictly() {
    let completion = json!({"role": "assistant", "content": {"type": "text", "text": "x"}, "model": "m"});
    let roots = json!({"roots": [{"uri": "file:///srv"}]});
    let both = |completion: &Value, roots: &Value| json!({"completion": completion, "roots": roots});
    let cases = [
        ("url-elicitation", json!({"visit": {"action": "accept"}}), true),
        ("url-elicitation", json!({"visit": true}), false),
        ("asks-sampling-and-roots", both(&completion, &roots), true),
        ("asks-sampling-and-roots", both(&json!("text"), &roots), false),
        ("asks-sampling-and-roots", both(&completion, &json!([])), false),
        ("asks-sampling-and-roots", both(&completion, &json!({"roots": [{"name": "no uri"}]})), false),
        ("asks-sampling-and-roots", both(&completion, &json!({"roots": []})), true),
    ];
    for (name, answers, taken) in cases {
        let message = answered(name, answers.clone()).await;

        assert_eq!(is_accepted(&message), taken, "{name}: {answers}");
        assert_eq!(message["error"]["code"] == -32602, !taken, "{name}: {answers}");
    }
}

#[tokio::test]
async fn bare_answers_takes_only_the_bare_value() {
    let Scene { a, served: _served, .. } = scene("bare-answers").await;
    let (_, asked) = asked(&a).await;
    let params = &asked["inputRequests"]["confirm"]["params"];
    assert!(params["schema"].is_object() && params.get("requestedSchema").is_none());

    let bare = answered("bare-answers", json!({"confirm": true})).await;
    let elicited =
        answered("bare-answers", json!({"confirm": {"action": "accept", "content": {"confirm": true}}})).await;
    let refused = answered("bare-answers", json!({"confirm": false})).await;

    assert_eq!(bare["result"]["structuredContent"]["archived"], 1);
    assert_eq!(elicited["result"]["isError"], true);
    assert_eq!(refused["result"]["structuredContent"]["archived"], 0);
}
