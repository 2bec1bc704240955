//! The multi round-trip: ask with a state, take the answers and the state back, go on or ask again.

use handfast_wire::{message::Object, meta};
use serde_json::{Value, json};

use crate::{
    answer::{self, Refused},
    caller::Principal,
    conform::Capabilities,
    manner::Asks,
    question::{self, Judged, Question},
    server::Server,
    state::{BadState, Claims, Retry, STATE_LIFETIME},
    workspaces::Workspace,
};

/// The request that wants something done.
pub(crate) struct Origin<'a> {
    pub(crate) caller: &'a Principal,
    pub(crate) client: &'a Capabilities<'a>,
    pub(crate) params: &'a Object,
    pub(crate) method: &'a str,
    pub(crate) tool: &'a str,
    /// The digest of the arguments.
    pub(crate) arguments: String,
    pub(crate) reason: Option<String>,
    pub(crate) workspace: &'a Workspace,
}

/// Where the round-trip stands.
pub(crate) enum Trip {
    /// All questions are answered: do what the state says, with what was said besides.
    Agreed(Claims, Option<String>),
    /// The user said no, in these words.
    Undone(&'static str),
    /// An `InputRequiredResult` to send.
    Asking(Value),
    /// A message for a tool result with `isError`.
    Failed(String),
}

/// Takes the round-trip one step further.
pub(crate) fn step(server: &Server, origin: &Origin<'_>) -> Result<Trip, Refused> {
    let answers = match origin.params.get("inputResponses") {
        None => &Object::new(),
        Some(Value::Object(answers)) => answers,
        Some(_) => return Err(Refused::params("`inputResponses` must be an object")),
    };
    let now = server.clock.seconds();
    let claims = match origin.params.get("requestState") {
        // Answers without a state are answers to a question that was never asked.
        None if answers.is_empty() || server.guards.waits_to_be_asked() => {
            return ask(server, origin, first(server, origin));
        }
        None => first(server, origin),
        Some(Value::String(presented)) => match server.guards.open(presented, &retry(server, origin, now)) {
            Ok(claims) => claims,
            Err(bad) => return unused(server, origin, bad),
        },
        Some(_) => return Err(Refused::params("`requestState` must be a string")),
    };
    let asks = server.manner().asks;
    let mut said = None;
    let about = Some(origin.workspace.handle.as_str()).filter(|_| server.guards.compares_name());
    for question in question::of_round(asks, claims.round) {
        match question.judge(answers.get(question.key()), about) {
            Judged::Yes(words) => said = words.or(said),
            Judged::No(why) if server.guards.heeds(why) => return Ok(Trip::Undone(why)),
            Judged::No(_) => {}
            Judged::Missing => return ask(server, origin, Claims { exp: now + STATE_LIFETIME, ..claims }),
            // The older form answers inside the tool result.
            Judged::Wrong(message) if asks == Asks::Bare => return Ok(Trip::Failed(message)),
            Judged::Wrong(message) => return Err(Refused::params(message)),
        }
    }
    if claims.round < question::rounds(asks) {
        return ask(server, origin, Claims { round: claims.round + 1, exp: now + STATE_LIFETIME, ..claims });
    }
    // Only now: a state that comes back without answers is asked about again, and is still good.
    match server.guards.once(server.uses_first(&claims)) {
        Ok(()) => Ok(Trip::Agreed(claims, said)),
        Err(bad) => unused(server, origin, bad),
    }
}

/// How it is met that a state is not used.
fn unused(server: &Server, origin: &Origin<'_>, bad: BadState) -> Result<Trip, Refused> {
    match bad {
        BadState::Invalid => Err(Refused::params("invalid requestState")),
        BadState::Told(message) => Ok(Trip::Failed(message)),
        BadState::Ignored => ask(server, origin, first(server, origin)),
    }
}

fn retry<'r>(server: &'r Server, origin: &'r Origin<'_>, now: u64) -> Retry<'r> {
    Retry {
        caller: origin.caller,
        method: origin.method,
        tool: origin.tool,
        arguments: &origin.arguments,
        workspace_id: &origin.workspace.handle,
        items: origin.workspace.items(),
        now,
        key: &server.key,
    }
}

fn first(server: &Server, origin: &Origin<'_>) -> Claims {
    Claims {
        principal: origin.caller.to_string(),
        workspace_id: origin.workspace.handle.clone(),
        items: origin.workspace.items(),
        method: origin.method.to_owned(),
        tool: origin.tool.to_owned(),
        arguments: origin.arguments.clone(),
        round: 1,
        reason: origin.reason.clone().filter(|_| server.manner().keeps_reason),
        exp: server.clock.seconds() + STATE_LIFETIME,
        nonce: server.guards.nonce(origin.caller),
    }
}

fn ask(server: &Server, origin: &Origin<'_>, claims: Claims) -> Result<Trip, Refused> {
    let questions = question::of_round(server.manner().asks, claims.round);
    if server.guards.minds_capabilities() {
        declared(questions, origin.client)?;
    }
    let about = format!("{} of {} items", origin.tool, claims.items);
    let requests: Object = questions
        .iter()
        .map(|question| (question.key().to_owned(), question.request(&about, &claims.workspace_id)))
        .collect();
    let state = server.guards.seal(&claims, &server.key);
    Ok(Trip::Asking(answer::result("input_required", json!({"inputRequests": requests, "requestState": state}))))
}

/// "Servers MUST NOT send an `inputRequests` that the client has not declared support for in its capabilities."
fn declared(questions: &[Question], client: &Capabilities<'_>) -> Result<(), Refused> {
    let missing: Object = questions
        .iter()
        .filter(|question| !question.answerable(client))
        .map(|question| question.requires())
        .map(|(name, modes)| (name.to_owned(), modes))
        .collect();
    if missing.is_empty() {
        return Ok(());
    }
    Err(Refused::protocol(meta::MISSING_CAPABILITY, 400, "a client capability is needed")
        .with_data(json!({"requiredCapabilities": missing})))
}
