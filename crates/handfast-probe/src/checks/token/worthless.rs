//! Tokens that are real and worth nothing here: for another server, for the client itself, or of yesterday. Each is an
//! identity of the profile, and one experiment.

use crate::{
    check::{Check, Level, Running},
    checks, cvss,
    identity::Who,
    owasp,
    trial::Trial,
    verdict::{Halt, Judgement, Reason, Row, Severity, Verdict},
};

use super::{
    said,
    scene::{self, Door, Words},
};

const SPEC: &str = "MCP servers MUST validate that access tokens were issued specifically for them as the intended audience, according to RFC 8707 Section 2.";
const SPEC_URL: &str = "https://modelcontextprotocol.io/specification/2025-11-25/basic/authorization";

/// For another server.
pub(super) static FOREIGN_AUDIENCE: Check = Check {
    id: "token-foreign-audience",
    title: "Tokens for another server are taken",
    claim: "A token of A's that was issued for another server lets A in.",
    spec: SPEC,
    spec_url: SPEC_URL,
    help: include_str!("foreign_audience.md"),
    level: Level::Must,
    severity: Severity::High,
    cwe: &[287, 863],
    cvss: &[cvss::TAKEN],
    owasp: &[owasp::MCP07, owasp::API2, owasp::ASI03],
    run: foreign_audience,
};

/// For the client itself.
pub(super) static CLIENT_AUDIENCE: Check = Check {
    id: "token-client-id-audience",
    title: "Tokens for the client are taken",
    claim: "A token of A's whose audience is the OAuth client, as that of an ID token is, lets A in.",
    spec: SPEC,
    spec_url: SPEC_URL,
    help: include_str!("client_id_audience.md"),
    level: Level::Must,
    severity: Severity::High,
    cwe: &[287, 863],
    cvss: &[cvss::TAKEN],
    owasp: &[owasp::MCP07, owasp::API2, owasp::ASI03],
    run: client_audience,
};

/// Of yesterday.
pub(super) static EXPIRED: Check = Check {
    id: "token-expired",
    title: "Expired tokens are taken",
    claim: "A token of A's whose time is over lets A in.",
    spec: "Invalid or expired tokens MUST receive a HTTP 401 response.",
    spec_url: SPEC_URL,
    help: include_str!("expired.md"),
    level: Level::Must,
    severity: Severity::High,
    cwe: &[613, 287],
    cvss: &[cvss::TAKEN_WITH_LUCK],
    owasp: &[owasp::MCP07, owasp::API2],
    run: expired,
};

fn foreign_audience<'r>(trial: &'r mut Trial<'_, '_>) -> Running<'r> {
    Box::pin(async move {
        let outcome = audience(trial, Who::WrongAudience, Reason::NeedsIdentityWrongAudience, "another server").await;
        let outcome = match outcome {
            Ok(judgement) => nearly(trial, judgement).await,
            Err(halt) => Err(halt),
        };
        checks::finish(trial, &FOREIGN_AUDIENCE, outcome).await
    })
}

fn client_audience<'r>(trial: &'r mut Trial<'_, '_>) -> Running<'r> {
    Box::pin(async move {
        let reason = Reason::NeedsIdentityClientIdAudience;
        let outcome = audience(trial, Who::ClientIdAudience, reason, "the client itself").await;
        checks::finish(trial, &CLIENT_AUDIENCE, outcome).await
    })
}

fn expired<'r>(trial: &'r mut Trial<'_, '_>) -> Running<'r> {
    Box::pin(async move {
        let outcome = of_yesterday(trial).await;
        checks::finish(trial, &EXPIRED, outcome).await
    })
}

async fn audience(trial: &mut Trial<'_, '_>, who: Who, missing: Reason, whom: &str) -> Result<Judgement, Halt> {
    let words = Words {
        taken: Reason::ForeignTokenTaken,
        severity: FOREIGN_AUDIENCE.severity,
        what: if who == Who::WrongAudience { "a token for another server" } else { "a token for the client itself" },
    };
    // What a token says of itself must be what the profile says of it: else its refusal shows nothing, or its acceptance.
    let unfit = |trial: &Trial<'_, '_>| {
        if said::says_expired(trial, who) == Some(true) {
            return Some(format!("the token for {whom} has expired: it would be refused whatever its audience"));
        }
        let (own, its) = (said::audiences(trial, Who::A)?, said::audiences(trial, who)?);
        let shared = its.iter().any(|audience| own.contains(audience));
        shared.then(|| format!("the token for {whom} has an audience of A's own token"))
    };
    let mut judgement = try_it(trial, who, missing, &words, unfit).await?;
    match scene::enter_session(trial).await {
        Ok(Some(door)) => judgement.rows.push(at(trial, &door, who, &words).await),
        Ok(None) => {}
        Err(halt) => judgement.rows.push(Row::halted("in a session of A's", halt)),
    }
    attached(trial, who, &words, judgement).await
}

/// The same at the stream of a session, which is another way in.
async fn attached(
    trial: &mut Trial<'_, '_>,
    who: Who,
    words: &Words,
    mut judgement: Judgement,
) -> Result<Judgement, Halt> {
    if let Some(door) = scene::enter_stream(trial).await? {
        judgement.rows.push(at(trial, &door, who, words).await);
    }
    Ok(Judgement::over(judgement.rows, judgement.observations))
}

/// The same elsewhere than at a first call.
async fn at(trial: &mut Trial<'_, '_>, door: &Door, who: Who, words: &Words) -> Row {
    let tried = match door.controls() {
        Ok(controls) => scene::subject(trial, door, who).await.map(|subject| (controls, subject)),
        Err(halt) => Err(halt),
    };
    match tried {
        Ok((controls, subject)) => scene::row(trial, door, &controls, &subject, words),
        Err(halt) => Row::halted(&door.entry(), halt),
    }
}

/// The same with audiences that are nearly right, where an issuer gave tokens for them: each is a row of its own.
async fn nearly(trial: &mut Trial<'_, '_>, judgement: Judgement) -> Result<Judgement, Halt> {
    let mut rows = judgement.rows;
    for who in Who::NEARLY {
        if !trial.session.target.identities().has(who) {
            continue;
        }
        let (own, its) = (said::audiences(trial, Who::A), said::audiences(trial, who));
        // An issuer may have given a token for the right server, whatever it was asked for: only what a token says of itself
        // shows whom it is for.
        let says = match who {
            Who::NoAudience => {
                own.is_some() && said::claims(trial, who).is_some_and(|claims| !claims.contains_key("aud"))
            }
            _ => own.is_some() && its.is_some(),
        };
        if !says || its.iter().flatten().any(|audience| own.iter().flatten().any(|own| own == audience)) {
            continue;
        }
        let what = match who {
            Who::NoAudience => "a token for no server in particular",
            Who::LongerAudience => "a token for a server whose URI is a little longer",
            Who::LowerAudience => "a token for a place below the server's",
            _ => "a token for the server's path in other case",
        };
        let words = Words { taken: Reason::ForeignTokenTaken, severity: FOREIGN_AUDIENCE.severity, what };
        let row = match try_it(trial, who, Reason::NeedsIdentityWrongAudience, &words, |_| None).await {
            Ok(judgement) => judgement.rows.into_iter().next(),
            Err(halt) => Some(Row::halted(who.label(), halt)),
        };
        rows.extend(row.map(|row| Row { entry: format!("{}, by {}", row.entry, who.label()), ..row }));
    }
    Ok(Judgement::over(rows, judgement.observations))
}

async fn of_yesterday(trial: &mut Trial<'_, '_>) -> Result<Judgement, Halt> {
    let words = Words { taken: Reason::ExpiredTokenTaken, severity: EXPIRED.severity, what: "an expired token" };
    let unfit = |trial: &Trial<'_, '_>| match said::seconds_since_expiry(trial, Who::Expired)? {
        over if over < 0 => Some("the token that the profile calls expired says that it is not".to_owned()),
        over if over < LEEWAY => {
            Some("the token has expired a moment ago: some minutes of leeway are usual".to_owned())
        }
        _ => None,
    };
    let judgement = try_it(trial, Who::Expired, Reason::NeedsIdentityExpired, &words, unfit).await?;
    attached(trial, Who::Expired, &words, judgement).await
}

/// How many seconds a server may take a token for longer.
const LEEWAY: i64 = 5 * 60;

async fn try_it(
    trial: &mut Trial<'_, '_>,
    who: Who,
    missing: Reason,
    words: &Words,
    unfit: impl Fn(&Trial<'_, '_>) -> Option<String>,
) -> Result<Judgement, Halt> {
    scene::real(trial)?;
    if !trial.session.target.identities().has(who) {
        let detail = format!(
            "give such a token of A's in the profile, as [identities.{}]",
            missing.slug().trim_start_matches("needs-identity:")
        );
        return Err(Halt::skipped(missing, detail));
    }
    if let Some(why) = unlike(trial, who).or_else(|| unfit(trial)) {
        return Err(Halt::skipped(missing, why));
    }
    let door = scene::enter(trial).await?;
    let controls = door.controls()?;
    let subject = scene::subject(trial, &door, who).await?;
    let mut rows = match scene::enter_opening(trial).await? {
        Some(door) => vec![at(trial, &door, who, words).await],
        None => Vec::new(),
    };
    let mut row = scene::row(trial, &door, &controls, &subject, words);
    if row.verdict == Verdict::Refuted && said::claims(trial, who).is_none() {
        row.detail.push_str("; the token says nothing of itself: look that it is what the profile says it is");
    }
    rows.insert(0, row);
    Ok(Judgement::over(rows, Vec::new()))
}

/// Why a token is none of A's issuer, by its own word: it would be refused for that.
fn unlike(trial: &Trial<'_, '_>, who: Who) -> Option<String> {
    let (own, its) = (said::claims(trial, Who::A), said::claims(trial, who));
    let (own, its) = match (own, its) {
        (Some(own), Some(its)) => (own, its),
        (None, None) => return None,
        // What is issued for a client is one where access tokens are none.
        (None, Some(_)) if who == Who::ClientIdAudience => return None,
        _ => {
            return Some(
                "of this token and A's own, one alone is a JSON Web Token: it is not from A's issuer".to_owned(),
            );
        }
    };
    // It may be another subject's: a grant gives clients tokens of their own.
    match (own.get("iss"), its.get("iss")) {
        (Some(own), Some(its)) if own != its => {
            Some("this token has another `iss` than A's own: it would be refused for that".to_owned())
        }
        _ => None,
    }
}
