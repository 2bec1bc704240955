//! What an attacker tries: guesses, and handles of somebody else.

use super::lab::{Lab, On, Outcome, PREFIX, kind, need, read, version};
use crate::{
    caller::{Caller, Issuer, Principal},
    handle::Handle,
    record::Object,
    refusal::Denial,
};

/// The control of all others: what refuses everybody refuses strangers as well.
pub(super) async fn owner_accepted(lab: &Lab) -> Outcome {
    for _ in 0..10 {
        let (handle, _) = lab.handle().await?;
        lab.accepted("a handle just made", &handle).await?;
        lab.accepted("a handle used before", &handle).await?;
    }
    Ok("10 handles were accepted on both connections, twice".into())
}

/// Handles that nobody was given, at random and next to one that somebody was.
pub(super) async fn guessing_refused(lab: &Lab) -> Outcome {
    const GUESSES: usize = 500;
    let prefix = PREFIX.parse().expect("a prefix");
    for _ in 0..GUESSES {
        let guess = Handle::random(Some(&prefix));
        lab.refused("a guess", &lab.owner(), guess.expose(), &read(), Denial::Unknown).await?;
    }
    let (handle, _) = lab.handle().await?;
    let body = &handle[PREFIX.len() + 1..];
    let mut nearly = Vec::new();
    for at in 0..body.len() {
        let other = if body[at..].starts_with('A') { "Q" } else { "A" };
        nearly.push(format!("{PREFIX}_{}{other}{}", &body[..at], &body[at + 1..]));
    }
    let near = nearly.len();
    // A last character that was not canonical is no handle at all; every other is one that nobody has.
    for guess in nearly {
        let expected = if super::lab::digest(&guess).is_some() { Denial::Unknown } else { Denial::Malformed };
        lab.refused("a handle with one character changed", &lab.owner(), &guess, &read(), expected).await?;
    }
    for malformed in ["", body, &handle[..handle.len() - 1], &format!("{handle}="), &handle.to_uppercase()] {
        lab.refused("what is no handle", &lab.owner(), malformed, &read(), Denial::Malformed).await?;
    }
    lab.accepted("the handle next to the guesses", &handle).await?;
    Ok(format!(
        "{GUESSES} guesses, {near} neighbours and 5 texts that are no handle were refused before any object was fetched"
    ))
}

/// The handle of one principal, presented by another.
pub(super) async fn subject_bound(lab: &Lab) -> Outcome {
    let (handle, _) = lab.handle().await?;
    let (tenant, alice) = (lab.tenant("1"), format!("alice-{}", lab.run));
    let strangers =
        [format!("bob-{}", lab.run), alice.to_uppercase(), format!("{alice} "), alice[..alice.len() - 1].into()];
    for stranger in strangers {
        let stranger = lab.caller(&stranger, "client-1", &tenant);
        lab.refused("another subject", &stranger, &handle, &read(), Denial::ForeignPrincipal).await?;
    }
    let issuer = Issuer::new(format!("urn:handfast:verify:{}:another", lab.run)).expect("an issuer");
    let namesake = with_parts_of_owner(lab, Caller::trusted(Principal::new(issuer, &alice).expect("a principal")));
    lab.refused("the same subject of another issuer", &namesake, &handle, &read(), Denial::ForeignPrincipal).await?;
    let nobody = with_parts_of_owner(lab, Caller::anonymous());
    lab.refused("nobody", &nobody, &handle, &read(), Denial::IdentityIncomplete).await?;
    lab.accepted("after strangers tried", &handle).await?;
    Ok("4 other subjects, a namesake of another issuer and nobody were refused".into())
}

/// The handle of one OAuth client, presented by another for the same user.
pub(super) async fn client_bound(lab: &Lab) -> Outcome {
    let (handle, _) = lab.handle().await?;
    let (tenant, alice) = (lab.tenant("1"), format!("alice-{}", lab.run));
    for client in ["client-2", "client-", "client-11", "CLIENT-1"] {
        let caller = lab.caller(&alice, client, &tenant);
        lab.refused("another client of the same user", &caller, &handle, &read(), Denial::ForeignClient).await?;
    }
    let owner = lab.owner();
    let principal = owner.principal().expect("the owner has one").clone();
    let without = Caller::trusted(principal).in_tenant(tenant);
    lab.refused("the same user without a client", &without, &handle, &read(), Denial::IdentityIncomplete).await?;
    lab.accepted("after other clients tried", &handle).await?;
    Ok("4 other clients of the same user and none at all were refused".into())
}

/// The handle of one tenant, presented by the same user and client in another.
pub(super) async fn tenant_bound(lab: &Lab) -> Outcome {
    let (handle, _) = lab.handle().await?;
    let alice = format!("alice-{}", lab.run);
    let elsewhere = lab.caller(&alice, "client-1", &lab.tenant("2"));
    lab.refused("the same user in another tenant", &elsewhere, &handle, &read(), Denial::Unknown).await?;
    let owner = lab.owner();
    let without = Caller::trusted(owner.principal().expect("the owner has one").clone())
        .by_client(owner.client().expect("the owner has one").clone());
    lab.refused("the same user without a tenant", &without, &handle, &read(), Denial::IdentityIncomplete).await?;
    // Both directions: a handle of the second tenant is nothing in the first.
    let theirs = lab.mint(&elsewhere, lab.object()).await?;
    lab.refused("a handle of another tenant", &owner, &theirs, &read(), Denial::Unknown).await?;
    lab.accepted("after the other tenant tried", &handle).await?;
    Ok("the same user was refused in another tenant and in none, in both directions".into())
}

/// A handle for reading, used for writing.
pub(super) async fn scope_not_escalated(lab: &Lab) -> Outcome {
    let (handle, _) = lab.handle().await?;
    let owner = lab.owner();
    lab.refused("a scope that was not granted", &owner, &handle, &need("basket", "write"), Denial::MissingScope)
        .await?;
    for unknown in ["READ", "read:all", "*"] {
        let need = need("basket", unknown);
        lab.refused("a scope that the policy does not know", &owner, &handle, &need, Denial::UnknownScope).await?;
    }
    lab.accepted("the scope that was granted", &handle).await?;
    Ok("a scope that was not granted and 3 that do not exist were refused".into())
}

/// A handle for one object, used when that has changed, has gone, or should be another one.
pub(super) async fn object_and_version_bound(lab: &Lab) -> Outcome {
    let (handle, object) = lab.handle().await?;
    let owner = lab.owner();
    lab.refused("a handle to an object of another type", &owner, &handle, &need("order", "read"), Denial::WrongObject)
        .await?;
    let changed = async |to: Option<&str>, expected: Denial| {
        lab.world.set(object.reference.clone(), to.map(version));
        match lab.resolve(On::Other, &owner, &handle, &read()).await {
            Err(denial) if denial == expected => Ok(()),
            Err(denial) => Err(format!("it was refused as {denial}, not as {expected}")),
            Ok(_) => Err(format!("it was accepted where {expected} was to be told")),
        }
    };
    changed(Some("2"), Denial::StaleVersion).await?;
    changed(None, Denial::ObjectGone).await?;
    lab.world.set(object.reference.clone(), Some(version("1")));
    lab.accepted("the version that it was made for", &handle).await?;
    if let Err(denial) = lab.advance(On::One, &handle, "2").await {
        return Err(format!("the version did not move forward: {denial}"));
    }
    changed(Some("1"), Denial::StaleVersion).await?;
    lab.world.set(object.reference.clone(), Some(version("2")));
    lab.accepted("the version that it was moved to", &handle).await?;
    Ok("another type, another version and an object that is gone were refused; a version moved forward was accepted"
        .into())
}

/// A handle made under one version of the policy, used under another.
pub(super) async fn policy_version_bound(lab: &Lab) -> Outcome {
    let (handle, _) = lab.handle().await?;
    let loads = lab.world.loads();
    let resolved = lab.resolve_at(&*lab.other_policy, &lab.owner(), &handle, &read()).await;
    if resolved != Err(Denial::PolicyChanged) || lab.world.loads() != loads {
        return Err(format!("under another version of the policy it was not refused as such, but {resolved:?}"));
    }
    let object = Object { kind: kind("basket"), ..lab.object() };
    let newer = lab.mint_at(&*lab.other_policy, &lab.owner(), object).await.map_err(|denial| denial.to_string())?;
    lab.refused("a handle of a newer policy", &lab.owner(), &newer, &read(), Denial::PolicyChanged).await?;
    lab.accepted("under its own policy", &handle).await?;
    Ok("a handle was refused under a newer and under an older version of the policy".into())
}

/// This caller, with the tenant and the client of the owner.
fn with_parts_of_owner(lab: &Lab, caller: Caller) -> Caller {
    let owner = lab.owner();
    let (tenant, client) = (owner.tenant().expect("it has one"), owner.client().expect("it has one"));
    caller.in_tenant(tenant.clone()).by_client(client.clone())
}
