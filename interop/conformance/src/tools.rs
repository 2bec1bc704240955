//! The list of tools, and the tools that ask nothing.
#![expect(deprecated, reason = "logging is part of what 2025-11-25 asks for")]

use std::time::Duration;

use rmcp::{
    ErrorData,
    model::{CallToolResult, JsonObject, LoggingLevel, ProgressNotificationParam, Tool},
};
use serde_json::{Value, json};
use tokio::time::sleep;

use crate::{
    PNG, WAV,
    changes::Change,
    fixture::{Context, Fixture},
    wire,
};

/// Each revision sees the tools that can work in it.
pub fn listed(modern: bool) -> Vec<Tool> {
    let plain = |(name, description): (&str, &str)| json!({ "name": name, "description": description, "inputSchema": { "type": "object", "properties": {} } });
    let mut listed: Vec<Value> = EVERYWHERE.iter().copied().map(plain).collect();
    listed.push(json!({
        "name": "json_schema_2020_12_tool", "description": "Tool with JSON Schema 2020-12 features",
        "inputSchema": rich_schema()
    }));
    if modern {
        listed.extend(SINCE_2026_07_28.iter().copied().map(plain));
        listed.extend([
            json!({
                "name": "slow_compute", "description": "A task that takes its time",
                "inputSchema": {
                    "type": "object",
                    "properties": {
                        "seconds": { "type": "integer", "minimum": 0, "maximum": 60 },
                        "label": { "type": "string" }
                    }
                }
            }),
            taking("confirm_delete", "A task that asks for a confirmation", "filename"),
            taking("greet", "Greets at once", "name"),
        ]);
        listed.push(json!({
            "name": "test_custom_headers", "description": "Takes an argument that is mirrored into a header",
            "inputSchema": {
                "type": "object",
                "properties": { "region": { "type": "string", "x-mcp-header": "Region" } },
                "required": ["region"]
            }
        }));
    } else {
        listed.extend(UNTIL_2025_11_25.iter().copied().map(plain));
        listed.push(taking("test_sampling", "Asks the model while it runs", "prompt"));
        listed.push(taking("test_elicitation", "Asks while it runs", "message"));
    }
    wire(json!(listed))
}

/// A tool with one argument, a text that must be there.
fn taking(name: &str, description: &str, argument: &str) -> Value {
    let schema = json!({ "type": "object", "properties": { argument: { "type": "string" } }, "required": [argument] });
    json!({ "name": name, "description": description, "inputSchema": schema })
}

const EVERYWHERE: [(&str, &str); 7] = [
    ("test_simple_text", "Answers with text"),
    ("test_image_content", "Answers with a picture"),
    ("test_audio_content", "Answers with a sound"),
    ("test_embedded_resource", "Answers with a resource"),
    ("test_multiple_content_types", "Answers with text, a picture and a resource"),
    ("test_error_handling", "Always fails"),
    ("test_tool_with_progress", "Says how far it is"),
];

const SINCE_2026_07_28: [(&str, &str); 17] = [
    ("test_input_required_result_elicitation", "Asks for a name"),
    ("test_input_required_result_sampling", "Asks the model"),
    ("test_input_required_result_list_roots", "Asks for the roots"),
    ("test_input_required_result_request_state", "Asks for a confirmation"),
    ("test_input_required_result_tampered_state", "Asks for a confirmation"),
    ("test_input_required_result_multiple_inputs", "Asks for three things at once"),
    ("test_input_required_result_multi_round", "Asks twice"),
    ("test_input_required_result_capabilities", "Asks for what the client can give"),
    ("test_streaming_elicitation", "Asks for a name"),
    ("test_missing_capability", "Needs a client that can be asked for samples"),
    ("test_logging_tool", "Logs, if the request wants that"),
    ("test_trigger_tool_change", "Announces a new list of tools"),
    ("test_trigger_prompt_change", "Announces a new list of prompts"),
    ("failing_job", "A task that fails"),
    ("protocol_error_job", "A task that breaks"),
    ("multi_input", "A task that asks for two things at once"),
    ("test_tool_with_task", "Asks for a name, and becomes a task then"),
];

const UNTIL_2025_11_25: [(&str, &str); 3] = [
    ("test_tool_with_logging", "Logs while it runs"),
    ("test_elicitation_sep1034_defaults", "Asks with defaults"),
    ("test_elicitation_sep1330_enums", "Asks with choices"),
];

pub async fn call(
    fixture: &Fixture,
    name: &str,
    arguments: Option<&JsonObject>,
    context: &Context,
) -> Result<CallToolResult, ErrorData> {
    let image = json!({ "type": "image", "data": PNG, "mimeType": "image/png" });
    let content = match name {
        "test_simple_text" => vec![text("This is a simple text response for testing.")],
        "test_image_content" => vec![image],
        "test_audio_content" => vec![json!({ "type": "audio", "data": WAV, "mimeType": "audio/wav" })],
        "test_embedded_resource" => {
            vec![resource("test://embedded-resource", "text/plain", "This is an embedded resource content.")]
        }
        "test_multiple_content_types" => {
            let data = json!({ "test": "data", "value": 123 }).to_string();
            let resource = resource("test://mixed-content-resource", "application/json", &data);
            vec![text("Multiple content types test:"), image, resource]
        }
        "test_error_handling" => {
            let content = [text("This tool intentionally returns an error for testing")];
            return Ok(wire(json!({ "resultType": "complete", "content": content, "isError": true })));
        }
        "test_tool_with_progress" => {
            progress(context).await;
            vec![text("Went from 0 to 100.")]
        }
        "test_tool_with_logging" | "test_logging_tool" => {
            for told in ["Tool execution started", "Tool processing data", "Tool execution completed"] {
                fixture.log(context, LoggingLevel::Info, told).await;
                sleep(A_MOMENT).await;
            }
            vec![text("Logged three times.")]
        }
        "test_trigger_tool_change" => announce(fixture, Change::Tools).await,
        "test_trigger_prompt_change" => announce(fixture, Change::Prompts).await,
        "greet" => {
            let name = arguments.and_then(|arguments| arguments.get("name")).and_then(Value::as_str);
            vec![text(&format!("Hello, {}!", name.unwrap_or("whoever you are")))]
        }
        "json_schema_2020_12_tool" | "test_custom_headers" => {
            vec![text(&json!(arguments).to_string())]
        }
        _ => return Err(ErrorData::invalid_params(format!("there is no tool {name}"), None)),
    };
    Ok(complete(&content))
}

pub fn said(told: &str) -> CallToolResult {
    complete(&[text(told)])
}

/// Older revisions have no `resultType`; for them the SDK takes it out again.
fn complete(content: &[Value]) -> CallToolResult {
    wire(json!({ "resultType": "complete", "content": content }))
}

const A_MOMENT: Duration = Duration::from_millis(50);

async fn progress(context: &Context) {
    let token = context.meta.get_progress_token();
    for done in [0.0, 50.0, 100.0] {
        if let Some(token) = &token {
            let told = ProgressNotificationParam::new(token.clone(), done).with_total(100.0);
            // Who has hung up misses the rest.
            let _ = context.peer.notify_progress(told).await;
        }
        sleep(A_MOMENT).await;
    }
}

async fn announce(fixture: &Fixture, change: Change) -> Vec<Value> {
    // A subscription is acknowledged just before it begins to listen, and the suite calls at once.
    sleep(A_MOMENT).await;
    fixture.changes.announce(change);
    vec![text("Announced.")]
}

fn text(text: &str) -> Value {
    json!({ "type": "text", "text": text })
}

fn resource(uri: &str, kind: &str, text: &str) -> Value {
    json!({ "type": "resource", "resource": { "uri": uri, "mimeType": kind, "text": text } })
}

/// What must come through unchanged, keyword for keyword.
fn rich_schema() -> Value {
    json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "type": "object",
        "$defs": {
            "address": {
                "$anchor": "addressDef",
                "type": "object",
                "properties": { "street": { "type": "string" }, "city": { "type": "string" } }
            }
        },
        "properties": {
            "name": { "type": "string" },
            "address": { "$ref": "#/$defs/address" },
            "contactMethod": { "type": "string", "enum": ["phone", "email"] },
            "phone": { "type": "string" },
            "email": { "type": "string" }
        },
        "allOf": [{ "anyOf": [{ "required": ["phone"] }, { "required": ["email"] }] }],
        "if": { "properties": { "contactMethod": { "const": "phone" } }, "required": ["contactMethod"] },
        "then": { "required": ["phone"] },
        "else": { "required": ["email"] },
        "additionalProperties": false
    })
}
