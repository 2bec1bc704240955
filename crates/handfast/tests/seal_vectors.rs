//! Envelopes made by another language (`vectors/envelopes.py`), from `docs/envelope.md` alone.

use std::sync::Arc;

use handfast::{
    Audience, Caller, ClientId, Issuer, Keys, Principal, Tenant,
    clock::{ManualClock, Timestamp},
    seal::{Method, RequestDigest, Sealer, SealerOptions, StateContext},
};
use serde_json::Value;

const VECTORS: &str = include_str!("vectors/envelopes.jsonl");

fn caller(who: &Value) -> Caller {
    let text = |name: &str| who[name].as_str();
    let caller = match (text("issuer"), text("subject")) {
        (Some(issuer), Some(subject)) => {
            let issuer = Issuer::new(issuer).expect("an issuer");
            Caller::trusted(Principal::new(issuer, subject).expect("a principal"))
        }
        _ => Caller::anonymous(),
    };
    let caller = match text("tenant") {
        Some(tenant) => caller.in_tenant(Tenant::new(tenant).expect("a tenant")),
        None => caller,
    };
    match text("client") {
        Some(client) => caller.by_client(ClientId::new(client).expect("a client")),
        None => caller,
    }
}

fn method(name: &Value) -> Method {
    let all = [Method::ToolsCall, Method::PromptsGet, Method::ResourcesRead];
    all.into_iter().find(|method| Some(method.name()) == name.as_str()).expect("a method")
}

#[test]
fn every_vector_comes_out_as_it_says() {
    let (mut accepted, mut refused) = (0, 0);
    for line in VECTORS.lines() {
        let vector: Value = serde_json::from_str(line).expect("JSON");
        let text = |name: &str| vector[name].as_str().expect("a text");
        let case = text("case");
        let clock = ManualClock::at(Timestamp::from_microsecond(vector["now"].as_i64().expect("a time")).expect("one"));
        let options = SealerOptions { clock: Arc::new(clock), ..SealerOptions::default() };
        let keys = Keys::parse(text("keys")).expect("keys");
        let sealer = Sealer::with(keys, Audience::new(text("audience")).expect("an audience"), options);
        let request = &vector["request"];
        let arguments: Option<Value> =
            request["arguments"].as_str().map(|json| serde_json::from_str(json).expect("JSON"));
        let arguments = arguments.as_ref().map(|arguments| arguments.as_object().expect("an object"));
        let name = request["name"].as_str().expect("a name");
        let digest = RequestDigest::new(method(&request["method"]), name, arguments, &[]);
        let context = StateContext { caller: &caller(&vector["caller"]), request: &digest };

        let opened = sealer.open(text("envelope"), &context);

        match (opened, vector["refused"].as_str()) {
            (Ok(opened), None) => {
                accepted += 1;
                assert_eq!(Value::from(opened.progress().round()), vector["round"], "{case}");
                let asked: Vec<&str> =
                    vector["asked"].as_array().expect("a list").iter().filter_map(Value::as_str).collect();
                assert_eq!(opened.asked().collect::<Vec<_>>(), asked, "{case}");
                assert_eq!(opened.replayable().bytes(), text("state").as_bytes(), "{case}");
            }
            (Err(told), Some(expected)) => {
                refused += 1;
                assert_eq!(told.denial().slug(), expected, "{case}");
                assert_eq!(told.to_string(), "Invalid or expired requestState", "{case}");
            }
            (opened, expected) => panic!("{case}: {opened:?}, not {expected:?}"),
        }
    }
    assert!(accepted >= 9 && refused > 4 * accepted, "{accepted} accepted, {refused} refused");
}
