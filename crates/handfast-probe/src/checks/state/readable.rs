//! `state-readable`: do secrets, or what tells who a person is, stand legibly in a state? A state goes wherever the client and its
//! model go: into transcripts, logs and caches.

use crate::{
    check::{Check, Level, Running},
    checks, cvss,
    identity::Who,
    owasp,
    state::{
        envelope::Envelope,
        legible::{self, Legible},
    },
    trial::{Trial, strings_in},
    verdict::{Halt, Observation, Reason, Row},
};
use serde_json::Value;

use super::{
    flow::{Flow, Played, story},
    rounds::{self, Rounds},
};

/// The check.
pub(super) static CHECK: Check = Check {
    id: "state-readable",
    title: "States show secrets",
    claim: "A requestState holds a secret, or what tells who a person is, in a form that whoever carries it can read.",
    spec: "Because `requestState` passes through the client, malicious or compromised clients could attempt to modify it to alter server behavior, bypass authorization checks, or corrupt server logic.",
    spec_url: "https://modelcontextprotocol.io/specification/2026-07-28/basic/patterns/mrtr",
    help: include_str!("readable.md"),
    level: Level::Hardening,
    severity: crate::verdict::Severity::Low,
    cwe: &[312],
    cvss: &[cvss::HARDENING],
    owasp: &[owasp::MCP01, owasp::MCP10],
    run,
};

fn run<'r>(trial: &'r mut Trial<'_, '_>) -> Running<'r> {
    Box::pin(async move {
        let outcome = rounds::judge(trial, Rounds::All, of_round).await;
        checks::finish(trial, &CHECK, outcome).await
    })
}

async fn of_round(
    trial: &mut Trial<'_, '_>,
    flow: &Flow,
    own: &Played,
    observations: &mut Vec<Observation>,
) -> Result<Row, Halt> {
    let entry = flow.entry();
    // Whether a random state is refused matters to nobody here; that the honest one is accepted shows that it is no decoy.
    let (controls, random) = flow.controls(trial, own).await?;
    let issued = flow.wait_afresh(trial, Who::A).await?;
    let state = issued.state()?.to_owned();
    let earlier = legible::found(own.rounds[flow.round].state.as_deref().unwrap_or_default());
    let sent = strings_in(&Value::Object(issued.call.params.clone()));
    let mut found = legible::found(&state);
    // In every state, and not because the caller wrote it into the call.
    found.retain(|legible| {
        let is_echo = sent.iter().any(|text| text.contains(&legible.value));
        let is_kept = earlier.iter().any(|other| (&other.field, other.kind) == (&legible.field, legible.kind));
        is_kept && !is_echo && !legible.value.starts_with(crate::canary::PREFIX)
    });
    for legible in &found {
        trial.session.redactor.hide(&legible.value, "a state");
    }
    let of_a = trial.session.target.identities().of(Who::A).credential().map(str::to_owned);
    let holds_credential =
        of_a.filter(|credential| credential.len() >= SHORTEST_CREDENTIAL).is_some_and(|credential| {
            found.retain(|legible| !legible.value.contains(&credential));
            holds(&state, &credential)
        });
    if holds_credential {
        let text = format!("{entry}: the state holds A's own credential, which A has anyway, and logs should not have");
        observations.push(Observation { id: "state-holds-credential", text });
    }
    if let Some(name) = found.iter().find(|legible| legible.names_caller) {
        let text = format!("{entry}: the state names its caller by {} in {}", name.kind, name.field);
        observations.push(Observation { id: "state-names-person", text });
    }
    found.retain(|legible| !legible.names_caller);
    let Some(Legible { field, kind, .. }) = found.first() else {
        let how = match Envelope::read(&state) {
            Some(envelope) => format!("the state can be read ({})", envelope.shown()),
            None => "the state cannot be read".to_owned(),
        };
        let detail = format!("{how}, and no secret and no personal data are seen in it");
        let mut row = Row::refuted(&controls, &entry, Reason::NoSecretSeen, detail);
        row.story = story(&[own, &random]);
        return Ok(row);
    };
    let at = if field.is_empty() { "its text" } else { field.as_str() };
    let detail = format!("whoever carries the state reads {kind} in {at}");
    let mut row = Row::confirmed(&controls, &entry, Reason::SecretInState, CHECK.severity, detail);
    let all: Vec<Value> = found.iter().map(|legible| format!("{}: {}", legible.field, legible.kind).into()).collect();
    row.facts.insert("legible".into(), all.into());
    row.story = story(&[own, &random]);
    Ok(row)
}

/// Whether a text stands in a state, in its document or as it is.
fn holds(state: &str, text: &str) -> bool {
    let inside = |envelope: Envelope| strings_in(&envelope.value()).iter().any(|inner| inner.contains(text));
    state.contains(text) || Envelope::read(state).is_some_and(inside)
}

/// A shorter one is a name, and no secret.
const SHORTEST_CREDENTIAL: usize = 16;
