//! Whatever a server repeats of a credential or a handle, and in whatever spelling: no report shows it.

mod support;

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex},
};

use base64::{
    Engine,
    engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD},
};
use handfast_probe::identity::Identities;
use serde_json::json;
use support::{
    HANDLE, as_json, check,
    front::{Act, Front, Recorded},
    probed, run_on, verdict,
};

fn hex(text: &str) -> String {
    text.bytes().map(|byte| format!("{byte:02x}")).collect()
}

fn in_percent(text: &str) -> String {
    text.replace('?', "%3F")
}

/// A text as servers write it that echo it.
fn spellings(text: &str) -> Vec<String> {
    let title: String =
        text.chars().enumerate().map(|(at, c)| if at % 2 == 0 { c.to_ascii_uppercase() } else { c }).collect();
    vec![
        text.to_owned(),
        text.to_uppercase(),
        title,
        hex(text),
        STANDARD.encode(text),
        URL_SAFE_NO_PAD.encode(text),
        STANDARD.encode(format!("Bearer {text}")),
        URL_SAFE_NO_PAD.encode(format!("{{\"t\":\"{text}\"}}")),
    ]
}

#[tokio::test]
async fn no_spelling_of_a_credential_or_a_handle_stands_in_a_report() {
    let secrets = Arc::new(Mutex::new(BTreeMap::<String, String>::new()));
    let (kept, tokens) = (Arc::clone(&secrets), ["tok-alice", "tok-bob?7"]);
    let front = Front::start(None, move |number, request: &Recorded| {
        let caller = request.token().unwrap_or_default().to_owned();
        let mut baskets = kept.lock().expect("no test panics while it holds this");
        let takes =
            |name: &str| json!({"type": "object", "properties": {name: {"type": "string"}}, "required": [name]});
        let argument = |name: &str| request.body["params"]["arguments"][name].as_str().unwrap_or_default().to_owned();
        let data = |data: serde_json::Value| {
            Act::Result(json!({"resultType": "complete", "content": [], "structuredContent": data}))
        };
        match (request.method(), request.tool()) {
            _ if !tokens.contains(&caller.as_str()) => Act::Status(401, Vec::new()),
            ("server/discover", _) => Act::Result(
                json!({"resultType": "complete", "supportedVersions": ["2026-07-28"], "capabilities": {"tools": {}}}),
            ),
            ("tools/list", _) => Act::Result(json!({"resultType": "complete", "tools": [
                {"name": "create_basket", "inputSchema": takes("label")},
                {"name": "get_basket", "inputSchema": takes("basket_id")},
            ]})),
            (_, "create_basket") => {
                let handle =
                    format!("bsk_{:08x}{:08x}", number * 7_919_357 + 0x1a2b_3c4d, number * 104_729 + 0x5e6f_7a8b);
                baskets.insert(handle.clone(), caller.clone());
                data(json!({"basket_id": handle, "label": argument("label")}))
            }
            _ => {
                let handle = argument("basket_id");
                if baskets.get(&handle) == Some(&caller) {
                    return data(json!({"basket_id": handle, "for": spellings(&caller)}));
                }
                let bare = handle.trim_start_matches("bsk_").to_owned();
                let mut said = spellings(&caller);
                said.extend(spellings(&handle));
                said.extend([bare.to_uppercase(), bare, in_percent(&caller)]);
                Act::Refusal(format!("no such basket: {}", said.join(" ")).chars().take(3000).collect())
            }
        }
    })
    .await;
    let mut run = run_on(&front.url());
    run.identities = Identities::new(Some(tokens[0].into()), Some(tokens[1].into())).expect("they differ");

    let report = probed(&run).await;

    assert_eq!(verdict(check(&report, HANDLE)), "refuted handle-bound");
    let told = as_json(&report).to_string().to_lowercase();
    assert!(told.contains("no such basket"), "what the server said is there");
    let handles: Vec<String> = secrets.lock().expect("nobody panicked").keys().cloned().collect();
    for secret in tokens.into_iter().map(str::to_owned).chain(handles) {
        let bare = secret.trim_start_matches("bsk_").to_owned();
        for spelling in spellings(&secret).into_iter().chain([bare, in_percent(&secret)]) {
            assert!(!told.contains(&spelling.to_lowercase()), "{spelling}");
        }
    }
}
