//! The profile: what was found can be written down and read again with the same verdicts, what an operator writes is taken at
//! its word, and what cannot be meant is refused with its line.

mod support;

use handfast_probe::{
    discovery::Map,
    profile::{Profile, ProfileError},
    report::Report,
};
use handfast_twins::Answers;
use handfast_wire::meta;
use serde_json::json;
use support::{
    HANDLE, STATE, check, entry,
    front::{Act, Front},
    probed, run_on, served, verdict, verdicts,
};

async fn with_profile(twin: &str, text: &str) -> Report {
    let served = served(twin, Answers::Json).await;
    let mut run = run_on(&served.url());
    run.profile = Profile::parse(text).unwrap_or_else(|error| panic!("{error}\n{text}"));
    probed(&run).await
}

async fn found(twin: &str) -> Map {
    let served = served(twin, Answers::Json).await;
    let (_, map) = run_on(&served.url()).discover(&|_| {}).await.expect("usable").expect("a server");
    map
}

#[tokio::test]
async fn what_was_found_can_be_written_and_read_again() {
    for twin in ["flawed", "text-only-handles-flawed", "numeric-handles", "renamed-handles", "legacy"] {
        let map = found(twin).await;
        let text = Profile::of(&map).to_text(str::to_owned);

        let report = with_profile(twin, &text).await;

        assert_eq!(verdicts(&report), verdicts(&support::probed_twin(twin).await), "{twin}\n{text}");
        let again = Profile::parse(&text).expect("what we write we read");
        assert_eq!(again.handles.len(), map.kinds.len(), "{twin}");
        assert_eq!(
            Profile::parse(&again.to_text(str::to_owned)).expect("twice").to_text(str::to_owned),
            text,
            "{twin}: written the same again"
        );
    }
}

#[test]
fn the_examples_in_a_written_profile_are_right() {
    let text = Profile::default().to_text(str::to_owned);
    let uncommented: String = text
        .lines()
        .skip_while(|line| !line.starts_with("# [tools]"))
        .map(|line| format!("{}\n", line.trim_start_matches("# ").trim_start_matches('#')))
        .collect();

    let profile =
        Profile::parse(&format!("version = 1\n{uncommented}")).unwrap_or_else(|error| panic!("{error}\n{uncommented}"));

    assert!(profile.denies("send_report"));
    assert_eq!(profile.fixed("open_basket")["currency"], json!("EUR"));
    assert_eq!(profile.answers("checkout")["confirm"], json!(true));
    assert_eq!(profile.identities.header.as_deref(), Some("X-Api-Key"));
}

#[test]
fn what_cannot_be_meant_is_refused_with_its_line_and_key() {
    for (text, words) in [
        ("versoin = 1\n", &["line 1", "versoin"][..]),
        ("version = 1\n\n\n[toolz]\n", &["line 4", "toolz"]),
        ("[tools]\ndenny = []\n", &["line 2", "denny"]),
        ("[tools]\n# a comment\ndeny = \"x\"\n", &["line 3"]),
        ("[identities]\na = \"secret\"\n", &["line 2", "`a`"]),
        ("version = \"one\"\n", &["line 1"]),
        ("[[handle]]\nmint = \"open\"\nconsume = []\npath = \"/x\"\n", &["line 4", "path"]),
        ("[[handle]]\nmint = \"open\"\n", &["line 1", "consume"]),
        ("[arguments.open]\nlabel = \n", &["line 2"]),
        ("not toml at all", &["line 1"]),
        ("version = 2\n", &["version 2", "version 1"]),
        ("[[handle]]\nmint = \"open\"\nconsume = [\"tools/call read#id\"]\n", &["`open`", "`pointer` or `pattern`"]),
        ("[[handle]]\nmint = \"open\"\npointer = \"id\"\nconsume = []\n", &["`open`", "`id`", "start with `/`"]),
        ("[[handle]]\nmint = \"open\"\npointer = \"/x\"\njson = \"id\"\nconsume = []\n", &["`open`", "`id`"]),
        ("[[handle]]\nmint = \"open\"\npattern = \"b-[0-9]+\"\nconsume = []\n", &["`open`", "group"]),
        ("[[handle]]\nmint = \"open\"\npattern = \"(b-\"\nconsume = []\n", &["`open`", "unclosed"]),
        (
            "[[handle]]\nmint = \"open\"\npointer = \"/x\"\nconsume = [\"read#id\"]\n",
            &["`open`", "`read#id`", "METHOD NAME#ARGUMENT"],
        ),
        ("[[handle]]\nmint = \"open\"\npointer = \"/x\"\nconsume = [\"tools/call read\"]\n", &["`tools/call read`"]),
        ("[[handle]]\nmint = \"open\"\npointer = \"/x\"\nconsume = [\"tools/list x#y\"]\n", &["`tools/list x#y`"]),
    ] {
        let error = Profile::parse(text).expect_err(text).to_string();
        for word in words {
            assert!(error.contains(word), "`{word}` is not in `{error}`, which is said of\n{text}");
        }
    }
    assert!(matches!(Profile::parse("version = 9"), Err(ProfileError::Version(9))));
}

#[test]
fn an_empty_profile_says_nothing() {
    for text in ["", "version = 1\n", "# only a comment\n", "[tools]\n[identities]\n"] {
        let profile = Profile::parse(text).expect(text);
        assert!(profile.map().expect("no rules").is_none() && !profile.denies("x") && profile.fixed("x").is_empty());
    }
}

/// One rule for the twin `flawed`, with this place of the handle.
fn rule(place: &str, consume: &[&str]) -> String {
    format!("[[handle]]\nmint = \"open_workspace\"\n{place}\nconsume = {consume:?}\n")
}

const READ: &str = "tools/call read_workspace#workspace_id";
const PROMPT: &str = "prompts/get summarise_workspace#workspace_id";
const NOTES: &str = "resources/read workspace://{workspace_id}/notes#workspace_id";

#[tokio::test]
async fn a_handle_is_read_where_the_operator_says() {
    for place in [
        "pointer = \"/structuredContent/workspace_id\"",
        "pointer = \"/content/0/text\"\njson = \"/workspace_id\"",
        "pointer = \"/content/0/text\"\npattern = '\"(ws-[0-9a-f]+)\"'",
        "pattern = '(ws-[0-9a-f]{32})'",
    ] {
        let report = with_profile("flawed", &rule(place, &[READ])).await;

        let check = check(&report, HANDLE);
        assert_eq!(verdict(check), "confirmed handle-not-bound high", "{place}: {}", check.detail);
        assert_eq!(check.evidence.entry_points.len(), 1, "only what is named is tested");
    }
}

#[tokio::test]
async fn a_place_that_holds_nothing_is_a_failed_control() {
    for place in [
        "pointer = \"/structuredContent/nothing\"",
        "pointer = \"/content/7/text\"",
        "pointer = \"/structuredContent\"",
        "pointer = \"/content/0/text\"\njson = \"/nothing\"",
        "pattern = '(never-[0-9]{40})'",
    ] {
        let report = with_profile("flawed", &rule(place, &[READ])).await;

        assert_eq!(check(&report, HANDLE).verdict.word(), "errored", "{place}: {}", verdict(check(&report, HANDLE)));
        assert_eq!(check(&report, HANDLE).reason.slug(), "control-failed", "{place}");
    }
}

#[tokio::test]
async fn every_kind_of_entry_point_can_be_named() {
    let place = "pointer = \"/structuredContent/workspace_id\"";
    let report =
        with_profile("one-door", &rule(place, &[READ, PROMPT, NOTES, "tools/call append_note#workspace_id"])).await;

    let check = check(&report, HANDLE);
    for name in [READ, PROMPT, NOTES] {
        assert_eq!(entry(check, name).row.reason.slug(), "handle-bound", "{name}");
    }
    assert_eq!(entry(check, "tools/call append_note#workspace_id").row.reason.slug(), "handle-not-bound");
}

#[tokio::test]
async fn names_that_the_server_does_not_know_are_errors_and_not_findings() {
    let place = "pointer = \"/structuredContent/workspace_id\"";
    for text in
        [rule(place, &["tools/call no_such_tool#workspace_id"]), rule(place, &["resources/read nothing://{x}#x"])]
    {
        let report = with_profile("flawed", &text).await;

        assert!(
            matches!(check(&report, HANDLE).verdict.word(), "errored" | "skipped"),
            "{text}: {}",
            verdict(check(&report, HANDLE))
        );
    }
}

#[tokio::test]
async fn a_tool_that_mints_and_is_not_listed_is_a_slip_of_the_pen() {
    let served = served("flawed", Answers::Json).await;
    let mut run = run_on(&served.url());
    let text = rule("pointer = \"/structuredContent/workspace_id\"", &[READ]).replace("open_workspace", "no_such_tool");
    run.profile = Profile::parse(&text).expect("a profile");

    let refused = run.probe(&|_| {}).await.expect_err("nothing can be tested so");

    assert!(refused.to_string().contains("`no_such_tool`"), "{refused}");
}

#[tokio::test]
async fn fixed_arguments_are_sent_as_they_are() {
    let served = served("sound", Answers::Json).await;
    let front = Front::of(&served.url(), |_, _| Act::Forward).await;
    let mut run = run_on(&front.url());
    run.profile = Profile::parse("[arguments.append_note]\ntext = \"always this\"\n").expect("a profile");

    probed(&run).await;

    let seen = front.seen();
    let texts: Vec<_> = seen
        .iter()
        .filter(|seen| seen.tool() == "append_note")
        .map(|seen| &seen.body["params"]["arguments"]["text"])
        .collect();
    assert!(!texts.is_empty() && texts.iter().all(|text| **text == json!("always this")), "{texts:?}");
}

#[tokio::test]
async fn fixed_answers_are_given_to_the_questions_of_their_tool() {
    let schema = json!({"type": "object", "properties": {"code": {"type": "string"}, "ok": {"type": "boolean"}}, "required": ["code", "ok"]});
    let tool = |name: &str| json!({"name": name, "inputSchema": {"type": "object", "properties": {}}});
    let front = Front::start(None, move |_, request| match request.method() {
        "server/discover" => Act::Result(
            json!({"supportedVersions": [meta::MODERN], "capabilities": {"tools": {}}, "resultType": "complete"}),
        ),
        "tools/list" => Act::Result(json!({"tools": [tool("checkout"), tool("reserve")], "resultType": "complete"})),
        _ if request.body["params"].get("inputResponses").is_some() => {
            Act::Result(json!({"resultType": "complete", "content": [{"type": "text", "text": "done"}]}))
        }
        _ => Act::Result(json!({"resultType": "input_required", "requestState": "state-0123456789", "inputRequests": {
            "q": {"method": "elicitation/create", "params": {"mode": "form", "message": "?", "requestedSchema": schema}}
        }})),
    })
    .await;
    let mut run = run_on(&front.url());
    run.profile = Profile::parse("[answers.checkout]\ncode = \"4711\"\nok = false\n").expect("a profile");

    probed(&run).await;

    let seen = front.seen();
    let given = |tool: &str| {
        let of_tool = seen.iter().filter(|seen| seen.tool() == tool);
        of_tool.filter_map(|seen| seen.body["params"].pointer("/inputResponses/q/content").cloned()).collect::<Vec<_>>()
    };
    let (checkout, reserve) = (given("checkout"), given("reserve"));
    assert!(
        !checkout.is_empty() && checkout.iter().all(|content| *content == json!({"code": "4711", "ok": false})),
        "{checkout:?}"
    );
    assert!(
        !reserve.is_empty() && reserve.iter().all(|content| content["ok"] == json!(true) && content["code"] != "4711")
    );
}

#[tokio::test]
async fn a_profile_without_handles_leaves_the_search_as_it_is() {
    let report = with_profile("flawed", "[tools]\ndeny = [\"append_note\"]\n").await;

    assert!(verdict(check(&report, HANDLE)).starts_with("confirmed handle-not-bound"));
    assert!(check(&report, HANDLE).evidence.entry_points.iter().all(|point| !point.row.entry.contains("append_note")));
    assert_eq!(check(&report, STATE).verdict.word(), "confirmed");
}

#[tokio::test]
async fn a_tool_that_the_server_does_not_list_is_a_slip_of_the_pen() {
    let served = served("flawed", Answers::Json).await;
    for profile in [
        "[tools]\ndeny = [\"append_note\", \"append_notes\"]\n",
        "[arguments.append_notes]\ntext = \"x\"\n",
        "[answers.append_notes]\nconfirm = true\n",
    ] {
        let front = Front::of(&served.url(), |_, _| Act::Forward).await;
        let mut run = run_on(&front.url());
        run.profile = Profile::parse(profile).expect("a profile");

        let refused = run.probe(&|_| {}).await.expect_err("it names a tool that is not there").to_string();

        assert!(refused.contains("`append_notes`"), "{refused}");
        assert!(front.seen().iter().all(|seen| seen.method() != "tools/call"), "nothing was called");
    }
}

/// Everything that the page shows is read, by itself and together.
#[test]
fn the_page_shows_profiles_that_can_be_read() {
    let page = include_str!("../../../docs/profiles.md");
    let blocks: Vec<&str> =
        page.split("```toml\n").skip(1).map(|rest| rest.split("```").next().unwrap_or_default()).collect();
    assert_eq!(blocks.len(), 3);

    let whole = Profile::parse(&blocks.concat()).unwrap_or_else(|error| panic!("{error}"));
    assert!(whole.denies("send_report") && whole.handles.len() == 2);
    for block in &blocks[1..] {
        Profile::parse(&format!("version = 1\n{block}")).unwrap_or_else(|error| panic!("{error}\n{block}"));
    }
    for name in [
        "a-new-token",
        "same-user-other-client",
        "other-tenant",
        "wrong-audience",
        "expired",
        "client-id-audience",
        "anonymous",
    ] {
        assert!(page.contains(&format!("`{name}`")), "{name}");
        let alone = format!("version = 1\n[identities.{name}]\nvalue = \"x\"\n");
        assert!(Profile::parse(&alone).is_ok(), "{name}");
    }
}

/// Whom no check tries, nobody should believe to have been tried.
#[tokio::test]
async fn an_identity_that_no_check_tries_is_noted() {
    let served = served("sound", Answers::Json).await;
    let mut run = run_on(&served.url());
    run.profile =
        Profile::parse("version = 1\n[identities.expired]\nvalue = \"x\"\n[identities.anonymous]\nvalue = \"guest\"\n")
            .expect("a profile");

    let report = probed(&run).await;

    let untried: Vec<&String> =
        report.notes.iter().filter(|note| note.starts_with("no check of this version")).collect();
    assert_eq!(untried, ["no check of this version tries [identities.anonymous]: anonymous was not seen"]);
}

#[test]
fn what_has_a_place_of_its_own_is_no_further_parameter() {
    let grant = |parameter: &str| {
        format!(
            "version = 1\n[identities.expired.client_credentials]\ntoken_url = \"https://id.example/token\"\n\
             client_id = \"x\"\nclient_secret_env = \"S\"\nparameters = {{ {parameter} = \"-60\" }}\n"
        )
    };
    assert!(Profile::parse(&grant("lifetime")).is_ok());
    for own in ["grant_type", "client_id", "client_secret", "scope", "resource"] {
        let error = Profile::parse(&grant(own)).expect_err("it is refused").to_string();
        assert!(error.contains(own) && !error.contains("-60"), "{error}");
    }
}
