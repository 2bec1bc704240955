//! The example of a whole server, as it is run by hand: two users over HTTP, and a checkout that asks first.

use serde_json::{Value, json};

#[path = "support/example.rs"]
mod example;

use example::Example;

/// The example, and its two users.
struct Shop {
    url: String,
    tokens: Vec<String>,
    client: reqwest::Client,
    _example: Example,
    _folder: tempfile::TempDir,
}

impl Shop {
    fn start() -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let store = format!("sqlite:{}", folder.path().join("baskets.db").display());
        let mut example = Example::start("basket", &["--store", &store]);
        let url = example.after("listening on ");
        let tokens = vec![example.after("alice: "), example.after("bob: ")];
        Self { url, tokens, client: reqwest::Client::new(), _example: example, _folder: folder }
    }

    async fn call(&self, user: usize, name: &str, arguments: Value, more: Value) -> Value {
        let mut params = json!({"name": name, "arguments": arguments, "_meta": {
            "io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientCapabilities": {"elicitation": {"form": {}}},
        }});
        params.as_object_mut().expect("an object").extend(more.as_object().expect("an object").clone());
        let body = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}).to_string();
        let request = self.client.post(&self.url).header("content-type", "application/json").body(body);
        let request = request.header("accept", "application/json, text/event-stream");
        let request = request.header("mcp-protocol-version", "2026-07-28").header("mcp-method", "tools/call");
        let request = request.header("mcp-name", name).bearer_auth(&self.tokens[user]);
        let text = request.send().await.expect("an answer").text().await.expect("text");
        let json = text.lines().filter_map(|line| line.strip_prefix("data:")).find(|data| !data.trim().is_empty());
        serde_json::from_str(json.unwrap_or(&text)).unwrap_or_else(|_| panic!("no JSON: {text}"))
    }

    async fn says(&self, user: usize, name: &str, arguments: Value, more: Value) -> String {
        let answer = self.call(user, name, arguments, more).await;
        let text = answer["result"]["content"][0]["text"].as_str().or(answer["error"]["message"].as_str());
        text.unwrap_or_else(|| panic!("{answer}")).to_owned()
    }
}

#[tokio::test]
async fn two_users_shop_and_neither_gets_what_is_the_others() {
    let shop = Shop::start();
    let made = shop.call(0, "create_basket", json!({}), json!({})).await;
    let basket = json!({"basket_id": made["result"]["structuredContent"]["basket_id"]});
    let with = |item: &str| json!({"basket_id": basket["basket_id"], "item": item});

    assert_eq!(shop.says(0, "add_item", with("bread"), json!({})).await, "bread is in the basket");
    let none = "there is no such basket; make a new one with `create_basket`";
    for (name, arguments) in [
        ("list_items", basket.clone()),
        ("add_item", with("salt")),
        ("checkout", basket.clone()),
        ("end_basket", basket.clone()),
    ] {
        assert_eq!(shop.says(1, name, arguments, json!({})).await, none, "{name}");
    }
    assert_eq!(shop.says(0, "list_items", basket.clone(), json!({})).await, "in the basket: bread");

    let yes = json!({"approve": {"action": "accept", "content": {"approve": true}}});
    let unasked = shop.call(0, "checkout", basket.clone(), json!({"inputResponses": yes})).await;
    assert_eq!(unasked["result"]["resultType"], "input_required", "an approval before it was asked for: {unasked}");
    let state = unasked["result"]["requestState"].as_str().expect("a state").to_owned();
    let no = json!({"approve": {"action": "decline"}});
    let asked_again = shop.call(0, "checkout", basket.clone(), json!({})).await["result"]["requestState"].clone();
    let declined = json!({"requestState": asked_again, "inputResponses": no});
    assert_eq!(shop.says(0, "checkout", basket.clone(), declined).await, "not approved, and nothing was ordered");

    let approved = json!({"requestState": state, "inputResponses": yes});
    assert_eq!(shop.says(0, "checkout", basket.clone(), approved.clone()).await, "ordered: 1 items");
    assert_eq!(shop.says(0, "checkout", basket.clone(), approved).await, "Invalid or expired requestState");
    let over = "access to this basket was revoked; make a new one with `create_basket`";
    assert_eq!(shop.says(0, "list_items", basket, json!({})).await, over);
}
