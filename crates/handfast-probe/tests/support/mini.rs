//! A small server in words of the test's own: it lists tools, and knows alice and bob by their tokens.

use handfast_twins::Answers;
use serde_json::{Value, json};

use super::{
    front::{Act, Front, Recorded},
    served,
};

/// A tool that takes these texts, all of them required.
pub(crate) fn tool(name: &str, takes: &[&str]) -> Value {
    let properties: serde_json::Map<String, Value> =
        takes.iter().map(|name| ((*name).to_owned(), json!({"type": "string"}))).collect();
    json!({"name": name, "inputSchema": {"type": "object", "properties": properties, "required": takes}})
}

/// A complete result with this data, also as text.
pub(crate) fn data(data: Value) -> Act {
    let text = data.to_string();
    Act::Result(
        json!({"resultType": "complete", "content": [{"type": "text", "text": text}], "structuredContent": data}),
    )
}

/// A refusal of a tool's.
pub(crate) fn no(text: &str) -> Act {
    Act::Result(json!({"resultType": "complete", "isError": true, "content": [{"type": "text", "text": text}]}))
}

/// An argument of a call, as text.
pub(crate) fn argument<'r>(request: &'r Recorded, name: &str) -> &'r str {
    request.body["params"]["arguments"][name].as_str().unwrap_or_default()
}

/// Serves these tools; `call` answers a known user. Whoever shows a token of nobody's gets 401, and so does whoever shows
/// none, but for the listings of an `open` server.
pub(crate) async fn mini(
    tools: Value,
    open: bool,
    call: impl Fn(&str, &Recorded) -> Act + Send + Sync + 'static,
) -> Front {
    serve(tools, move |request: &Recorded| (open && request.is_listing()).then_some(""), call).await
}

/// The same where whoever shows no token is `guest`.
pub(crate) async fn mini_for_guests(
    tools: Value,
    call: impl Fn(&str, &Recorded) -> Act + Send + Sync + 'static,
) -> Front {
    serve(tools, |_: &Recorded| Some("guest"), call).await
}

async fn serve(
    tools: Value,
    without_token: impl Fn(&Recorded) -> Option<&'static str> + Send + Sync + 'static,
    call: impl Fn(&str, &Recorded) -> Act + Send + Sync + 'static,
) -> Front {
    let behind = served("sound", Answers::Json).await;
    let url = behind.url();
    // Never asked: every answer is given in front of it.
    drop(behind);
    Front::of(&url, move |_, request: &Recorded| {
        let user = match (request.token(), without_token(request)) {
            (Some(user @ ("alice" | "bob")), _) => user,
            (None, Some(user)) => user,
            _ => return Act::Status(401, vec![("www-authenticate", "Bearer".to_owned())]),
        };
        match request.method() {
            "server/discover" => Act::Result(json!({
                "resultType": "complete", "supportedVersions": ["2026-07-28"], "capabilities": {"tools": {}},
            })),
            "tools/list" => Act::Result(json!({"resultType": "complete", "tools": tools})),
            "tools/call" => call(user, request),
            _ => Act::Error(-32601, "method not found"),
        }
    })
    .await
}
