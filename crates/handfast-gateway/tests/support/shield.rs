//! Every twin behind the gateway, and what the probe says of it there: for HTTP here, and for stdio in the tests of the command line.
#![allow(dead_code, reason = "each test file uses its part of this")]

use std::{path::Path, sync::Arc};

use futures_util::{StreamExt, stream};
use handfast_gateway::upstream::Upstream;
use handfast_probe::{
    identity::{Identities, Who},
    profile::Profile,
    runner::Run,
    target::Address,
    verdict::Verdict,
};
use handfast_twins::{
    Served, Twin,
    issuer::{Issuer, Wish},
};

use crate::{
    front::{OURS, Parts},
    table,
};

const MATRIX: &str = include_str!("../../../handfast-probe/tests/matrix.txt");

/// A twin that is ready to be looked at, and to be put behind the gateway.
pub(crate) struct Ready {
    pub(crate) address: Address,
    pub(crate) upstream: Arc<dyn Upstream>,
    /// Over HTTP, until it is stopped.
    pub(crate) served: Option<Served>,
}

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

/// What is confirmed bare, as the table of the probe's tests says.
fn confirmed_bare(twin: &str) -> Vec<&'static str> {
    let lines = table::lines(MATRIX);
    let line = lines.iter().find(|line| line.twin == twin).expect("a line for each twin");
    handfast_probe::checks::all().map(|check| check.id).filter(|id| line.of(id).starts_with("confirmed")).collect()
}

/// What is confirmed bare, what still is behind the gateway, and what cannot be told there.
async fn line(twin: &'static Twin, issuer: &Issuer, ready: Ready) -> String {
    let users = Identities::new(Some(twin.token("alice").into()), Some(twin.token("bob").into())).expect("two users");
    let found = Run::new(ready.address, users).discover(&|_| {}).await.expect("discovered");
    let rules = found.map_or_else(|_| "version = 1\n".to_owned(), |(_, map)| Profile::of(&map).to_text(str::to_owned));
    let mut parts = Parts::before(&rules, ready.upstream);
    parts.options.single_use = true;
    let gateway = parts.start(issuer).await;
    let address = Address::Http(gateway.url.parse().expect("a URL"));
    let report = Run::new(address, behind(issuer)).probe(&|_| {}).await.expect("a report");
    if let Some(served) = ready.served {
        served.stop().await;
    }
    // Cursors are passed on as they are, which docs/limits.md says: what is found of them is found of the server behind, or not,
    // as chance has it.
    let of = |verdict: Verdict| {
        let checks = report.checks.iter().filter(|check| !check.id.starts_with("cursor-"));
        checks.filter(move |check| check.verdict == verdict)
    };
    let joined = |words: Vec<&str>| if words.is_empty() { "-".to_owned() } else { words.join(" ") };
    let still = joined(of(Verdict::Confirmed).map(|check| check.id).collect());
    let unclear: Vec<String> =
        of(Verdict::Errored).map(|check| format!("{}({})", check.id, check.reason.slug())).collect();
    let unclear = if unclear.is_empty() { String::new() } else { format!(" | unclear: {}", unclear.join(" ")) };
    format!("{}: {} -> {still}{unclear}", twin.name, joined(confirmed_bare(twin.name)))
}

/// All twins, or the one that the environment names.
fn chosen() -> impl Iterator<Item = &'static Twin> {
    let only = std::env::var("TWIN").ok();
    handfast_twins::all().iter().filter(move |twin| only.as_deref().is_none_or(|only| only == twin.name))
}

/// Half of the twins, several at once: most of the time is waiting.
fn half<F: Future<Output = Ready>>(part: usize, ready: fn(&'static Twin) -> F) -> Vec<String> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    runtime.block_on(async {
        let issuer = Issuer::start(0).await.expect("an issuer");
        let issuer = &issuer;
        let lines = stream::iter(chosen().skip(part).step_by(2))
            .map(|twin| async move { line(twin, issuer, ready(twin).await).await });
        lines.buffered(8).collect().await
    })
}

/// Holds every twin against its line in a table; `BLESS=1` writes the table instead.
pub(crate) fn agrees<F: Future<Output = Ready> + 'static>(path: &Path, ready: fn(&'static Twin) -> F) {
    let halves = [0, 1].map(|part| std::thread::spawn(move || half(part, ready)));
    let told: Vec<String> = halves.into_iter().flat_map(|half| half.join().expect("it ends")).collect();
    let table = std::fs::read_to_string(path).expect("the table");
    let of = |twin: &str, lines: &[&str]| -> Option<String> {
        lines.iter().find(|line| line.starts_with(&format!("{twin}: "))).map(|line| (*line).to_owned())
    };
    let told: Vec<&str> = told.iter().map(String::as_str).collect();
    let known: Vec<&str> = table.lines().collect();
    if std::env::var_os("BLESS").is_some() {
        let all = handfast_twins::all().iter();
        let lines = all.filter_map(|twin| of(twin.name, &told).or_else(|| of(twin.name, &known)));
        std::fs::write(path, lines.map(|line| line + "\n").collect::<String>()).expect("it can be written");
        return;
    }
    for twin in chosen() {
        assert_eq!(of(twin.name, &told), of(twin.name, &known));
    }
}

/// Whatever is still confirmed, or cannot be told, is explained.
pub(crate) fn is_explained(table: &str, limits: &str) {
    let (_, limits) = limits.split_once("## What no gateway can do").expect("the part about gateways");
    for line in table.lines().filter(|line| !line.ends_with("-> -")) {
        let (twin, _) = line.split_once(": ").expect("a twin");
        assert!(limits.contains(&format!("`{twin}`")), "docs/limits.md does not say why: {line}");
    }
}
