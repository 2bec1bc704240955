//! The server of `docs/guide/handles.md`: baskets that only their owner can use.
//!
//! `cargo run -p handfast --example handles`

use std::{
    collections::BTreeMap,
    error::Error,
    process::ExitCode,
    sync::{Arc, Mutex, PoisonError},
};

use handfast::{
    Asked, BackendDown, Caller, ClientId, Grant, Handles, Issuer, JsonLines, Keys, Loaded, Need, NotAuthorized, Object,
    ObjectAuthority, ObjectRef, ObjectVersion, Policy, Principal, Reason, Receipt, ScopeSet, Setup, Tenant, Why,
    async_trait,
    store::{self, OpenOptions},
};
use serde_json::Value;

const POLICY: &str = r#"
version = "2026-11"

[objects.basket]
lifetime = "7d"
idle = "24h"
scopes = ["basket:read", "basket:write"]
created_by = "create_basket"
prefix = "bsk"
"#;

#[derive(Clone, Default)]
struct Basket {
    items: Vec<String>,
}

/// What the server keeps, under names of its own. No client ever sees these names.
#[derive(Default)]
struct Baskets(Mutex<BTreeMap<ObjectRef, Basket>>);

impl Baskets {
    fn with<T>(&self, work: impl FnOnce(&mut BTreeMap<ObjectRef, Basket>) -> T) -> T {
        work(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

#[async_trait]
impl ObjectAuthority for Baskets {
    type Object = Basket;

    async fn load(&self, object: &Object) -> Result<Option<Loaded<Basket>>, BackendDown> {
        let basket = self.with(|baskets| baskets.get(&object.reference).cloned());
        Ok(basket.map(|basket| Loaded { version: version(&basket), object: basket }))
    }

    async fn authorize(&self, _: Asked<'_, Basket>) -> Result<(), NotAuthorized> {
        // Whoever may call this server may have baskets. Ask your own permissions here where you have some.
        Ok(())
    }
}

fn version(basket: &Basket) -> ObjectVersion {
    ObjectVersion::new(basket.items.len().to_string()).expect("digits are a version")
}

struct Server {
    baskets: Arc<Baskets>,
    handles: Handles<Arc<Baskets>>,
    read: Need,
    write: Need,
}

impl Server {
    async fn open(store_url: &str, keys: Keys) -> Result<Self, Box<dyn Error>> {
        let policy = Policy::from_toml(POLICY)?;
        let baskets = Arc::new(Baskets::default());
        Ok(Self {
            read: policy.need("basket", "basket:read")?,
            write: policy.need("basket", "basket:write")?,
            handles: Handles::new(Setup {
                store: store::open(store_url, OpenOptions::default()).await?,
                policy,
                keys,
                authority: baskets.clone(),
                audit: Arc::new(JsonLines::new(std::io::stderr())),
            }),
            baskets,
        })
    }

    async fn create_basket(&self, caller: &Caller) -> Value {
        // A name that was never used and never will be: a handle to what is gone must not lead to what came after it.
        let reference = ObjectRef::random();
        let kind = "basket".parse().expect("a type");
        let object = Object { kind, reference: reference.clone(), version: version(&Basket::default()) };
        let scopes = ScopeSet::new(["basket:read", "basket:write"]).expect("two scopes");
        match self.handles.mint(caller, Grant { object, scopes }).await {
            Ok(minted) => {
                self.baskets.with(|baskets| baskets.insert(reference, Basket::default()));
                minted.tool_result()
            }
            Err(error) => error.tool_result(),
        }
    }

    async fn list_items(&self, caller: &Caller, basket_id: &str) -> Value {
        match self.handles.resolve(caller, basket_id, &self.read).await {
            Ok(resolved) => text(&format!("in the basket: {:?}", resolved.object().items)),
            Err(refused) => refused.tool_result(),
        }
    }

    async fn add_item(&self, caller: &Caller, basket_id: &str, item: &str) -> Value {
        let resolved = match self.handles.resolve(caller, basket_id, &self.write).await {
            Ok(resolved) => resolved,
            Err(refused) => return refused.tool_result(),
        };
        // The version is looked at and changed in one step: of two calls at once only one may change what both have seen.
        let changed = self.baskets.with(|baskets| {
            let basket = baskets.get_mut(&resolved.named().reference)?;
            if version(basket) != resolved.named().version {
                return None;
            }
            basket.items.push(item.to_owned());
            Some(version(basket))
        });
        let Some(to) = changed else { return failed("the basket has changed meanwhile; try again") };
        match self.handles.advance(caller, resolved, to).await {
            Ok(_) => text(&format!("{item} is in the basket")),
            Err(refused) => refused.tool_result(),
        }
    }

    async fn close_basket(&self, caller: &Caller, basket_id: &str) -> Value {
        let resolved = match self.handles.resolve(caller, basket_id, &self.write).await {
            Ok(resolved) => resolved,
            Err(refused) => return refused.tool_result(),
        };
        let why = Why {
            reason: "closed by its owner".parse().expect("a reason"),
            receipt: "close_basket".parse().expect("a receipt"),
        };
        match self.handles.revoke(caller, &resolved.named().kind, basket_id, why).await {
            Ok(_) => {
                self.baskets.with(|baskets| baskets.remove(&resolved.named().reference));
                text("the basket is closed")
            }
            Err(refused) => refused.tool_result(),
        }
    }

    async fn logged_out(&self, who: &Principal) -> Result<u64, Box<dyn Error>> {
        let why = Why { reason: Reason::new("logout")?, receipt: Receipt::new("login-event-4711")? };
        Ok(self.handles.revoke_all(&self.handles.selector_of(who), &why).await?)
    }
}

fn text(text: &str) -> Value {
    serde_json::json!({"content": [{"type": "text", "text": text}]})
}

fn failed(text: &str) -> Value {
    serde_json::json!({"content": [{"type": "text", "text": text}], "isError": true})
}

fn caller(subject: &str) -> Result<Caller, Box<dyn Error>> {
    let principal = Principal::new(Issuer::new("https://id.example.com")?, subject)?;
    Ok(Caller::trusted(principal).in_tenant(Tenant::new("acme")?).by_client(ClientId::new("desktop-app")?))
}

#[tokio::main]
async fn main() -> ExitCode {
    match run().await {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            // In its own words: they say which line of the policy, or which key.
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}

async fn run() -> Result<(), Box<dyn Error>> {
    let folder = tempfile::tempdir()?;
    let store_url = format!("sqlite:{}", folder.path().join("handles.db").display());
    let server = Server::open(&store_url, Keys::dangerous_for_this_process_only()).await?;
    let (alice, bob) = (caller("alice")?, caller("bob")?);

    let created = server.create_basket(&alice).await;
    let basket_id = created["structuredContent"]["basket_id"].as_str().unwrap_or_default();
    show("alice adds", &server.add_item(&alice, basket_id, "bread").await);
    show("alice lists", &server.list_items(&alice, basket_id).await);
    show("bob lists", &server.list_items(&bob, basket_id).await);
    show("bob closes", &server.close_basket(&bob, basket_id).await);
    show("alice guesses", &server.list_items(&alice, "bsk_AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA").await);
    server.logged_out(alice.principal().ok_or("nobody")?).await?;
    show("after her logout", &server.list_items(&alice, basket_id).await);
    let created = server.create_basket(&alice).await;
    let basket_id = created["structuredContent"]["basket_id"].as_str().unwrap_or_default();
    show("alice closes another", &server.close_basket(&alice, basket_id).await);
    Ok(())
}

#[expect(clippy::print_stdout, reason = "an example shows what it does")]
fn show(what: &str, result: &Value) {
    println!("{what}: {}", result["content"][0]["text"].as_str().unwrap_or_default());
}
