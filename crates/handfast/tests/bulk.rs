//! A bulk revocation is complete, also where somebody else revokes at the same time.
#![cfg(feature = "postgres")]

use std::{
    io::{BufRead, BufReader, Write},
    process::Stdio,
    sync::Arc,
};

use handfast::{
    Asked, BackendDown, DangerousNoAudit, Handles, Keys, Loaded, NotAuthorized, Object, ObjectAuthority, Policy, Setup,
    Why, async_trait,
    store::{OpenOptions, Selector, open},
};
use handfast_testbed::Cluster;

struct Nothing;

#[async_trait]
impl ObjectAuthority for Nothing {
    type Object = ();

    async fn load(&self, _: &Object) -> Result<Option<Loaded<()>>, BackendDown> {
        Ok(None)
    }

    async fn authorize(&self, _: Asked<'_, ()>) -> Result<(), NotAuthorized> {
        Ok(())
    }
}

/// Somebody else is revoking one of the handles of the first batch. That batch is smaller by one then, and not the last.
#[tokio::test(flavor = "multi_thread")]
async fn a_smaller_batch_is_not_the_last_one() {
    let cluster = Cluster::shared();
    let url = cluster.database();
    let store = open(&url, OpenOptions::default()).await.expect("opened");
    let fill = "INSERT INTO handfast_handles (digest, object_type, object_ref, object_version, scopes, policy_version, \
         created_at, expires_at, ends_at) SELECT sha256(n::text::bytea), 'basket', 'b', '1', 'read', '1', now(), \
         now() + '1 hour', now() + '1 hour' FROM generate_series(1, 2500) AS n";
    cluster.sql(&url, fill);
    let mut psql = cluster.client("psql");
    psql.args(["-qAt", url.rsplit('/').next().expect("a database")]).stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut other = psql.spawn().expect("psql runs");
    let mut input = other.stdin.take().expect("it is piped");
    let begin = "BEGIN; UPDATE handfast_handles SET revoked_at = now(), revocation_reason = 'r', revocation_receipt = 'c' \
         WHERE digest = (SELECT digest FROM handfast_handles WHERE revoked_at IS NULL LIMIT 1); SELECT 'done';\n";
    input.write_all(begin.as_bytes()).expect("it reads");
    let mut line = String::new();
    BufReader::new(other.stdout.as_mut().expect("it is piped")).read_line(&mut line).expect("it answers");
    assert_eq!(line, "done\n");

    let rules = "lifetime = \"1h\"\nscopes = [\"read\"]\ncreated_by = \"make\"";
    let handles = Handles::new(Setup {
        store: store.clone(),
        policy: Policy::from_toml(&format!("version = \"1\"\n[objects.basket]\n{rules}")).expect("a policy"),
        keys: Keys::dangerous_for_this_process_only(),
        authority: Nothing,
        audit: Arc::new(DangerousNoAudit),
    });
    let why = Why { reason: "all".parse().expect("a reason"), receipt: "c".parse().expect("a receipt") };
    let revoking = tokio::spawn(async move { handles.revoke_all(&Selector::everything(), &why).await });
    let waiting =
        "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND datname = current_database()";
    while cluster.sql(&url, waiting).trim() == "0" {}
    input.write_all(b"COMMIT;\n").expect("it reads");
    drop(input);
    other.wait().expect("it ends");

    assert_eq!(revoking.await.expect("it ends").expect("revoked"), 2499);
    assert_eq!(cluster.sql(&url, "SELECT count(*) FROM handfast_handles WHERE revoked_at IS NULL").trim(), "0");
}
