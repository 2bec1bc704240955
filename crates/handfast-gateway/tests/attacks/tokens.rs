//! Tokens: who may come in, and that no token goes on from here.

use axum_core::body::Body;
use handfast_gateway::upstream::{HttpUpstream, Identity};
use http::{HeaderName, Method, Response};
use serde_json::{Value, json};

use crate::support::{
    OURS,
    behind::{World, status, workshop},
};

#[tokio::test]
async fn a_token_for_another_server_is_refused() {
    let world = World::new(workshop()).await;
    let sibling = "https://mcp.example.com/mcp2";
    for audience in [
        json!(sibling),
        json!("https://mcp.example.com"),
        json!("https://mcp.example.com/"),
        json!("https://mcp.example.com/mc"),
        json!("https://mcp.example.com/mcp/sub"),
        json!("https://mcp.example.com/MCP"),
        json!("http://mcp.example.com/mcp"),
        json!("https://mcp.example.com:8443/mcp"),
        json!("demo-client"),
        json!([sibling, "demo-client"]),
        json!([[OURS]]),
        json!({"a": OURS}),
        json!([]),
        json!(""),
        Value::Null,
    ] {
        let got = world.wish(|wish| wish.audience = audience.clone()).call("create", json!({})).await;
        assert_eq!(got.status, 401, "{audience}");
    }
    assert!(world.seen().is_empty());
    for audience in [json!(OURS), json!([sibling, OURS])] {
        assert_eq!(world.wish(|wish| wish.audience = audience.clone()).call("create", json!({})).await.status, 200);
    }
}

#[tokio::test]
async fn whoever_has_no_good_token_is_refused() {
    let world = World::new(workshop()).await;
    let good = world.issuer.token(&handfast_twins::issuer::Wish::of("alice", OURS));
    let nobody = world.bearer("");
    for (who, client) in [
        ("expired", world.wish(|wish| wish.lifetime = -3600)),
        ("signed by somebody else", world.wish(|wish| wish.foreign_key = true)),
        ("no subject", world.wish(|wish| drop(wish.claims.insert("sub".to_owned(), "".into())))),
        ("cut", world.bearer(&good[..good.len() - 2])),
        ("absent", world.bearer("")),
    ] {
        for verb in [Method::POST, Method::GET, Method::DELETE] {
            let got = client
                .send(verb.clone(), &[("mcp-session-id", "x")], r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#)
                .await;
            assert_eq!(got.status, 401, "{who} {verb}");
            assert!(got.headers.contains_key("www-authenticate"), "{who}");
        }
    }
    // In the query it would be in every log; twice it is whose?
    for query in [format!("?access_token={good}"), format!("?a=1&access_token={good}")] {
        let response = nobody.open_at(&query, Method::POST, &[], "{}").await;
        assert_eq!(response.status(), 400);
        let response = world.user("alice").open_at(&query, Method::POST, &[], "{}").await;
        assert_eq!(response.status(), 400);
    }
    let twice = [("authorization", "Bearer x")];
    assert_eq!(world.user("alice").send(Method::POST, &twice, "{}").await.status, 401);
    assert!(world.seen().is_empty());
}

#[tokio::test]
async fn no_token_and_no_name_that_a_client_gives_itself_gets_behind() {
    let identity = Identity { header: HeaderName::from_static("x-user"), value: "{subject}".to_owned() };
    let world = World::with(workshop(), |parts, url| {
        let secret = handfast::SecretText::new("Bearer of-the-gateway");
        parts.upstream =
            std::sync::Arc::new(HttpUpstream::new(url, Some(&secret), Some(identity)).expect("an upstream"));
    })
    .await;
    let token = world.issuer.token(&handfast_twins::issuer::Wish::of("alice", OURS));
    let alice = world.bearer(&token);
    let invented = [
        ("X-User", "bob"),
        ("x_user", "bob"),
        ("X-Forwarded-User", "bob"),
        ("X-Workspace-ID", "ws-100009"),
        ("Proxy-Authorization", &token),
        ("X-Api-Key", &token),
        ("Cookie", "session=of-bob"),
        ("Forwarded", "for=bob"),
        ("Baggage", "user=bob"),
    ];
    let session = alice.begin().await;
    assert_eq!(alice.modern("tools/call", json!({"name": "use", "arguments": {}}), &invented).await.status, 200);
    let more = [&invented[..], &[("mcp-session-id", &session)]].concat();
    for verb in [Method::GET, Method::DELETE] {
        alice.open(verb, &more, "").await;
    }
    let seen = world.seen();
    assert_eq!(seen.len(), 4);
    for seen in seen {
        assert_eq!(seen.header("authorization"), Some("Bearer of-the-gateway"));
        assert_eq!(seen.headers.get_all("x-user").iter().collect::<Vec<_>>(), ["alice"], "who it is, once");
        for (name, value) in &invented[1..] {
            assert_eq!(seen.header(name), None, "{name}: {value}");
        }
        assert!(!format!("{seen:?}").contains(&token));
    }
}

#[tokio::test]
async fn two_users_behind_one_credential_are_two() {
    let world = World::with(workshop(), |parts, url| {
        let secret = handfast::SecretText::new("Bearer of-the-gateway");
        parts.upstream = std::sync::Arc::new(HttpUpstream::new(url, Some(&secret), None).expect("an upstream"));
    })
    .await;
    // Of one OAuth client as well: what tells them apart is the subject.
    let (alice, bob) = (world.user("alice"), world.user("bob"));
    let (handle, session) = (alice.create().await, alice.begin().await);
    let own = bob.begin().await;
    let begun: Vec<_> = world.seen().into_iter().filter(|seen| seen.json()["method"] == "initialize").collect();
    assert_eq!(begun.len(), 2, "each has a session of their own behind");

    assert!(bob.call("use", json!({"workspace_id": handle})).await.is_error());
    let ping = json!({"jsonrpc": "2.0", "id": 1, "method": "ping"});
    assert_eq!(bob.legacy(&session, &ping).await.status, 404);
    assert!(world.seen().is_empty());
    assert_eq!(bob.legacy(&own, &ping).await.status, 200);
    assert_eq!(world.seen()[0].header("mcp-session-id"), Some("behind-2"));
}

#[tokio::test]
async fn the_server_behind_is_told_who_calls_and_not_who_began() {
    let world = World::new(workshop()).await;
    for who in ["alice", "bob", "alice"] {
        world.user(who).call("use", json!({})).await;
        assert_eq!(world.seen()[0].header("authorization"), Some(format!("Bearer {who}").as_str()));
    }
}

#[tokio::test]
async fn what_the_server_behind_says_of_the_gateways_credential_stays_here() {
    for code in [401, 403, 301, 302, 307, 308] {
        let world = World::new(move |_| {
            let mut response: Response<Body> = status(code);
            for (name, value) in [
                ("location", "http://127.0.0.1:1/"),
                ("www-authenticate", "Bearer realm=\"inside\""),
                ("set-cookie", "a=b"),
            ] {
                response.headers_mut().insert(name, value.parse().expect("a header"));
            }
            response
        })
        .await;
        let got = world.user("alice").call("create", json!({})).await;
        assert_eq!((got.status, got.code()), (502, json!(-32603)), "{code}");
        for name in ["location", "www-authenticate", "set-cookie"] {
            assert!(!got.headers.contains_key(name), "{name}");
        }
        assert_eq!(world.seen().len(), 1, "it is not asked twice, and nobody else is");
    }
}

#[tokio::test]
async fn a_page_of_another_site_is_refused() {
    let world =
        World::with(workshop(), |parts, _| parts.options.origins = vec!["https://app.example".to_owned()]).await;
    let alice = world.user("alice");
    for origin in [
        "https://evil.example",
        "https://app.example.evil.example",
        "http://app.example",
        "https://app.example/",
        "null",
        "",
    ] {
        let got = alice.modern("tools/list", json!({}), &[("origin", origin)]).await;
        assert_eq!(got.status, 403, "{origin}");
    }
    let known = [("origin", "https://app.example")];
    let both = [known[0], ("Origin", "https://evil.example")];
    assert_eq!(alice.modern("tools/list", json!({}), &both).await.status, 403);
    assert!(world.seen().is_empty());
    assert_eq!(alice.modern("tools/list", json!({}), &known).await.status, 200);
}
