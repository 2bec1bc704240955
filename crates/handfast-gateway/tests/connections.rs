//! Connections have bounds: in how many there are, and in how long a client may take to send or to read.

use std::{sync::Arc, time::Duration};

use async_trait::async_trait;
use axum_core::body::Body;
use bytes::Bytes;
use futures_util::stream;
use handfast::{Audience, Caller, DangerousNoAudit, Keys, clock::SystemClock, store::MemoryStore};
use handfast_gateway::{
    App, Defaults, Gateway, Listening, Options, Rules, Setup, Who, serve,
    upstream::{Down, Upstream},
};
use http::{Request, Response};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpSocket, TcpStream},
    sync::oneshot,
};

/// A server that never stops talking.
struct Talker;

#[async_trait]
impl Upstream for Talker {
    async fn ask(&self, _: &Caller, _: Request<Bytes>) -> Result<Response<Body>, Down> {
        // An event without a message, which costs nobody anything.
        let event = Bytes::from(format!("event: {}\n\n", "x".repeat(64 * 1024)));
        let body = Body::from_stream(stream::repeat_with(move || Ok::<_, std::io::Error>(event.clone())));
        let response = Response::builder().header("content-type", "text/event-stream");
        Ok(response.body(body).expect("a response"))
    }
}

/// A gateway in front of it, which ends when this is dropped.
struct Running {
    address: String,
    _ends: oneshot::Sender<()>,
}

impl Running {
    async fn with(most_connections: usize, patience: Duration) -> Self {
        let defaults = Defaults { lifetime: LONG, idle: None, bound: vec!["principal".to_owned()] };
        let audience: Audience = "https://mcp.example.com/mcp".parse().expect("an audience");
        let gateway = Gateway::new(Setup {
            rules: Rules::from_toml("version = 1", &defaults).expect("rules"),
            upstream: Arc::new(Talker),
            store: Arc::new(MemoryStore::new(Arc::new(SystemClock))),
            keys: Keys::dangerous_for_this_process_only(),
            audience: audience.clone(),
            audit: Arc::new(DangerousNoAudit),
            options: Options::default(),
        });
        let app = App::new(Who::DangerousAnybody { audience }, None, gateway.expect("a gateway"));
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let address = listener.local_addr().expect("an address").to_string();
        let (ends, ended) = oneshot::channel::<()>();
        let (_, apps) = tokio::sync::watch::channel(app);
        let listening = Listening { most_connections, patience, ..Listening::default() };
        tokio::spawn(serve(listener, apps, listening, async { drop(ended.await) }));
        Self { address, _ends: ends }
    }

    async fn connect(&self) -> TcpStream {
        TcpStream::connect(&self.address).await.expect("it listens")
    }

    /// Sends these bytes, and then waits for the end of the connection: what came back.
    async fn said(&self, bytes: &str) -> String {
        let mut stream = self.connect().await;
        stream.write_all(bytes.as_bytes()).await.expect("it is heard");
        let mut answer = String::new();
        let read = tokio::time::timeout(LONG, stream.read_to_string(&mut answer)).await;
        read.expect("the connection ends").expect("in good order");
        answer
    }
}

/// Whether a request is answered on this connection.
async fn is_served(stream: &mut TcpStream) -> bool {
    let mut answer = [0; 12];
    let asked = async {
        stream.write_all(b"GET /elsewhere HTTP/1.1\r\nhost: h\r\n\r\n").await?;
        stream.read_exact(&mut answer).await
    };
    asked.await.is_ok() && {
        assert_eq!(&answer, b"HTTP/1.1 404");
        // The rest of the head.
        let mut rest = Vec::new();
        while !rest.ends_with(b"\r\n\r\n") {
            rest.push(stream.read_u8().await.expect("a byte"));
        }
        true
    }
}

/// Waits until somebody else gets a place.
async fn until_there_is_room(running: &Running) {
    let waiting = async { while !is_served(&mut running.connect().await).await {} };
    tokio::time::timeout(LONG, waiting).await.expect("there is room in the end");
}

fn request(body: &str) -> String {
    format!("POST /mcp HTTP/1.1\r\nhost: h\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n", body.len())
}

const PING: &str = r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#;

#[tokio::test]
async fn whoever_does_not_send_the_whole_head_in_time_is_cut_off() {
    let running = Running::with(1, SHORT).await;
    assert_eq!(running.said("").await, "", "nothing was asked");
    let told = running.said("POST /mcp HTTP/1.1\r\nhost: h\r\nx-").await;
    assert!(told.is_empty() || told.starts_with("HTTP/1.1 408 "), "{told}");
    until_there_is_room(&running).await;
}

#[tokio::test]
async fn whoever_asks_nothing_more_is_cut_off() {
    let running = Running::with(1, SHORT).await;
    let told = running.said("GET /elsewhere HTTP/1.1\r\nhost: h\r\n\r\n").await;
    assert!(told.starts_with("HTTP/1.1 404 "), "{told}");
    until_there_is_room(&running).await;
}

#[tokio::test]
async fn whoever_does_not_send_the_whole_body_in_time_is_told_so() {
    let running = Running::with(1, SHORT).await;
    let told = running.said(&request(PING).replace("length: 4", "length: 9")).await;
    assert!(told.starts_with("HTTP/1.1 408 "), "{told}");
    let told = running.said(&format!("{}{}", request(PING), &PING[..9])).await;
    assert!(told.starts_with("HTTP/1.1 408 "), "{told}");
    until_there_is_room(&running).await;
}

#[tokio::test]
async fn whoever_does_not_read_the_answer_loses_the_place() {
    let running = Running::with(1, SHORT).await;
    let deaf = TcpSocket::new_v4().expect("a socket");
    // The system holds little for it.
    deaf.set_recv_buffer_size(4096).expect("it is ours");
    let mut deaf = deaf.connect(running.address.parse().expect("an address")).await.expect("it listens");
    deaf.write_all(format!("{}{PING}", request(PING)).as_bytes()).await.expect("it is heard");
    // It has begun to be answered, and reads no further.
    assert_eq!(deaf.read_u8().await.expect("a byte"), b'H');
    assert!(!is_served(&mut running.connect().await).await, "there is one place");

    until_there_is_room(&running).await;

    drop(deaf);
}

#[tokio::test]
async fn there_are_as_many_places_as_there_are() {
    let running = Running::with(3, LONG).await;
    let mut held = [running.connect().await, running.connect().await, running.connect().await];
    for stream in &mut held {
        assert!(is_served(stream).await);
    }
    for _ in 0..20 {
        assert!(!is_served(&mut running.connect().await).await, "there is no place left");
    }
    for stream in &mut held {
        assert!(is_served(stream).await, "whoever was there before is served");
    }
    let [one, mut another, _] = held;
    drop(one);
    until_there_is_room(&running).await;
    assert!(is_served(&mut another).await);
}

const SHORT: Duration = Duration::from_millis(500);
const LONG: Duration = Duration::from_secs(60);
