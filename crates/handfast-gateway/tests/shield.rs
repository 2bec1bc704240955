//! Every twin, bare and behind the gateway: what was confirmed bare is refuted behind it, or stands in `shield.txt` and, with
//! the reason, in `docs/limits.md`.

mod support;
#[path = "../../handfast-probe/tests/support/table.rs"]
mod table;

use futures_util::{StreamExt, stream};
use handfast_probe::{
    identity::{Identities, Who},
    profile::Profile,
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
const MATRIX: &str = include_str!("../../handfast-probe/tests/matrix.txt");
const LIMITS: &str = include_str!("../../../docs/limits.md");

/// The users, with tokens for the gateway.
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

/// What is confirmed bare, as the table of the probe's tests says.
fn confirmed_bare(twin: &str) -> Vec<&'static str> {
    let lines = table::lines(MATRIX);
    let line = lines.iter().find(|line| line.twin == twin).expect("a line for each twin");
    handfast_probe::checks::all().map(|check| check.id).filter(|id| line.of(id).starts_with("confirmed")).collect()
}

/// What is confirmed bare, what still is behind the gateway, and what cannot be told there.
async fn line(twin: &'static Twin, issuer: &Issuer) -> String {
    let served = serve_http(twin, 0, Answers::Json).await.expect("a twin");
    let users = Identities::new(Some(twin.token("alice").into()), Some(twin.token("bob").into())).expect("two users");
    let found = run(&served.url(), users).discover(&|_| {}).await.expect("discovered");
    let rules = found.map_or_else(|_| "version = 1\n".to_owned(), |(_, map)| Profile::of(&map).to_text(str::to_owned));
    let mut parts = Parts::new(&rules, &served.url());
    parts.options.single_use = true;
    let gateway = parts.start(issuer).await;
    let report = run(&gateway.url, behind(issuer)).probe(&|_| {}).await.expect("a report");
    served.stop().await;
    let of = |verdict: Verdict| report.checks.iter().filter(move |check| check.verdict == verdict);
    let joined = |words: Vec<&str>| if words.is_empty() { "-".to_owned() } else { words.join(" ") };
    let still = joined(of(Verdict::Confirmed).map(|check| check.id).collect());
    let unclear: Vec<String> =
        of(Verdict::Errored).map(|check| format!("{}({})", check.id, check.reason.slug())).collect();
    let unclear = if unclear.is_empty() { String::new() } else { format!(" | unclear: {}", unclear.join(" ")) };
    format!("{}: {} -> {still}{unclear}", twin.name, joined(confirmed_bare(twin.name)))
}

/// Half of the twins, several at once: most of the time is waiting.
fn half(part: usize) -> Vec<String> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    runtime.block_on(async {
        let issuer = Issuer::start(0).await.expect("an issuer");
        let lines = stream::iter(chosen().skip(part).step_by(2)).map(|twin| line(twin, &issuer));
        lines.buffered(8).collect().await
    })
}

/// All twins, or the one that the environment names.
fn chosen() -> impl Iterator<Item = &'static Twin> {
    let only = std::env::var("TWIN").ok();
    handfast_twins::all().iter().filter(move |twin| only.as_deref().is_none_or(|only| only == twin.name))
}

#[test]
fn what_is_confirmed_bare_is_refuted_behind_the_gateway() {
    let halves = [0, 1].map(|part| std::thread::spawn(move || half(part)));
    let told: Vec<String> = halves.into_iter().flat_map(|half| half.join().expect("it ends")).collect();
    let of = |twin: &str, lines: &[&str]| -> Option<String> {
        lines.iter().find(|line| line.starts_with(&format!("{twin}: "))).map(|line| (*line).to_owned())
    };
    let told: Vec<&str> = told.iter().map(String::as_str).collect();
    let known: Vec<&str> = TABLE.lines().collect();
    if std::env::var_os("BLESS").is_some() {
        let all =
            handfast_twins::all().iter().filter_map(|twin| of(twin.name, &told).or_else(|| of(twin.name, &known)));
        let text: String = all.map(|line| line + "\n").collect();
        std::fs::write(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/shield.txt"), text).expect("it can be written");
        return;
    }
    for twin in chosen() {
        assert_eq!(of(twin.name, &told), of(twin.name, &known));
    }
}

/// Whatever is still confirmed, or cannot be told, is explained.
#[test]
fn what_the_gateway_cannot_do_stands_in_the_limits() {
    let (_, limits) = LIMITS.split_once("## What no gateway can do").expect("the part about gateways");
    for line in TABLE.lines().filter(|line| !line.ends_with("-> -")) {
        let (twin, _) = line.split_once(": ").expect("a twin");
        assert!(limits.contains(&format!("`{twin}`")), "docs/limits.md does not say why: {line}");
    }
}
