//! Resources that never change, and a template.

use rmcp::{
    ErrorData,
    model::{ReadResourceResult, Resource, ResourceTemplate},
};
use serde_json::json;

use crate::{PNG, wire};

pub fn listed() -> Vec<Resource> {
    wire(json!([
        {
            "uri": "test://static-text", "name": "Static text", "mimeType": "text/plain",
            "description": "Text that never changes"
        },
        {
            "uri": "test://static-binary", "name": "Static binary", "mimeType": "image/png",
            "description": "A picture that never changes"
        },
        {
            "uri": "test://watched-resource", "name": "Watched", "mimeType": "text/plain",
            "description": "Something to subscribe to"
        }
    ]))
}

pub fn templates() -> Vec<ResourceTemplate> {
    wire(json!([{
        "uriTemplate": "test://template/{id}/data", "name": "Template", "mimeType": "application/json",
        "description": "Says which id it was asked for"
    }]))
}

pub fn read(uri: &str) -> Result<ReadResourceResult, ErrorData> {
    let id = uri.strip_prefix("test://template/").and_then(|rest| rest.strip_suffix("/data"));
    let content = match (uri, id) {
        ("test://static-text", _) => {
            json!({ "mimeType": "text/plain", "text": "This is the content of the static text resource." })
        }
        ("test://static-binary", _) => json!({ "mimeType": "image/png", "blob": PNG }),
        ("test://watched-resource", _) => json!({ "mimeType": "text/plain", "text": "Watch this." }),
        (_, Some(id)) => {
            let data = json!({ "id": id, "templateTest": true, "data": format!("Data for ID: {id}") });
            json!({ "mimeType": "application/json", "text": data.to_string() })
        }
        _ => return Err(ErrorData::resource_not_found("Resource not found", Some(json!({ "uri": uri })))),
    };
    let mut content = content;
    content["uri"] = json!(uri);
    Ok(wire(json!({ "resultType": "complete", "contents": [content] })))
}
