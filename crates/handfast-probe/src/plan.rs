//! What a run would do to a server: the calls that it begins with, by whom and with which arguments, and who calls what after
//! that. Nothing of it is done but the listing.

use serde_json::Value;

use crate::{
    arguments::{self, Wish},
    canary::Canaries,
    clock::Deadline,
    discovery,
    identity::Who,
    runner::{Run, Unusable},
    trial::Session,
    verdict::Halt,
};

/// What a run would do.
#[derive(Debug, Clone)]
pub struct Plan {
    /// The calls that it begins with, each as A and as B.
    pub calls: Vec<Planned>,
    /// Who else calls, after that, and what for.
    pub others: Vec<(&'static str, &'static str)>,
}

/// A call that a run would make.
#[derive(Debug, Clone)]
pub struct Planned {
    /// For example `tools/call open_basket`.
    pub call: String,
    /// Its arguments, or why there are none.
    pub arguments: Result<Value, String>,
    /// Why it is left out, if it is.
    pub left_out: Option<String>,
}

impl Run {
    /// Lists the server, and says what a run would do, without doing any of it.
    ///
    /// # Errors
    /// As [`Run::discover`].
    pub async fn plan(&self, progress: &dyn Fn(&str)) -> Result<Result<Plan, Halt>, Unusable> {
        let deadline = Deadline::after(self.max_time);
        let (target, _, surface) = match self.open(deadline).await? {
            Ok(opened) => opened,
            Err(halt) => return Ok(Err(self.cleaned(halt))),
        };
        let session = self.session(target, surface, deadline, progress);
        let plan = Plan { calls: calls(&session), others: others(self) };
        session.close().await;
        Ok(Ok(plan))
    }
}

fn calls(session: &Session<'_>) -> Vec<Planned> {
    let mut canaries = Canaries::new();
    let planned = |call: String, arguments: Result<Value, String>| Planned { call, arguments, left_out: None };
    let mut calls = Vec::new();
    for tool in discovery::candidates(&session.surface, |tool| session.may_call(tool)) {
        let canary = canaries.fresh(Who::A);
        let mut fixed = session.profile.fixed(&tool.name);
        for argument in discovery::required(tool) {
            if discovery::names::names_a_handle(&argument) {
                fixed.entry(argument).or_insert_with(|| Value::from(HANDLE));
            }
        }
        let wish = Wish { canary: Some(&canary), fixed, optional_text: true };
        let arguments = arguments::synthesise(&tool.input, &wish).map(Value::Object);
        calls.push(planned(format!("tools/call {}", tool.name), arguments));
    }
    for prompt in &session.surface.prompts {
        let arguments: serde_json::Map<String, Value> = prompt
            .arguments
            .iter()
            .filter(|(_, required)| *required)
            .map(|(name, _)| (name.clone(), Value::from(HANDLE)))
            .collect();
        calls.push(planned(format!("prompts/get {}", prompt.name), Ok(Value::Object(arguments))));
    }
    for template in &session.surface.templates {
        calls.push(planned(format!("resources/read {}", template.uri), Ok(Value::Object(Default::default()))));
    }
    let left_out = session.surface.tools.iter().filter(|tool| !session.may_call(tool));
    calls.extend(left_out.map(|tool| Planned {
        call: format!("tools/call {}", tool.name),
        arguments: Err("not called".to_owned()),
        left_out: session.why_not(tool),
    }));
    calls
}

/// Callers besides A and B, and what they try.
fn others(run: &Run) -> Vec<(&'static str, &'static str)> {
    let chosen = |start: &str| run.checks.iter().any(|check| check.id.starts_with(start));
    let mut others = Vec::new();
    if chosen("handle-") || chosen("state-") || chosen("token-") {
        others.push((
            Who::Nobody.label(),
            "the minting and the asking calls, and what is A's: handles, ids of tasks and of sessions",
        ));
        others.push((Who::Impostor.label(), "the minting and the asking calls"));
    }
    let named = Who::NAMED.into_iter().chain(Who::FORGED).filter(|who| run.identities.has(*who));
    others.extend(named.map(|who| (who.label(), "what A does, also with what is A's")));
    if chosen("session-") {
        others.push((Who::B.label(), "GET and DELETE on sessions of A's, where there are sessions"));
    }
    others
}

/// Stands for what is not minted yet.
const HANDLE: &str = "<handle>";
