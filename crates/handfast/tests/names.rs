//! Names of a server behind: concealed for whoever was given them first, revealed to nobody else.

use std::{sync::Arc, time::Duration};

use futures_util::future::join_all;
use handfast::{
    Caller, ClientId, DangerousNoAudit, Denial, Keys, MintError, ObjectType, Policy, Principal, Reason, Receipt,
    Tenant, Why,
    clock::ManualClock,
    names::{Form, Names, NamesError, NamesSetup},
    store::{MemoryStore, Selector, SqliteOptions, SqliteStore, Store},
};

const POLICY: &str = r#"
version = "1"

[objects.basket]
lifetime = "10h"
idle = "1h"
scopes = ["use"]
bound = ["principal", "tenant", "client"]
created_by = "create_basket"
prefix = "basket"

[objects.order]
lifetime = "10h"
scopes = ["use"]
bound = ["principal"]
created_by = "order"
prefix = "order"
"#;

struct Scene {
    clock: Arc<ManualClock>,
    store: Arc<dyn Store>,
    key: handfast::SecretText,
    names: Names,
}

fn scene() -> Scene {
    let clock = Arc::new(ManualClock::at("2026-12-01T00:00:00Z".parse().expect("a time")));
    let key = Keys::generate();
    let store: Arc<dyn Store> = Arc::new(MemoryStore::new(clock.clone()));
    let names = over(store.clone(), key.expose());
    Scene { clock, store, key, names }
}

fn over(store: Arc<dyn Store>, keys: &str) -> Names {
    Names::new(NamesSetup {
        store,
        policy: Policy::from_toml(POLICY).expect("a policy"),
        keys: Keys::parse(keys).expect("keys"),
        audience: "https://mcp.example.com/mcp".parse().expect("an audience"),
        audit: Arc::new(DangerousNoAudit),
    })
    .expect("names")
}

fn caller(subject: &str, client: &str, tenant: &str) -> Caller {
    let principal = Principal::new("https://id.example".parse().expect("an issuer"), subject).expect("a principal");
    let (client, tenant) = (ClientId::new(client).expect("a client"), Tenant::new(tenant).expect("a tenant"));
    Caller::trusted(principal).by_client(client).in_tenant(tenant)
}

fn alice() -> Caller {
    caller("alice", "laptop", "acme")
}

fn bob() -> Caller {
    caller("bob", "laptop", "acme")
}

fn kind(name: &str) -> ObjectType {
    name.parse().expect("a type")
}

async fn shown(names: &Names, caller: &Caller, inner: &str) -> (String, bool) {
    let shown = names.conceal(caller, &kind("basket"), inner, Form::Text).await.expect("concealed");
    (shown.handle().expose().to_owned(), shown.is_own())
}

async fn revealed(names: &Names, caller: &Caller, presented: &str) -> Result<String, Denial> {
    let revealed = names.reveal(caller, presented).await;
    revealed.map(|revealed| revealed.inner().expose().to_owned()).map_err(|refused| refused.denial())
}

#[tokio::test]
async fn an_owner_gets_the_name_back_and_the_same_handle_each_time() {
    let Scene { names, store, key, .. } = scene();
    let (handle, own) = shown(&names, &alice(), "17").await;
    assert!(own && handle.starts_with("basket_") && !handle.contains("17"));
    assert_eq!(revealed(&names, &alice(), &handle).await.as_deref(), Ok("17"));
    assert_eq!(shown(&names, &alice(), "17").await, (handle.clone(), true));
    assert_ne!(shown(&names, &alice(), "18").await.0, handle);

    let restarted = over(store, key.expose());
    assert_eq!(shown(&restarted, &alice(), "17").await, (handle.clone(), true));
    assert_eq!(revealed(&restarted, &alice(), &handle).await.as_deref(), Ok("17"));
}

#[tokio::test]
async fn whoever_is_not_the_owner_in_one_respect_gets_nothing() {
    let Scene { names, .. } = scene();
    let (handle, _) = shown(&names, &alice(), "17").await;
    for (other, denial) in [
        (bob(), Denial::ForeignPrincipal),
        (caller("alice", "phone", "acme"), Denial::ForeignClient),
        (caller("alice", "laptop", "globex"), Denial::Unknown),
    ] {
        assert_eq!(revealed(&names, &other, &handle).await, Err(denial), "{other:?}");
        let (told, own) = shown(&names, &other, "17").await;
        assert!(!own && told != handle, "{other:?}");
        assert_eq!(revealed(&names, &other, &told).await, Err(Denial::Unknown));
        assert_eq!(revealed(&names, &alice(), &told).await, Err(Denial::Unknown));
    }
    assert_eq!(shown(&names, &alice(), "17").await, (handle, true), "and the owner keeps it");
    assert_eq!(revealed(&names, &alice(), "17").await, Err(Denial::Malformed), "the name itself is none");
}

#[tokio::test]
async fn kinds_are_kept_apart_and_bound_as_their_rules_say() {
    let Scene { names, .. } = scene();
    let basket = shown(&names, &alice(), "17").await.0;
    let order = names.conceal(&bob(), &kind("order"), "17", Form::Text).await.expect("concealed");
    assert!(order.is_own(), "another kind of object may have the same name");
    let order = order.handle().expose();
    assert_eq!(revealed(&names, &bob(), order).await.as_deref(), Ok("17"));
    assert_eq!(revealed(&names, &caller("bob", "phone", "globex"), order).await.as_deref(), Ok("17"));
    let swapped = basket.replacen("basket_", "order_", 1);
    assert_eq!(revealed(&names, &alice(), &swapped).await, Err(Denial::Unknown));
    let none = names.conceal(&alice(), &kind("note"), "17", Form::Text).await.expect_err("no such kind");
    assert!(matches!(none, MintError::ObjectType(_)));
    let nobody = names.conceal(&Caller::anonymous(), &kind("basket"), "1", Form::Text).await.expect_err("nobody");
    assert!(matches!(nobody, MintError::IdentityIncomplete(_)));
    let long = names.conceal(&alice(), &kind("basket"), &"x".repeat(5000), Form::Text).await.expect_err("too long");
    assert!(matches!(long, MintError::NameTooLong), "{long:?}");
}

#[tokio::test]
async fn a_number_is_remembered_as_one() {
    let Scene { names, .. } = scene();
    let order = kind("order");
    let shown = names.conceal(&alice(), &order, "17", Form::Number).await.expect("concealed");
    let again = names.conceal(&alice(), &order, "17", Form::Text).await.expect("concealed");
    assert_eq!(shown.handle(), again.handle(), "in a sentence it is the same name");
    let revealed = names.reveal(&alice(), again.handle().expose()).await.expect("revealed");
    assert_eq!((revealed.inner().expose(), revealed.form(), revealed.kind()), ("17", Form::Number, &order));
}

#[tokio::test]
async fn a_name_is_free_again_when_its_time_is_over() {
    let Scene { names, clock, .. } = scene();
    let (handle, _) = shown(&names, &alice(), "17").await;
    clock.advance(Duration::from_secs(10 * 3600 - 1));
    assert!(!shown(&names, &bob(), "17").await.1);
    clock.advance(Duration::from_secs(1));
    let (his, own) = shown(&names, &bob(), "17").await;
    assert!(own);
    assert_eq!(revealed(&names, &bob(), &his).await.as_deref(), Ok("17"));
    assert!(!shown(&names, &alice(), "17").await.1);
    assert!(revealed(&names, &alice(), &handle).await.is_err());
}

#[tokio::test]
async fn what_was_idle_too_long_is_its_owners_still() {
    let Scene { names, clock, .. } = scene();
    let (handle, _) = shown(&names, &alice(), "17").await;
    clock.advance(Duration::from_secs(3 * 3600));
    assert_eq!(revealed(&names, &alice(), &handle).await, Err(Denial::Idle));
    assert!(!shown(&names, &bob(), "17").await.1);
    let (again, own) = shown(&names, &alice(), "17").await;
    assert!(own && again != handle, "the server still has it, so there is a new handle");
    assert_eq!(revealed(&names, &alice(), &again).await.as_deref(), Ok("17"));
}

#[tokio::test]
async fn what_was_revoked_does_not_come_back_by_being_mentioned() {
    let Scene { names, store, .. } = scene();
    let (handle, _) = shown(&names, &alice(), "17").await;
    let digest = handfast::parse_handle(handle.as_bytes(), Some(&handfast::Prefix::new("basket").expect("one")));
    let why = Why { reason: Reason::new("lost").expect("a reason"), receipt: Receipt::new("T-1").expect("a receipt") };
    store.revoke(&Selector::handle(digest.expect("a handle")), &why, None, 1).await.expect("revoked");
    assert_eq!(revealed(&names, &alice(), &handle).await, Err(Denial::Revoked));
    assert_eq!(shown(&names, &alice(), "17").await, (handle.clone(), true));
    assert_eq!(revealed(&names, &alice(), &handle).await, Err(Denial::Revoked));
    assert!(!shown(&names, &bob(), "17").await.1);
}

#[tokio::test]
async fn the_owner_is_the_same_before_while_and_after_keys_change() {
    let Scene { names, store, key, .. } = scene();
    let (old, new) = (key.expose(), Keys::generate());
    let new = new.expose();
    let (handle, _) = shown(&names, &alice(), "17").await;
    for keys in [format!("{old} sealing\n{new} opening"), format!("{new} sealing\n{old} opening")] {
        let names = over(store.clone(), &keys);
        assert!(!shown(&names, &bob(), "17").await.1, "{keys}");
        assert_eq!(shown(&names, &alice(), "17").await, (handle.clone(), true));
        assert_eq!(revealed(&names, &alice(), &handle).await.as_deref(), Ok("17"));
    }
    let both = over(store.clone(), &format!("{new} sealing\n{old} opening"));
    let (later, _) = shown(&both, &alice(), "18").await;
    for keys in [new.to_owned(), old.to_owned(), format!("{old} sealing\n{new} opening")] {
        assert!(!shown(&over(store.clone(), &keys), &bob(), "18").await.1, "a replica that is behind, or ahead");
    }
    assert_eq!(shown(&both, &alice(), "18").await.0, later);
}

#[tokio::test]
async fn of_many_that_are_given_a_name_at_once_one_owns_it() {
    let folder = tempfile::tempdir().expect("a folder");
    let options = SqliteOptions::default();
    let sqlite: Arc<dyn Store> = Arc::new(SqliteStore::open(folder.path().join("names"), options).expect("a store"));
    let key = Keys::generate();
    let replicas = [over(sqlite.clone(), key.expose()), over(sqlite.clone(), key.expose())];
    for round in 0..20 {
        let inner = format!("b-{round}");
        let callers: Vec<Caller> = (0..8).map(|n| caller(&format!("user-{n}"), "laptop", "acme")).collect();
        let all = callers.iter().enumerate().map(|(n, caller)| shown(&replicas[n % 2], caller, &inner));
        let told = join_all(all).await;
        assert_eq!(told.iter().filter(|(_, own)| *own).count(), 1, "round {round}");
        for (n, (handle, own)) in told.iter().enumerate() {
            let opens = revealed(&replicas[0], &callers[n], handle).await.is_ok();
            assert_eq!(opens, *own, "round {round}, user-{n}");
        }
    }
}

#[test]
fn a_policy_under_which_names_could_not_be_told_apart_is_refused() {
    let why = |from: &str, to: &str| {
        let made = Names::new(NamesSetup {
            store: Arc::new(MemoryStore::new(Arc::new(handfast::clock::SystemClock))),
            policy: Policy::from_toml(&POLICY.replace(from, to)).expect("a policy"),
            keys: Keys::dangerous_for_this_process_only(),
            audience: "https://mcp.example.com/mcp".parse().expect("an audience"),
            audit: Arc::new(DangerousNoAudit),
        });
        made.err().expect("refused")
    };
    assert!(matches!(why("prefix = \"order\"\n", ""), NamesError::NoPrefix(_)));
    assert!(matches!(why("prefix = \"order\"", "prefix = \"basket\""), NamesError::SamePrefix(_)));
    assert!(matches!(why("\"use\"", "\"read\""), NamesError::Scopes(_)));
}
