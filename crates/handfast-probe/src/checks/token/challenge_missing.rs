//! `challenge-missing`: does a refusal lead to the server's metadata, or do they stand where everybody looks?

use serde_json::Value;

use crate::{
    check::{Check, Level, Running},
    checks, cvss,
    identity::Who,
    owasp,
    trial::Trial,
    verdict::{Halt, Judgement, Reason, Row, Severity},
};

use super::{said, scene};

/// The check.
pub(super) static CHECK: Check = Check {
    id: "challenge-missing",
    title: "Refusals do not say where tokens come from",
    claim: "A call without a token is answered with 401, and neither the answer nor a well-known page leads to the server's metadata.",
    spec: "MCP servers MUST implement one of the following discovery mechanisms to provide authorization server location information to MCP clients",
    spec_url: "https://modelcontextprotocol.io/specification/2025-11-25/basic/authorization",
    help: include_str!("challenge_missing.md"),
    level: Level::Must,
    severity: Severity::Low,
    cwe: &[1059],
    cvss: &[cvss::LOST],
    owasp: &[owasp::API2, owasp::MCP07],
    run,
};

fn run<'r>(trial: &'r mut Trial<'_, '_>) -> Running<'r> {
    Box::pin(async move {
        let outcome = judge(trial).await;
        checks::finish(trial, &CHECK, outcome).await
    })
}

async fn judge(trial: &mut Trial<'_, '_>) -> Result<Judgement, Halt> {
    let door = scene::enter(trial).await?;
    let controls = door.any_controls()?;
    let without = scene::knock(trial, "no-token", Who::Nobody, &door).await?;
    if without.reply.status != Some(401) {
        let detail = format!("a call without a token is not answered with 401: {}", without.said());
        return Err(without.lost().unwrap_or_else(|| Halt::skipped(Reason::NothingWasRefused, detail)));
    }
    let challenge = trial.session.target.challenge().unwrap_or_default().to_owned();
    let mut story = vec![door.own.step, without.step];
    let place = leads_to(&challenge).filter(|place| trial.session.target.can_lead_to(place));
    let row = if let Some(place) = place {
        // What is at this very server is looked at; where it leads elsewhere, nobody is asked.
        if let Some(path) = place.strip_prefix(&origin(trial)).filter(|path| path.starts_with('/')) {
            let (step, answer) = trial.page("metadata", Who::Nobody, path).await?;
            story.push(step);
            let found = answer.is_ok_and(|(status, text)| status == 200 && describes(&text));
            if !found {
                let detail = format!("401 leads to {}, and there are no metadata", trial.clean(&place));
                let row = Row::confirmed(&controls, &door.entry(), Reason::NoChallenge, CHECK.severity, detail);
                return Ok(Judgement::over(vec![Row { story, ..row }], Vec::new()));
            }
        }
        let detail = format!("the refusal leads to the metadata: {}", trial.clean(&challenge));
        Row::refuted(&controls, &door.entry(), Reason::ChallengeThere, detail)
    } else {
        let path = trial.session.target.path();
        let mut found = None;
        for page in [format!("{WELL_KNOWN}{}", path.trim_end_matches('/')), WELL_KNOWN.to_owned()] {
            let (step, answer) = trial.page("metadata", Who::Nobody, &page).await?;
            story.push(step);
            let (status, text) = answer.map_err(|fault| Halt::errored(Reason::Unclear, fault.to_string()))?;
            if (300..400).contains(&status) || (500..600).contains(&status) || status == 429 {
                return Err(Halt::errored(Reason::Unclear, format!("GET {page} is answered with HTTP {status}")));
            }
            if status == 200 && describes(&text) {
                found = Some(page);
                break;
            }
        }
        match found {
            Some(page) => {
                let detail = format!("the metadata stand at {page}");
                Row::refuted(&controls, &door.entry(), Reason::ChallengeThere, detail)
            }
            None if !speaks_oauth(trial, &challenge, &mut story).await? => {
                let detail = "401 leads to no metadata; but nothing shows that tokens come from an OAuth issuer here, and where they \
                              do not, there is nothing to lead to";
                return Err(Halt::skipped(Reason::NoOauthSeen, detail));
            }
            None => {
                let shown = if challenge.is_empty() { "no challenge".to_owned() } else { trial.clean(&challenge) };
                let detail = format!("401 with {shown}, and no metadata at the well-known places");
                Row::confirmed(&controls, &door.entry(), Reason::NoChallenge, CHECK.severity, detail)
            }
        }
    };
    let row = Row { story, ..row };
    Ok(Judgement::over(vec![row], Vec::new()))
}

/// Where a challenge leads: `resource_metadata`, with blanks or without, in quotes or not.
fn leads_to(challenge: &str) -> Option<String> {
    let at = challenge.to_ascii_lowercase().find("resource_metadata")?;
    let value = challenge[at + "resource_metadata".len()..].trim_start().strip_prefix('=')?.trim_start();
    let value = match value.strip_prefix('"') {
        Some(quoted) => quoted.split('"').next()?,
        None => value.split([',', ' ']).next()?,
    };
    (!value.is_empty()).then(|| value.to_owned())
}

/// The origin that is probed.
fn origin(trial: &Trial<'_, '_>) -> String {
    let (endpoint, path) = (trial.session.target.endpoint(), trial.session.target.path());
    endpoint.strip_suffix(&path).unwrap_or(&endpoint).to_owned()
}

/// Whether tokens come from an OAuth issuer: A's names one, the challenge speaks of tokens as RFC 6750 does, or an issuer's
/// metadata stand at this origin, as the revision of 2025-03-26 wanted them.
async fn speaks_oauth(trial: &mut Trial<'_, '_>, challenge: &str, story: &mut Vec<usize>) -> Result<bool, Halt> {
    let names_issuer = said::claims(trial, Who::A).is_some_and(|claims| claims.contains_key("iss"));
    if names_issuer || ["error=", "scope="].iter().any(|parameter| challenge.contains(parameter)) {
        return Ok(true);
    }
    for page in ISSUERS {
        let (step, answer) = trial.page("issuer", Who::Nobody, page).await?;
        let told = answer.ok().filter(|(status, _)| *status == 200);
        let told = told.and_then(|(_, text)| serde_json::from_str::<Value>(&text).ok());
        if told.is_some_and(|told| told.get("issuer").is_some_and(Value::is_string)) {
            story.push(step);
            return Ok(true);
        }
    }
    Ok(false)
}

/// Whether this is the metadata of a protected resource (RFC 9728): what a client needs to find an issuer.
fn describes(text: &str) -> bool {
    let Ok(told) = serde_json::from_str::<Value>(text) else { return false };
    let issuers = told.get("authorization_servers").and_then(Value::as_array);
    told.get("resource").is_some_and(Value::is_string) && issuers.is_some_and(|issuers| !issuers.is_empty())
}

const ISSUERS: [&str; 2] = ["/.well-known/oauth-authorization-server", "/.well-known/openid-configuration"];
const WELL_KNOWN: &str = "/.well-known/oauth-protected-resource";
