//! The server whose handles are measured: one policy, one caller, and an authority that says yes without looking.

use std::sync::Arc;

use handfast::{
    Asked, BackendDown, Caller, ClientId, DangerousNoAudit, Digest, Grant, Handles, Issuer, Keys, Loaded, Need,
    NotAuthorized, Object, ObjectAuthority, ObjectRef, ObjectType, ObjectVersion, Policy, Principal, ScopeSet, Setup,
    Tenant, async_trait, parse_handle, store::Store,
};

use crate::measure::{Random, Work};

/// A use moves the end of a handle at most once for each sixteenth of its idle window, here once in ten hours; so after
/// its first use no resolve of this program writes.
const POLICY: &str = r#"
version = "2026-11"

[objects.basket]
lifetime = "30d"
idle = "7d"
scopes = ["basket:read", "basket:write"]
created_by = "create_basket"
prefix = "bsk"
"#;

/// The tenant that everything belongs to.
pub const TENANT: &str = "acme";

/// Handles over one store, and who asks for them.
pub struct Shop {
    handles: Handles<Yes>,
    caller: Caller,
    need: Need,
    grant: Grant,
}

/// Says yes, and loads nothing.
struct Yes;

#[async_trait]
impl ObjectAuthority for Yes {
    type Object = ();

    async fn load(&self, object: &Object) -> Result<Option<Loaded<()>>, BackendDown> {
        Ok(Some(Loaded { object: (), version: object.version.clone() }))
    }

    async fn authorize(&self, _: Asked<'_, ()>) -> Result<(), NotAuthorized> {
        Ok(())
    }
}

impl Shop {
    /// A shop over this store. No event is kept: a sink costs what it costs, and the floors have none.
    pub fn over(store: Arc<dyn Store>) -> Arc<Self> {
        let policy = Policy::from_toml(POLICY).expect("a policy");
        let need = policy.need("basket", "basket:read").expect("a need");
        let issuer = Issuer::new("https://id.example.com").expect("an issuer");
        let caller = Caller::trusted(Principal::new(issuer, "alice@example.com").expect("a principal"))
            .in_tenant(Tenant::new(TENANT).expect("a tenant"))
            .by_client(ClientId::new("https://app.example.com/client.json").expect("a client"));
        let object = Object {
            kind: ObjectType::new("basket").expect("a type"),
            reference: ObjectRef::new("0192f3c4-7a55-7c1e-9d1b-2f6f0e3b8a10").expect("a reference"),
            version: ObjectVersion::new("17").expect("a version"),
        };
        let grant = Grant { object, scopes: ScopeSet::new(["basket:read", "basket:write"]).expect("scopes") };
        let keys = Keys::dangerous_for_this_process_only();
        let handles = Handles::new(Setup { store, policy, keys, authority: Yes, audit: Arc::new(DangerousNoAudit) });
        Arc::new(Self { handles, caller, need, grant })
    }

    /// A handle that was minted and used once: a pattern for the rows of others.
    pub async fn pattern(&self) -> Digest {
        let minted = self.handles.mint(&self.caller, self.grant.clone()).await.expect("minted");
        self.handles.resolve(&self.caller, minted.handle().expose(), &self.need).await.expect("resolved");
        minted.handle().digest()
    }
}

/// Handles that were never minted, with their digests: their rows are copies of one that was.
pub fn made_up(count: usize) -> Vec<(String, Digest)> {
    const LETTERS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
    let mut random = Random::new(1);
    let prefix = Policy::from_toml(POLICY).expect("a policy").rules_for("basket").expect("rules").prefix.clone();
    let make = |_| {
        let mut text = "bsk_".to_owned();
        text.extend((0..42).map(|_| char::from(LETTERS[random.below(64)])));
        // The last letter stands for four bits, so it is one of sixteen.
        text.push(char::from(LETTERS[random.below(16) * 4]));
        let digest = parse_handle(text.as_bytes(), prefix.as_ref()).expect("the form of a handle");
        (text, digest)
    };
    (0..count).map(make).collect()
}

/// One resolve.
pub struct Resolve(pub Arc<Shop>, pub Arc<Vec<(String, Digest)>>);

impl Work for Resolve {
    async fn once(&mut self, row: usize) {
        let Self(shop, handles) = self;
        shop.handles.resolve(&shop.caller, &handles[row].0, &shop.need).await.expect("resolved");
    }
}

/// One mint.
pub struct Mint(pub Arc<Shop>);

impl Work for Mint {
    async fn once(&mut self, _: usize) {
        let Self(shop) = self;
        shop.handles.mint(&shop.caller, shop.grant.clone()).await.expect("minted");
    }
}
