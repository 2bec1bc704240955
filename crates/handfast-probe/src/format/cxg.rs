//! The report in the shape of a published check that people have wired into an engine: one JSON object with `findings` and
//! `metadata.status`, and the words that their pipelines look for in `metadata.detail`.

use serde_json::{Map, Value, json};

use crate::{
    evidence::Step,
    report::{CheckReport, EntryPoint, Report},
    verdict::{Reason, Verdict},
};

/// Writes the report.
pub fn write(report: &Report) -> String {
    let handle = report.checks.iter().find(|check| check.id == "handle-foreign-principal");
    let state = report.checks.iter().find(|check| check.id == "state-tampered");
    let present = || handle.into_iter().chain(state);
    let status = [Verdict::Confirmed, Verdict::Errored, Verdict::Refuted, Verdict::Skipped]
        .into_iter()
        .find(|verdict| present().any(|check| check.verdict == *verdict))
        .unwrap_or(Verdict::Skipped);
    let findings: Vec<Value> = present()
        .filter(|check| check.verdict == Verdict::Confirmed)
        .filter_map(|check| finding(report, check))
        .collect();
    document(status.word(), &detail(report, status, handle, state), findings)
}

/// The shape for a run that could not begin: wrong arguments.
pub fn errored(detail: &str) -> String {
    document(Verdict::Errored.word(), detail, Vec::new())
}

fn document(status: &str, detail: &str, findings: Vec<Value>) -> String {
    let metadata = json!({
        "id": ID,
        "name": NAME,
        "severity": "high",
        "cwe": CWE,
        "tool": format!("handfast {}", env!("CARGO_PKG_VERSION")),
        "status": status,
        "detail": detail,
    });
    let document = json!({"findings": findings, "metadata": metadata});
    serde_json::to_string_pretty(&document).map(|text| text + "\n").unwrap_or_default()
}

fn detail(report: &Report, status: Verdict, handle: Option<&CheckReport>, state: Option<&CheckReport>) -> String {
    let Some(handshake) = &report.handshake else {
        let check = handle.or(state);
        let (reason, said) = check.map_or((Reason::ProbeBug, ""), |check| (check.reason, check.detail.as_str()));
        let slug = match reason {
            Reason::NoServerAnswered => "no-mcp-server-answered",
            Reason::TargetNotExecutable => "stdio-target-not-executable",
            other => other.slug(),
        };
        return format!("{slug}({said})");
    };
    let surface = format!(
        "endpoint={} handshake={} tools={} identities={} transport={}",
        report.target.endpoint.as_ref().unwrap_or(&report.target.address),
        handshake.era,
        handshake.tools,
        handshake.identities,
        report.target.transport,
    );
    let joint = format!(
        "handle-binding: {} | requestState: {} | {surface}",
        handle.map(handle_detail).unwrap_or_default(),
        state.map(state_detail).unwrap_or_default()
    );
    if status == Verdict::Skipped { format!("pre-stateless-core-or-no-probe-precondition | {joint}") } else { joint }
}

fn handle_detail(check: &CheckReport) -> String {
    let point = deciding(check);
    let at = point.map(|point| format!(" at {}", point.row.entry)).unwrap_or_default();
    let said = &check.detail;
    match check.reason {
        Reason::HandleNotBound => {
            format!(
                "handle-not-bound-to-principal({said}; forged-handle-control={}){at}",
                outcome_of(point, "forged-handle", check)
            )
        }
        Reason::HandleBound => {
            format!("handle-bound({said}; forged-handle-control={}){at}", outcome_of(point, "forged-handle", check))
        }
        Reason::HandleWitnessUnusable => format!("handle-witness-unusable(forged-handle-honoured; {said}){at}"),
        Reason::CrossUseUnattributable => format!("handle-cross-use-accepted-but-unattributable({said}){at}"),
        Reason::NoToolConsumesAHandle => format!("no-tool-consumes-a-handle-shaped-argument({said})"),
        Reason::NoToolMintsAHandle => format!("no-tool-minted-a-handle-that-another-tool-consumes({said})"),
        Reason::SecondIdentityNotLive => format!("second-identity-could-not-use-its-own-handle({said}){at}"),
        other => format!("{}({said}){at}", other.slug()),
    }
}

fn state_detail(check: &CheckReport) -> String {
    let point = deciding(check);
    let at = point.map(|point| format!(" at {}", point.row.entry)).unwrap_or_default();
    let said = &check.detail;
    let controls =
        format!("untouched-retry=accepted; random-blob-control={}", outcome_of(point, "random-state", check));
    match check.reason {
        Reason::AlteredStateAccepted => format!("requestState-echoed-back-unbound({said}; {controls}){at}"),
        Reason::StateNotAuthenticated => format!("requestState-not-integrity-protected({said}; {controls}){at}"),
        Reason::StateIntegrityHeld => format!("requestState-integrity-held({said}; {controls}){at}"),
        Reason::StateWitnessUnusable => format!("state-witness-unusable(random-blob-accepted; {said}){at}"),
        Reason::NothingReturnedInputRequired => format!("no-tool-returned-input_required({said})"),
        Reason::UntouchedRetryDidNotSucceed => format!("untouched-retry-did-not-succeed({said}){at}"),
        other => format!("{}({said}){at}", other.slug()),
    }
}

/// The entry point that the verdict of the check rests on.
fn deciding(check: &CheckReport) -> Option<&EntryPoint> {
    let points = &check.evidence.entry_points;
    points.iter().find(|point| point.row.verdict == check.verdict && point.row.reason == check.reason)
}

fn exchange<'c>(point: &EntryPoint, name: &str, check: &'c CheckReport) -> Option<&'c Step> {
    point.row.story.iter().filter_map(|&at| check.evidence.exchanges.get(at)).find(|step| step.step == name)
}

fn outcome_of(point: Option<&EntryPoint>, name: &str, check: &CheckReport) -> &'static str {
    point.and_then(|point| exchange(point, name, check)).map_or("no_answer", |step| outcome(step.disposition))
}

fn outcome(disposition: &str) -> &'static str {
    match disposition {
        "accepted" => "accepted",
        "refused" => "rejected",
        "asked" => "input_required",
        _ => "no_answer",
    }
}

fn finding(report: &Report, check: &CheckReport) -> Option<Value> {
    let point = deciding(check)?;
    let (data, patterns, request) = match check.id {
        "handle-foreign-principal" => (
            handle_data(check, point),
            HANDLE_PATTERNS,
            "mint as A; mint and use as B; forged handle as B; A's handle as B",
        ),
        _ => (
            state_data(check, point),
            STATE_PATTERNS,
            "call; retry untouched; retry with a random state; retry with one change",
        ),
    };
    let observations: Vec<Value> =
        check.observations.iter().map(|observation| observation.text.clone().into()).collect();
    let mut data = data;
    data.insert("observations".into(), Value::Array(observations));
    let subject = exchange(point, "subject", check).or_else(|| exchange(point, "altered-state", check));
    Some(json!({
        "target": report.target.endpoint.as_ref().unwrap_or(&report.target.address),
        "template_id": ID,
        "severity": check.severity,
        "confidence": 90,
        "title": check.title,
        "description": check.detail,
        "evidence": {
            "request": request,
            "response": subject.map(|step| step.answer.clone()).unwrap_or_default(),
            "matched_patterns": patterns,
            "data": data,
        },
        "cwe_ids": check.cwe.iter().map(|number| format!("CWE-{number}")).collect::<Vec<_>>(),
        "tags": ["mcp", "stateless-core"],
        "timestamp": report.finished_at,
    }))
}

fn handle_data(check: &CheckReport, point: &EntryPoint) -> Map<String, Value> {
    let answer = |name: &str| {
        let step = exchange(point, name, check);
        let (outcome, excerpt) =
            step.map_or(("no_answer", ""), |step| (outcome(step.disposition), step.answer.as_str()));
        json!({"outcome": outcome, "excerpt": excerpt})
    };
    let fact = |name: &str| point.facts.get(name).cloned().unwrap_or_default();
    let mut forged = answer("forged-handle");
    forged["handle"] = fact("forged_handle");
    let (entry, argument) = point.row.entry.rsplit_once('#').unwrap_or((&point.row.entry, ""));
    let minting = exchange(point, "mint", check).map(|step| step.call.clone()).unwrap_or_default();
    let mut data = Map::new();
    data.insert("minting_tool".into(), minting.trim_start_matches("tools/call ").into());
    data.insert("consumer_tool".into(), entry.trim_start_matches("tools/call ").into());
    data.insert("handle_argument".into(), argument.into());
    data.insert("identity_A".into(), "A".into());
    data.insert("identity_B".into(), "B".into());
    data.insert("handle_minted_for_A".into(), fact("handle_of_a"));
    data.insert("handle_minted_for_B".into(), fact("handle_of_b"));
    data.insert("canary_A".into(), fact("canary_of_a"));
    data.insert("negative_control_forged_handle".into(), forged);
    data.insert("identity_B_reading_its_own_handle".into(), answer("stranger-own-use"));
    data.insert("identity_B_reading_A_handle".into(), answer("subject"));
    data.insert("observed_marker".into(), fact("marker"));
    data
}

fn state_data(check: &CheckReport, point: &EntryPoint) -> Map<String, Value> {
    let answer = |name: &str| {
        let step = exchange(point, name, check);
        let (outcome, excerpt) =
            step.map_or(("no_answer", ""), |step| (outcome(step.disposition), step.answer.as_str()));
        json!({"outcome": outcome, "excerpt": excerpt})
    };
    let subject = answer("altered-state");
    let mut data = Map::new();
    data.insert("tool".into(), point.row.entry.trim_start_matches("tools/call ").into());
    let envelope = point.facts.get("envelope").and_then(Value::as_str).unwrap_or_default();
    data.insert("state_envelope".into(), envelope.into());
    data.insert("baseline_untouched_retry".into(), answer("untouched-retry"));
    data.insert("negative_control_random_blob".into(), answer("random-state"));
    if let Some(mutation) = point.facts.get("mutation") {
        let field = mutation["field"].as_str().unwrap_or_default().trim_start_matches('/').to_owned();
        data.insert("decoded_state_keys".into(), json!([field]));
        data.insert(
            "mutation".into(),
            json!({
                "field": field,
                "before": mutation["before"],
                "after": mutation["after"],
                "why": mutation["why"],
                "envelope": envelope,
                "signature_left_as_issued": envelope.ends_with(".signature"),
                "outcome": subject["outcome"],
                "excerpt": subject["excerpt"],
                "mutated_value_observed_in_answer": mutation["came_back_in_answer"],
            }),
        );
    }
    if let Some(flip) = point.facts.get("flip") {
        let flip = json!({"offset": flip["offset"], "of": flip["length"], "outcome": subject["outcome"], "excerpt": subject["excerpt"]});
        data.insert("single_character_flips".into(), json!([flip]));
    }
    data
}

const ID: &str = "mcp-handle-binding-integrity";
const NAME: &str = "MCP handle binding and requestState integrity";
const CWE: [&str; 2] = ["CWE-639", "CWE-565"];
const HANDLE_PATTERNS: &[&str] = &[
    "handle-minted-for-another-principal-honoured",
    "forged-handle-control-rejected",
    "principal-A-marker-observed",
    "stateless-core-explicit-handle",
];
const STATE_PATTERNS: &[&str] = &[
    "mutated-requestState-accepted",
    "random-blob-control-rejected",
    "untouched-retry-accepted",
    "stateless-core-multi-round-trip",
];
