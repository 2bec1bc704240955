//! The tools: open, read, append, archive, purge, whoami, and what a few servers have besides. Unknown and foreign handles get one and the same answer.

use handfast_wire::message::Object;
use serde_json::{Value, json};

use crate::{
    answer::{self, Refused},
    ask::{self, Origin, Trip},
    caller::Principal,
    conform::Capabilities,
    manner::{Further, Handles, Manner, View},
    pages,
    server::{self, Server},
    state,
    workspaces::{Door, Workspace},
};

/// What is said about a handle that is unknown, foreign or expired.
pub(crate) const UNKNOWN_HANDLE: &str = "unknown workspace handle";

/// More would double with every copy.
const MOST_COPIED: usize = 8;

/// Answers `tools/call`.
pub(crate) fn call(
    server: &Server,
    caller: &Principal,
    client: &Capabilities<'_>,
    params: &Object,
) -> Result<Value, Refused> {
    let name = server::text(params, "name")?;
    let arguments = match params.get("arguments") {
        None => &Object::new(),
        Some(Value::Object(arguments)) => arguments,
        Some(_) => return Err(Refused::params("`arguments` must be an object")),
    };
    let call = Call { server, caller, client, params, name, arguments, manner: server.manner() };
    match name {
        "open_workspace" => call.open(),
        "read_workspace" => call.read(),
        "append_note" => call.append(),
        "archive_workspace" if call.manner.ends => call.archive(),
        "purge_workspace" if call.manner.ends => call.purge(),
        "whoami" => Ok(answer::tool(caller.to_string(), call.data(json!({"principal": caller.as_str()})))),
        "list_workspaces" if call.manner.further == Further::Listing => Ok(call.list()),
        "list_workspaces" if call.manner.further == Further::Pages => {
            call.pages("workspaces", |workspace| call.shown(workspace, false))
        }
        "list_labels" if call.manner.further == Further::Pages => {
            call.pages("labels", |workspace| workspace.label.clone().into())
        }
        "create_share_link" if call.manner.further == Further::ShareLinks => call.share(),
        "compare_workspaces" if call.manner.further == Further::Several => call.compare(),
        "copy_notes" if call.manner.further == Further::Several => call.copy(),
        "close_workspace" if call.manner.further == Further::Closing => call.close(),
        "remember_note" if call.manner.further == Further::Memory => call.remember(),
        "recall_notes" if call.manner.further == Further::Memory => Ok(call.recall()),
        "open_share_link" if call.manner.further == Further::ShareLinks => call.open_shared(),
        _ => Err(Refused::params(format!("unknown tool: {name}"))),
    }
}

struct Call<'a> {
    server: &'a Server,
    caller: &'a Principal,
    client: &'a Capabilities<'a>,
    params: &'a Object,
    name: &'a str,
    arguments: &'a Object,
    manner: Manner,
}

impl Call<'_> {
    fn open(&self) -> Result<Value, Refused> {
        let label = match self.manner.handles {
            Handles::Unlabelled => "untitled",
            _ => server::text(self.arguments, "label")?,
        };
        let mut keeper = self.server.keeper();
        let handle = keeper.mint(self.manner.handles, self.caller);
        let mut workspace = Workspace::new(&handle, label, self.caller);
        if self.server.guards.remembers() {
            let ticket = self.server.tickets.issue(self.caller, &handle);
            workspace.touched = self.server.clock.milliseconds();
            workspace.ticket = Some(ticket.ok_or_else(|| Refused::internal("no handle could be made"))?);
            keeper.put(self.server.guards.place(self.caller, &handle), workspace.clone());
        }
        if self.manner.handles == Handles::TextOnly {
            return Ok(answer::tool(format!("Created workspace {handle} for you."), None));
        }
        Ok(self.described(self.shown(&workspace, false)))
    }

    fn read(&self) -> Result<Value, Refused> {
        let shown = self.resolve(Door::Read, |workspace| self.shown(workspace, true))?;
        if !self.manner.lists_everything {
            return shown.map_or_else(|| self.unknown(), |shown| Ok(self.described(shown)));
        }
        let everything: Vec<Value> =
            self.server.keeper().everything().map(|workspace| self.shown(workspace, true)).collect();
        Ok(match shown {
            Some(mut shown) => {
                shown["everything"] = everything.into();
                self.described(shown)
            }
            None => answer::tool_error(format!("{UNKNOWN_HANDLE}; there are {}", Value::from(everything))),
        })
    }

    fn append(&self) -> Result<Value, Refused> {
        let text = server::text(self.arguments, "text")?;
        let shown = self.resolve(Door::Append, |workspace| {
            workspace.notes.push(text.to_owned());
            self.shown(workspace, true)
        })?;
        match shown {
            None => self.unknown(),
            Some(_) if !self.manner.writer_tells => Ok(answer::tool("ok".into(), None)),
            Some(shown) => Ok(self.described(shown)),
        }
    }

    fn archive(&self) -> Result<Value, Refused> {
        let reason = self.arguments.get("reason").map(|_| server::text(self.arguments, "reason")).transpose()?;
        let Some(workspace) = self.resolve(Door::Archive, |workspace| workspace.clone())? else {
            return self.unknown();
        };
        let origin = Origin {
            caller: self.caller,
            client: self.client,
            params: self.params,
            method: "tools/call",
            tool: self.name,
            arguments: state::digest_of(&Value::Object(self.arguments.clone())),
            reason: Some(reason.unwrap_or("no reason given").to_owned()),
            workspace: &workspace,
        };
        Ok(match ask::step(self.server, &origin)? {
            Trip::Asking(result) => result,
            Trip::Failed(_) if self.manner.polite => answer::tool("that has expired, please start again".into(), None),
            Trip::Failed(message) => answer::tool_error(message),
            Trip::Undone(why) => {
                answer::tool(format!("nothing was archived: {why}"), self.data(json!({"archived": 0, "undone": why})))
            }
            Trip::Agreed(claims, said) => {
                let times = self.resolve(Door::Archive, |workspace| {
                    workspace.archived += 1;
                    workspace.archived
                })?;
                let mut text = format!("archived {} items as principal {}", claims.items, claims.principal);
                let mut data = json!({
                    "archived": claims.items,
                    "principal": claims.principal,
                    self.manner.handles.emitted_as(): self.written(&claims.workspace_id),
                    "times": times
                });
                if let Some(reason) = said.or(claims.reason) {
                    text.push_str(&format!(", reason: {reason}"));
                    data["reason"] = reason.into();
                }
                answer::tool(text, self.data(data))
            }
        })
    }

    fn purge(&self) -> Result<Value, Refused> {
        // Declared as destructive, and counted for the tests; in truth it destroys nothing.
        self.server.count_purge();
        let found = self.resolve(Door::Purge, |_| ())?;
        let purged = || answer::tool("purged".into(), self.data(json!({"purged": true})));
        found.map_or_else(|| self.unknown(), |()| Ok(purged()))
    }

    fn close(&self) -> Result<Value, Refused> {
        let Some(handle) = self.resolve(Door::Close, |workspace| workspace.handle.clone())? else {
            return self.unknown();
        };
        if self.server.guards.closes() {
            let place = self.server.guards.place(self.caller, &handle);
            let mut keeper = self.server.keeper();
            keeper.forget(&place);
            if self.server.guards.reuses_numbers() {
                keeper.free(handle);
            }
        }
        Ok(answer::tool("closed".into(), self.data(json!({"closed": true}))))
    }

    fn compare(&self) -> Result<Value, Refused> {
        let missing = || Refused::params("`workspace_ids` must be a list of one to four handles");
        let listed = self.arguments.get("workspace_ids").and_then(Value::as_array);
        let listed = listed.filter(|listed| (1..=4).contains(&listed.len())).ok_or_else(missing)?;
        let mut shown = Vec::new();
        for (at, handle) in listed.iter().enumerate() {
            let handle = handle.as_str().ok_or_else(missing)?;
            let door = if at == 0 { Door::First } else { Door::Beside };
            let found = self.server.resolve(door, self.caller, handle, |workspace| self.shown(workspace, true));
            match found {
                Some(found) => shown.push(found),
                None => return self.unknown(),
            }
        }
        Ok(self.described(json!({"compared": shown})))
    }

    fn copy(&self) -> Result<Value, Refused> {
        let [from, to] = ["from_workspace_id", "to_workspace_id"].map(|name| server::text(self.arguments, name));
        let (from, to) = (from?, to?);
        let notes = |workspace: &mut Workspace| {
            let label = [workspace.label.clone()];
            label.into_iter().chain(workspace.notes.iter().cloned()).take(MOST_COPIED).collect::<Vec<_>>()
        };
        let Some(notes) = self.server.resolve(Door::Source, self.caller, from, notes) else { return self.unknown() };
        let copied = self.server.resolve(Door::Append, self.caller, to, |workspace| {
            workspace.notes.extend(notes);
            self.shown(workspace, true)
        });
        copied.map_or_else(|| self.unknown(), |copied| Ok(self.described(copied)))
    }

    fn remember(&self) -> Result<Value, Refused> {
        let text = server::text(self.arguments, "text")?;
        let mut keeper = self.server.keeper();
        let notes = keeper.notes_of(self.server.guards.memory_of(self.caller));
        notes.push(text.to_owned());
        Ok(answer::tool(format!("{} notes are kept", notes.len()), self.data(json!({"count": notes.len()}))))
    }

    fn recall(&self) -> Value {
        let notes = self.server.keeper().notes_of(self.server.guards.memory_of(self.caller)).clone();
        self.described(json!({"notes": notes}))
    }

    fn list(&self) -> Value {
        let listed: Vec<Value> =
            self.server.keeper().everything().map(|workspace| self.shown(workspace, false)).collect();
        self.described(json!({"workspaces": listed}))
    }

    fn pages(&self, list: &str, shown: impl Fn(&Workspace) -> Value) -> Result<Value, Refused> {
        let cursor = self.arguments.get("cursor").map(|_| server::text(self.arguments, "cursor")).transpose()?;
        let (items, next) = pages::page(self.server, list, self.caller, cursor, shown)?;
        let mut page = json!({list: items});
        if let Some(next) = next {
            page["nextCursor"] = next.into();
        }
        Ok(self.described(page))
    }

    fn share(&self) -> Result<Value, Refused> {
        let Some(handle) = self.resolve(Door::Share, |workspace| workspace.handle.clone())? else {
            return self.unknown();
        };
        let place = self.server.guards.place(self.caller, &handle);
        let token = self.server.keeper().link(place);
        Ok(self.described(json!({"share_token": token})))
    }

    fn open_shared(&self) -> Result<Value, Refused> {
        let token = server::text(self.arguments, "share_token")?;
        let keeper = self.server.keeper();
        let workspace = keeper.linked(token).filter(|workspace| !self.server.guards.lapsed(workspace));
        Ok(workspace.map_or_else(
            || answer::tool_error("unknown share link"),
            |workspace| self.described(self.shown(workspace, true)),
        ))
    }

    fn resolve<T>(&self, door: Door, use_it: impl FnOnce(&mut Workspace) -> T) -> Result<Option<T>, Refused> {
        Ok(self.server.resolve(door, self.caller, &self.presented()?, use_it))
    }

    /// The handle in the arguments.
    fn presented(&self) -> Result<String, Refused> {
        let name = self.manner.handles.taken_as();
        let holder = match self.manner.handles {
            Handles::Nested => self.arguments.get("target").and_then(Value::as_object),
            _ => Some(self.arguments),
        };
        match holder.and_then(|holder| holder.get(name)) {
            Some(Value::String(text)) => Ok(text.clone()),
            Some(Value::Number(number)) if self.manner.handles == Handles::Numeric => Ok(number.to_string()),
            _ => Err(Refused::params(format!("`{name}` is missing or of another type"))),
        }
    }

    /// A workspace as data.
    fn shown(&self, workspace: &Workspace, with_notes: bool) -> Value {
        let mut shown = json!({self.manner.handles.emitted_as(): self.written(&workspace.handle)});
        if self.manner.view == View::Whole {
            shown["label"] = workspace.label.clone().into();
        }
        if self.manner.shows_owner {
            shown["owner"] = workspace.owner.as_str().into();
        }
        if with_notes {
            match self.manner.view {
                View::Whole => shown["notes"] = workspace.notes.clone().into(),
                View::Code => shown["code"] = workspace.code.clone().into(),
                View::Count => shown["count"] = workspace.notes.len().into(),
            }
        }
        shown
    }

    /// Data as an answer: in the text block and as structured content, or as a sentence.
    fn described(&self, shown: Value) -> Value {
        if self.manner.handles == Handles::TextOnly {
            let sentence = format!(
                "Workspace {}, owned by {}, has the label {} and the notes {}.",
                shown["workspace_id"].as_str().unwrap_or_default(),
                shown["owner"].as_str().unwrap_or_default(),
                shown["label"],
                shown["notes"]
            );
            return answer::tool(sentence, None);
        }
        let text = if self.manner.handles == Handles::StructuredOnly { "done".to_owned() } else { shown.to_string() };
        answer::tool(text, Some(shown))
    }

    /// A handle as this server writes it.
    fn written(&self, handle: &str) -> Value {
        match self.manner.handles {
            Handles::Numeric => handle.parse::<u64>().map_or_else(|_| handle.into(), Value::from),
            _ => handle.into(),
        }
    }

    fn unknown(&self) -> Result<Value, Refused> {
        if self.manner.refuses_by_protocol {
            return Err(Refused::params(UNKNOWN_HANDLE));
        }
        if self.manner.polite {
            return Ok(answer::tool("sorry, there is no such thing here".into(), None));
        }
        if let Some(owner) = self.somebody_else().filter(|_| self.manner.refers_to_owner) {
            return Ok(answer::tool(format!("this workspace belongs to {owner}; ask them"), None));
        }
        Ok(answer::tool_error(UNKNOWN_HANDLE))
    }

    /// Who else owns what was presented.
    fn somebody_else(&self) -> Option<Principal> {
        let place = self.server.guards.place(self.caller, &self.presented().ok()?);
        let owner = self.server.keeper().at(&place)?.owner.clone();
        (owner != *self.caller).then_some(owner)
    }

    fn data(&self, data: Value) -> Option<Value> {
        (self.manner.handles != Handles::TextOnly).then_some(data)
    }
}
