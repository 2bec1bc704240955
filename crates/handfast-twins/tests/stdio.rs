//! The same twins on standard input and output: the same bodies, no headers, identities by `_meta`.

use handfast_twins::{find, serve_stdio};
use handfast_wire::{
    message::Message,
    meta,
    stdio::{Decoder, Line},
};
use serde_json::{Value, json};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt, DuplexStream},
    time::Instant,
};

/// A twin in this process, behind two pipes.
struct Piped {
    input: DuplexStream,
    output: DuplexStream,
    decoder: Decoder,
    waiting: Vec<Line>,
    next_id: u64,
}

impl Piped {
    fn start(name: &str) -> Self {
        let twin = find(name).expect("a twin of this name");
        let (input, theirs_in) = tokio::io::duplex(4096);
        let (theirs_out, output) = tokio::io::duplex(4096);
        tokio::spawn(serve_stdio(twin, theirs_in, theirs_out));
        Self { input, output, decoder: Decoder::new(1 << 20), waiting: Vec::new(), next_id: 0 }
    }

    async fn send(&mut self, text: &str) {
        self.input.write_all(text.as_bytes()).await.expect("the twin reads");
    }

    /// The next line; `None` when the twin has closed its output.
    async fn line(&mut self) -> Option<Line> {
        while self.waiting.is_empty() {
            let mut buffer = [0; 1024];
            let count = self.output.read(&mut buffer).await.expect("the twin writes");
            if count == 0 {
                return None;
            }
            self.waiting.extend(self.decoder.push(&buffer[..count]));
        }
        Some(self.waiting.remove(0))
    }

    async fn message(&mut self) -> Value {
        loop {
            match self.line().await.expect("an answer") {
                Line::Message(Message::Response(response)) => return response.to_value(),
                Line::Noise(_) => {}
                other => panic!("neither answer nor noise: {other:?}"),
            }
        }
    }

    fn draft(&mut self, method: &str, mut params: Value, principal: Option<&str>) -> String {
        self.next_id += 1;
        let mut meta = meta::modern(meta::every_capability(), "test", "0");
        if let Some(principal) = principal {
            meta.insert(meta::PRINCIPAL.into(), principal.into());
        }
        params["_meta"] = meta.into();
        json!({"jsonrpc": "2.0", "id": self.next_id, "method": method, "params": params}).to_string() + "\n"
    }

    async fn request(&mut self, method: &str, params: Value, principal: Option<&str>) -> Value {
        let text = self.draft(method, params, principal);
        self.send(&text).await;
        let message = self.message().await;
        assert_eq!(message["id"], self.next_id);
        message
    }

    async fn tool(&mut self, name: &str, arguments: Value, principal: &str) -> Value {
        self.request("tools/call", json!({"name": name, "arguments": arguments}), Some(principal)).await
    }
}

#[tokio::test]
async fn principal_is_claimed_or_local() {
    for (name, claimed, who) in [
        ("sound", Some("alice"), "alice"),
        ("sound", Some(""), "local"),
        ("sound", None, "local"),
        ("ignores-identity", Some("alice"), "local"),
        ("any-token", Some("alice"), "user"),
    ] {
        let mut twin = Piped::start(name);

        let message = twin.request("tools/call", json!({"name": "whoami"}), claimed).await;

        assert_eq!(message["result"]["structuredContent"]["principal"], who, "{name} {claimed:?}");
    }
}

#[tokio::test]
async fn handle_is_bound_in_sound_and_not_in_flawed() {
    for (name, bound) in [("sound", true), ("flawed", false)] {
        let mut twin = Piped::start(name);
        let opened = twin.tool("open_workspace", json!({"label": "canary"}), "alice").await;
        let arguments = json!({"workspace_id": opened["result"]["structuredContent"]["workspace_id"]});

        let own = twin.tool("read_workspace", arguments.clone(), "alice").await;
        let foreign = twin.tool("read_workspace", arguments, "bob").await;
        let forged = twin.tool("read_workspace", json!({"workspace_id": "ws-0"}), "bob").await;

        assert_eq!(own["result"]["structuredContent"]["label"], "canary", "{name}");
        assert_eq!(foreign["result"]["isError"] == true, bound, "{name}");
        assert_eq!(forged["result"]["isError"], true, "{name}");
    }
}

#[tokio::test]
async fn any_name_is_somebody_and_nobody_else() {
    for name in ["\0", "\n", "  ", "alice\u{7f}", "\u{feff}", "\u{1f980}", &"x".repeat(100_000)] {
        let mut twin = Piped::start("sound");
        let opened = twin.tool("open_workspace", json!({"label": "canary"}), name).await;
        let arguments = json!({"workspace_id": opened["result"]["structuredContent"]["workspace_id"]});

        let own = twin.tool("read_workspace", arguments.clone(), name).await;
        let nearly = twin.tool("read_workspace", arguments, &format!("{name} ")).await;

        assert_eq!(own["result"]["structuredContent"]["label"], "canary", "{name:?}");
        assert_eq!(nearly["result"]["isError"], true, "{name:?}");
    }
}

#[tokio::test]
async fn nobody_talks_themselves_into_somebody_elses_name_space() {
    let mut twin = Piped::start("partitioned");
    let read = |handle: &str| json!({"workspace_id": handle});
    let written = json!({"workspace_id": "b\nc", "text": "canary"});
    twin.tool("append_note", written, "a").await;

    let own = twin.tool("read_workspace", read("b\nc"), "a").await;
    let foreign = twin.tool("read_workspace", read("c"), "a\nb").await;

    assert_eq!(own["result"]["structuredContent"]["notes"], json!(["canary"]));
    assert_eq!(foreign["result"]["isError"], true, "{foreign}");
}

#[tokio::test]
async fn state_makes_its_round_trip() {
    let mut twin = Piped::start("sound");
    let opened = twin.tool("open_workspace", json!({"label": "one"}), "alice").await;
    let arguments = json!({"workspace_id": opened["result"]["structuredContent"]["workspace_id"]});
    let asked = twin.tool("archive_workspace", arguments.clone(), "alice").await;
    let mut params = json!({
        "name": "archive_workspace",
        "arguments": arguments,
        "requestState": asked["result"]["requestState"],
        "inputResponses": {"confirm": {"action": "accept", "content": {"confirm": true}}}
    });

    let own = twin.request("tools/call", params.clone(), Some("alice")).await;
    params["requestState"] = "x".into();
    let bad = twin.request("tools/call", params, Some("alice")).await;

    assert_eq!(own["result"]["structuredContent"]["principal"], "alice");
    assert_eq!(bad["error"], json!({"code": -32602, "message": "invalid requestState"}));
}

#[tokio::test]
async fn bodies_are_checked_as_over_http() {
    let mut twin = Piped::start("sound");
    let cases = [
        (r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{}}"#, json!(1), -32601),
        (r#"{"jsonrpc":"2.0","id":"two","method":"tools/list"}"#, json!("two"), -32602),
        (r#"{"jsonrpc":"2.0","id":3,"method":"tools/list","params":{"_meta":{}}}"#, json!(3), -32602),
        ("{", json!(null), -32700),
        ("[]", json!(null), -32600),
        ("7", json!(null), -32600),
        (r#"{"jsonrpc":"2.0","id":null,"method":"tools/list"}"#, json!(null), -32600),
    ];
    for (line, id, code) in cases {
        twin.send(&format!("{line}\r\n\n")).await;
        let message = twin.message().await;

        assert_eq!((&message["id"], &message["error"]["code"]), (&id, &json!(code)), "{line}");
    }

    let text = twin
        .draft("tools/list", json!({}), None)
        .replace(r#"protocolVersion":"2026-07-28"#, r#"protocolVersion":"2025-11-25"#);
    twin.send(&text).await;
    let message = twin.message().await;
    assert_eq!(message["error"]["code"], -32022);
    assert_eq!(message["error"]["data"], json!({"supported": ["2026-07-28"], "requested": "2025-11-25"}));
}

#[tokio::test]
async fn notifications_are_not_answered_and_long_lines_are() {
    let mut twin = Piped::start("sound");

    twin.send("{\"jsonrpc\":\"2.0\",\"method\":\"notifications/cancelled\"}\n").await;
    let discovered = twin.request("server/discover", json!({}), None).await;
    twin.send(&("x".repeat(1024 * 1024 + 1) + "\n")).await;
    let too_long = twin.message().await;

    assert_eq!(discovered["result"]["supportedVersions"], json!(["2026-07-28"]));
    assert_eq!(too_long["error"]["code"], -32600);
}

#[tokio::test]
async fn end_of_input_ends_it_after_the_last_answer() {
    let mut twin = Piped::start("sound");
    let first = twin.draft("server/discover", json!({}), None);
    let last = twin.draft("tools/list", json!({}), None);

    twin.send(&first).await;
    twin.send(last.trim_end()).await;
    twin.input.shutdown().await.expect("it closes");

    assert_eq!(twin.message().await["id"], 1);
    assert_eq!(twin.message().await["id"], 2);
    assert!(twin.line().await.is_none());
}

#[tokio::test]
async fn noisy_prints_in_between_and_answers_out_of_order() {
    let mut twin = Piped::start("noisy");
    let both = twin.draft("server/discover", json!({}), None) + &twin.draft("tools/list", json!({}), None);

    twin.send(&both).await;
    let (mut noise, mut ids) = (0, Vec::new());
    while ids.len() < 2 {
        match twin.line().await.expect("it goes on") {
            Line::Message(Message::Response(response)) => ids.push(response.to_value()["id"].clone()),
            Line::Noise(_) => noise += 1,
            other => panic!("{other:?}"),
        }
    }

    assert_eq!(ids, [json!(2), json!(1)]);
    assert!(noise >= 3, "{noise}");
}

#[tokio::test(start_paused = true)]
#[allow(clippy::disallowed_methods, reason = "time stands still here, and only the sleep moves it")]
async fn slow_start_is_slow_once() {
    let mut twin = Piped::start("slow-start");
    let start = Instant::now();

    twin.request("server/discover", json!({}), None).await;
    let first = start.elapsed().as_millis();
    twin.request("server/discover", json!({}), None).await;

    assert_eq!((first, start.elapsed().as_millis()), (300, 300));
}

#[tokio::test]
async fn legacy_wants_initialize_first() {
    let mut twin = Piped::start("legacy");

    let modern = twin.request("server/discover", json!({}), None).await;
    let early = twin.request("tools/list", json!({}), None).await;
    let ping = twin.request("ping", json!({}), None).await;
    let opened = twin.request("initialize", json!({"protocolVersion": "2025-06-18"}), None).await;
    twin.send("{\"jsonrpc\":\"2.0\",\"method\":\"notifications/initialized\"}\n").await;
    let listed = twin.request("tools/list", json!({}), None).await;
    let called = twin.request("tools/call", json!({"name": "echo", "arguments": {"text": "hi"}}), None).await;

    assert_eq!(modern["error"]["code"], -32601);
    assert_eq!(early["error"]["code"], -32600);
    assert_eq!(ping["result"], json!({}));
    assert_eq!(opened["result"]["protocolVersion"], "2025-06-18");
    assert_eq!(listed["result"]["tools"][0]["name"], "echo");
    assert_eq!(called["result"]["content"][0]["text"], "hi");
}
