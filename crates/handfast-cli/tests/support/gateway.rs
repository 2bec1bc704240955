//! Gateways in processes of their own, and the users who speak to them.
#![allow(dead_code, reason = "each test file uses its part of this")]

use std::{
    collections::BTreeMap,
    io::{BufRead, BufReader},
    process::{Child, Command, Stdio},
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
        mpsc,
    },
    time::Duration,
};

use handfast_twins::issuer::{Issuer, Wish};
use serde_json::{Value, json};

use crate::support::{Scratch, handfast};

/// The server, as tokens name it.
pub(crate) const OURS: &str = "https://mcp.example.com/mcp";

/// A gateway in a process of its own. Dropping it ends it.
pub(crate) struct Gateway {
    child: Child,
    pub(crate) url: String,
    admin: String,
    told: mpsc::Receiver<String>,
}

impl Gateway {
    /// Starts one by this configuration, which says nothing of where it listens.
    pub(crate) fn start(scratch: &Scratch, name: &str, config: &str) -> Self {
        let audit = scratch.path(&format!("{name}.audit")).display().to_string();
        let here = format!("listen = \"127.0.0.1:0\"\nadmin = \"127.0.0.1:0\"\naudit = \"{audit}\"\n");
        let config = scratch.file(&format!("{name}.toml"), &format!("{here}{config}"));
        let mut command = handfast();
        command.args(["gateway", "--config", &config]).env("HANDFAST_LOG", "error");
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("the binary runs");
        let mut said = BufReader::new(child.stdout.take().expect("it is piped"));
        let complains = BufReader::new(child.stderr.take().expect("it is piped"));
        let (tell, told) = mpsc::channel();
        std::thread::spawn(move || {
            for line in complains.lines().map_while(Result::ok) {
                let _ = tell.send(line);
            }
        });
        let mut address = || {
            let mut line = String::new();
            said.read_line(&mut line).expect("it says where");
            line.trim().rsplit(' ').next().unwrap_or_default().to_owned()
        };
        let (url, admin) = (address(), address());
        let gateway = Self { child, url, admin, told };
        assert!(gateway.url.starts_with("http://"), "it does not start: {:?}", gateway.told.recv());
        gateway
    }

    /// Has it read its rules and keys again, and waits until it has.
    pub(crate) fn hang_up(&self) {
        self.signal("HUP");
        loop {
            let told = self.told.recv_timeout(LONG).expect("it says so");
            assert!(!told.contains("nothing is changed"), "{told}");
            if told.contains("rules and keys are read again") {
                return;
            }
        }
    }

    pub(crate) fn signal(&self, name: &str) {
        let sent = Command::new("kill").args([&format!("-{name}"), &self.child.id().to_string()]).status();
        assert!(sent.expect("kill runs").success());
    }

    /// Ends it where it stands, as `kill -9` does.
    pub(crate) fn kill(mut self) {
        self.child.kill().expect("it runs");
        self.child.wait().expect("it ends");
    }

    /// Waits until it has ended by itself: whether in good order.
    pub(crate) fn has_ended_well(mut self) -> bool {
        self.child.wait().expect("it ends").success()
    }

    /// The most memory that it has ever had, in megabytes.
    pub(crate) fn most_memory(&self) -> u64 {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.child.id())).expect("it runs");
        let most = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).expect("Linux says so");
        most.trim().trim_end_matches(" kB").parse::<u64>().expect("a number") / 1024
    }

    /// Where it listens.
    pub(crate) fn address(&self) -> String {
        self.url.trim_start_matches("http://").trim_end_matches("/mcp").to_owned()
    }

    /// What is said at one of its other addresses.
    pub(crate) async fn admin(&self, path: &str) -> (u16, String) {
        let response = reqwest::get(format!("{}{path}", self.admin)).await.expect("it answers");
        (response.status().as_u16(), response.text().await.expect("text"))
    }
}

impl Drop for Gateway {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Somebody with a token.
#[derive(Clone)]
pub(crate) struct User {
    pub(crate) http: reqwest::Client,
    pub(crate) token: String,
    pub(crate) ids: Arc<AtomicU64>,
}

/// What came back.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) headers: BTreeMap<String, String>,
    pub(crate) text: String,
}

impl User {
    pub(crate) fn of(issuer: &Issuer, name: &str) -> Self {
        let wish = Wish { lifetime: 24 * 3600, ..Wish::of(name, OURS) };
        Self::with(issuer.token(&wish))
    }

    pub(crate) fn with(token: String) -> Self {
        Self { http: reqwest::Client::new(), token, ids: Arc::default() }
    }

    /// Calls a tool in the way of 2026-07-28.
    pub(crate) async fn call(&self, url: &str, tool: &str, arguments: Value) -> Answer {
        self.continued(url, tool, arguments, &json!({})).await
    }

    /// Calls a tool with more in the parameters: answers, and a state.
    pub(crate) async fn continued(&self, url: &str, tool: &str, arguments: Value, more: &Value) -> Answer {
        self.try_call(url, tool, arguments, more).await.expect("an answer")
    }

    /// As above, where it may be that nobody answers.
    pub(crate) async fn try_call(
        &self,
        url: &str,
        tool: &str,
        arguments: Value,
        more: &Value,
    ) -> reqwest::Result<Answer> {
        let request = self.modern(url, tool, arguments, more);
        Answer::of(request.send().await?).await
    }

    /// A call that is yet to be sent.
    pub(crate) fn modern(&self, url: &str, tool: &str, arguments: Value, more: &Value) -> reqwest::RequestBuilder {
        let mut params = json!({"name": tool, "arguments": arguments, "_meta": {
            "io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientCapabilities": {"elicitation": {"form": {}}},
        }});
        for (name, value) in more.as_object().expect("an object") {
            params[name] = value.clone();
        }
        let headers = [("mcp-protocol-version", "2026-07-28"), ("mcp-method", "tools/call"), ("mcp-name", tool)];
        self.post(url, "tools/call", &params, &headers)
    }

    /// Sends a request in the way of 2025-11-25.
    pub(crate) async fn older(&self, url: &str, session: Option<&str>, method: &str, params: Value) -> Answer {
        let mut headers = vec![("mcp-protocol-version", "2025-11-25")];
        headers.extend(session.map(|id| ("mcp-session-id", id)));
        Answer::of(self.post(url, method, &params, &headers).send().await.expect("an answer")).await.expect("all of it")
    }

    /// Begins a session: its id.
    pub(crate) async fn session(&self, url: &str) -> String {
        let hello =
            json!({"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "t", "version": "0"}});
        let begun = self.older(url, None, "initialize", hello).await;
        assert_eq!(begun.status, 200, "{begun:?}");
        begun.headers["mcp-session-id"].clone()
    }

    /// Ends a session.
    pub(crate) async fn end(&self, url: &str, session: &str) -> u16 {
        let request = self.http.delete(url).bearer_auth(&self.token).header("mcp-session-id", session);
        let answer = request.header("mcp-protocol-version", "2025-11-25").send().await.expect("an answer");
        answer.status().as_u16()
    }

    fn post(&self, url: &str, method: &str, params: &Value, headers: &[(&str, &str)]) -> reqwest::RequestBuilder {
        let id = self.ids.fetch_add(1, Ordering::Relaxed);
        let body = json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}).to_string();
        let mut request = self.http.post(url).bearer_auth(&self.token).body(body);
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        request.header("content-type", "application/json").header("accept", "application/json, text/event-stream")
    }
}

impl Answer {
    pub(crate) async fn of(response: reqwest::Response) -> reqwest::Result<Self> {
        let status = response.status().as_u16();
        let headers = response.headers().iter();
        let headers = headers.map(|(name, value)| (name.to_string(), value.to_str().expect("text").to_owned()));
        let headers = headers.collect();
        Ok(Self { status, headers, text: response.text().await? })
    }

    /// The message, which may have come as an event.
    pub(crate) fn json(&self) -> Value {
        let text = self.text.lines().find_map(|line| line.strip_prefix("data: ")).unwrap_or(&self.text);
        serde_json::from_str(text).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }

    pub(crate) fn result(&self) -> Value {
        self.json()["result"].clone()
    }

    /// A value of the structured content of a result that is no error.
    pub(crate) fn value(&self, name: &str) -> Value {
        let result = self.result();
        assert_ne!(result["isError"], true, "{self:?}");
        result["structuredContent"][name].clone()
    }

    /// The first text of a result.
    pub(crate) fn told(&self) -> String {
        self.result()["content"][0]["text"].as_str().unwrap_or_default().to_owned()
    }

    /// Whether it was done.
    pub(crate) fn is_done(&self) -> bool {
        let message = self.json();
        self.status == 200 && message.get("error").is_none() && message["result"]["isError"] != true
    }

    /// The state that a question came with.
    pub(crate) fn state(&self) -> Value {
        let state = self.result()["requestState"].clone();
        assert!(state.is_string(), "{self:?}");
        state
    }
}

/// Waits until something is so.
pub(crate) async fn until(mut is_so: impl AsyncFnMut() -> bool) {
    let waiting = async {
        while !is_so().await {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(LONG, waiting).await.expect("it is so in the end");
}

/// Longer than anything here takes.
pub(crate) const LONG: Duration = Duration::from_secs(60);
