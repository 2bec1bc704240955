//! Further identities of a profile: from its own words, the environment, a command, or an OAuth client-credentials grant.
//! Whatever happens, no secret is said.

mod support;

use std::{
    io::{Read, Write},
    net::TcpListener,
    sync::{
        atomic::{AtomicUsize, Ordering},
        mpsc::{Receiver, channel},
    },
};

use serde_json::Value;
use support::{Ran, Scratch, Twin, check, handfast};

const EXPIRED: &str = "expired-alice";

/// A token endpoint that answers every request with these bytes, and tells what it was sent.
struct Issuer {
    url: String,
    asked: Receiver<String>,
}

impl Issuer {
    fn answering(answer: String) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let url = format!("http://{}/token?key=s3cret-query", listener.local_addr().expect("bound"));
        let (tell, asked) = channel();
        // Ends with the test's process.
        std::thread::spawn(move || {
            for mut socket in listener.incoming().flatten() {
                let mut request = Vec::new();
                let mut buffer = [0; 4096];
                while !is_whole(&request) {
                    match socket.read(&mut buffer) {
                        Ok(count) if count > 0 => request.extend_from_slice(&buffer[..count]),
                        _ => break,
                    }
                }
                // Whoever no longer listens has failed for another reason.
                let _ = tell.send(String::from_utf8_lossy(&request).into_owned());
                let _ = socket.write_all(answer.as_bytes());
            }
        });
        Self { url, asked }
    }

    fn saying(status: &str, headers: &str, body: &str) -> Self {
        let length = body.len();
        Self::answering(format!(
            "HTTP/1.1 {status}\r\n{headers}content-length: {length}\r\nconnection: close\r\n\r\n{body}"
        ))
    }

    fn grant(&self, more: &str) -> String {
        format!(
            "[identities.expired.client_credentials]\ntoken_url = \"{}\"\nclient_id = \"probe/1\"\nclient_secret_env = \"PROBE_SECRET\"\n{more}",
            self.url
        )
    }
}

fn is_whole(request: &[u8]) -> bool {
    let text = String::from_utf8_lossy(request).to_ascii_lowercase();
    let Some((head, body)) = text.split_once("\r\n\r\n") else { return false };
    let length = head.lines().find_map(|line| line.strip_prefix("content-length: ")?.trim().parse::<usize>().ok());
    body.len() >= length.unwrap_or(0)
}

/// Probes a twin for sessions that outlive the token, with this profile.
fn probe(twin: &Twin, profile: &str) -> Ran {
    static NUMBER: AtomicUsize = AtomicUsize::new(0);
    let scratch = Scratch::new(&format!("identities-{}", NUMBER.fetch_add(1, Ordering::Relaxed)));
    let profile = scratch.file("profile.toml", profile);
    let mut probe = handfast();
    probe.args(["probe", &twin.url, "--identity-a", "alice", "--identity-b", "bob", "--profile", &profile]);
    probe.args(["--check", "session-outlives-token", "--format", "json"]);
    probe.env("TOKEN_THAT_ENDED", EXPIRED).env("PROBE_SECRET", "s3cret of&the=client");
    Ran::of(&mut probe)
}

fn outcome(report: &Value) -> &str {
    check(report, "session-outlives-token")["reason"].as_str().expect("a reason")
}

fn assert_says_no_secret(ran: &Ran) {
    for secret in [EXPIRED, "s3cret"] {
        assert!(!ran.said().contains(secret), "{secret} is in {}", ran.said());
    }
}

#[test]
fn a_credential_comes_from_four_sources() {
    let (flawed, sound) = (Twin::start("checks-token-once"), Twin::start("sessions"));
    let issuer = Issuer::saying(
        "200 OK",
        "content-type: application/json\r\n",
        &format!("{{\"access_token\": \"{EXPIRED}\", \"token_type\": \"Bearer\", \"expires_in\": 60}}"),
    );
    for source in [
        format!("[identities.expired]\nvalue = \"{EXPIRED}\"\n"),
        "[identities.expired]\nenv = \"TOKEN_THAT_ENDED\"\n".to_owned(),
        format!("[identities.expired]\ncommand = [\"printf\", \"%s\\n\", \"{EXPIRED}\"]\n"),
        issuer.grant("scope = \"mcp read\"\nresource = \"https://mcp.example.com/mcp\"\n"),
    ] {
        let (bad, good) = (probe(&flawed, &source), probe(&sound, &source));

        assert_eq!((bad.code, outcome(&bad.json())), (1, "session-outlived-token"), "{source}");
        assert_eq!((good.code, outcome(&good.json())), (0, "session-guard-held"), "{source}");
        assert_says_no_secret(&bad);
        assert_says_no_secret(&good);
    }
    let asked = issuer.asked.recv().expect("it was asked");
    let (head, form) = asked.split_once("\r\n\r\n").expect("a request");
    assert!(head.starts_with("POST /token?key=s3cret-query "), "{head}");
    assert_eq!(form, "grant_type=client_credentials&scope=mcp%20read&resource=https%3A%2F%2Fmcp.example.com%2Fmcp");
    // probe%2F1:s3cret%20of%26the%3Dclient
    let basic = "Basic cHJvYmUlMkYxOnMzY3JldCUyMG9mJTI2dGhlJTNEY2xpZW50";
    assert!(head.lines().any(|line| line.eq_ignore_ascii_case(&format!("authorization: {basic}"))), "{head}");
}

#[test]
fn without_one_the_check_is_skipped_by_name() {
    let ran = probe(&Twin::start("checks-token-once"), "");

    assert_eq!((ran.code, outcome(&ran.json())), (3, "needs-identity:expired"));
}

#[test]
fn a_grant_that_brings_no_token_is_told_without_the_secret() {
    let long = format!("{{\"access_token\": \"{}\"}}", "x".repeat(70_000));
    let twin = Twin::start("sessions");
    for (status, headers, body, words) in [
        (
            "401 no",
            "",
            "{\"error\": \"invalid_client\", \"error_description\": \"s3cret of&the=client\"}",
            "HTTP 401, invalid_client",
        ),
        ("500 no", "", "s3cret of&the=client", "HTTP 500"),
        ("400 no", "", "{\"error\": \"it was s3cret\"}", "HTTP 400"),
        ("307 there", "location: http://127.0.0.1:9/token\r\n", "", "redirects, which is not followed"),
        ("200 OK", "", "{}", "no `access_token`"),
        ("200 OK", "", "<html>s3cret</html>", "no `access_token`"),
        ("200 OK", "", "{\"access_token\": \"expired-alice\", \"token_type\": \"mac\"}", "no bearer token"),
        ("200 OK", "", "{\"access_token\": \"\"}", "is empty"),
        ("200 OK", "", &long, "longer than 65536 bytes"),
    ] {
        let ran = probe(&twin, &Issuer::saying(status, headers, body).grant(""));

        assert_eq!(ran.code, 2, "{words}: {ran:?}");
        assert!(ran.stderr.contains("identity expired of the profile") && ran.stderr.contains(words), "{}", ran.stderr);
        assert_eq!(ran.stderr.trim().lines().count(), 1, "{}", ran.stderr);
        assert_says_no_secret(&ran);
    }
}

#[test]
fn a_source_that_cannot_work_is_bad_usage_without_the_secret() {
    let twin = Twin::start("sessions");
    let grant = |url: &str, secret: &str| {
        format!("[identities.expired.client_credentials]\ntoken_url = \"{url}\"\nclient_id = \"probe\"\n{secret}\n")
    };
    let by_env = "client_secret_env = \"PROBE_SECRET\"";
    for (profile, words) in [
        ("[identities.expired]\n".to_owned(), "needs one of"),
        (format!("[identities.expired]\nvalue = \"{EXPIRED}\"\nenv = \"TOKEN_THAT_ENDED\"\n"), "it has 2"),
        (format!("[identities]\nexpired = \"{EXPIRED}\"\n"), "`expired` must be a table with one of value, env"),
        ("[identities.expired]\nenv = \"NOT_SET_ANYWHERE\"\n".to_owned(), "$NOT_SET_ANYWHERE, which is not set"),
        ("[identities.expired]\ncommand = [\"/nonexistent/s\", \"s3cret\"]\n".to_owned(), "cannot be run"),
        ("[identities.expired]\ncommand = [\"sh\", \"-c\", \"echo s3cret; exit 3\"]\n".to_owned(), "exit status: 3"),
        ("[identities.expired]\ncommand = [\"true\"]\n".to_owned(), "is empty"),
        (
            "[identities.expired]\ncommand = [\"printf\", \"s3cret\\\\nand more\"]\n".to_owned(),
            "characters that no credential has",
        ),
        ("[identities.expired]\nvalue = \"two s3cret words\"\n".to_owned(), "blanks or characters"),
        (grant("http://issuer.example.com/token", by_env), "must be https"),
        (grant("ftp://127.0.0.1/token", by_env), "must be https"),
        (grant("https://me:s3cret@issuer.example.com/token", by_env), "no user and no password"),
        (grant("nothing", by_env), "not a URL"),
        (grant("https://issuer.example.com/token", ""), "needs one of `client_secret_env`"),
        (grant("http://127.0.0.1:9/token", by_env), "could not connect"),
        ("[identities.stranger]\nvalue = \"x\"\n".to_owned(), "stranger"),
    ] {
        let ran = probe(&twin, &profile);

        assert_eq!(ran.code, 2, "{words}: {ran:?}");
        assert!(ran.stderr.contains(words), "`{words}` is not in {}", ran.stderr);
        assert_says_no_secret(&ran);
    }
}

#[test]
fn a_and_b_come_from_the_profile_too_and_the_command_line_wins() {
    let twin = Twin::start("unbound-sessions");
    let scratch = Scratch::new("identities-ab");
    let profile = scratch.file(
        "profile.toml",
        "[identities.a]\ncommand = [\"echo\", \"alice\"]\n[identities.b]\nenv = \"TOKEN_OF_BOB\"\n",
    );
    let run = |more: &[&str]| {
        let mut probe = handfast();
        probe.args(["probe", &twin.url, "--profile", &profile, "--check", "session-foreign-principal"]).args(more);
        Ran::of(probe.env("TOKEN_OF_BOB", "bob"))
    };

    assert_eq!(run(&[]).code, 1);
    let same = run(&["--identity-b", "alice"]);
    assert_eq!(same.code, 2);
    assert!(same.stderr.contains("are the same"), "{}", same.stderr);
}

#[test]
fn a_server_does_not_inherit_the_secrets_of_its_prober() {
    let scratch = Scratch::new("identities-hidden");
    let seen = scratch.path("seen").display().to_string();
    let server = scratch
        .script("server", &format!("env > '{seen}'\nexec '{}' twin sound --transport stdio\n", support::HANDFAST));
    let profile = scratch.file(
        "profile.toml",
        "[identities.expired]\nenv = \"TOKEN_THAT_ENDED\"\n[identities.anonymous.client_credentials]\ntoken_url = \"http://127.0.0.1:9/\"\nclient_id = \"p\"\nclient_secret_env = \"PROBE_SECRET\"\n",
    );
    let issuer = Issuer::saying("200 OK", "", "{\"access_token\": \"guest\"}");
    let text = std::fs::read_to_string(&profile).expect("it was written").replace("http://127.0.0.1:9/", &issuer.url);
    std::fs::write(&profile, text).expect("a file of ours");
    let mut probe = handfast();
    probe.args(["probe", "--profile", &profile, "--", &server]);
    let ran = Ran::of(probe.env("TOKEN_THAT_ENDED", EXPIRED).env("PROBE_SECRET", "s3cret"));

    assert_eq!(ran.code, 0, "{ran:?}");
    let environment = std::fs::read_to_string(seen).expect("it was started");
    assert!(!environment.contains(EXPIRED) && !environment.contains("s3cret"), "{environment}");
}
