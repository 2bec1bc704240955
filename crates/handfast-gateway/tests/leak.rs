//! Nothing of what the server behind calls its objects, and nothing of its states, ever leaves; whatever else it says is not
//! changed by a byte; and what leaves opens for its owner, and for nobody else.

mod support;

use handfast_gateway::Options;
use proptest::prelude::*;
use serde_json::{Value, json};
use support::{
    answers::{Piece, Pieces, alone, ours, plain, theirs, value},
    fake::{Answer, Front, ID},
};

const RULES: &str = r#"
version = 1

[[handle]]
mint = "create"
name = "workspace"
pointer = "/structuredContent/workspace_id"
consume = ["tools/call use#/workspace_id"]

[[handle]]
mint = "create"
# Comes after the one that it begins like.
name = "zone"
pointer = "/structuredContent/longer_id"
consume = ["tools/call use#/longer_id"]

[[handle]]
mint = "create"
name = "number"
pointer = "/structuredContent/number_id"
consume = ["tools/call use#/number_id"]

[[handle]]
mint = "create"
name = "small"
pointer = "/structuredContent/small_id"
consume = ["tools/call use#/small_id"]
"#;

const PLACES: [&str; 4] = ["workspace_id", "longer_id", "number_id", "small_id"];

/// What the server behind calls the objects of a user: one name begins like another, one is a number, one is in any text.
fn names(user: &str, seed: u32) -> Vec<String> {
    let first = format!("ws-{user}-{seed:08x}");
    let number = format!("{}{seed:010}", user.len() * 1_000_000_007);
    vec![first.clone(), format!("{first}Z"), number, (user.len() * 3).to_string()]
}

/// What names may be told by anywhere: not by a number that is in many sentences.
fn telling(names: &[String]) -> &[String] {
    &names[..3]
}

/// The result of a tool that gives all four names out, and tells them once more wherever it likes.
fn minted(names: Vec<String>) -> impl Strategy<Value = Pieces> {
    let inner = value(telling(&names));
    (inner.clone(), inner.clone(), inner).prop_map(move |(one, two, three)| {
        let mut pieces = plain(r#"{"more": "#);
        pieces.extend(one);
        pieces.extend(plain(format!(r#" , "jsonrpc":"2.0","id": {ID}, "result":{{"structuredContent":{{"#)));
        for (which, place) in PLACES.iter().enumerate() {
            pieces.extend([plain(format!(r#""{place}" :"#)), alone(which, &names[which]), plain(",")].concat());
        }
        pieces.extend(
            [plain(r#""more":"#), two, plain(r#"},"content": [] , "_meta":{"a":"#), three, plain("}}}")].concat(),
        );
        pieces
    })
}

/// Whatever a server says to a call: a result, an error, or a notification before it.
fn said(names: Vec<String>) -> impl Strategy<Value = Pieces> {
    let inner = value(telling(&names));
    (inner.clone(), inner, any::<bool>()).prop_map(|(one, two, fails)| {
        let [before, between, after] = match fails {
            false => [r#","result":{"content":"#, r#","structuredContent":"#, "}}"],
            true => [r#","error":{"code":-32000,"message":"#, r#","data":"#, "}}"],
        };
        [plain(format!(r#"{{"jsonrpc":"2.0","id":{ID}{before}"#)), one, plain(between), two, plain(after)].concat()
    })
}

fn notification(names: &[String]) -> impl Strategy<Value = Pieces> + use<> {
    value(telling(names)).prop_map(|data| {
        let before = r#"{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":"#;
        [plain(before), data, plain("}}")].concat()
    })
}

/// How an answer comes: as JSON or as a stream, with these line ends, in chunks of these sizes.
#[derive(Debug, Clone)]
struct Way {
    is_stream: bool,
    end: &'static str,
    cuts: Vec<usize>,
}

fn way() -> impl Strategy<Value = Way> {
    let ends = prop::sample::select(vec!["\n", "\r\n", "\r"]);
    (any::<bool>(), ends, prop::collection::vec(1_usize..40, 1..8)).prop_map(|(is_stream, end, cuts)| Way {
        is_stream,
        end,
        cuts,
    })
}

impl Way {
    fn of(&self, messages: &[&Pieces]) -> Answer {
        let text = match self.is_stream {
            false => messages.iter().map(|message| theirs(message)).collect(),
            true => messages.iter().map(|message| self.event(&theirs(message))).collect::<String>(),
        };
        let (mut rest, mut chunks, mut cuts) = (text.into_bytes(), Vec::new(), self.cuts.iter().cycle());
        while !rest.is_empty() {
            let later = rest.split_off(rest.len().min(*cuts.next().expect("a cut")));
            chunks.push(std::mem::replace(&mut rest, later).into());
        }
        Answer { is_stream: self.is_stream, chunks }
    }

    fn event(&self, message: &str) -> String {
        let end = self.end;
        let data: String = message.split('\n').map(|line| format!("data: {line}{end}")).collect();
        format!(": a comment{end}id: 5{end}event: message{end}{data}{end}")
    }

    /// The messages in what a client was sent.
    fn read(&self, text: &str) -> Vec<String> {
        if !self.is_stream {
            return vec![text.to_owned()];
        }
        let text = text.replace("\r\n", "\n").replace('\r', "\n");
        let data = |event: &str| {
            event.split('\n').filter_map(|line| line.strip_prefix("data: ")).collect::<Vec<_>>().join("\n")
        };
        text.split("\n\n").map(data).filter(|data| !data.is_empty()).collect()
    }
}

/// The handles that a client was given.
fn outers(told: &str) -> Vec<String> {
    let read: Value = serde_json::from_str(told).unwrap_or_else(|error| panic!("{error}: {told}"));
    let handle = |place: &&str| read["result"]["structuredContent"][*place].as_str().expect(told).to_owned();
    PLACES.iter().map(handle).collect()
}

fn with_id(pieces: &[Piece], outers: &[String]) -> String {
    ours(pieces, outers).replace(ID, "7")
}

#[derive(Debug, Clone)]
struct User {
    name: &'static str,
    names: Vec<String>,
    minted: Pieces,
    told: Pieces,
    said: Pieces,
    ways: [Way; 2],
}

fn user(name: &'static str) -> impl Strategy<Value = User> {
    any::<u32>().prop_flat_map(move |seed| {
        let names = names(name, seed);
        let known = names.clone();
        (minted(names.clone()), notification(&names), said(names), [way(), way()])
            .prop_map(move |(minted, told, said, ways)| User { name, names: known.clone(), minted, told, said, ways })
    })
}

/// One user's life: objects are made, and used.
async fn lives(front: &Front, user: &User) -> Vec<String> {
    let [first, second] = &user.ways;
    front.will_say(user.name, first.of(&[&user.minted]));
    let told = front.call(user.name, "create", json!({})).await;
    let told = first.read(&told);
    let outers = outers(&told[0]);
    assert_eq!(told, [with_id(&user.minted, &outers)]);
    drop(front.take_seen(user.name));

    front.will_say(
        user.name,
        if second.is_stream { second.of(&[&user.told, &user.said]) } else { second.of(&[&user.said]) },
    );
    let told = front.call(user.name, "use", json!({"arguments": arguments(&outers)})).await;
    let mut expected = vec![with_id(&user.said, &outers)];
    if second.is_stream {
        expected.insert(0, ours(&user.told, &outers));
    }
    assert_eq!(second.read(&told), expected);

    let seen = front.take_seen(user.name).expect("it was asked");
    let [first, longer, number, small] = &user.names[..] else { panic!("four names") };
    for expected in [
        format!(r#""workspace_id":"{first}""#),
        format!(r#""longer_id":"{longer}""#),
        format!(r#""number_id":{number}"#),
        format!(r#""small_id":[{small}]"#),
        format!(r#""note":"about {first}, and {number}""#),
    ] {
        assert!(seen.contains(&expected), "{expected}: {seen}");
    }
    outers
}

fn arguments(outers: &[String]) -> Value {
    let note = format!("about {}, and {}", outers[0], outers[2]);
    json!({"workspace_id": outers[0], "longer_id": outers[1], "number_id": outers[2], "small_id": [outers[3]], "note": note})
}

fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime")
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn names_are_exchanged_for_handles_and_nothing_else_is_changed(alice in user("alice"), bob in user("bob")) {
        runtime().block_on(async {
            let front = Front::new(RULES, Options::default());
            let both = tokio::join!(lives(&front, &alice), lives(&front, &bob));
            for (owner, outers, other) in [(&alice, &both.0, "bob"), (&bob, &both.1, "alice")] {
                for (place, outer) in PLACES.iter().zip(outers) {
                    for shown in [json!(outer), json!([outer]), json!(owner.names[0]), json!(owner.names[3])] {
                        let told = front.call(other, "use", json!({"arguments": {*place: shown}})).await;
                        prop_assert!(told.contains(r#""isError":true"#), "{}", told);
                    }
                }
                prop_assert_eq!(front.take_seen(other), None, "it was not asked");
            }
            Ok(())
        })?;
    }

    #[test]
    fn a_state_comes_back_to_the_server_as_it_was_and_is_seen_by_nobody(
        state in "[ -~é]{16,80}",
        blanks in prop::sample::select(vec!["", " ", "\n "]),
        way in way(),
        echoes in prop::sample::select(vec!["no", "in the result", "in an answer to it"]),
    ) {
        runtime().block_on(async {
            let front = Front::new(RULES, Options::default());
            let shown = json!(state).to_string();
            let echoed = if echoes == "in the result" { shown.as_str() } else { "1.0e2" };
            let asked = format!(
                r#"{{"jsonrpc":"2.0","id":{ID},"result":{{"a":{echoed},"requestState"{blanks}:{blanks}{shown}{blanks},"inputRequests":{{"sure":{{}}}}}}}}"#
            );
            front.will_say("alice", way.of(&[&plain(asked.clone())]));
            let told = way.read(&front.call("alice", "ask", json!({"arguments": {"n": 1.50}})).await).concat();
            drop(front.take_seen("alice"));
            prop_assert!(runs(&state).all(|run| !told.contains(&run)), "{}", told);
            if echoes == "in the result" {
                prop_assert!(told.contains(r#""error""#), "{}", told);
                return Ok(());
            }
            let read: Value = serde_json::from_str(&told).expect("JSON");
            let sealed = read["result"]["requestState"].as_str().expect("a state");
            prop_assert_eq!(&told, &asked.replace(ID, "7").replace(&shown, &json!(sealed).to_string()));

            let retried = |n: Value, state: &str| {
                json!({"arguments": {"n": n}, "inputResponses": {"sure": {"action": "accept"}, "other": 1}, "requestState": state})
            };
            for (who, tool, n, shown) in [
                ("bob", "ask", json!(1.5), sealed),
                ("alice", "use", json!(1.5), sealed),
                ("alice", "ask", json!(1.6), sealed),
                ("alice", "ask", json!(1.5), &state),
                ("alice", "ask", json!(1.5), &sealed[..sealed.len() - 1]),
            ] {
                let told = front.call(who, tool, retried(n, shown)).await;
                prop_assert!(told.contains("Invalid or expired requestState"), "{}", told);
                prop_assert_eq!(front.take_seen(who), None, "it was not asked");
            }
            let echoed = if echoes == "in an answer to it" { shown.as_str() } else { "null" };
            front.will_say("alice", way.of(&[&plain(format!(r#"{{"jsonrpc":"2.0","id":{ID},"error":{{"data":{echoed}}}}}"#))]));
            let told = way.read(&front.call("alice", "ask", retried(json!(1.5), sealed)).await).concat();
            prop_assert!(runs(&state).all(|run| !told.contains(&run)), "{}", told);
            let seen: Value = serde_json::from_str(&front.take_seen("alice").expect("it was asked")).expect("JSON");
            prop_assert_eq!(&seen["params"]["requestState"], &json!(state));
            prop_assert_eq!(&seen["params"]["inputResponses"], &json!({"sure": {"action": "accept"}}));
            Ok(())
        })?;
    }
}

/// Runs of a text that are not in another by chance.
fn runs(text: &str) -> impl Iterator<Item = String> {
    let chars: Vec<char> = text.chars().collect();
    (0..chars.len().saturating_sub(11))
        .map(move |at| chars[at..at + 12].iter().collect())
        .collect::<Vec<_>>()
        .into_iter()
}
