//! A header that repeats an argument (`x-mcp-header`): whoever stands in front of a server may read it in place of the body.

use handfast_wire::{headers as wire, message::Request};
use serde_json::Value;

use crate::{
    answer::Refused,
    caller::Principal,
    http::{Headers, mismatch},
    server::Server,
    tools::UNKNOWN_HANDLE,
    workspaces::Door,
};

/// What the header of `read_workspace` is called, after `Mcp-Param-`.
pub(crate) const HEADER: &str = "Workspace";

/// Whether the header and the body of a call name the same workspace.
pub(crate) fn agree(server: &Server, caller: &Principal, headers: &Headers, request: &Request) -> Result<(), Refused> {
    let is_mirrored =
        server.manner().mirrors && wire::name_of(&request.method, &request.params) == Some("read_workspace");
    let named = request.params.get("arguments").and_then(|arguments| arguments.get("workspace_id"));
    let Some(named) = named.and_then(Value::as_str).filter(|_| is_mirrored) else { return Ok(()) };
    let name = format!("{}{HEADER}", wire::PARAM_PREFIX);
    let given = headers.one(&name).ok_or_else(|| mismatch(format!("{name} is missing, or there twice")))?;
    let given = wire::decode(given).map_err(|error| mismatch(format!("{name}: {error}")))?;
    if !server.guards.compares_headers() {
        // FLAW: the one in front asks whose the handle in the header is, and the one behind believes it and reads the body.
        let mut keeper = server.keeper();
        let admitted = keeper.at(&given).is_some_and(|workspace| workspace.admits(Door::Read, caller));
        return admitted.then_some(()).ok_or_else(|| Refused::params(UNKNOWN_HANDLE));
    }
    // "Servers that process the request body MUST reject requests where the values specified in the headers do not match."
    if given == named { Ok(()) } else { Err(mismatch(format!("{name} differs from the body"))) }
}
