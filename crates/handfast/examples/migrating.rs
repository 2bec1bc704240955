//! The server of `docs/guide/migrating-from-sessions.md`: notes that hung on a session, and the same notes by a handle.
//!
//! `cargo run -p handfast --example migrating`

use std::{
    collections::BTreeMap,
    error::Error,
    process::ExitCode,
    sync::{Arc, Mutex, PoisonError},
};

use handfast::{
    Asked, BackendDown, Caller, Grant, Handles, Keys, Loaded, Need, NotAuthorized, Object, ObjectAuthority, ObjectRef,
    ObjectVersion, Policy, Principal, ScopeSet, Setup, async_trait,
    clock::SystemClock,
    store::{MemoryStore, Store},
};
use serde_json::{Value, json};

/// Notes by session id.
#[derive(Default)]
struct Before(Mutex<BTreeMap<String, Vec<String>>>);

impl Before {
    fn remember(&self, session_id: &str, text: &str) -> Value {
        let mut sessions = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        sessions.entry(session_id.to_owned()).or_default().push(text.to_owned());
        said("remembered")
    }

    fn recall(&self, session_id: &str) -> Value {
        let sessions = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        said(&sessions.get(session_id).cloned().unwrap_or_default().join(", "))
    }
}

const POLICY: &str = r#"
version = "2026-11"

[objects.notebook]
lifetime = "30d"
idle = "7d"
scopes = ["notebook:use"]
created_by = "start_notebook"
bound = ["principal"]
prefix = "ntb"
"#;

/// Where notes are kept: by a name of the server's own, and no longer by how they are reached.
#[derive(Default)]
struct Notebooks(Mutex<BTreeMap<ObjectRef, Vec<String>>>);

#[async_trait]
impl ObjectAuthority for Notebooks {
    type Object = Vec<String>;

    async fn load(&self, object: &Object) -> Result<Option<Loaded<Vec<String>>>, BackendDown> {
        let notes = self.0.lock().unwrap_or_else(PoisonError::into_inner).get(&object.reference).cloned();
        Ok(notes.map(|object| Loaded { object, version: ObjectVersion::unversioned() }))
    }

    async fn authorize(&self, _: Asked<'_, Vec<String>>) -> Result<(), NotAuthorized> {
        Ok(())
    }
}

struct After {
    notebooks: Arc<Notebooks>,
    handles: Handles<Arc<Notebooks>>,
    notes: Need,
}

impl After {
    fn new(notebooks: Arc<Notebooks>, store: Arc<dyn Store>, keys: Keys) -> Result<Self, Box<dyn Error>> {
        let policy = Policy::from_toml(POLICY)?;
        let (notes, audit) =
            (policy.need("notebook", "notebook:use")?, Arc::new(handfast::JsonLines::new(std::io::stderr())));
        let handles = Handles::new(Setup { store, policy, keys, authority: notebooks.clone(), audit });
        Ok(Self { notebooks, handles, notes })
    }

    async fn start_notebook(&self, caller: &Caller) -> Value {
        let (kind, reference) = ("notebook".parse().expect("a type"), ObjectRef::random());
        let object = Object { kind, reference: reference.clone(), version: ObjectVersion::unversioned() };
        let scopes = ScopeSet::new(["notebook:use"]).expect("a scope");
        match self.handles.mint(caller, Grant { object, scopes }).await {
            Ok(minted) => {
                self.notebooks.0.lock().unwrap_or_else(PoisonError::into_inner).insert(reference, Vec::new());
                minted.tool_result()
            }
            Err(error) => error.tool_result(),
        }
    }

    async fn remember(&self, caller: &Caller, notebook_id: &str, text: &str) -> Value {
        match self.handles.resolve(caller, notebook_id, &self.notes).await {
            Ok(resolved) => {
                let mut notebooks = self.notebooks.0.lock().unwrap_or_else(PoisonError::into_inner);
                notebooks.entry(resolved.named().reference.clone()).or_default().push(text.to_owned());
                said("remembered")
            }
            Err(refused) => refused.tool_result(),
        }
    }

    async fn recall(&self, caller: &Caller, notebook_id: &str) -> Value {
        match self.handles.resolve(caller, notebook_id, &self.notes).await {
            Ok(resolved) => said(&resolved.object().join(", ")),
            Err(refused) => refused.tool_result(),
        }
    }
}

fn said(text: &str) -> Value {
    json!({"content": [{"type": "text", "text": text}]})
}

fn text(result: &Value) -> &str {
    result["content"][0]["text"].as_str().unwrap_or_default()
}

fn user(name: &str) -> Caller {
    Caller::trusted(Principal::new("https://id.example".parse().expect("an issuer"), name).expect("a name"))
}

#[expect(clippy::print_stdout, clippy::use_debug, reason = "an example shows what it does")]
async fn show() -> Result<(), Box<dyn Error>> {
    let (alice, bob) = (user("alice"), user("bob"));

    let before = Before::default();
    before.remember("9f3c", "milk");
    println!("before, whoever shows the session id: {}", text(&before.recall("9f3c")));
    println!("before, after a reconnect: {:?}", text(&before.recall("a71e")));

    let (notebooks, store) = (Arc::new(Notebooks::default()), Arc::new(MemoryStore::new(Arc::new(SystemClock))));
    let keys = Keys::dangerous_for_this_process_only();
    let one = After::new(notebooks.clone(), store.clone(), keys.clone())?;
    let other = After::new(notebooks, store, keys)?;
    let started = one.start_notebook(&alice).await;
    let notebook_id = started["structuredContent"]["notebook_id"].as_str().ok_or("no handle")?;
    one.remember(&alice, notebook_id, "milk").await;
    println!("after, on another connection to another replica: {}", text(&other.recall(&alice, notebook_id).await));
    println!("after, bob with the very same handle: {}", text(&other.recall(&bob, notebook_id).await));
    Ok(())
}

#[tokio::main]
async fn main() -> ExitCode {
    match show().await {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}
