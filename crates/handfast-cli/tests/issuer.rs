//! `handfast issuer`: what it says, and that its tokens are what their names say.

mod support;

use std::{
    io::{BufRead, BufReader},
    process::{Child, Stdio},
};

use handfast::token::{Algorithm, Jwks, JwtVerifier, TokenDenial, TokenRules, TokenVerifier};
use serde_json::Value;
use support::handfast;

const OURS: &str = "http://127.0.0.1:8080/mcp";

struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn start(more: &[&str]) -> (Running, String) {
    let arguments = [&["issuer", "--audience", OURS], more].concat();
    let mut child = handfast().args(arguments).stdout(Stdio::piped()).spawn().expect("the binary runs");
    let mut line = String::new();
    let output = child.stdout.take().expect("it is piped");
    BufReader::new(output).read_line(&mut line).expect("it says where it is");
    (Running(child), line)
}

#[tokio::test]
async fn its_tokens_are_what_their_names_say() {
    let (_running, line) = start(&["--format", "json", "--scope", "mcp:tools", "--users", "ann", "ben"]);
    let told: Value = line.parse().expect("JSON");
    let text = |name: &str| told[name].as_str().expect("text").to_owned();
    let keys = Jwks::at(&text("jwks")).expect("loopback");
    let (issuer, audience) = (text("issuer").parse().expect("one"), OURS.parse().expect("one"));
    let verifier = JwtVerifier::new(TokenRules::new(issuer, audience), &[Algorithm::Es256], keys);
    let verify = async |name: &str| verifier.verify(told["tokens"][name].as_str().expect("a token")).await;

    let subject = |caller: &handfast::Caller| caller.principal().expect("one").subject().expose().to_owned();
    for (name, user, client) in [
        ("a", "ann", "demo-client"),
        ("b", "ben", "demo-client"),
        ("a-new-token", "ann", "demo-client"),
        ("same-user-other-client", "ann", "other-demo-client"),
        ("other-tenant", "ann", "demo-client"),
    ] {
        let caller = verify(name).await.expect(name).caller;
        assert_eq!((subject(&caller).as_str(), caller.client().expect("one").as_str()), (user, client), "{name}");
        assert_eq!(caller.scopes().expect("scopes").text(), "mcp:tools");
    }
    assert_ne!(told["tokens"]["a"], told["tokens"]["a-new-token"]);
    for (name, denial) in [
        ("wrong-audience", TokenDenial::Audience),
        ("expired", TokenDenial::Expired),
        ("other-key", TokenDenial::Signature),
    ] {
        assert_eq!(verify(name).await, Err(denial), "{name}");
    }

    let form = "grant_type=client_credentials&client_id=shop&subject=cleo&resource=http%3A%2F%2F127.0.0.1%3A8080%2Fmcp";
    let ask = async |secret: &str| {
        let body = format!("{form}&client_secret={secret}");
        let request = reqwest::Client::new().post(text("token_endpoint")).body(body);
        let answer =
            request.header("content-type", "application/x-www-form-urlencoded").send().await.expect("an answer");
        let (status, text) = (answer.status().as_u16(), answer.text().await.expect("text"));
        (status, text.parse::<Value>().expect("JSON"))
    };
    let (status, answer) = ask(&text("client_secret")).await;
    assert_eq!(status, 200, "{answer}");
    let caller = verifier.verify(answer["access_token"].as_str().expect("a token")).await.expect("good").caller;
    assert_eq!(subject(&caller), "cleo");
    assert_eq!(ask("wrong").await.0, 401);
}

#[test]
fn it_says_where_it_is_and_what_is_wrong() {
    let (_running, line) = start(&[]);
    let port = line.trim().rsplit(':').next().expect("a port").to_owned();
    assert_eq!(line, format!("issuer: http://127.0.0.1:{port}\n"));

    for (arguments, told) in [
        (vec!["issuer"], "--audience"),
        (vec!["issuer", "--audience", OURS, "--port", &port], "cannot listen"),
        (vec!["issuer", "--audience", OURS, "--lifetime", "soon"], "--lifetime"),
    ] {
        let output = handfast().args(&arguments).output().expect("it runs");
        let said = String::from_utf8(output.stderr).expect("text");
        assert!(output.status.code() == Some(2) && said.contains(told) && said.lines().count() == 1, "{said}");
    }
}
