//! What the server says it offers. Byte for byte the same for every twin that speaks of handles in the same manner.

use serde_json::{Value, json};

use crate::{
    answer,
    manner::{Further, Handles, Lifetime, Manner},
    mirrors,
};

/// The answer to `tools/list`.
pub(crate) fn tools(manner: &Manner) -> Value {
    let Manner { handles, further, .. } = *manner;
    let id = handles.taken_as();
    let handle = handle_schema(handles);
    let mut open = json!({
        "name": "open_workspace",
        "title": "Open a workspace",
        "description": format!("Opens a new workspace for the caller and returns its handle.{}", said_of(manner.lifetime)),
        "inputSchema": {
            "type": "object",
            "properties": {"label": {"type": "string", "description": "A name for the workspace", "maxLength": 500}},
            "required": ["label"]
        },
        "annotations": {"readOnlyHint": false, "destructiveHint": false}
    });
    if handles != Handles::TextOnly {
        let emitted = handles.emitted_as();
        open["outputSchema"] = json!({
            "type": "object",
            "properties": {emitted: handle, "label": {"type": "string"}, "owner": {"type": "string"}},
            "required": [emitted]
        });
    }
    let mut read = json!({
        "name": "read_workspace",
        "title": "Read a workspace",
        "description": "Returns the label, the owner and the notes of a workspace.",
        "inputSchema": {"type": "object", "properties": {id: handle}, "required": [id]},
        "annotations": {"readOnlyHint": true}
    });
    if manner.mirrors {
        read["inputSchema"]["properties"][id]["x-mcp-header"] = mirrors::HEADER.into();
    }
    let append = json!({
        "name": "append_note",
        "title": "Append a note",
        "description": "Appends a note to a workspace.",
        "inputSchema": {
            "type": "object",
            "properties": {id: handle, "text": {"type": "string", "description": "The note", "maxLength": 2000}},
            "required": [id, "text"]
        },
        "annotations": {"readOnlyHint": false, "destructiveHint": false}
    });
    let archive = json!({
        "name": "archive_workspace",
        "title": "Archive a workspace",
        "description": "Counts the items of a workspace into the archive, after asking. The workspace stays as it is.",
        "inputSchema": {
            "type": "object",
            "properties": {id: handle, "reason": {"type": "string", "description": "Why, in brief", "maxLength": 500}},
            "required": [id]
        },
        "annotations": {"readOnlyHint": false, "destructiveHint": false}
    });
    let purge = json!({
        "name": "purge_workspace",
        "title": "Purge a workspace",
        "description": "Permanently deletes a workspace and all its notes.",
        "inputSchema": {"type": "object", "properties": {id: handle}, "required": [id]},
        "annotations": {"readOnlyHint": false, "destructiveHint": true}
    });
    let whoami = json!({
        "name": "whoami",
        "title": "Who am I",
        "description": "Returns the principal that the server takes the caller for.",
        "inputSchema": {"type": "object", "properties": {}},
        "annotations": {"readOnlyHint": true}
    });
    let mut listed = vec![open, read, append];
    listed.extend([archive, purge].into_iter().filter(|_| manner.ends));
    listed.push(whoami);
    match handles {
        Handles::Nested => listed.iter_mut().skip(1).for_each(nest),
        Handles::Unlabelled => listed[0]["inputSchema"] = json!({"type": "object", "properties": {}}),
        _ => {}
    }
    listed.extend(further_tools(further, id, &handle));
    answer::cacheable(json!({"tools": listed}), 300_000, "public")
}

fn further_tools(further: Further, id: &str, handle: &Value) -> Vec<Value> {
    match further {
        Further::Nothing => Vec::new(),
        Further::Listing => vec![json!({
            "name": "list_workspaces",
            "title": "List workspaces",
            "description": "Lists the workspaces of everybody. Anybody may read them.",
            "inputSchema": {"type": "object", "properties": {}},
            "annotations": {"readOnlyHint": true}
        })],
        Further::Closing => vec![json!({
            "name": "close_workspace",
            "title": "Close a workspace",
            "description": "Closes a workspace. Its handle is worth nothing from then on.",
            "inputSchema": {"type": "object", "properties": {id: handle}, "required": [id]},
            "annotations": {"readOnlyHint": false, "destructiveHint": false}
        })],
        Further::Several => vec![
            json!({
                "name": "compare_workspaces",
                "title": "Compare workspaces",
                "description": "Returns the notes of several workspaces, side by side.",
                "inputSchema": {
                    "type": "object",
                    "properties": {"workspace_ids": {"type": "array", "items": handle, "minItems": 1, "maxItems": 4}},
                    "required": ["workspace_ids"]
                },
                "annotations": {"readOnlyHint": true}
            }),
            json!({
                "name": "copy_notes",
                "title": "Copy notes",
                "description": "Appends the notes of one workspace to those of another.",
                "inputSchema": {
                    "type": "object",
                    "properties": {"from_workspace_id": handle, "to_workspace_id": handle},
                    "required": ["from_workspace_id", "to_workspace_id"]
                },
                "annotations": {"readOnlyHint": false, "destructiveHint": false}
            }),
        ],
        Further::Memory => vec![
            json!({
                "name": "remember_note",
                "title": "Remember a note",
                "description": "Keeps a note for the caller.",
                "inputSchema": {
                    "type": "object",
                    "properties": {"text": {"type": "string", "description": "The note", "maxLength": 2000}},
                    "required": ["text"]
                },
                "annotations": {"readOnlyHint": false, "destructiveHint": false}
            }),
            json!({
                "name": "recall_notes",
                "title": "Recall the notes",
                "description": "Returns the notes that were kept for the caller.",
                "inputSchema": {"type": "object", "properties": {}},
                "annotations": {"readOnlyHint": true}
            }),
        ],
        Further::Pages => [("list_workspaces", "workspaces"), ("list_labels", "labels of the workspaces")]
            .into_iter()
            .map(|(name, what)| {
                json!({
                    "name": name,
                    "title": format!("List {what}"),
                    "description": format!("Lists the {what} of the caller, in pages."),
                    "inputSchema": {
                        "type": "object",
                        "properties": {"cursor": {"type": "string", "description": "Where the page before said to go on"}}
                    },
                    "annotations": {"readOnlyHint": true}
                })
            })
            .collect(),
        Further::ShareLinks => vec![
            json!({
                "name": "create_share_link",
                "title": "Create a share link",
                "description": "Returns a token with which anybody may read a workspace, for as long as that lives: one hour.",
                "inputSchema": {"type": "object", "properties": {id: handle}, "required": [id]},
                "annotations": {"readOnlyHint": false, "destructiveHint": false}
            }),
            json!({
                "name": "open_share_link",
                "title": "Open a share link",
                "description": "Returns the workspace that a token was made for.",
                "inputSchema": {
                    "type": "object",
                    "properties": {"share_token": {"type": "string", "description": "What create_share_link returned"}},
                    "required": ["share_token"]
                },
                "annotations": {"readOnlyHint": true}
            }),
        ],
    }
}

fn said_of(lifetime: Lifetime) -> &'static str {
    match lifetime {
        Lifetime::OneHour => " The handle lives for one hour.",
        Lifetime::TwoSeconds => " The handle lives for two seconds without being used.",
        Lifetime::Unsaid => "",
    }
}

/// Moves the handle of an input schema into an object.
fn nest(tool: &mut Value) {
    let schema = &mut tool["inputSchema"];
    let Some(handle) =
        schema["properties"].as_object_mut().and_then(|properties| properties.shift_remove("workspace_id"))
    else {
        return;
    };
    schema["properties"]["target"] =
        json!({"type": "object", "properties": {"workspace_id": handle}, "required": ["workspace_id"]});
    if let Some(name) = schema["required"].as_array_mut().and_then(|required| required.first_mut()) {
        *name = "target".into();
    }
}

/// The answer to `prompts/list`.
pub(crate) fn prompts(handles: Handles) -> Value {
    let prompt = json!({
        "name": "summarise_workspace",
        "title": "Summarise a workspace",
        "description": "A request to summarise the notes of a workspace.",
        "arguments": [{"name": handles.taken_as(), "description": "The handle of the workspace", "required": true}]
    });
    answer::cacheable(json!({"prompts": [prompt]}), 300_000, "public")
}

/// The answer to `resources/list`: workspaces are not listed, they are reached by their handles.
pub(crate) fn resources() -> Value {
    answer::cacheable(json!({"resources": []}), 300_000, "public")
}

/// The answer to `resources/templates/list`.
pub(crate) fn templates(handles: Handles) -> Value {
    let template = json!({
        "uriTemplate": format!("workspace://{{{}}}/notes", handles.taken_as()),
        "name": "workspace_notes",
        "title": "Notes of a workspace",
        "description": "The notes of a workspace.",
        "mimeType": "application/json"
    });
    answer::cacheable(json!({"resourceTemplates": [template]}), 300_000, "public")
}

/// The answer to `server/discover`.
pub(crate) fn discover(with_tasks: bool) -> Value {
    let mut capabilities = json!({"tools": {}, "prompts": {}, "resources": {}});
    if with_tasks {
        capabilities["extensions"] = json!({handfast_wire::meta::TASKS_EXTENSION: {}});
    }
    answer::cacheable(
        json!({"supportedVersions": [handfast_wire::meta::MODERN], "capabilities": capabilities}),
        300_000,
        "public",
    )
}

fn handle_schema(handles: Handles) -> Value {
    match handles {
        Handles::Numeric => json!({"type": "integer", "description": "The handle that open_workspace returned"}),
        _ => json!({"type": "string", "description": "The handle that open_workspace returned"}),
    }
}
