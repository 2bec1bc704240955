//! What a client can be asked. "Servers MUST NOT send an `inputRequests` that the client has not declared support for in its
//! capabilities."

use rmcp::{
    ErrorData,
    model::{ClientCapabilities, ErrorCode, InputRequiredResult},
};
use serde_json::{Map, Value, json};

/// Refuses what this client has not said that it can answer, with the capabilities that it would take.
///
/// # Errors
/// -32021 of the specification, with `requiredCapabilities`.
pub(super) fn answerable(asks: &InputRequiredResult, declared: Option<&ClientCapabilities>) -> Result<(), ErrorData> {
    let declared = serde_json::to_value(declared).unwrap_or_default();
    let requests = asks.input_requests.iter().flatten().filter_map(|(_, request)| serde_json::to_value(request).ok());
    let mut required = Map::new();
    for (name, needed) in requests.filter_map(|request| missing(&request, &declared)) {
        required.insert(name.to_owned(), needed);
    }
    if required.is_empty() {
        return Ok(());
    }
    let data = json!({"requiredCapabilities": required});
    Err(ErrorData::new(ErrorCode::MISSING_REQUIRED_CLIENT_CAPABILITY, "a client capability is needed", Some(data)))
}

fn missing(request: &Value, declared: &Value) -> Option<(&'static str, Value)> {
    let elicitation = &declared["elicitation"];
    let (name, has, needed) = match request["method"].as_str()? {
        "elicitation/create" if request["params"]["mode"] == "url" => {
            ("elicitation", elicitation["url"].is_object(), json!({"url": {}}))
        }
        // An empty object says that forms can be answered, and nothing else.
        "elicitation/create" => {
            let form = elicitation["form"].is_object() || elicitation.as_object().is_some_and(Map::is_empty);
            ("elicitation", form, json!({"form": {}}))
        }
        "sampling/createMessage" => ("sampling", declared["sampling"].is_object(), json!({})),
        "roots/list" => ("roots", declared["roots"].is_object(), json!({})),
        _ => return None,
    };
    (!has).then_some((name, needed))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_kind_of_question_needs_its_own_capability() {
        let form = json!({"method": "elicitation/create", "params": {"mode": "form", "message": "sure?"}});
        let url = json!({"method": "elicitation/create", "params": {"mode": "url", "message": "", "url": "https://x"}});
        let sampling = json!({"method": "sampling/createMessage", "params": {}});
        let roots = json!({"method": "roots/list"});
        let lacks = |request: &Value, declared: Value| missing(request, &declared).map(|(name, _)| name);
        for declared in [json!({"elicitation": {}}), json!({"elicitation": {"form": {}}})] {
            assert_eq!(lacks(&form, declared.clone()), None);
            assert_eq!(lacks(&url, declared), Some("elicitation"));
        }
        assert_eq!(lacks(&form, json!({"elicitation": {"url": {}}})), Some("elicitation"), "nearly");
        assert_eq!(lacks(&url, json!({"elicitation": {"url": {}}})), None);
        for (request, name) in [(&sampling, "sampling"), (&roots, "roots")] {
            assert_eq!(lacks(request, json!({name: {}})), None);
            assert_eq!(lacks(request, json!({"elicitation": {}})), Some(name));
            assert_eq!(lacks(request, Value::Null), Some(name));
        }
    }
}
