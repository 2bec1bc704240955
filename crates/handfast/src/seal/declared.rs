//! What a client can be asked. "Servers MUST NOT send an `inputRequests` that the client has not declared support for in its
//! capabilities."

use serde_json::{Map, Value, json};

/// The capabilities, as the client would have to declare them, that these `inputRequests` need and this client has not
/// declared; `None` where it can be asked all of that.
#[must_use]
pub fn undeclared<'r>(requests: impl IntoIterator<Item = &'r Value>, declared: &Value) -> Option<Value> {
    let needed = requests.into_iter().filter_map(|request| missing(request, declared));
    let needed: Map<String, Value> = needed.map(|(name, needed)| (name.to_owned(), needed)).collect();
    (!needed.is_empty()).then_some(Value::Object(needed))
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
