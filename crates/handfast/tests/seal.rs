//! States: what comes back as it was sealed, for whom, for what and how long; and nothing else.

mod support;

use std::{
    sync::{
        Arc, RwLock,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    time::Duration,
};

use handfast::{
    Audience, Caller, Keys, Scope, ScopeSet, TokenId,
    clock::{Clock, ManualClock},
    seal::{Opened, RequestDigest, SealError, Sealer, SealerOptions, StateContext, StateDenial},
    store::MemoryStore,
};
use proptest::prelude::*;
use serde_json::{Map, Value, json};
use support::{alice, caller, clock};

const TICK: Duration = Duration::from_micros(1);
const MINUTE: Duration = Duration::from_secs(60);

fn audience() -> Audience {
    Audience::new("https://mcp.example.com/mcp").expect("an audience")
}

fn sealer(keys: &str, clock: &Arc<ManualClock>) -> Sealer {
    let options = SealerOptions { clock: clock.clone(), ..SealerOptions::default() };
    Sealer::with(Keys::parse(keys).expect("keys"), audience(), options)
}

fn new_key() -> String {
    Keys::generate().expose().to_owned()
}

fn arguments(value: Value) -> Map<String, Value> {
    value.as_object().expect("an object").clone()
}

/// A sealer with a clock, and one request of Alice's.
struct Desk {
    sealer: Sealer,
    clock: Arc<ManualClock>,
    arguments: Map<String, Value>,
}

impl Desk {
    fn new() -> Self {
        let clock = clock();
        Self { sealer: sealer(&new_key(), &clock), clock, arguments: arguments(json!({"order": 17})) }
    }

    fn request(&self) -> RequestDigest<'_> {
        RequestDigest::tool("checkout", Some(&self.arguments))
    }

    fn sealed(&self, state: &[u8]) -> String {
        let request = self.request();
        let sealed = self.sealer.seal(state, &["confirm"], &StateContext { caller: &alice(), request: &request });
        sealed.expect("sealed").expose().to_owned()
    }

    fn open(&self, presented: &str) -> Result<Opened, StateDenial> {
        self.open_as(&alice(), presented)
    }

    fn open_as(&self, caller: &Caller, presented: &str) -> Result<Opened, StateDenial> {
        let request = self.request();
        let opened = self.sealer.open(presented, &StateContext { caller, request: &request });
        opened.map_err(|refused| {
            assert_eq!(refused.error().to_string(), FROZEN, "{:?}", refused.denial());
            refused.denial()
        })
    }
}

const FROZEN: &str = r#"{"code":-32602,"message":"Invalid or expired requestState"}"#;

fn refused<T: std::fmt::Debug>(answer: Result<T, StateDenial>) -> StateDenial {
    answer.expect_err("refused")
}

#[test]
fn what_is_sealed_comes_back_and_says_nothing_on_its_way() {
    let desk = Desk::new();
    for state in [b"".as_slice(), b"x", &[0; 200], b"approved:false;amount:10"] {
        let sealed = desk.sealed(state);
        let opened = desk.open(&sealed).expect("opened");

        assert_eq!((opened.asked().collect::<Vec<_>>(), opened.progress().round()), (vec!["confirm"], 1));
        assert_eq!(opened.replayable().bytes(), state);
        assert!(sealed.starts_with("hf1.") && sealed.is_ascii());
    }
    assert_ne!(desk.sealed(b"same"), desk.sealed(b"same"), "nobody sees that two are equal");
    let opened = desk.open(&desk.sealed(b"hunter2")).expect("opened");
    assert!(!format!("{opened:?} {:?}", desk.sealer).contains("hunter2"));
    assert!(!format!("{opened:?}").contains(&format!("{:?}", b"hunter2")));
}

/// Every bit of every character of the text, every place to cut it, every way to put two of them together.
#[test]
fn nothing_that_was_changed_is_opened() {
    let desk = Desk::new();
    let (one, other) = (desk.sealed(b"step 2"), desk.sealed(b"step 3"));
    assert_eq!(one.len(), other.len());
    let mut tried = 0;
    for at in 0..one.len() {
        for bit in 0..7 {
            let mut changed = one.clone().into_bytes();
            changed[at] ^= 1 << bit;
            refused(desk.open(std::str::from_utf8(&changed).expect("ASCII")));
            tried += 1;
        }
        refused(desk.open(&one[..at]));
        refused(desk.open(&one[at.max(1)..]));
        refused(desk.open(&format!("{}A{}", &one[..at], &one[at..])));
        let spliced = format!("{}{}", &one[..at], &other[at..]);
        if spliced != one && spliced != other {
            assert_eq!(refused(desk.open(&spliced)), StateDenial::Forged, "at {at}");
        }
        tried += 4;
    }
    assert!(tried > 3000, "{tried}");
    desk.open(&one).expect("the control: as it was it is opened");
}

#[test]
fn no_other_spelling_is_opened() {
    let desk = Desk::new();
    // Of three lengths, so that the last character has bits to spare in two of them.
    for state in [b"a".as_slice(), b"ab", b"abc"] {
        let good = desk.sealed(state);
        for odd in [
            format!("{good}="),
            format!("{good}=="),
            format!(" {good}"),
            format!("{good}\n"),
            good.replacen("hf1.", "hf01.", 1),
            good.replacen("hf1.", "HF1.", 1),
            good.replacen("hf1.", "", 1),
            format!("hf1.{good}"),
        ] {
            assert_eq!(refused(desk.open(&odd)), StateDenial::Malformed, "{odd}");
        }
        let alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
        for last in alphabet.chars().filter(|last| !good.ends_with(*last)) {
            refused(desk.open(&format!("{}{last}", &good[..good.len() - 1])));
        }
    }
    assert_eq!(refused(desk.open(&format!("hf1.{}", "A".repeat(100_000)))), StateDenial::TooLong);
}

proptest! {
    #[test]
    fn any_state_and_any_question_comes_back(state: Vec<u8>, asked in prop::collection::vec(".{0,60}", 0..20)) {
        let desk = Desk::new();
        let (asked, request, who) = (asked.iter().map(String::as_str).collect::<Vec<_>>(), desk.request(), alice());
        let context = StateContext { caller: &who, request: &request };
        let sealed = desk.sealer.seal(&state, &asked, &context).expect("sealed");
        let opened = desk.sealer.open(sealed.expose(), &context).expect("opened");
        prop_assert_eq!(opened.asked().collect::<Vec<_>>(), asked);
        let opened = opened.replayable();
        prop_assert_eq!(opened.bytes(), state.as_slice());
    }

    #[test]
    fn no_text_is_too_odd_to_be_refused(text: String, body in "[A-Za-z0-9_-]{0,300}") {
        let desk = Desk::new();
        refused(desk.open(&text));
        refused(desk.open(&format!("hf1.{body}")));
    }
}

#[test]
fn what_is_too_much_is_not_sealed() {
    let desk = Desk::new();
    let (request, who) = (desk.request(), alice());
    let context = StateContext { caller: &who, request: &request };
    let seal = |state: usize, asked: &[&str]| desk.sealer.seal(&vec![0; state], asked, &context);

    assert!(seal(60_000, &["a"]).is_ok());
    assert!(desk.open(seal(60_000, &["a"]).expect("sealed").expose()).is_ok(), "what is sealed can be opened");
    assert!(matches!(seal(65_536, &["a"]), Err(SealError::TooLarge)));
    assert!(matches!(seal(1, &["a"; 65]), Err(SealError::TooManyQuestions)));
    assert!(matches!(seal(1, &["a".repeat(257).as_str()]), Err(SealError::TooManyQuestions)));
    assert!(seal(1, &["a".repeat(256).as_str(); 64]).is_ok());
}

#[test]
fn it_is_for_whom_it_was_sealed() {
    let desk = Desk::new();
    let sealed = desk.sealed(b"s");
    for (who, expected) in [
        (caller("bob", "acme", "desktop"), StateDenial::ForeignPrincipal),
        (caller("alice@example.com", "umbrella", "desktop"), StateDenial::ForeignTenant),
        (caller("alice@example.com", "acme", "mobile"), StateDenial::ForeignClient),
        (Caller::trusted(support::principal("alice@example.com")), StateDenial::ForeignTenant),
        (Caller::anonymous(), StateDenial::ForeignPrincipal),
    ] {
        assert_eq!(refused(desk.open_as(&who, &sealed)), expected);
    }
    // A new token of the same user in the same client is the same caller.
    let again = alice()
        .with_token_id(TokenId::new("another").expect("an id"))
        .with_scopes(ScopeSet::new([Scope::new("basket:read").expect("a scope").as_str()]).expect("scopes"))
        .for_audience(Audience::new("urn:other").expect("an audience"))
        .traced(Some("00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"));
    desk.open_as(&again, &sealed).expect("opened");

    let nobodys = {
        let (request, nobody) = (desk.request(), Caller::anonymous());
        let sealed = desk.sealer.seal(b"s", &[], &StateContext { caller: &nobody, request: &request });
        sealed.expect("sealed").expose().to_owned()
    };
    assert_eq!(refused(desk.open(&nobodys)), StateDenial::ForeignPrincipal);
    desk.open_as(&Caller::anonymous(), &nobodys).expect("nobody is nobody");
}

#[test]
fn it_is_for_the_request_that_asked() {
    let desk = Desk::new();
    let sealed = desk.sealed(b"s");
    let open = |request: &RequestDigest<'_>| {
        let opened = desk.sealer.open(&sealed, &StateContext { caller: &alice(), request });
        opened.map_err(|refused| refused.denial())
    };
    let tool = |value: Value| open(&RequestDigest::tool("checkout", Some(&arguments(value))));

    tool(json!({"order": 17})).expect("the control");
    tool(serde_json::from_str(r#"{"order": 17.0}"#).expect("JSON")).expect("the same number");
    for other in [json!({"order": 18}), json!({"order": "17"}), json!({"order": 17, "to": "bob"}), json!({})] {
        assert_eq!(refused(tool(other)), StateDenial::OtherArguments);
    }
    let same = arguments(json!({"order": 17}));
    assert_eq!(refused(open(&RequestDigest::tool("refund", Some(&same)))), StateDenial::OtherRequest);
    assert_eq!(refused(open(&RequestDigest::prompt("checkout", Some(&same)))), StateDenial::OtherRequest);
    assert_eq!(refused(open(&RequestDigest::resource("checkout"))), StateDenial::OtherRequest);
    assert_eq!(refused(open(&RequestDigest::tool("checkout", None))), StateDenial::OtherArguments);

    let other = Sealer::new(Keys::dangerous_for_this_process_only(), audience());
    let theirs = other.open(&sealed, &StateContext { caller: &alice(), request: &desk.request() });
    assert_eq!(theirs.expect_err("refused").denial(), StateDenial::UnknownKey);
}

#[test]
fn arguments_that_a_tool_leaves_out_may_change() {
    let desk = Desk::new();
    let (one, other) = (arguments(json!({"order": 17, "note": "a"})), arguments(json!({"note": ["b"], "order": 17})));
    let digest =
        |arguments| RequestDigest::new(handfast::seal::Method::ToolsCall, "checkout", Some(arguments), &["note"]);
    let sealed = desk.sealer.seal(b"s", &[], &StateContext { caller: &alice(), request: &digest(&one) });
    let sealed = sealed.expect("sealed");

    let opened = desk.sealer.open(sealed.expose(), &StateContext { caller: &alice(), request: &digest(&other) });
    assert!(opened.is_ok());
    let all = RequestDigest::tool("checkout", Some(&one));
    let opened = desk.sealer.open(sealed.expose(), &StateContext { caller: &alice(), request: &all });
    assert_eq!(opened.expect_err("refused").denial(), StateDenial::OtherArguments);
}

#[test]
fn it_ends_to_the_tick_and_stays_ended() {
    let desk = Desk::new();
    let sealed = desk.sealed(b"s");

    desk.clock.advance(10 * MINUTE - TICK);
    desk.open(&sealed).expect("one tick before");
    desk.clock.advance(TICK);
    assert_eq!(refused(desk.open(&sealed)), StateDenial::Expired);
    desk.clock.advance(TICK);
    assert_eq!(refused(desk.open(&sealed)), StateDenial::Expired);
    desk.clock.set(Clock::now(&*clock()));
    assert_eq!(refused(desk.open(&sealed)), StateDenial::Expired, "a clock that is set back revives nothing");
}

/// A clock that was ahead for a while: what is sealed afterwards lives no longer for that.
#[test]
fn a_clock_that_jumps_forth_and_back_makes_nothing_live_longer() {
    let key = new_key();
    let (jumpy, right) = (clock(), clock());
    let (one, other) = (sealer(&key, &jumpy), sealer(&key, &right));
    let (request, who) = (RequestDigest::resource("file:///a"), alice());
    let context = StateContext { caller: &who, request: &request };
    let begun = Clock::now(&*jumpy);
    jumpy.advance(24 * 60 * MINUTE);
    one.seal(b"s", &[], &context).expect("sealed");
    jumpy.set(begun);
    let sealed = one.seal(b"s", &[], &context).expect("sealed");

    assert!(other.open(sealed.expose(), &context).is_ok());
    right.advance(10 * MINUTE);
    assert_eq!(other.open(sealed.expose(), &context).expect_err("over").denial(), StateDenial::Expired);
}

/// The clock of the store is ahead, by less than is allowed, and forgets marks as soon as it may.
#[tokio::test]
async fn no_mark_is_forgotten_before_every_clock_says_that_its_time_is_over() {
    let desk = Desk::new();
    let ahead = Arc::new(ManualClock::at(Clock::now(&*desk.clock)));
    let store = MemoryStore::new(ahead.clone());
    ahead.advance(Duration::from_secs(20));
    let sealed = desk.sealed(b"pay");
    desk.open(&sealed).expect("opened").once(&store).await.expect("the first time");
    for clock in [&desk.clock, &ahead] {
        clock.advance(Duration::from_secs(590));
    }
    handfast::store::Store::purge(&store, Duration::ZERO, 100).await.expect("an answer");

    assert_eq!(
        desk.open(&sealed).expect("in time").once(&store).await.expect_err("used up").denial(),
        StateDenial::Spent
    );
    // By any more the store's clock is no clock of ours; then nothing is accepted that it may have forgotten.
    ahead.advance(MINUTE);
    handfast::store::Store::purge(&store, Duration::ZERO, 100).await.expect("an answer");
    assert_eq!(
        desk.open(&sealed).expect("in time").once(&store).await.expect_err("used up").denial(),
        StateDenial::Spent
    );
}

#[test]
fn the_clocks_of_replicas_may_differ_by_so_much() {
    let key = new_key();
    let (ahead, behind) = (clock(), clock());
    let (one, other) = (sealer(&key, &ahead), sealer(&key, &behind));
    let (request, who) = (RequestDigest::resource("file:///a"), alice());
    let context = StateContext { caller: &who, request: &request };
    ahead.advance(Duration::from_secs(30));
    let just = one.seal(b"s", &[], &context).expect("sealed");
    ahead.advance(TICK);
    let too_far = one.seal(b"s", &[], &context).expect("sealed");

    assert!(other.open(just.expose(), &context).is_ok());
    let refused = other.open(too_far.expose(), &context).expect_err("refused");
    assert_eq!(refused.denial(), StateDenial::NotYetValid);
}

#[test]
fn rounds_go_forward_and_all_of_them_have_one_end() {
    let desk = Desk::new();
    let (request, who) = (desk.request(), alice());
    let context = StateContext { caller: &who, request: &request };
    let mut opened = desk.open(&desk.sealed(b"1")).expect("opened");
    for round in 2..=7 {
        desk.clock.advance(9 * MINUTE);
        let next = desk.sealer.seal_next(b"n", &["more"], &context, opened.progress());
        if round == 7 {
            let next = next.expect("there are six minutes left of the hour");
            let last = desk.sealer.open(next.expose(), &context).expect("opened");
            assert_eq!(last.progress().round(), 7);
            desk.clock.advance(6 * MINUTE - TICK);
            desk.sealer.open(next.expose(), &context).expect("one tick before the end of all rounds");
            desk.clock.advance(TICK);
            assert_eq!(desk.sealer.open(next.expose(), &context).expect_err("over").denial(), StateDenial::Expired);
            let more = desk.sealer.seal_next(b"n", &["more"], &context, last.progress());
            assert!(matches!(more, Err(SealError::TooManyRounds)));
            return;
        }
        let next = next.expect("sealed");
        opened = desk.sealer.open(next.expose(), &context).expect("opened");
        assert_eq!((opened.progress().round(), opened.asked().collect::<Vec<_>>()), (round, vec!["more"]));
    }
}

#[tokio::test]
async fn it_is_used_once_where_its_server_says_so() {
    let desk = Desk::new();
    let store = MemoryStore::new(desk.clock.clone());
    let sealed = desk.sealed(b"pay");

    let _ = desk.open(&sealed).expect("opened").replayable();
    let state = desk.open(&sealed).expect("to look at it is not to use it").once(&store).await.expect("the first time");
    assert_eq!(state.bytes(), b"pay");
    let again = desk.open(&sealed).expect("authentic").once(&store).await.expect_err("used up");
    assert_eq!((again.denial(), again.error().to_string().as_str()), (StateDenial::Spent, FROZEN));
    desk.open(&desk.sealed(b"pay")).expect("another one").once(&store).await.expect("has not been used");
}

#[test]
fn keys_are_exchanged_without_refusing_anybody() {
    let (old, new, time) = (new_key(), new_key(), clock());
    let steps = [
        old.clone(),
        format!("{new} opening\n{old} sealing"),
        format!("{new} sealing\n{old} opening"),
        format!("{new} sealing\n{old} retired"),
    ];
    let replicas: Vec<Sealer> = steps.iter().map(|keys| sealer(keys, &time)).collect();
    let (request, who) = (RequestDigest::resource("file:///a"), alice());
    let context = StateContext { caller: &who, request: &request };
    let opens = |one: usize, other: usize| {
        let sealed = replicas[one].seal(b"s", &[], &context).expect("sealed");
        replicas[other].open(sealed.expose(), &context).map(drop).map_err(|refused| refused.denial())
    };

    // At any time replicas are at most one step apart; the last step comes when everything older has ended.
    for (one, other) in [(0, 0), (0, 1), (1, 0), (1, 1), (1, 2), (2, 1), (2, 2), (2, 3), (3, 2), (3, 3)] {
        assert_eq!(opens(one, other), Ok(()), "{one} to {other}");
    }
    // Two at once is one too many.
    assert_eq!(opens(2, 0), Err(StateDenial::UnknownKey));
    assert_eq!(opens(1, 3), Err(StateDenial::RetiredKey));
}

/// Three replicas, one after the other, while everybody goes on asking and answering.
#[tokio::test(flavor = "multi_thread")]
async fn keys_are_exchanged_under_load() {
    let (old, new, time) = (new_key(), new_key(), clock());
    let steps = [format!("{new} opening\n{old} sealing"), format!("{new} sealing\n{old} opening")];
    let replicas: Arc<Vec<RwLock<Sealer>>> = Arc::new((0..3).map(|_| RwLock::new(sealer(&old, &time))).collect());
    let (end, trips) = <(Arc<AtomicBool>, Arc<AtomicUsize>)>::default();
    let users: Vec<_> = (0..6)
        .map(|user| {
            let (replicas, end, trips) = (replicas.clone(), end.clone(), trips.clone());
            tokio::spawn(async move {
                let (request, who) = (RequestDigest::resource("file:///a"), alice());
                let context = StateContext { caller: &who, request: &request };
                while !end.load(Ordering::SeqCst) {
                    let trip = trips.fetch_add(1, Ordering::SeqCst);
                    let sealed = replicas[(user + trip) % 3].read().expect("not poisoned").seal(b"s", &[], &context);
                    tokio::task::yield_now().await;
                    let other = replicas[(user + 2 * trip + 1) % 3].read().expect("not poisoned");
                    other.open(sealed.expect("sealed").expose(), &context).expect("no state is refused");
                }
            })
        })
        .collect();
    let some_more = async || {
        let wanted = trips.load(Ordering::SeqCst) + 300;
        while trips.load(Ordering::SeqCst) < wanted && !users.iter().any(tokio::task::JoinHandle::is_finished) {
            tokio::task::yield_now().await;
        }
    };
    for keys in steps {
        for replica in replicas.iter() {
            some_more().await;
            *replica.write().expect("not poisoned") = sealer(&keys, &time);
        }
    }
    some_more().await;
    end.store(true, Ordering::SeqCst);
    for user in users {
        user.await.expect("no state is refused");
    }
}
