//! The checks of tokens beyond the table: what is skipped and why, what a token says of itself, and what stands in a report.

mod support;

use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};
use handfast_probe::{
    identity::{Identities, Who},
    report::Report,
    runner::Run,
    target::Address,
    verdict::Verdict,
};
use handfast_twins::Answers;
use serde_json::{Value, json};
use support::{
    alice_and_bob, as_json, check, entry,
    front::{Act, Front, Recorded, json_answer},
    made_up, probed, served, story, verdict,
};

/// A run of the checks of tokens.
fn run_on(url: &str, identities: Identities) -> Run {
    let mut run = Run::new(Address::Http(url.parse().expect("a URL")), identities);
    run.checks.retain(|check| check.id.starts_with("token-") || check.id == "challenge-missing");
    assert_eq!(run.checks.len(), 8);
    run
}

fn all() -> Identities {
    alice_and_bob()
        .with(Who::Expired, "expired-alice".into())
        .with(Who::WrongAudience, "elsewhere-alice".into())
        .with(Who::ClientIdAudience, "client-alice".into())
}

/// A token of this form, whoever may have signed it.
fn jwt(claims: Value) -> String {
    let part = |json: &Value| URL_SAFE_NO_PAD.encode(json.to_string());
    format!("{}.{}.c2lnbmVk", part(&json!({"alg": "ES256"})), part(&claims))
}

async fn report_of(twin: &str, identities: Identities) -> Report {
    let served = served(twin, Answers::Json).await;
    probed(&run_on(&served.url(), identities)).await
}

/// What a check says of a twin that answers as this front has it.
async fn fronted(twin: &str, identities: Identities, act: impl Fn(&Recorded) -> Act + Send + Sync + 'static) -> Report {
    let served = served(twin, Answers::Json).await;
    let front = Front::of(&served.url(), move |_, request| act(request)).await;
    probed(&run_on(&front.url(), identities)).await
}

#[tokio::test]
async fn what_nobody_gave_is_named() {
    let report = report_of("gated", alice_and_bob()).await;
    for (id, said) in [
        ("token-foreign-audience", "skipped needs-identity:wrong-audience"),
        ("token-client-id-audience", "skipped needs-identity:client-id-audience"),
        ("token-expired", "skipped needs-identity:expired"),
        ("token-none", "refuted token-refused"),
        ("token-absent-stronger", "refuted token-refused"),
    ] {
        assert_eq!(verdict(check(&report, id)), said, "{id}");
    }
    for report in [report_of("ignores-identity", made_up()).await, report_of("any-token", made_up()).await] {
        for found in &report.checks {
            assert!(verdict(found).starts_with("skipped needs-identity:"), "{}: {}", found.id, verdict(found));
        }
    }
}

/// A token that says of itself that it is not what the profile says shows nothing.
#[tokio::test]
async fn a_token_that_is_not_what_the_profile_says_is_not_tried() {
    let own = jwt(json!({"sub": "alice", "aud": "https://h/mcp", "exp": 99_999_999_999_u64}));
    let cases = [
        (Who::WrongAudience, json!({"aud": "https://h/mcp2", "exp": 1}), false),
        (Who::WrongAudience, json!({"aud": ["https://h/mcp2", "https://h/mcp"], "exp": 99_999_999_999_u64}), false),
        (Who::WrongAudience, json!({"aud": "https://h/mcp2", "exp": 99_999_999_999_u64}), true),
        (Who::WrongAudience, json!({}), true),
        (Who::Expired, json!({"exp": 99_999_999_999_u64}), false),
        (Who::Expired, json!({"exp": 1}), true),
        (Who::Expired, json!({"exp": handfast_probe::clock::unix_seconds() - 60}), false),
    ];
    for (who, claims, tried) in cases {
        let named = jwt(claims.clone());
        let identities = Identities::new(Some(own.clone().into()), Some("bob".into())).expect("they differ");
        let (own, taken) = (own.clone(), named.clone());
        let report = fronted("gated", identities.with(who, named.into()), move |request| match request.token() {
            Some(token) if token == own || token == taken => Act::As("alice"),
            _ => Act::Forward,
        })
        .await;
        let id = if who == Who::Expired { "token-expired" } else { "token-foreign-audience" };
        let said = verdict(check(&report, id));
        assert_eq!(said.starts_with("confirmed"), tried, "{claims}: {said}");
        assert!(tried || said.starts_with("skipped needs-identity:"), "{claims}: {said}");
    }
}

#[tokio::test]
async fn the_evidence_is_what_was_said_and_no_token_is_in_it() {
    let identities = Identities::new(Some("alice".into()), Some("bob".into())).expect("they differ");
    let identities = identities.with(Who::WrongAudience, "elsewhere-alice".into());
    let report = report_of("any-audience", identities).await;
    let found = check(&report, "token-foreign-audience");
    assert_eq!(verdict(found), "confirmed foreign-token-taken high");
    let row = entry(found, "tools/call whoami");
    let steps: Vec<String> =
        story(found, row).into_iter().map(|(step, disposition)| format!("{step} {disposition}")).collect();
    assert_eq!(steps, ["own-token accepted", "unissued-token refused", "subject accepted", "own-token-again accepted"]);
    for twin in ["any-audience", "token-in-query", "optional-token"] {
        let written = as_json(&report_of(twin, all()).await).to_string();
        assert!(!written.contains("elsewhere-alice") && !written.contains("access_token=alice"), "{twin}: {written}");
    }
}

/// The token of A is put into the query for one check, and nowhere else.
#[tokio::test]
async fn a_token_in_the_query_stands_there_alone() {
    let served = served("gated", Answers::Json).await;
    let front = Front::of(&served.url(), |_, _| Act::Forward).await;
    let mut run = run_on(&front.url(), all());
    run.checks.retain(|check| check.id == "token-in-query");
    probed(&run).await;

    let recorded = front.seen();
    let in_query: Vec<&Recorded> = recorded.iter().filter(|request| request.path.contains("access_token")).collect();
    assert_eq!(in_query.len(), 2);
    for request in in_query {
        assert!(request.path.ends_with("?access_token=alice"), "{}", request.path);
        assert_eq!(request.header("authorization"), None);
    }
}

#[tokio::test]
async fn an_outage_is_no_refusal_and_what_wavers_is_no_verdict() {
    let down = fronted("gated", all(), |request| match request.token() {
        Some("elsewhere-alice") => Act::Status(503, Vec::new()),
        _ => Act::Forward,
    });
    assert_eq!(verdict(check(&down.await, "token-foreign-audience")), "errored unclear");

    let turn = std::sync::atomic::AtomicUsize::new(0);
    let wavers = fronted("gated", all(), move |request| match request.token() {
        Some("elsewhere-alice") if turn.fetch_add(1, std::sync::atomic::Ordering::SeqCst).is_multiple_of(2) => {
            Act::As("alice")
        }
        _ => Act::Forward,
    });
    assert_eq!(verdict(check(&wavers.await, "token-foreign-audience")), "errored unstable");
}

/// Metadata at a well-known page are enough, and a challenge is enough; a page that says nothing is not.
#[tokio::test]
async fn either_way_to_the_metadata_will_do() {
    let with_page = |page: &'static str, text: &'static str| {
        fronted("no-challenge", all(), move |request| match request.path.as_str() {
            path if path == page => Act::Raw(vec![json_answer(200, &text.parse().expect("JSON"))]),
            "/.well-known/oauth-authorization-server" => {
                Act::Raw(vec![json_answer(200, &json!({"issuer": "https://id"}))])
            }
            _ => Act::Forward,
        })
    };
    const GOOD: &str = r#"{"resource":"https://h/mcp","authorization_servers":["https://id"]}"#;
    for (page, text, said) in [
        ("/.well-known/oauth-protected-resource/mcp", GOOD, "refuted challenge-there"),
        ("/.well-known/oauth-protected-resource", GOOD, "refuted challenge-there"),
        ("/.well-known/oauth-protected-resource", r#"{"resource":"https://h/mcp"}"#, "confirmed no-challenge low"),
        ("/.well-known/openid-configuration", GOOD, "confirmed no-challenge low"),
        ("/.well-known/oauth-authorization-server", "{}", "skipped no-oauth-seen"),
    ] {
        assert_eq!(verdict(check(&with_page(page, text).await, "challenge-missing")), said, "{page} {text}");
    }
}

/// An audience that is nearly right is another one: each token for such a one is a row of its own.
#[tokio::test]
async fn an_audience_that_is_nearly_right_is_another() {
    let own = jwt(json!({"sub": "alice", "aud": "https://h/mcp", "exp": 99_999_999_999_u64}));
    let of = |who: Who| match who.audience("https://h/mcp") {
        Some(audience) => jwt(json!({"sub": "probe", "aud": audience})),
        None => jwt(json!({"sub": "probe"})),
    };
    let all = || {
        let named = Identities::new(Some(own.clone().into()), Some("bob".into())).expect("they differ");
        let named = named.with(Who::WrongAudience, jwt(json!({"sub": "probe", "aud": "https://other"})).into());
        Who::NEARLY.into_iter().fold(named, |named, who| named.with(who, of(who).into()))
    };
    let taking = async |taken: Option<String>| {
        let own = own.clone();
        fronted("gated", all(), move |request| match request.token() {
            Some(token) if token == own || Some(token) == taken.as_deref() => Act::As("alice"),
            _ => Act::Forward,
        })
        .await
    };
    let sound = taking(None).await;
    let found = check(&sound, "token-foreign-audience");
    assert_eq!((verdict(found).as_str(), found.evidence.entry_points.len()), ("refuted token-refused", 5));

    let prefix = taking(Some(of(Who::LongerAudience))).await;
    let found = check(&prefix, "token-foreign-audience");
    assert_eq!(verdict(found), "confirmed foreign-token-taken high");
    let confirmed: Vec<&str> = found
        .evidence
        .entry_points
        .iter()
        .filter(|point| point.row.verdict == Verdict::Confirmed)
        .map(|point| point.row.entry.as_str())
        .collect();
    assert_eq!(confirmed, ["tools/call whoami, by a client for a longer audience"]);
}

#[test]
fn audiences_that_are_nearly_right() {
    for (server, longer, lower, case) in [
        (
            "https://h.example/mcp",
            "https://h.example/mcp2",
            "https://h.example/mcp/tools",
            Some("https://h.example/MCP"),
        ),
        ("https://h.example", "https://h.example2", "https://h.example/tools", None),
        ("https://h.example/", "https://h.example/2", "https://h.example/tools", None),
    ] {
        assert_eq!(Who::LongerAudience.audience(server).as_deref(), Some(longer));
        assert_eq!(Who::LowerAudience.audience(server).as_deref(), Some(lower));
        assert_eq!(Who::CaseAudience.audience(server).as_deref(), case);
        assert_eq!(Who::NoAudience.audience(server), None);
    }
}

/// Guests are told that they are guests, and who is refused in polite words is refused.
#[tokio::test]
async fn guests_and_polite_refusals_are_no_finding() {
    let told = |text: &'static str| {
        fronted("gated", all(), move |request| match (request.token(), request.method()) {
            (None, "tools/call") => Act::Result(json!({
                "resultType": "complete", "content": [{"type": "text", "text": text}], "isError": false
            })),
            _ => Act::Forward,
        })
    };
    for (text, said) in [
        ("anonymous", "skipped guests-are-served"),
        ("you are a guest", "skipped guests-are-served"),
        ("Authentication required. Please log in.", "refuted token-refused"),
        // A no in words that nobody knows: no yes, and no no.
        ("Bitte zuerst anmelden", "errored unclear"),
    ] {
        let report = told(text).await;
        assert_eq!(verdict(check(&report, "token-none")), said, "{text}");
        assert_eq!(verdict(check(&report, "token-absent-stronger")), said, "{text}");
    }

    let let_in = fronted("gated", all(), |request| match request.token() {
        None if request.method() == "tools/call" => Act::As("bob"),
        _ => Act::Forward,
    });
    assert_eq!(verdict(check(&let_in.await, "token-none")), "confirmed no-token-needed high");
}

#[tokio::test]
async fn a_challenge_is_read_as_it_is_written_and_followed_at_home() {
    let challenged = |challenge: &'static str| {
        fronted("gated", all(), move |request| match (request.token(), request.path.as_str()) {
            (None, "/mcp") => Act::Status(401, vec![("www-authenticate", challenge.to_owned())]),
            _ => Act::Forward,
        })
    };
    for (challenge, said) in [
        ("Bearer resource_metadata = \"https://elsewhere.example/x\"", "refuted challenge-there"),
        (
            "Basic realm=\"x\", Bearer error=\"invalid_token\", Resource_Metadata=https://elsewhere.example/x",
            "refuted challenge-there",
        ),
        ("Bearer error=\"invalid_token\", resource_metadata=\"\"", "confirmed no-challenge low"),
        ("Bearer error=\"invalid_token\", scope=\"a\"", "confirmed no-challenge low"),
    ] {
        assert_eq!(verdict(check(&challenged(challenge).await, "challenge-missing")), said, "{challenge}");
    }
}

/// What is meant for everybody is no finding where other things are not.
#[tokio::test]
async fn a_call_for_everybody_is_no_open_door() {
    let public = |also: bool| {
        fronted("gated", all(), move |request| match (request.method(), request.tool()) {
            ("tools/list", _) => Act::Changed(|body| {
                let read_only = json!({"readOnlyHint": true});
                let schema = json!({"type": "object"});
                let time = json!({"name": "get_time", "inputSchema": schema, "annotations": read_only});
                let hum = json!({"name": "hum", "inputSchema": schema, "annotations": read_only});
                body.replacen("\"tools\":[", &format!("\"tools\":[{time},{hum},"), 1).replace("whoami", "hum_along")
            }),
            ("tools/call", "get_time" | "hum")
                if also || request.tool() == "get_time" || request.token() == Some("alice") =>
            {
                Act::Result(json!({
                    "resultType": "complete", "content": [{"type": "text", "text": "12:00"}], "isError": false
                }))
            }
            ("tools/call", "open_workspace") if also => Act::As("alice"),
            _ => Act::Forward,
        })
    };
    let some = public(false).await;
    assert_eq!(verdict(check(&some, "token-none")), "refuted token-refused +public-call");

    // Where all that could be tried is open, a call of a tool that there is not tells whether calls are guarded.
    let every = public(true).await;
    let found = check(&every, "token-none");
    assert_eq!(verdict(found), "refuted token-refused +public-call");
    assert!(found.detail.contains("a tool that there is not"), "{}", found.detail);
}

/// Each way to forge a token is a row of its own.
#[tokio::test]
async fn a_token_without_a_signature_is_another_forgery() {
    let twin = handfast_twins::find("signed-tokens").expect("a twin");
    let of = |text: &str| twin.token(text);
    let named = Identities::new(Some(of("alice").into()), Some(of("bob").into())).expect("they differ");
    let good: &'static str = Box::leak(of("alice").into_boxed_str());
    let report = fronted("signed-tokens", named, move |request| match request.token() {
        Some(token) if token.ends_with('.') => Act::As(good),
        _ => Act::Forward,
    })
    .await;

    let found = check(&report, "token-forged");
    assert_eq!(verdict(found), "confirmed forged-token-taken critical");
    let verdict_of = |by: &str| entry(found, &format!("tools/call whoami, by A {by}")).row.verdict;
    assert_eq!(verdict_of("without a signature"), Verdict::Confirmed);
    assert_eq!(verdict_of("with another signature"), Verdict::Refuted);
    let claims = good.split('.').nth(1).expect("three parts");
    assert!(!as_json(&report).to_string().contains(claims));
}

#[tokio::test]
async fn a_token_that_bears_no_signature_cannot_be_forged_so() {
    let found = report_of("gated", all()).await;
    assert_eq!(verdict(check(&found, "token-forged")), "skipped no-signature-seen");
}

/// What is put in the place of a token, by mistake, is refused for that, and shows nothing.
#[tokio::test]
async fn a_token_of_another_issuer_is_not_tried() {
    let own = jwt(json!({"iss": "https://id", "sub": "alice", "aud": "https://h"}));
    let of = |iss: &str, sub: &str| jwt(json!({"iss": iss, "sub": sub, "aud": "https://other"}));
    let found = async |token: String| {
        let named = Identities::new(Some(own.clone().into()), Some("bob".into())).expect("they differ");
        let own = own.clone();
        let report = fronted("any-audience", named.with(Who::WrongAudience, token.into()), move |request| {
            if request.token() == Some(own.as_str()) { Act::As("alice") } else { Act::Forward }
        });
        let report = report.await;
        let found = check(&report, "token-foreign-audience");
        (verdict(found), found.detail.clone())
    };
    for (token, why) in
        [("junk".to_owned(), "one alone is a JSON Web Token"), (of("https://elsewhere", "alice"), "another `iss`")]
    {
        let (said, detail) = found(token).await;
        assert_eq!(said, "skipped needs-identity:wrong-audience", "{detail}");
        assert!(detail.contains(why), "{detail}");
    }
    for subject in ["alice", "a-client-of-its-own"] {
        assert_eq!(found(of("https://id", subject)).await.0, "refuted token-refused", "{subject}");
    }

    // Where A's own says nothing either, that is said.
    let named = alice_and_bob().with(Who::WrongAudience, "typo".into());
    let report = report_of("any-audience", named).await;
    let found = check(&report, "token-foreign-audience");
    assert!(found.detail.contains("look that it is what the profile says it is"), "{}", found.detail);
}

/// What opens a stream in a browser can set no header: some servers take the token from the query there alone.
#[tokio::test]
async fn a_token_in_the_query_of_a_stream_is_seen() {
    let taken = fronted("known-tokens", all(), |request| match request.verb.as_str() {
        "GET" if request.path.ends_with("?access_token=alice") => Act::As("alice"),
        _ => Act::Forward,
    });
    let taken = taken.await;
    let found = check(&taken, "token-in-query");
    assert_eq!(verdict(found), "confirmed token-taken-from-query low");
    assert_eq!(entry(found, "GET in a session of A's").row.verdict, Verdict::Confirmed);
    assert_eq!(entry(found, "tools/call whoami").row.verdict, Verdict::Refuted);

    let sound = report_of("known-tokens", all()).await;
    let found = check(&sound, "token-in-query");
    assert_eq!((verdict(found).as_str(), found.evidence.entry_points.len()), ("refuted token-refused", 2));
}

/// A token that opens a session is taken, whatever comes of the calls in it.
#[tokio::test]
async fn an_opening_is_a_door_of_its_own() {
    let taken = fronted("known-tokens", all(), |request| match (request.method(), request.token()) {
        ("initialize", Some("expired-alice")) => Act::As("alice"),
        _ => Act::Forward,
    });
    let taken = taken.await;
    let found = check(&taken, "token-expired");
    assert_eq!(verdict(found), "confirmed expired-token-taken high");
    assert_eq!(entry(found, "initialize").row.verdict, Verdict::Confirmed);
    assert_eq!(entry(found, "tools/call whoami").row.verdict, Verdict::Refuted);

    // Where anybody opens sessions, and calls are what is guarded, an opening shows nothing.
    let lazy = fronted("known-tokens", all(), |request| match (request.method(), request.token()) {
        ("initialize" | "notifications/initialized", _) => Act::As("alice"),
        _ => Act::Forward,
    });
    let lazy = lazy.await;
    let found = check(&lazy, "token-expired");
    assert_eq!(verdict(found), "refuted token-refused");
    assert_eq!(entry(found, "initialize").row.reason.slug(), "nothing-was-refused");
}

/// Time and audience are asked in every call, and not where a stream is attached.
#[tokio::test]
async fn a_stream_is_a_door_as_well() {
    let forgets = fronted("known-tokens", all(), |request| match (request.verb.as_str(), request.token()) {
        ("GET", Some("expired-alice" | "elsewhere-alice")) => Act::As("alice"),
        _ => Act::Forward,
    });
    let report = forgets.await;
    for id in ["token-expired", "token-foreign-audience"] {
        let found = check(&report, id);
        assert_eq!(found.verdict, Verdict::Confirmed, "{id}");
        assert_eq!(entry(found, "GET in a session of A's").row.verdict, Verdict::Confirmed, "{id}");
        assert_eq!(entry(found, "tools/call whoami").row.verdict, Verdict::Refuted, "{id}");
    }
}

/// A token whose last part is that of everybody's bears no signature there, and one that names a key that there is not is forged.
#[tokio::test]
async fn the_name_of_a_place_is_no_signature() {
    let named = |place: &str| {
        let token = |user: &str| format!("{user}-0a1b2c3d4e5f.{place}").into();
        Identities::new(Some(token("alice")), Some(token("bob"))).expect("they differ")
    };
    // A sound server that looks at nothing but what stands before the dot.
    let routed = fronted("gated", named("region-europe-west-0001"), |request| match request.token() {
        Some(token) if token.starts_with("alice-0a1b2c3d4e5f.") => Act::As("alice"),
        Some(token) if token.starts_with("bob-0a1b2c3d4e5f.") => Act::As("bob"),
        _ => Act::Forward,
    });
    assert_eq!(verdict(check(&routed.await, "token-forged")), "skipped no-signature-seen");

    let twin = handfast_twins::find("signed-tokens").expect("a twin");
    let good: &'static str = Box::leak(twin.token("alice").into_boxed_str());
    let named = || Identities::new(Some(good.into()), Some(twin.token("bob").into())).expect("they differ");
    for (forged, by) in [
        (|token: &str| token.ends_with('.') && token.starts_with(&good_header()), "A with an empty signature"),
        (|token: &str| !token.starts_with(&good_header()) && !token.ends_with('.'), "A with an unknown key"),
    ] as [(fn(&str) -> bool, &str); 2]
    {
        let report = fronted("signed-tokens", named(), move |request| match request.token() {
            Some(token) if forged(token) && token.split('.').nth(1) == good.split('.').nth(1) => Act::As(good),
            _ => Act::Forward,
        });
        let report = report.await;
        let found = check(&report, "token-forged");
        assert_eq!(verdict(found), "confirmed forged-token-taken critical", "{by}");
        assert_eq!(entry(found, &format!("tools/call whoami, by {by}")).row.verdict, Verdict::Confirmed);
    }
}

/// The header of the twin's own tokens.
fn good_header() -> String {
    let token = handfast_twins::find("signed-tokens").expect("a twin").token("x");
    token.split('.').next().expect("a header").to_owned()
}

/// What `--header` gives to everybody is nobody's credential.
#[tokio::test]
async fn nobody_comes_without_what_everybody_brings() {
    let served = served("gated", Answers::Json).await;
    let mut run = run_on(&served.url(), all());
    let header = handfast_probe::target::ExtraHeader { name: "Authorization".into(), value: "Bearer alice".into() };
    run.options.http.headers = vec![header];

    assert_eq!(verdict(check(&probed(&run).await, "token-none")), "refuted token-refused");
}
