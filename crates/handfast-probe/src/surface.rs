//! What the server offers, as listed: tools, resource templates and prompts, with what of them may be called.

use handfast_wire::{message::Object, meta};
use serde_json::Value;

use crate::{
    harm,
    identity::Who,
    target::{Body, Call, Fault, Handshake, Reply, Target},
};

/// A tool as the server lists it.
#[derive(Debug, Clone)]
pub struct Tool {
    /// Its name in `tools/call`.
    pub name: String,
    /// What the server says of it.
    pub description: String,
    /// JSON Schema of the arguments.
    pub input: Value,
    /// JSON Schema of `structuredContent`; null where none is given.
    pub output: Value,
    /// Declares that it changes nothing.
    pub read_only: bool,
    /// Why it is not called by default, if it is not.
    pub destructive: Option<String>,
}

/// A resource template, with the variables of its URI.
#[derive(Debug, Clone)]
pub struct Template {
    /// The URI template (RFC 6570, simple expansion).
    pub uri: String,
    /// Its variables, in order.
    pub variables: Vec<String>,
}

/// A prompt, with its arguments.
#[derive(Debug, Clone)]
pub struct Prompt {
    /// Its name in `prompts/get`.
    pub name: String,
    /// What the server says of it.
    pub description: String,
    /// Names of its arguments and whether they are required.
    pub arguments: Vec<(String, bool)>,
}

/// Everything that a server lists.
#[derive(Debug, Clone, Default)]
pub struct Surface {
    /// The tools.
    pub tools: Vec<Tool>,
    /// Templates, and plain resources as templates without variables.
    pub templates: Vec<Template>,
    /// The prompts.
    pub prompts: Vec<Prompt>,
    /// There is more than was read.
    pub cut: bool,
    /// The server said that it may answer with a task.
    pub tasks: bool,
    /// Lists of the protocol that came in pages.
    pub paged: Vec<&'static str>,
}

/// A list that was read.
#[derive(Default)]
struct Pages {
    items: Vec<Value>,
    /// There was more than is read.
    cut: bool,
    /// It came in more than one page.
    several: bool,
}

impl Surface {
    /// What a list brought, and what is to be known of it.
    fn note(&mut self, method: &'static str, pages: Pages) -> Vec<Value> {
        self.cut |= pages.cut;
        self.paged.extend(pages.several.then_some(method));
        pages.items
    }

    /// The tool of this name.
    pub fn tool(&self, name: &str) -> Option<&Tool> {
        self.tools.iter().find(|tool| tool.name == name)
    }
}

/// Lists what identity A can see.
///
/// # Errors
/// The reply to the first `tools/list` that brought no list.
pub async fn list(target: &mut Target, handshake: &Handshake) -> Result<Surface, Reply> {
    let declared = |name: &str| handshake.capabilities.is_null() || handshake.capabilities.get(name).is_some();
    let extensions = handshake.capabilities.get("extensions");
    let tasks = extensions.is_some_and(|extensions| extensions.get(meta::TASKS_EXTENSION).is_some());
    let mut surface = Surface { tasks, ..Surface::default() };
    match pages(target, "tools/list", "tools").await {
        Ok(pages) => {
            for tool in surface.note("tools/list", pages).iter().filter_map(tool) {
                if surface.tool(&tool.name).is_none() {
                    surface.tools.push(tool);
                }
            }
        }
        // A server of prompts or resources alone answers "method not found" here, and may.
        Err(reply) if !declared("tools") && matches!(reply.body, Body::Error(_)) => {}
        Err(reply) => return Err(reply),
    }
    if declared("prompts") {
        let prompts = surface.note("prompts/list", pages(target, "prompts/list", "prompts").await.unwrap_or_default());
        surface.prompts = prompts.iter().filter_map(prompt).collect();
    }
    if declared("resources") {
        let templates = surface.note(
            "resources/templates/list",
            pages(target, "resources/templates/list", "resourceTemplates").await.unwrap_or_default(),
        );
        surface.templates = templates.iter().filter_map(|node| template(node, "uriTemplate")).collect();
        let resources =
            surface.note("resources/list", pages(target, "resources/list", "resources").await.unwrap_or_default());
        surface.templates.extend(resources.iter().filter_map(|node| template(node, "uri")));
    }
    Ok(surface)
}

/// All pages of a list, and whether there was more than is read. A cursor that was there before ends it: some servers
/// repeat one for ever.
async fn pages(target: &mut Target, method: &str, key: &str) -> Result<Pages, Reply> {
    let mut found: Vec<Value> = Vec::new();
    let mut cursors: Vec<Value> = Vec::new();
    for _ in 0..MAX_PAGES {
        let mut params = Object::new();
        if let Some(cursor) = cursors.last() {
            params.insert("cursor".into(), cursor.clone());
        }
        let reply = target.send(Who::A, &Call::new(method, params)).await;
        let Body::Result(result) = &reply.body else { return Err(reply) };
        let Some(items) = result.get(key).and_then(Value::as_array) else {
            let missing = Fault::NotMcp(format!("the result of {method} has no `{key}`"));
            return Err(Reply::new(reply.status, Body::Fault(missing)));
        };
        for item in items {
            if found.len() >= MAX_ITEMS {
                return Ok(Pages { items: found, cut: true, several: !cursors.is_empty() });
            }
            found.push(item.clone());
        }
        match result.get("nextCursor").filter(|cursor| cursor.is_string()) {
            Some(cursor) if !cursors.contains(cursor) => cursors.push(cursor.clone()),
            _ => return Ok(Pages { items: found, cut: false, several: !cursors.is_empty() }),
        }
    }
    Ok(Pages { items: found, cut: true, several: true })
}

/// Reads one tool of a listing.
pub(crate) fn tool(node: &Value) -> Option<Tool> {
    let text = |key: &str| node.get(key).and_then(Value::as_str).unwrap_or_default().to_owned();
    let (name, description) = (node.get("name")?.as_str()?.to_owned(), text("description"));
    let annotations = node.get("annotations").cloned().unwrap_or_default();
    Some(Tool {
        destructive: harm::destructive(&name, &description, &annotations),
        read_only: annotations.get("readOnlyHint").and_then(Value::as_bool) == Some(true),
        input: node.get("inputSchema").cloned().unwrap_or_else(|| serde_json::json!({"type": "object"})),
        output: node.get("outputSchema").cloned().unwrap_or_default(),
        name,
        description,
    })
}

fn prompt(node: &Value) -> Option<Prompt> {
    let arguments = node.get("arguments").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
    Some(Prompt {
        name: node.get("name")?.as_str()?.to_owned(),
        description: node.get("description").and_then(Value::as_str).unwrap_or_default().to_owned(),
        arguments: arguments
            .iter()
            .filter_map(|argument| {
                let required = argument.get("required").and_then(Value::as_bool).unwrap_or(false);
                Some((argument.get("name")?.as_str()?.to_owned(), required))
            })
            .collect(),
    })
}

fn template(node: &Value, key: &str) -> Option<Template> {
    let uri = node.get(key)?.as_str()?.to_owned();
    let variables = uri
        .split('{')
        .skip(1)
        .filter_map(|rest| rest.split_once('}'))
        .map(|(name, _)| name.trim_start_matches(['+', '#', '/', '.', ';', '?', '&']).trim_end_matches('*').to_owned())
        .collect();
    Some(Template { uri, variables })
}

impl Template {
    /// The URI with these values for its variables, percent-encoded; `None` where one is missing.
    pub fn expand(&self, value: impl Fn(&str) -> Option<String>) -> Option<String> {
        let mut uri = String::new();
        let mut rest = self.uri.as_str();
        while let Some((before, after)) = rest.split_once('{') {
            let (name, tail) = after.split_once('}')?;
            let reserved = name.starts_with('+') || name.starts_with('#');
            let bare = name.trim_start_matches(['+', '#', '/', '.', ';', '?', '&']).trim_end_matches('*');
            uri.push_str(before);
            uri.push_str(&percent_encoded(&value(bare)?, reserved));
            rest = tail;
        }
        uri.push_str(rest);
        Some(uri)
    }
}

/// A value as it stands in a URI; `reserved` characters stay where they are allowed to.
pub(crate) fn percent_encoded(value: &str, reserved: bool) -> String {
    let kept = |byte: u8| {
        byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) || (reserved && b":/?#[]@!$&'()*+,;=".contains(&byte))
    };
    value.bytes().map(|byte| if kept(byte) { char::from(byte).to_string() } else { format!("%{byte:02X}") }).collect()
}

const MAX_PAGES: usize = 50;
const MAX_ITEMS: usize = 5000;
