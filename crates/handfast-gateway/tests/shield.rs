//! Every twin, bare and behind the gateway: what was confirmed bare is refuted behind it, or stands in `shield.txt` and, with
//! the reason, in `docs/limits.md`.

mod support;

use std::collections::BTreeMap;

use futures_util::{StreamExt, stream};
use handfast_probe::{
    identity::{Identities, Who},
    profile::Profile,
    report::Report,
    runner::Run,
    target::Address,
    verdict::Verdict,
};
use handfast_twins::{
    Answers, Twin,
    issuer::{Issuer, Wish},
    serve_http,
};
use support::{OURS, Parts};

const TABLE: &str = include_str!("shield.txt");

/// The probe as users whom the twin itself knows.
fn bare(twin: &Twin) -> Identities {
    let token = |text: &str| twin.token(text).into();
    let given = Identities::new(Some(token("alice")), Some(token("bob"))).expect("two users");
    given
        .with(Who::NewToken, token("renewed-alice"))
        .with(Who::OtherClient, token("phone-alice"))
        .with(Who::OtherTenant, token("acme-carol"))
        .with(Who::Expired, token("expired-alice"))
        .with(Who::WrongAudience, token("elsewhere-alice"))
        .with(Who::ClientIdAudience, token("client-alice"))
}

/// The same users with tokens for the gateway.
fn behind(issuer: &Issuer) -> Identities {
    let token = |wish: Wish| issuer.token(&wish).into();
    let of = |subject: &str| Wish::of(subject, OURS);
    let renewed = Wish { lifetime: 1800, ..of("alice") };
    let other_tenant =
        Wish { claims: [("tenant".to_owned(), "other".into())].into_iter().collect(), ..of("acme-carol") };
    let given = Identities::new(Some(token(of("alice"))), Some(token(of("bob")))).expect("two users");
    given
        .with(Who::NewToken, token(renewed))
        .with(Who::OtherClient, token(Wish { client: "phone".to_owned(), ..of("alice") }))
        .with(Who::OtherTenant, token(other_tenant))
        .with(Who::Expired, token(Wish { lifetime: -3600, ..of("alice") }))
        .with(Who::WrongAudience, token(Wish::of("alice", "https://elsewhere.example.com/mcp")))
        .with(Who::ClientIdAudience, token(Wish::of("alice", "demo-client")))
}

fn run(url: &str, identities: Identities) -> Run {
    Run::new(Address::Http(url.parse().expect("a URL")), identities)
}

fn verdicts(report: &Report, verdict: Verdict) -> Vec<&'static str> {
    report.checks.iter().filter(|check| check.verdict == verdict).map(|check| check.id).collect()
}

/// What was confirmed bare, what is confirmed or cannot be told behind, and in how many checks the gateway was refuted.
async fn line(twin: &'static Twin, issuer: &Issuer) -> (String, String) {
    let served = serve_http(twin, 0, Answers::Json).await.expect("a twin");
    let run_bare = run(&served.url(), bare(twin));
    let report = run_bare.probe(&|_| {}).await.expect("a report");
    let confirmed = verdicts(&report, Verdict::Confirmed);
    let found = run_bare.discover(&|_| {}).await.expect("discovered");
    let rules = found.map_or_else(|_| "version = 1\n".to_owned(), |(_, map)| Profile::of(&map).to_text(str::to_owned));
    served.stop().await;

    let served = serve_http(twin, 0, Answers::Json).await.expect("a twin");
    let mut parts = Parts::new(&rules, &served.url());
    parts.options.single_use = true;
    let gateway = parts.start(issuer).await;
    let report = run(&gateway.url, behind(issuer)).probe(&|_| {}).await.expect("a report");
    served.stop().await;
    if std::env::var_os("TWIN").is_some() {
        for check in &report.checks {
            if matches!(check.verdict, Verdict::Confirmed | Verdict::Errored) {
                println!("{} {}: {} {:#?}", check.verdict.word(), check.id, check.detail, check.evidence);
            }
        }
    }
    let still = verdicts(&report, Verdict::Confirmed);
    let cut = |ids: &[&str]| if ids.is_empty() { "-".to_owned() } else { ids.join(" ") };
    let unclear: Vec<String> = report
        .checks
        .iter()
        .filter(|check| check.verdict == Verdict::Errored)
        .map(|check| format!("{}({})", check.id, check.reason.slug()))
        .collect();
    let unclear = if unclear.is_empty() { String::new() } else { format!(" | unclear: {}", unclear.join(" ")) };
    (twin.name.to_owned(), format!("{} -> {}{unclear}", cut(&confirmed), cut(&still)))
}

#[tokio::test]
async fn what_is_confirmed_bare_is_refuted_behind_the_gateway() {
    let issuer = Issuer::start(0).await.expect("an issuer");
    let only = std::env::var("TWIN").ok();
    let twins = handfast_twins::all().iter().filter(|twin| only.as_deref().is_none_or(|only| only == twin.name));
    let lines: BTreeMap<String, String> =
        stream::iter(twins).map(|twin| line(twin, &issuer)).buffer_unordered(8).collect().await;
    let told: String = handfast_twins::all()
        .iter()
        .filter_map(|twin| lines.get(twin.name).map(|line| format!("{}: {line}\n", twin.name)))
        .collect();
    if std::env::var_os("BLESS").is_some() {
        std::fs::write(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/shield.txt"), &told).expect("written");
        return;
    }
    let is_told = |line: &&str| only.as_deref().is_none_or(|only| line.starts_with(&format!("{only}: ")));
    let known: String = TABLE.lines().filter(is_told).map(|line| format!("{line}\n")).collect();
    for (known, told) in known.lines().zip(told.lines()) {
        assert_eq!(told, known);
    }
    assert_eq!(told, known);
}
