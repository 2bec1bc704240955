//! The odd servers are odd in the way that they are named for.

mod support;

use std::time::Duration;

use handfast_twins::odd::{Odd, OddServer, start};
use serde_json::{Value, json};
use support::{Answer, Client};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
};

async fn odd(kind: Odd) -> (OddServer, Client) {
    let server = start(kind).await.expect("a free port");
    let client = Client::new(server.url(), "alice");
    (server, client)
}

async fn listed(client: &Client) -> Answer {
    client.request("tools/list", json!({})).await
}

/// Sends a request and reads up to `limit` bytes of whatever comes, for half a second at most.
async fn raw(client: &Client, limit: usize) -> (Vec<u8>, bool) {
    let authority = client.url.replace("http://", "").replace("/mcp", "");
    let mut socket = TcpStream::connect(authority).await.expect("it listens");
    let (headers, body) = client.draft("tools/list", json!({}));
    let body = body.to_string();
    let mut head = format!("POST /mcp HTTP/1.1\r\ncontent-length: {}\r\n", body.len());
    for (name, value) in headers {
        head.push_str(&format!("{name}: {value}\r\n"));
    }
    socket.write_all(format!("{head}\r\n{body}").as_bytes()).await.expect("it reads");
    let (mut bytes, mut ended) = (Vec::new(), false);
    let reading = async {
        while bytes.len() < limit {
            if socket.read_buf(&mut bytes).await.unwrap_or(0) == 0 {
                ended = true;
                break;
            }
        }
    };
    let _ = tokio::time::timeout(Duration::from_millis(500), reading).await;
    (bytes, ended)
}

#[tokio::test]
async fn refuses_everything_or_only_calls() {
    let (_server, client) = odd(Odd::RefusesEverything).await;
    assert_eq!(listed(&client).await.code(), -32603);
    assert_eq!(client.tool("whoami", json!({})).await["error"]["code"], -32603);

    let (_server, client) = odd(Odd::RefusesCalls).await;
    assert!(listed(&client).await.message()["result"]["tools"].is_array());
    assert_eq!(client.tool("whoami", json!({})).await["error"]["code"], -32603);
}

#[tokio::test]
async fn answers_everything_to_every_call() {
    let (_server, client) = odd(Odd::AnswersEverything).await;

    assert!(listed(&client).await.message()["result"]["tools"].is_array());
    for name in ["open_workspace", "archive_workspace", "nothing"] {
        let message = client.tool(name, json!({"workspace_id": "forged"})).await;
        assert!(support::is_accepted(&message), "{name}");
        assert_eq!(message["result"]["content"][0]["text"], "done", "{name}");
    }
}

#[tokio::test]
async fn statuses_come_at_once_or_after_honest_answers() {
    let (server, client) = odd(Odd::Status(503)).await;
    assert_eq!(listed(&client).await.status, 503);
    assert_eq!(server.requests(), 1);

    let (_server, client) = odd(Odd::StatusAfter { honest: 2, status: 502 }).await;
    let handle = client.open("one").await;
    assert!(support::is_accepted(&client.tool("read_workspace", json!({"workspace_id": handle})).await));
    assert_eq!(listed(&client).await.status, 502);

    let (_server, client) = odd(Odd::RateLimits(1)).await;
    assert_eq!(listed(&client).await.status, 200);
    let limited = listed(&client).await;
    assert_eq!((limited.status, limited.header("retry-after")), (429, Some("1")));

    let (_server, client) = odd(Odd::RedirectsElsewhere("http://127.0.0.1:9/mcp".into())).await;
    let redirected = listed(&client).await;
    assert_eq!((redirected.status, redirected.header("location")), (307, Some("http://127.0.0.1:9/mcp")));
}

#[tokio::test]
async fn sockets_close_or_hang_at_once_or_later() {
    let (_server, client) = odd(Odd::ClosesSocket).await;
    assert_eq!(raw(&client, 100).await, (Vec::new(), true));

    let (_server, client) = odd(Odd::ClosesAfter(1)).await;
    assert_eq!(listed(&client).await.status, 200);
    assert_eq!(raw(&client, 100).await, (Vec::new(), true));

    let (_server, client) = odd(Odd::Hangs).await;
    assert_eq!(raw(&client, 100).await, (Vec::new(), false));

    let (server, client) = odd(Odd::HangsAfter(1)).await;
    assert_eq!(listed(&client).await.status, 200);
    assert_eq!(raw(&client, 100).await, (Vec::new(), false));
    drop(server);
}

#[tokio::test]
async fn bodies_are_not_what_they_say() {
    let (_server, client) = odd(Odd::Garbage).await;
    let garbage = listed(&client).await;
    assert_eq!((garbage.status, garbage.header("content-type")), (200, Some("application/json")));
    assert!(serde_json::from_slice::<Value>(&garbage.body).is_err());

    let (_server, client) = odd(Odd::Html).await;
    let page = listed(&client).await;
    assert_eq!((page.status, page.header("content-type")), (200, Some("text/html; charset=utf-8")));

    let (_server, client) = odd(Odd::WrongId).await;
    let message = listed(&client).await.message();
    assert_eq!(message["id"], "somebody-else");
    assert!(message["result"]["tools"].is_array());
}

#[tokio::test]
async fn streams_go_on_and_on() {
    let (_server, client) = odd(Odd::Huge).await;
    let (bytes, _) = raw(&client, 4 << 20).await;
    assert!(bytes.len() >= 4 << 20);

    let (_server, client) = odd(Odd::EndlessSse).await;
    let (bytes, ended) = raw(&client, 200).await;
    assert!(String::from_utf8_lossy(&bytes).contains(": still here") && !ended);

    let (_server, client) = odd(Odd::DeepJson).await;
    let (bytes, ended) = raw(&client, 1 << 20).await;
    assert!(ended);
    assert_eq!(bytes.iter().filter(|byte| **byte == b'[').count(), 100_000);
    assert_eq!(bytes.iter().filter(|byte| **byte == b']').count(), 100_000);
}

#[tokio::test]
async fn dropping_it_stops_it() {
    let (server, client) = odd(Odd::Hangs).await;
    let authority = client.url.replace("http://", "").replace("/mcp", "");

    drop(server);
    while TcpStream::connect(&authority).await.is_ok() {
        tokio::task::yield_now().await;
    }
}
