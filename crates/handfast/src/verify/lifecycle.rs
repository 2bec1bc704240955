//! The life of a handle: how it ends, at which tick, under load, and when the store does not answer.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::Duration,
};

use super::lab::{IDLE, LIFETIME, Lab, On, Outcome, digest, kind, read, version, why};
use crate::{
    audit::Action,
    caller::ScopeSet,
    clock::{Clock, earlier},
    record::{Digest, NewRecord, Partition, PolicyVersion},
    refusal::Denial,
    secret::random,
    store::{Selector, StoreError},
};

const TICK: Duration = Duration::from_micros(1);

/// One tick before its end a handle is good; at its end, after it, and when the clock is set back, it is not.
pub(super) async fn expiry_exact(lab: &Lab) -> Outcome {
    let unused = lab.handle().await?.0;
    let used = lab.handle().await?.0;
    lab.wait(IDLE - TICK);
    lab.accepted("one tick before the idle window is over", &used).await?;
    lab.wait(TICK);
    let ended = async |handle: &str, expected| {
        lab.refused("a handle that has ended", &lab.owner(), handle, &read(), expected).await
    };
    ended(&unused, Denial::Idle).await.map_err(|error| format!("at the end of the idle window: {error}"))?;
    lab.wait(TICK);
    ended(&unused, Denial::Idle).await.map_err(|error| format!("one tick after the idle window: {error}"))?;
    // Used again and again it still ends: at the end of its life. Both were used a tick before the idle window's end.
    lab.wait(IDLE - 2 * TICK);
    lab.accepted("used within the idle window", &used).await?;
    let now = lab.clock.now();
    lab.wait(LIFETIME - IDLE - IDLE);
    lab.accepted("one tick before the end of its life", &used).await?;
    lab.wait(TICK);
    ended(&used, Denial::Expired).await.map_err(|error| format!("at the end of its life: {error}"))?;
    lab.wait(TICK);
    ended(&used, Denial::Expired).await.map_err(|error| format!("one tick after its life: {error}"))?;
    lab.clock.set(earlier(now, TICK));
    let revived = ended(&used, Denial::Expired).await;
    let revived = revived.and(ended(&unused, Denial::Expired).await);
    lab.clock.set(now);
    lab.wait(LIFETIME - IDLE - IDLE + 2 * TICK);
    revived.map_err(|error| format!("when the clock was set back: {error}"))?;
    Ok("accepted one tick before the end, refused at it, after it, and when the clock was set back".into())
}

/// After a revocation has returned nobody is accepted, on either connection; nobody but the owner can revoke.
pub(super) async fn revocation_final(lab: &Lab) -> Outcome {
    const HANDLES: usize = 20;
    let stranger = lab.caller(&format!("bob-{}", lab.run), "client-1", &lab.tenant("1"));
    for turn in 0..HANDLES {
        let (handle, _) = lab.handle().await?;
        let (here, there) = if turn % 2 == 0 { (On::One, On::Other) } else { (On::Other, On::One) };
        match lab.revoke(there, &stranger, &handle, "not mine").await {
            Err(Denial::ForeignPrincipal) => {}
            other => return Err(format!("a stranger's revocation was answered with {other:?}")),
        }
        lab.accepted("after a stranger tried to revoke it", &handle).await?;
        for on in [here, there] {
            lab.revoke(on, &lab.owner(), &handle, if on == here { "first" } else { "second" })
                .await
                .map_err(|denial| format!("the owner could not revoke: {denial}"))?;
            lab.refused("a handle that was revoked", &lab.owner(), &handle, &read(), Denial::Revoked).await?;
        }
        lab.refused("a stranger with a revoked handle", &stranger, &handle, &read(), Denial::ForeignPrincipal).await?;
        let which = Selector::handle(Digest::of(&handle));
        let listed = lab.stores[1].list(&which, None, 1).await.map_err(|error| error.to_string())?.records;
        let reason = listed.first().and_then(|record| record.revoked.as_ref()).map(|revoked| revoked.why.clone());
        if reason != Some(why("first")) {
            return Err("the first reason did not stay".into());
        }
    }
    Ok(format!("{HANDLES} handles were refused on both connections once revoked on one; the first reason stayed"))
}

/// Handles are used on both connections while they are revoked: no use that begins after the revocation has returned
/// succeeds.
pub(super) async fn revocation_race(lab: &Lab) -> Outcome {
    const ROUNDS: usize = 10;
    let uses = Arc::new(AtomicU64::new(0));
    for round in 0..ROUNDS {
        let (handle, _) = lab.handle().await?;
        let revoked = Arc::new(AtomicBool::new(false));
        let users: Vec<_> = (0..6)
            .map(|user| {
                let target = lab.shared(if user % 2 == 0 { On::One } else { On::Other });
                let (owner, handle, revoked, uses) = (lab.owner(), handle.clone(), revoked.clone(), uses.clone());
                tokio::spawn(async move {
                    let mut answers = Vec::new();
                    loop {
                        let late = revoked.load(Ordering::SeqCst);
                        let answer = target.resolve(&owner, &handle, &read()).await.map(drop);
                        uses.fetch_add(1, Ordering::Relaxed);
                        answers.push((late, answer));
                        if answer.is_err() || answers.len() > 5000 {
                            return answers;
                        }
                    }
                })
            })
            .collect();
        tokio::task::yield_now().await;
        let on = if round % 2 == 0 { On::One } else { On::Other };
        let done = lab.revoke(on, &lab.owner(), &handle, "race").await;
        revoked.store(true, Ordering::SeqCst);
        let mut wrong = None;
        for user in users {
            for (late, answer) in user.await.map_err(|error| error.to_string())? {
                lab.note(Action::Resolve, digest(&handle), answer.as_ref().err());
                match answer {
                    Ok(()) if late => {
                        wrong = Some("a use that began after the revocation had returned succeeded".to_owned())
                    }
                    Ok(()) | Err(Denial::Revoked) => {}
                    Err(other) => wrong = Some(format!("a use was refused as {other}")),
                }
            }
        }
        done.map_err(|denial| format!("the owner could not revoke: {denial}"))?;
        wrong.map_or(Ok(()), Err)?;
    }
    Ok(format!("{} uses on both connections raced {ROUNDS} revocations, and none won", uses.load(Ordering::Relaxed)))
}

/// What is revoked in bulk is revoked to the last one, and nothing else is.
pub(super) async fn bulk_revocation_complete(lab: &Lab) -> Outcome {
    let tenant = || lab.tenant("1");
    let bystander = lab.caller(&format!("bob-{}", lab.run), "client-2", &tenant());
    let everything = || Selector::everything().and_tenant(tenant());
    let owner = lab.owner();
    let client = || owner.client().expect("the owner has one").clone();
    let own_policy = PolicyVersion::new(format!("verify-{}-1", lab.run)).expect("a version");
    // Only what is made from here on is counted: what came before is revoked first.
    let before = lab.stores[0].revoke(&everything(), &why("verified"), None, 100_000).await;
    before.map_err(|error| error.to_string())?;
    let mut by = Vec::new();
    for which in 0..6 {
        let (handle, object) = lab.handle().await?;
        let spared = lab.mint(&bystander, lab.object()).await?;
        let mut expected = vec![handle.as_str()];
        let (name, selector) = match which {
            0 => ("subject", lab.target(On::One).selector_of(&owner).and_tenant(tenant())),
            1 => ("client", Selector::everything().and_client(client()).and_tenant(tenant())),
            2 => ("object", everything().and_object(kind("basket"), Some(object.reference))),
            3 => {
                expected.push(&spared);
                ("policy version", everything().and_policy(own_policy.clone()))
            }
            4 => {
                expected.push(&spared);
                lab.wait(TICK);
                ("time", everything().and_minted_before(lab.clock.now()))
            }
            _ => {
                expected.push(&spared);
                ("tenant", everything())
            }
        };
        lab.revoke_all(&selector, &expected).await.map_err(|error| format!("by {name}: {error}"))?;
        lab.refused("a handle revoked in bulk", &owner, &handle, &read(), Denial::Revoked)
            .await
            .map_err(|error| format!("by {name}: {error}"))?;
        if expected.len() == 1 {
            let use_it = lab.resolve(On::Other, &bystander, &spared, &read()).await;
            use_it.map_err(|denial| format!("by {name}: a bystander's handle was refused as {denial}"))?;
            lab.revoke_all(&Selector::handle(Digest::of(&spared)), &[&spared]).await?;
        }
        by.push(name);
    }
    Ok(format!("complete by {}; bystanders were spared", by.join(", ")))
}

/// Many at once, owners and strangers mixed; and of many changes of one version exactly one succeeds.
pub(super) async fn concurrent_use_consistent(lab: &Lab) -> Outcome {
    const USERS: usize = 32;
    let (handle, object) = lab.handle().await?;
    let stranger = lab.caller(&format!("bob-{}", lab.run), "client-1", &lab.tenant("1"));
    let users: Vec<_> = (0..USERS)
        .map(|user| {
            let (target, handle) = (lab.shared(if user % 2 == 0 { On::One } else { On::Other }), handle.clone());
            let (caller, own) = if user % 4 < 2 { (lab.owner(), true) } else { (stranger.clone(), false) };
            tokio::spawn(async move {
                let mut answers = Vec::new();
                for _ in 0..10 {
                    answers.push(target.resolve(&caller, &handle, &read()).await.map(drop));
                }
                (own, answers)
            })
        })
        .collect();
    let mut wrong = None;
    for user in users {
        let (own, answers) = user.await.map_err(|error| error.to_string())?;
        for answer in answers {
            lab.note(Action::Resolve, digest(&handle), answer.as_ref().err());
            match answer {
                Ok(()) if own => {}
                Err(Denial::ForeignPrincipal) if !own => {}
                other => wrong = Some(format!("{} got {other:?}", if own { "the owner" } else { "a stranger" })),
            }
        }
    }
    wrong.map_or(Ok(()), Err)?;
    let changes: Vec<_> = (0..8)
        .map(|change| {
            let (target, handle) = (lab.shared(if change % 2 == 0 { On::One } else { On::Other }), handle.clone());
            let owner = lab.owner();
            tokio::spawn(async move { target.advance(&owner, &handle, &read(), version(&format!("2-{change}"))).await })
        })
        .collect();
    let mut moved = 0;
    for change in changes {
        let answer = change.await.map_err(|error| error.to_string())?;
        moved += usize::from(lab.note_advance(&handle, answer).is_ok());
    }
    lab.world.set(object.reference, Some(version("1")));
    if moved != 1 {
        return Err(format!("of 8 changes of one version at once {moved} succeeded"));
    }
    Ok(format!("{USERS} users at once got what was theirs; of 8 changes of one version one succeeded"))
}

/// The same digest twice is an error, also at the same time, and changes nothing.
pub(super) async fn digest_unique(lab: &Lab) -> Outcome {
    const ROUNDS: usize = 20;
    for _ in 0..ROUNDS {
        let new = NewRecord {
            digest: Digest(*random()),
            partition: Partition { tenant: Some(lab.tenant("1")), ..Partition::default() },
            object: lab.object(),
            scopes: ScopeSet::new(["read"]).expect("a scope"),
            policy: PolicyVersion::new(format!("verify-{}-1", lab.run)).expect("a version"),
            lifetime: LIFETIME,
            idle: None,
        };
        let [first, second] = lab.stores.clone();
        let (theirs, mine) = (new.clone(), new.clone());
        let other = tokio::spawn(async move { second.insert(&theirs).await });
        let answers = [first.insert(&mine).await, other.await.map_err(|error| error.to_string())?];
        let inserted = answers.iter().filter(|answer| answer.is_ok()).count();
        let again = lab.stores[1].insert(&new).await;
        lab.stores[0].erase(&[new.digest]).await.map_err(|error| error.to_string())?;
        if inserted != 1 {
            return Err(format!("of two inserts of one digest at once {inserted} succeeded: is it a primary key?"));
        }
        if !matches!(again, Err(StoreError::Duplicate)) {
            return Err("a digest that is there was inserted once more: is it a primary key?".into());
        }
    }
    Ok(format!("{ROUNDS} digests were accepted once and refused after that, also at the same time"))
}

/// While the store does not answer nothing succeeds, and afterwards everything does again.
pub(super) async fn outage_fails_closed(lab: &Lab) -> Outcome {
    let (handle, _) = lab.handle().await?;
    let (target, cut) = &lab.cut;
    cut.off.store(true, Ordering::SeqCst);
    let minted = lab.mint_at(&**target, &lab.owner(), lab.object()).await.map(drop);
    let resolved = lab.resolve_at(&**target, &lab.owner(), &handle, &read()).await.map(drop);
    let revoked = target.revoke(&lab.owner(), &kind("basket"), &handle, why("outage")).await;
    lab.note(Action::Revoke, digest(&handle), revoked.as_ref().err());
    let all = target.revoke_all(&Selector::handle(Digest::of(&handle)), &why("outage")).await.map(drop);
    lab.note(Action::Revoke, None, all.as_ref().err());
    cut.off.store(false, Ordering::SeqCst);
    for (what, answer) in [("mint", minted), ("resolve", resolved), ("revoke", revoked), ("revoke in bulk", all)] {
        if answer != Err(Denial::Unavailable) {
            return Err(format!("to {what} during an outage was answered with {answer:?}, not as unavailable"));
        }
    }
    let afterwards = lab.resolve_at(&**target, &lab.owner(), &handle, &read()).await;
    afterwards.map_err(|denial| format!("after the outage the owner was refused as {denial}"))?;
    Ok("4 calls during an outage were refused as unavailable; afterwards the owner was accepted".into())
}
