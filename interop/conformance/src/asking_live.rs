//! Tools that ask in the way of older revisions: the server sends a request of its own while the call waits. No state
//! travels, so the seam has nothing to do here but to stay out of the way.

use rmcp::{
    ErrorData,
    model::{ClientResult, JsonObject, ServerRequest},
};
use serde_json::{Value, json};

use crate::{fixture::Context, wire};

pub async fn tool(name: &str, arguments: Option<&JsonObject>, context: &Context) -> Result<Option<String>, ErrorData> {
    let given = |name: &str| arguments.and_then(|arguments| arguments.get(name)).and_then(Value::as_str).unwrap_or("");
    let told = match name {
        "test_sampling" => {
            let message = json!({ "role": "user", "content": { "type": "text", "text": given("prompt") } });
            let params = json!({ "messages": [message], "maxTokens": 100 });
            let asked = wire(json!({ "method": "sampling/createMessage", "params": params }));
            format!("LLM response: {}", answer(asked, context).await?["content"]["text"])
        }
        "test_elicitation" => {
            let properties = json!({
                "username": { "type": "string", "description": "User's response" },
                "email": { "type": "string", "description": "User's email address" }
            });
            let answer = elicited(given("message"), properties, &["username", "email"], context).await?;
            format!("User response: {answer}")
        }
        "test_elicitation_sep1034_defaults" => {
            let answer = elicited("Is this you?", defaults(), &[], context).await?;
            format!("Elicitation completed: {answer}")
        }
        "test_elicitation_sep1330_enums" => {
            let answer = elicited("Which ones?", choices(), &[], context).await?;
            format!("Elicitation completed: {answer}")
        }
        _ => return Ok(None),
    };
    Ok(Some(told))
}

async fn elicited(message: &str, properties: Value, required: &[&str], context: &Context) -> Result<String, ErrorData> {
    let mut schema = json!({ "type": "object", "properties": properties });
    if !required.is_empty() {
        schema["required"] = json!(required);
    }
    let params = json!({ "mode": "form", "message": message, "requestedSchema": schema });
    let answer = answer(wire(json!({ "method": "elicitation/create", "params": params })), context).await?;
    Ok(format!("action={}, content={}", answer["action"].as_str().unwrap_or("none"), answer["content"]))
}

async fn answer(asked: ServerRequest, context: &Context) -> Result<Value, ErrorData> {
    let answer: ClientResult = context.peer.send_request(asked).await.map_err(|problem| {
        ErrorData::internal_error(format!("the client was asked and did not answer: {problem}"), None)
    })?;
    serde_json::to_value(answer).map_err(|problem| ErrorData::internal_error(problem.to_string(), None))
}

fn defaults() -> Value {
    json!({
        "name": { "type": "string", "default": "John Doe" },
        "age": { "type": "integer", "default": 30 },
        "score": { "type": "number", "default": 95.5 },
        "status": { "type": "string", "enum": ["active", "inactive", "pending"], "default": "active" },
        "verified": { "type": "boolean", "default": true }
    })
}

/// Every way in which a schema can offer a choice.
fn choices() -> Value {
    let titled = |kind: &str| {
        let of = ["First", "Second", "Third"].iter().zip(1..);
        of.map(|(nth, n)| json!({ "const": format!("value{n}"), "title": format!("{nth} {kind}") })).collect::<Vec<_>>()
    };
    let plain = json!(["option1", "option2", "option3"]);
    json!({
        "untitledSingle": { "type": "string", "enum": plain },
        "titledSingle": { "type": "string", "oneOf": titled("Option") },
        "legacyEnum": {
            "type": "string",
            "enum": ["opt1", "opt2", "opt3"],
            "enumNames": ["Option One", "Option Two", "Option Three"]
        },
        "untitledMulti": { "type": "array", "items": { "type": "string", "enum": plain } },
        "titledMulti": { "type": "array", "items": { "anyOf": titled("Choice") } }
    })
}
