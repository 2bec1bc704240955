//! What every store must do: one suite for all of them, each rule on two connections to one store.
//!
//! A store that lives elsewhere runs it too: `contract::hold("mine", async || Pair { .. }).await`.

use std::{future::Future, pin::Pin, sync::Arc, time::Duration};

mod spend;
mod time;

use spend::{a_mark_stays_until_its_time_is_over, of_many_who_spend_at_once_one_is_first, what_is_spent_is_spent_once};
use time::{the_time_of_an_insert_has_been_seen, time_does_not_go_back};

use super::{Found, Selector, Store, StoreError};
use crate::{
    caller::{ClientId, ScopeSet, Tenant},
    clock::{ManualClock, Timestamp, from_micros, later},
    keys::KeyId,
    record::{
        Digest, Key, NewRecord, Object, ObjectRef, ObjectType, ObjectVersion, Partition, PolicyVersion, Reason,
        Receipt, Record, SubjectKey, Why,
    },
    secret::random,
};

/// Two connections to one empty store, and the clock by which both of them judge.
pub struct Pair {
    /// One.
    pub one: Arc<dyn Store>,
    /// The other.
    pub other: Arc<dyn Store>,
    /// Their clock. It stands at [`START`].
    pub clock: Arc<ManualClock>,
}

/// Where the clock must stand, in microseconds since 1970.
pub const START: i64 = 1_800_000_000_000_000;

/// A clock that stands where it must.
#[must_use]
pub fn clock() -> Arc<ManualClock> {
    Arc::new(ManualClock::at(from_micros(START)))
}

type Rule = fn(Pair) -> Pin<Box<dyn Future<Output = ()> + Send>>;

macro_rules! rules {
    ($($rule:ident)*) => { [$((stringify!($rule), (|pair| Box::pin($rule(pair))) as Rule)),*] };
}

/// Checks every rule, each on a new pair.
///
/// # Panics
/// A rule does not hold.
pub async fn hold(store: &str, fresh: impl AsyncFn() -> Pair) {
    let rules: [(&str, Rule); 21] = rules! {
        what_is_inserted_is_found_as_it_was
        odd_texts_come_back_as_they_were
        an_existing_digest_is_an_error_and_nothing_changes
        of_two_inserts_at_once_one_succeeds
        a_record_of_another_tenant_is_a_miss
        an_end_moves_forward_only
        nothing_moves_the_end_of_what_is_revoked
        a_version_moves_from_the_one_it_has
        of_two_advances_at_once_one_succeeds
        what_is_dead_does_not_advance
        a_revocation_is_seen_at_once_and_the_first_stays
        a_selector_selects_what_meets_all_of_it
        of_two_revocations_at_once_each_record_is_in_one
        nothing_is_revoked_beyond_the_limit
        a_listing_is_in_order_and_in_pages
        what_has_been_dead_for_longer_is_purged
        what_is_spent_is_spent_once
        of_many_who_spend_at_once_one_is_first
        a_mark_stays_until_its_time_is_over
        the_time_of_an_insert_has_been_seen
        time_does_not_go_back
    };
    for (name, rule) in rules {
        let pair = fresh().await;
        // On a task of its own, so that a failure can be told by its rule.
        if let Err(error) = tokio::spawn(rule(pair)).await {
            panic!("{store}: {name} does not hold: {error}");
        }
    }
}

fn new() -> NewRecord {
    NewRecord {
        digest: Digest(*random()),
        partition: Partition {
            subject: Some(subject(1)),
            tenant: Tenant::new("t").ok(),
            client: ClientId::new("c").ok(),
        },
        object: Object {
            kind: ObjectType::new("basket").expect("a type"),
            reference: ObjectRef::new("b-1").expect("a reference"),
            version: version("1"),
        },
        scopes: ScopeSet::new(["basket:read", "basket:write"]).expect("scopes"),
        policy: PolicyVersion::new("2026-11").expect("a version"),
        lifetime: Duration::from_secs(100),
        idle: Some(Duration::from_secs(10)),
    }
}

fn subject(fill: u8) -> SubjectKey {
    SubjectKey { key: KeyId([fill; 8]), mac: [fill; 32] }
}

fn version(text: &str) -> ObjectVersion {
    ObjectVersion::new(text).expect("a version")
}

fn why(reason: &str) -> Why {
    Why { reason: Reason::new(reason).expect("a reason"), receipt: Receipt::new("r-1").expect("a receipt") }
}

fn after(micros: i64) -> Timestamp {
    from_micros(START + micros)
}

fn key(new: &NewRecord) -> Key {
    Key { tenant: new.partition.tenant.clone(), digest: new.digest }
}

async fn put(store: &Arc<dyn Store>, new: &NewRecord) {
    store.insert(new).await.expect("inserted");
}

async fn see(store: &Arc<dyn Store>, new: &NewRecord) -> Option<Record> {
    store.find(&key(new)).await.expect("an answer").map(|found| found.record)
}

/// Both at once.
async fn both<T: Send + 'static>(
    one: impl Future<Output = T> + Send + 'static,
    other: impl Future<Output = T> + Send + 'static,
) -> [T; 2] {
    let other = tokio::spawn(other);
    [one.await, other.await.expect("no panic")]
}

async fn what_is_inserted_is_found_as_it_was(Pair { one, other, .. }: Pair) {
    let full = new();
    let unused_for_long = NewRecord { idle: Some(Duration::from_secs(1000)), digest: Digest(*random()), ..new() };
    let bare = NewRecord {
        digest: Digest(*random()),
        partition: Partition::default(),
        scopes: ScopeSet::new(["r"]).expect("a scope"),
        idle: None,
        ..new()
    };
    for new in [&full, &unused_for_long, &bare] {
        let lifespan = one.insert(new).await.expect("inserted");

        assert_eq!((lifespan.created, lifespan.expires), (after(0), after(100_000_000)));
        let Found { record, now } = other.find(&key(new)).await.expect("an answer").expect("found");
        assert_eq!(record, new.minted_at(after(0)));
        assert_eq!(now, after(0));
    }
    assert_eq!(see(&one, &full).await.expect("found").ends, after(10_000_000));
    assert_eq!(see(&one, &unused_for_long).await.expect("found").ends, after(100_000_000));
    assert_eq!(see(&one, &bare).await.expect("found").ends, after(100_000_000));
    assert_eq!(see(&one, &new()).await, None);
}

async fn odd_texts_come_back_as_they_were(Pair { one, other, .. }: Pair) {
    let odd = "' OR 1=1; --\"\\%_$1?\u{1F9FA}\u{202E}é{}";
    let mut new = new();
    new.partition.tenant = Tenant::new(odd).ok();
    new.partition.client = ClientId::new(odd).ok();
    new.object.reference = ObjectRef::new("x".repeat(1024)).expect("a reference");
    new.object.version = version(odd);
    new.policy = PolicyVersion::new(odd).expect("a version");
    new.scopes = ScopeSet::new(["!#$%&'()*+,-./:;<=>?@[]^_`{|}~", "a"]).expect("scopes");
    put(&one, &new).await;

    assert_eq!(see(&other, &new).await, Some(new.minted_at(after(0))));
    let which = Selector::everything().and_tenant(Tenant::new(odd).expect("a tenant"));
    assert_eq!(other.revoke(&which, &why(odd), None, 9).await.expect("revoked"), [new.digest]);
    assert_eq!(see(&one, &new).await.and_then(|record| record.revoked).expect("revoked").why, why(odd));
}

async fn an_existing_digest_is_an_error_and_nothing_changes(Pair { one, other, .. }: Pair) {
    let first = new();
    let mut second = first.clone();
    second.partition.subject = Some(subject(2));
    let mut elsewhere = first.clone();
    elsewhere.partition.tenant = Tenant::new("another").ok();
    put(&one, &first).await;

    for store in [&one, &other] {
        for again in [&first, &second, &elsewhere] {
            assert!(matches!(store.insert(again).await, Err(StoreError::Duplicate)));
        }
    }
    assert_eq!(see(&other, &first).await, Some(first.minted_at(after(0))));
}

async fn of_two_inserts_at_once_one_succeeds(Pair { one, other, .. }: Pair) {
    for _ in 0..20 {
        let new = new();
        let (first, second) = ((one.clone(), new.clone()), (other.clone(), new.clone()));
        let answers =
            both(async move { first.0.insert(&first.1).await }, async move { second.0.insert(&second.1).await }).await;

        assert_eq!(answers.iter().filter(|answer| answer.is_ok()).count(), 1);
        assert_eq!(answers.iter().filter(|answer| matches!(answer, Err(StoreError::Duplicate))).count(), 1);
    }
}

async fn a_record_of_another_tenant_is_a_miss(Pair { one, .. }: Pair) {
    let theirs = new();
    let nobodys = NewRecord { digest: Digest(*random()), partition: Partition::default(), ..new() };
    put(&one, &theirs).await;
    put(&one, &nobodys).await;
    let ask = async |digest, tenant: Option<&str>| {
        let tenant = tenant.and_then(|tenant| Tenant::new(tenant).ok());
        one.find(&Key { tenant, digest }).await.expect("an answer").is_some()
    };

    assert!(ask(theirs.digest, Some("t")).await);
    assert!(!ask(theirs.digest, Some("T")).await);
    assert!(!ask(theirs.digest, Some("t ")).await);
    assert!(!ask(theirs.digest, None).await);
    assert!(ask(nobodys.digest, None).await);
    assert!(!ask(nobodys.digest, Some("t")).await);
}

async fn an_end_moves_forward_only(Pair { one, other, .. }: Pair) {
    let new = new();
    put(&one, &new).await;
    let stranger = Key { tenant: None, ..key(&new) };
    let ends = async || see(&other, &new).await.expect("found").ends;

    one.touch(&key(&new), after(20_000_000)).await.expect("touched");
    assert_eq!(ends().await, after(20_000_000));
    one.touch(&key(&new), after(15_000_000)).await.expect("touched");
    assert_eq!(ends().await, after(20_000_000), "never back");
    one.touch(&stranger, after(30_000_000)).await.expect("touched");
    assert_eq!(ends().await, after(20_000_000), "not by another tenant");
    one.touch(&key(&new), after(500_000_000)).await.expect("touched");
    assert_eq!(ends().await, after(100_000_000), "never beyond its life");
}

async fn nothing_moves_the_end_of_what_is_revoked(Pair { one, other, .. }: Pair) {
    let new = new();
    put(&one, &new).await;
    one.revoke(&Selector::handle(new.digest), &why("lost"), None, 1).await.expect("revoked");

    other.touch(&key(&new), after(20_000_000)).await.expect("touched");

    assert_eq!(see(&one, &new).await.expect("found").ends, after(10_000_000));
}

async fn a_version_moves_from_the_one_it_has(Pair { one, other, .. }: Pair) {
    let new = new();
    put(&one, &new).await;
    let stranger = Key { tenant: None, ..key(&new) };
    let advance = async |key: &Key, from, to| one.advance(key, &version(from), &version(to)).await.expect("an answer");

    assert!(!advance(&key(&new), "2", "3").await, "from another version");
    assert!(!advance(&stranger, "1", "2").await, "by another tenant");
    assert!(advance(&key(&new), "1", "2").await);
    assert!(!advance(&key(&new), "1", "2").await, "twice");
    assert_eq!(see(&other, &new).await.expect("found").object.version, version("2"));
}

async fn of_two_advances_at_once_one_succeeds(Pair { one, other, .. }: Pair) {
    let new = new();
    put(&one, &new).await;
    for turn in 1..20 {
        let step = |store: &Arc<dyn Store>| {
            let (store, key) = (store.clone(), key(&new));
            let (from, to) = (version(&turn.to_string()), version(&(turn + 1).to_string()));
            async move { store.advance(&key, &from, &to).await.expect("an answer") }
        };

        let answers = both(step(&one), step(&other)).await;

        assert_eq!(answers.iter().filter(|moved| **moved).count(), 1);
    }
}

async fn what_is_dead_does_not_advance(Pair { one, other, clock }: Pair) {
    let (ended, revoked) = (new(), new());
    put(&one, &ended).await;
    put(&one, &revoked).await;
    one.revoke(&Selector::handle(revoked.digest), &why("lost"), None, 1).await.expect("revoked");
    let advance =
        async |new, from, to| other.advance(&key(new), &version(from), &version(to)).await.expect("an answer");

    assert!(!advance(&revoked, "1", "2").await);
    clock.set(after(9_999_999));
    assert!(advance(&ended, "1", "2").await, "one tick before its end");
    clock.set(after(10_000_000));
    assert!(!advance(&ended, "2", "3").await, "at its end");
}

async fn a_revocation_is_seen_at_once_and_the_first_stays(Pair { one, other, clock }: Pair) {
    let new = new();
    put(&one, &new).await;
    clock.set(after(1));

    assert_eq!(
        one.revoke(&Selector::handle(new.digest), &why("logout"), None, 9).await.expect("revoked"),
        [new.digest]
    );
    let first = see(&other, &new).await.expect("found").revoked.expect("revoked");
    assert_eq!((first.at, &first.why), (after(1), &why("logout")));

    clock.set(after(2));
    assert_eq!(other.revoke(&Selector::everything(), &why("later"), None, 9).await.expect("an answer"), []);
    assert_eq!(see(&one, &new).await.expect("found").revoked, Some(first));
}

async fn a_selector_selects_what_meets_all_of_it(Pair { one, other, clock }: Pair) {
    let base = new();
    put(&one, &base).await;
    clock.set(after(1));
    let varied = |change: &dyn Fn(&mut NewRecord)| {
        let mut varied = new();
        change(&mut varied);
        varied
    };
    let others = [
        varied(&|new| new.partition.subject = Some(subject(2))),
        varied(&|new| new.partition.subject = Some(SubjectKey { key: KeyId([9; 8]), ..subject(1) })),
        varied(&|new| new.partition.subject = None),
        varied(&|new| new.partition.tenant = Tenant::new("t2").ok()),
        varied(&|new| new.partition.tenant = None),
        varied(&|new| new.partition.client = ClientId::new("c2").ok()),
        varied(&|new| new.object.kind = ObjectType::new("order").expect("a type")),
        varied(&|new| new.object.reference = ObjectRef::new("b-2").expect("a reference")),
        varied(&|new| new.policy = PolicyVersion::new("2026-12").expect("a version")),
    ];
    for new in &others {
        put(&one, new).await;
    }
    let select = async |which: Selector| {
        let listed = other.list(&which, None, 99).await.expect("an answer");
        listed.records.iter().map(|record| record.digest).collect::<Vec<_>>()
    };
    let of = |subjects| Selector { subjects: Some(subjects), ..Selector::default() };
    let basket = || ObjectType::new("basket").expect("a type");
    let all = Selector::everything;

    assert_eq!(select(all()).await.len(), 10);
    assert_eq!(select(Selector::handle(base.digest)).await, [base.digest]);
    assert_eq!(select(of(vec![subject(1)])).await.len(), 7);
    assert_eq!(select(of(vec![subject(1), subject(2)])).await.len(), 8);
    assert_eq!(select(of(vec![])).await.len(), 0);
    assert_eq!(select(all().and_tenant(Tenant::new("t2").expect("a tenant"))).await, [others[3].digest]);
    assert_eq!(select(all().and_client(ClientId::new("c2").expect("a client"))).await, [others[5].digest]);
    assert_eq!(select(all().and_object(basket(), None)).await.len(), 9);
    assert_eq!(select(all().and_object(basket(), ObjectRef::new("b-2").ok())).await, [others[7].digest]);
    assert_eq!(select(all().and_policy(PolicyVersion::new("2026-12").expect("one"))).await, [others[8].digest]);
    assert_eq!(select(all().and_minted_before(after(1))).await, [base.digest]);
    assert_eq!(select(all().and_minted_before(after(0))).await, []);
    let none = of(vec![subject(2)]).and_tenant(Tenant::new("t2").expect("a tenant"));
    assert_eq!(select(none.clone()).await, [], "both at once");
    assert_eq!(one.revoke(&none, &why("x"), None, 9).await.expect("an answer"), []);
    assert_eq!(one.revoke(&of(vec![subject(2)]), &why("x"), None, 9).await.expect("an answer"), [others[0].digest]);
}

async fn of_two_revocations_at_once_each_record_is_in_one(Pair { one, other, .. }: Pair) {
    let mut expected = Vec::new();
    for _ in 0..50 {
        let new = new();
        put(&one, &new).await;
        expected.push(new.digest);
    }
    let all = |store: &Arc<dyn Store>| {
        let store = store.clone();
        async move {
            let mut revoked: Vec<Digest> = Vec::new();
            loop {
                let after = revoked.iter().max().copied();
                match store.revoke(&Selector::everything(), &why("logout"), after, 7).await.expect("an answer") {
                    more if more.is_empty() => return revoked,
                    more => revoked.extend(more),
                }
            }
        }
    };

    let mut revoked = both(all(&one), all(&other)).await.concat();

    revoked.sort();
    expected.sort();
    assert_eq!(revoked, expected);
}

async fn nothing_is_revoked_beyond_the_limit(Pair { one, .. }: Pair) {
    let mut all = Vec::new();
    for _ in 0..5 {
        let new = new();
        put(&one, &new).await;
        all.push(new.digest);
    }
    all.sort();
    let last = one.revoke(&Selector::everything(), &why("logout"), Some(all[3]), 9).await.expect("an answer");
    assert_eq!(last, [all[4]], "those after the digest, and not that one");
    let first = one.revoke(&Selector::everything(), &why("logout"), None, 1).await.expect("an answer");
    assert_eq!(first, [all[0]], "the first ones");

    assert_eq!(one.revoke(&Selector::everything(), &why("logout"), None, 2).await.expect("an answer").len(), 2);
    assert_eq!(one.revoke(&Selector::everything(), &why("logout"), None, 3).await.expect("an answer").len(), 1);
    assert_eq!(one.revoke(&Selector::everything(), &why("logout"), None, 3).await.expect("an answer").len(), 0);
}

async fn a_listing_is_in_order_and_in_pages(Pair { one, other, clock }: Pair) {
    let mut expected = Vec::new();
    for _ in 0..7 {
        let new = new();
        put(&one, &new).await;
        expected.push(new.digest);
    }
    expected.sort();
    clock.set(after(5));
    let mut listed: Vec<Digest> = Vec::new();
    loop {
        let page = other.list(&Selector::everything(), listed.last().copied(), 3).await.expect("an answer");
        assert_eq!(page.now, after(5));
        assert!(page.records.len() <= 3);
        if page.records.is_empty() {
            break;
        }
        listed.extend(page.records.iter().map(|record| record.digest));
    }

    assert_eq!(listed, expected);
}

async fn what_has_been_dead_for_longer_is_purged(Pair { one, other, clock }: Pair) {
    let (idle, revoked, living) = (new(), new(), NewRecord { idle: None, digest: Digest(*random()), ..new() });
    for new in [&idle, &revoked, &living] {
        put(&one, new).await;
    }
    clock.set(after(1));
    one.revoke(&Selector::handle(revoked.digest), &why("lost"), None, 1).await.expect("revoked");
    let hour = Duration::from_secs(3600);
    let minute = Duration::from_secs(60);
    let purge = async |dead_for| other.purge(dead_for, 99).await.expect("an answer");

    clock.set(later(after(1), minute));
    assert_eq!(purge(minute).await, 0, "dead for as long, not for longer");
    clock.set(later(after(2), minute));
    assert_eq!(purge(minute).await, 1, "the one that was revoked");
    assert_eq!(see(&one, &revoked).await, None);
    clock.set(later(after(10_000_001), minute));
    assert_eq!(purge(hour).await, 0);
    assert_eq!(purge(minute).await, 1, "the one that was not used");
    assert_eq!(see(&one, &idle).await, None);
    assert!(see(&one, &living).await.is_some());
    assert_eq!(purge(Duration::MAX).await, 0);
    assert_eq!(other.erase(&[living.digest, idle.digest]).await.expect("an answer"), 1);
    assert_eq!(see(&one, &living).await, None);
}
