//! The other two ways to a workspace: a prompt and a resource template. Guarded like the tools; they have no
//! `isError`, so an unknown handle is a JSON-RPC error here.

use handfast_wire::message::Object;
use serde_json::{Value, json};

use crate::{
    answer::{self, Refused},
    ask::{self, Origin, Trip},
    caller::Principal,
    conform::Capabilities,
    manner::{Handles, View},
    server::{self, Server},
    state,
    tools::UNKNOWN_HANDLE,
    workspaces::{Door, Workspace},
};

/// Answers `prompts/get`.
pub(crate) fn prompt(
    server: &Server,
    caller: &Principal,
    client: &Capabilities<'_>,
    params: &Object,
) -> Result<Value, Refused> {
    let name = server::text(params, "name")?;
    if name != "summarise_workspace" {
        return Err(Refused::params(format!("unknown prompt: {name}")));
    }
    let no_arguments = Object::new();
    let arguments = params.get("arguments").and_then(Value::as_object).unwrap_or(&no_arguments);
    let presented = server::text(arguments, server.manner().handles.taken_as())?;
    let workspace = opened(server, Door::Prompt, caller, presented)?;
    let mut text = format!("Summarise this workspace: {}", shown(server, &workspace));
    if server.manner().prompt_asks {
        let arguments = state::digest_of(&Value::Object(arguments.clone()));
        let origin = Origin {
            caller,
            client,
            params,
            method: "prompts/get",
            tool: name,
            arguments,
            reason: None,
            workspace: &workspace,
        };
        match given(server, &origin)? {
            Given::With(words) => text.push_str(&words),
            Given::Not(words) => text = words,
            Given::After(asking) => return Ok(asking),
        }
    }
    Ok(answer::complete(json!({
        "description": "Summarise a workspace",
        "messages": [{"role": "user", "content": {"type": "text", "text": text}}]
    })))
}

/// Answers `resources/read`.
pub(crate) fn resource(
    server: &Server,
    caller: &Principal,
    client: &Capabilities<'_>,
    params: &Object,
) -> Result<Value, Refused> {
    let uri = server::text(params, "uri")?;
    let presented = uri
        .strip_prefix("workspace://")
        .and_then(|rest| rest.strip_suffix("/notes"))
        .ok_or_else(|| Refused::params("resource not found"))?;
    let workspace = opened(server, Door::Resource, caller, presented)?;
    let mut shown = shown(server, &workspace);
    if server.manner().resource_asks {
        let arguments = state::digest_of(&Value::Null);
        let origin = Origin {
            caller,
            client,
            params,
            method: "resources/read",
            tool: uri,
            arguments,
            reason: None,
            workspace: &workspace,
        };
        match given(server, &origin)? {
            Given::With(words) => shown["given"] = words.trim().into(),
            Given::Not(words) => shown = json!({"given": words}),
            Given::After(asking) => return Ok(asking),
        }
    }
    let contents = json!({"contents": [{"uri": uri, "mimeType": "application/json", "text": shown.to_string()}]});
    Ok(answer::cacheable(contents, 0, "private"))
}

fn opened(server: &Server, door: Door, caller: &Principal, presented: &str) -> Result<Workspace, Refused> {
    server
        .resolve(door, caller, presented, |workspace| workspace.clone())
        .ok_or_else(|| Refused::params(UNKNOWN_HANDLE))
}

/// What asking first led to.
enum Given {
    /// All is agreed: give it out, with these words added.
    With(String),
    /// The user said no: these words instead.
    Not(String),
    /// The result that asks.
    After(Value),
}

fn given(server: &Server, origin: &Origin<'_>) -> Result<Given, Refused> {
    Ok(match ask::step(server, origin)? {
        Trip::Asking(result) => Given::After(result),
        Trip::Agreed(claims, _) => {
            Given::With(format!(" ({} items, confirmed by principal {})", claims.items, claims.principal))
        }
        Trip::Undone(why) => Given::Not(format!("nothing is given out: {why}")),
        Trip::Failed(message) => return Err(Refused::params(message)),
    })
}

fn shown(server: &Server, workspace: &Workspace) -> Value {
    let manner = server.manner();
    let mut shown = match manner.view {
        View::Whole => json!({"label": workspace.label, "notes": workspace.notes}),
        View::Code => json!({"code": workspace.code}),
        View::Count => json!({"count": workspace.notes.len()}),
    };
    if manner.handles != Handles::TextOnly {
        shown[manner.handles.emitted_as()] = workspace.handle.clone().into();
    }
    if manner.shows_owner {
        shown["owner"] = workspace.owner.as_str().into();
    }
    shown
}
