//! What the specification demands of every request of 2026-07-28, whatever the method and whatever the transport.

use handfast_wire::{message::Object, meta};
use serde_json::{Value, json};

use crate::{answer::Refused, manner::Manner};

/// Every method that is implemented. All others do not exist.
pub(crate) const METHODS: [&str; 12] = [
    "server/discover",
    "tools/list",
    "tools/call",
    "prompts/list",
    "prompts/get",
    "resources/list",
    "resources/templates/list",
    "resources/read",
    "tasks/get",
    "tasks/update",
    "tasks/cancel",
    "tasks/list",
];

/// What the client declared on this request. "Servers MUST NOT infer capabilities from prior requests."
pub(crate) struct Capabilities<'p>(&'p Object);

impl Capabilities<'_> {
    /// `elicitation: {}` means form only.
    pub(crate) fn form(&self) -> bool {
        match self.0.get("elicitation").and_then(Value::as_object) {
            Some(modes) => modes.contains_key("form") || !modes.contains_key("url"),
            None => false,
        }
    }

    pub(crate) fn url(&self) -> bool {
        self.0.get("elicitation").is_some_and(|modes| modes.get("url").is_some_and(Value::is_object))
    }

    pub(crate) fn has(&self, name: &str) -> bool {
        self.0.get(name).is_some_and(Value::is_object)
    }

    pub(crate) fn tasks(&self) -> bool {
        self.0.get("extensions").is_some_and(|extensions| extensions.get(meta::TASKS_EXTENSION).is_some())
    }
}

/// Checks that the method exists.
pub(crate) fn method(method: &str, manner: Manner) -> Result<(), Refused> {
    let offered = match method {
        "tasks/list" => manner.lists_tasks,
        method => manner.answers_with_tasks || !method.starts_with("tasks/"),
    };
    if METHODS.contains(&method) && offered {
        Ok(())
    } else {
        Err(Refused::protocol(meta::METHOD_NOT_FOUND, 404, format!("method not found: {method}")))
    }
}

/// Checks `_meta`: its two required keys are there, and the version is ours.
pub(crate) fn metadata(params: &Object) -> Result<Capabilities<'_>, Refused> {
    let missing = |what: &str| Refused::protocol(meta::INVALID_PARAMS, 400, format!("`_meta` lacks {what}"));
    let version = version_of(params).ok_or_else(|| missing(meta::PROTOCOL_VERSION))?;
    let capabilities = entry(params, meta::CLIENT_CAPABILITIES)
        .and_then(Value::as_object)
        .ok_or_else(|| missing(meta::CLIENT_CAPABILITIES))?;
    if version != meta::MODERN {
        let data = json!({"supported": [meta::MODERN], "requested": version});
        return Err(Refused::protocol(meta::UNSUPPORTED_VERSION, 400, "unsupported protocol version").with_data(data));
    }
    Ok(Capabilities(capabilities))
}

/// The version that the body claims.
pub(crate) fn version_of(params: &Object) -> Option<&str> {
    entry(params, meta::PROTOCOL_VERSION)?.as_str()
}

/// Who the body claims to be from; a convention on stdio only.
pub(crate) fn principal_of(params: &Object) -> Option<&str> {
    entry(params, meta::PRINCIPAL)?.as_str().filter(|name| !name.is_empty())
}

/// There is one page of everything, so there are no cursors.
pub(crate) fn no_cursor(params: &Object) -> Result<(), Refused> {
    match params.get("cursor") {
        None => Ok(()),
        Some(_) => Err(Refused::params("invalid cursor")),
    }
}

fn entry<'p>(params: &'p Object, key: &str) -> Option<&'p Value> {
    params.get("_meta")?.get(key)
}
