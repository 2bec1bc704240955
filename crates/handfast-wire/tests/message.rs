//! JSON-RPC messages: nothing that arrives makes the reader fall over, and nothing that it does not know is lost.

use handfast_wire::{
    message::{Message, Notification, ParseError, Request, RequestId, Response, RpcError, from_value, parse},
    result::{ResultKind, kind, task},
};
use proptest::prelude::*;
use serde_json::{Value, json};

fn json_value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<u64>().prop_map(Value::from),
        (-1e9_f64..1e9).prop_map(Value::from),
        "\\PC{0,8}".prop_map(Value::from),
        Just(json!("2.0")),
    ];
    let name = prop_oneof![
        "(jsonrpc|id|method|params|result|error|code|message|data|resultType|inputRequests|requestState|taskId)",
        "[a-z~/]{0,4}",
    ];
    leaf.prop_recursive(4, 48, 6, move |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..6).prop_map(Value::from),
            prop::collection::btree_map(name.clone(), inner, 0..6)
                .prop_map(|members| Value::Object(members.into_iter().collect())),
        ]
    })
}

fn id() -> impl Strategy<Value = RequestId> {
    let text = "\\PC{0,8}".prop_map(RequestId::Text);
    prop_oneof![any::<u64>().prop_map(RequestId::from), any::<i64>().prop_map(|id| RequestId::Number(id.into())), text]
}

fn object() -> impl Strategy<Value = serde_json::Map<String, Value>> {
    prop::collection::btree_map("[a-z_/]{0,6}", json_value(), 0..5).prop_map(|members| members.into_iter().collect())
}

fn message() -> impl Strategy<Value = Message> {
    let error = (any::<i64>(), "\\PC{0,12}", prop::option::of(json_value()))
        .prop_map(|(code, message, data)| RpcError { code, message, data });
    prop_oneof![
        (id(), "\\PC{0,12}", object()).prop_map(|(id, method, params)| Message::Request(Request {
            id,
            method,
            params
        })),
        ("\\PC{0,12}", object()).prop_map(|(method, params)| Message::Notification(Notification { method, params })),
        (id(), json_value()).prop_map(|(id, result)| Message::Response(Response { id: Some(id), outcome: Ok(result) })),
        (prop::option::of(id()), error).prop_map(|(id, error)| Message::Response(Response { id, outcome: Err(error) })),
    ]
}

fn written(message: &Message) -> Value {
    match message {
        Message::Request(request) => request.to_value(),
        Message::Notification(notification) => notification.to_value(),
        Message::Response(response) => response.to_value(),
    }
}

proptest! {
    #[test]
    fn any_value_is_borne(value in json_value()) {
        let _ = from_value(value.clone());
        let _ = kind(&value);
        let _ = task(&value);
    }

    #[test]
    fn any_bytes_are_borne(bytes in prop::collection::vec(any::<u8>(), 0..256)) {
        let _ = parse(&bytes);
    }

    #[test]
    fn what_is_written_is_read_back(message in message()) {
        let bytes = written(&message).to_string().into_bytes();

        prop_assert_eq!(parse(&bytes).expect("a message"), message);
    }

    #[test]
    fn unknown_members_of_params_and_results_are_kept(params in object(), result in json_value()) {
        let request = json!({"jsonrpc": "2.0", "id": 1, "method": "m", "params": params, "unknown": true});
        let response = json!({"jsonrpc": "2.0", "id": 1, "result": result, "unknown": true});

        let Ok(Message::Request(request)) = from_value(request) else { panic!("no request") };
        let Ok(Message::Response(response)) = from_value(response) else { panic!("no response") };
        prop_assert_eq!(request.params, params);
        prop_assert_eq!(response.outcome, Ok(result));
    }
}

#[test]
fn vectors_of_acceptance() {
    let cases: &[(&str, &str)] = &[
        (r#"{"jsonrpc":"2.0","id":1,"method":"m"}"#, "request"),
        (r#"{"jsonrpc":"2.0","id":"","method":"m"}"#, "request"),
        (r#"{"jsonrpc":"2.0","id":-1,"method":"m","params":{}}"#, "request"),
        (r#"{"jsonrpc":"2.0","id":18446744073709551615,"method":"m"}"#, "request"),
        (" {\"method\":\"m\",\"jsonrpc\":\"2.0\"}\n", "notification"),
        (r#"{"jsonrpc":"2.0","id":1,"result":null}"#, "response"),
        (r#"{"jsonrpc":"2.0","id":1,"error":{"code":-32602}}"#, "response"),
        (r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"m"}}"#, "response"),
        (r#"{"jsonrpc":"2.0","error":{"code":-32700,"message":"m","data":[],"more":1}}"#, "response"),
    ];
    for (text, expected) in cases {
        let found = match parse(text.as_bytes()) {
            Ok(Message::Request(_)) => "request",
            Ok(Message::Notification(_)) => "notification",
            Ok(Message::Response(_)) => "response",
            Err(error) => panic!("{text}: {error}"),
        };
        assert_eq!(found, *expected, "{text}");
    }
}

#[test]
fn vectors_of_refusal() {
    let not_json: &[&[u8]] = &[
        b"",
        b" ",
        b"{",
        b"}",
        b"nul",
        b"{'jsonrpc':'2.0'}",
        b"\xff",
        b"{}{}",
        b"{\"jsonrpc\":\"2.0\",}",
        b"\xef\xbb\xbf{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{}}",
        b"{\"id\":1e999}",
        b"\"\\ud800\"",
    ];
    for bytes in not_json {
        let text = String::from_utf8_lossy(bytes);
        assert!(matches!(parse(bytes), Err(ParseError::Json(_))), "{text}");
    }
    let misshapen = [
        "7",
        "null",
        "[]",
        r#"[{"jsonrpc":"2.0","id":1,"method":"m"}]"#,
        "{}",
        r#"{"id":1,"method":"m"}"#,
        r#"{"jsonrpc":2.0,"id":1,"method":"m"}"#,
        r#"{"jsonrpc":"1.0","id":1,"method":"m"}"#,
        r#"{"jsonrpc":"2.0","id":null,"method":"m"}"#,
        r#"{"jsonrpc":"2.0","id":1.0,"method":"m"}"#,
        r#"{"jsonrpc":"2.0","id":1.5,"method":"m"}"#,
        r#"{"jsonrpc":"2.0","id":18446744073709551616,"method":"m"}"#,
        r#"{"jsonrpc":"2.0","id":true,"method":"m"}"#,
        r#"{"jsonrpc":"2.0","id":[1],"method":"m"}"#,
        r#"{"jsonrpc":"2.0","id":{},"result":{}}"#,
        r#"{"jsonrpc":"2.0","id":1,"method":7}"#,
        r#"{"jsonrpc":"2.0","id":1,"method":null,"result":{}}"#,
        r#"{"jsonrpc":"2.0","id":1,"method":"m","params":[]}"#,
        r#"{"jsonrpc":"2.0","id":1,"method":"m","params":null}"#,
        r#"{"jsonrpc":"2.0","id":1}"#,
        r#"{"jsonrpc":"2.0","result":{}}"#,
        r#"{"jsonrpc":"2.0","id":null,"result":{}}"#,
        r#"{"jsonrpc":"2.0","id":1,"result":{},"error":{"code":1}}"#,
        r#"{"jsonrpc":"2.0","id":1,"error":"no"}"#,
        r#"{"jsonrpc":"2.0","id":1,"error":{}}"#,
        r#"{"jsonrpc":"2.0","id":1,"error":{"code":"-32602"}}"#,
        r#"{"jsonrpc":"2.0","id":1,"error":{"code":1.5}}"#,
    ];
    for text in misshapen {
        assert!(matches!(parse(text.as_bytes()), Err(ParseError::Shape(_))), "{text}");
    }
}

#[test]
fn nesting_is_bounded() {
    let nested = |depth: usize| {
        let value = "[".repeat(depth) + &"]".repeat(depth);
        format!(r#"{{"jsonrpc":"2.0","id":1,"result":{value}}}"#)
    };

    assert!(parse(nested(100).as_bytes()).is_ok());
    assert!(matches!(parse(nested(100_000).as_bytes()), Err(ParseError::Json(_))));
}

#[test]
fn answer_without_an_id_has_no_such_member() {
    let error = RpcError { code: -32700, message: "m".into(), data: None };
    let response = Response { id: None, outcome: Err(error) };

    assert_eq!(response.to_value(), json!({"jsonrpc": "2.0", "error": {"code": -32700, "message": "m"}}));
}

#[test]
fn order_of_members_is_kept() {
    let text = r#"{"jsonrpc":"2.0","id":1,"method":"m","params":{"z":1,"a":{"y":2,"b":3}}}"#;

    let Ok(Message::Request(request)) = parse(text.as_bytes()) else { panic!("no request") };

    assert_eq!(request.to_value().to_string(), text);
}

#[test]
fn kinds_of_results() {
    let input = |requests: Value, state: Value| json!({"resultType": "input_required", "inputRequests": requests, "requestState": state});
    assert_eq!(kind(&json!({})), ResultKind::Complete);
    assert_eq!(kind(&json!(null)), ResultKind::Complete);
    assert_eq!(kind(&json!({"resultType": "complete"})), ResultKind::Complete);
    assert_eq!(kind(&json!({"resultType": "Complete"})), ResultKind::Unknown("Complete".into()));
    assert_eq!(kind(&json!({"resultType": "task"})), ResultKind::Unknown("task".into()));
    assert_eq!(kind(&json!({"resultType": 7})), ResultKind::Unknown("7".into()));
    assert_eq!(kind(&json!({"resultType": null})), ResultKind::Unknown("null".into()));

    let ResultKind::InputRequired(asked) = kind(&input(json!({"confirm": {}}), json!("s"))) else { panic!("no input") };
    assert_eq!((asked.requests.len(), asked.state.as_deref()), (1, Some("s")));
    let ResultKind::InputRequired(asked) = kind(&input(json!([]), json!(7))) else { panic!("no input") };
    assert_eq!((asked.requests.len(), asked.state), (0, None));

    for wrapped in [
        json!({"resultType": "task", "taskId": "t", "status": "working", "pollIntervalMs": 5}),
        json!({"resultType": "task", "task": {"taskId": "t", "status": "working", "pollIntervalMs": 5}}),
    ] {
        let ResultKind::Task(task) = kind(&wrapped) else { panic!("no task") };
        assert_eq!((task.id.as_str(), task.status.as_str(), task.poll_interval_ms), ("t", "working", Some(5)));
    }
}
