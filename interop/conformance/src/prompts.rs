//! Prompts without questions; the one that asks is in `asking.rs`.

use rmcp::{
    ErrorData,
    model::{GetPromptResult, JsonObject, Prompt},
};
use serde_json::{Value, json};

use crate::{PNG, wire};

pub fn listed(modern: bool) -> Vec<Prompt> {
    let argument = |name: &str| json!({ "name": name, "description": "Goes into the text", "required": true });
    let mut listed = vec![
        json!({ "name": "test_simple_prompt", "description": "A prompt without arguments" }),
        json!({
            "name": "test_prompt_with_arguments", "description": "A prompt with two arguments",
            "arguments": [argument("arg1"), argument("arg2")]
        }),
        json!({
            "name": "test_prompt_with_embedded_resource", "description": "A prompt around a resource",
            "arguments": [argument("resourceUri")]
        }),
        json!({ "name": "test_prompt_with_image", "description": "A prompt around a picture" }),
    ];
    if modern {
        listed.push(json!({ "name": "test_input_required_result_prompt", "description": "A prompt that asks first" }));
    }
    wire(json!(listed))
}

pub fn get(name: &str, arguments: Option<&JsonObject>) -> Result<GetPromptResult, ErrorData> {
    let given = |name: &str| {
        let value = arguments.and_then(|arguments| arguments.get(name)).and_then(Value::as_str);
        value.ok_or_else(|| ErrorData::invalid_params(format!("the argument {name} is missing"), None))
    };
    let content = match name {
        "test_simple_prompt" => vec![text("This is a simple prompt for testing.")],
        "test_prompt_with_arguments" => {
            let (arg1, arg2) = (given("arg1")?, given("arg2")?);
            vec![text(&format!("Prompt with arguments: arg1='{arg1}', arg2='{arg2}'"))]
        }
        "test_prompt_with_embedded_resource" => {
            let resource = json!({
                "uri": given("resourceUri")?, "mimeType": "text/plain",
                "text": "Embedded resource content for testing."
            });
            vec![
                json!({ "type": "resource", "resource": resource }),
                text("Please process the embedded resource above."),
            ]
        }
        "test_prompt_with_image" => {
            let image = json!({ "type": "image", "data": PNG, "mimeType": "image/png" });
            vec![image, text("Please analyze the image above.")]
        }
        _ => return Err(ErrorData::invalid_params(format!("there is no prompt {name}"), None)),
    };
    Ok(messages(content))
}

pub fn saying(told: &str) -> GetPromptResult {
    messages(vec![text(told)])
}

/// What an argument that begins like this may become.
pub fn completions(begun: &str) -> Vec<String> {
    let known = ["paris", "park", "party", "test", "testing"];
    known.iter().filter(|value| value.starts_with(begun)).map(|value| (*value).to_owned()).collect()
}

fn text(text: &str) -> Value {
    json!({ "type": "text", "text": text })
}

fn messages(content: Vec<Value>) -> GetPromptResult {
    let messages: Vec<Value> =
        content.into_iter().map(|content| json!({ "role": "user", "content": content })).collect();
    wire(json!({ "resultType": "complete", "messages": messages }))
}
