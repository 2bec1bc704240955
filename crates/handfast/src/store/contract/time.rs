//! Time does not go back, whoever has seen it.

use std::sync::Arc;

use super::{Pair, after, key, new, put, version};
use crate::{
    record::{Digest, NewRecord},
    secret::random,
    store::Store,
};

pub(super) async fn the_time_of_an_insert_has_been_seen(Pair { one, clock, .. }: Pair) {
    let new = new();
    put(&one, &new).await;
    clock.set(after(10_000_000));
    put(&one, &NewRecord { digest: Digest(*random()), ..new.clone() }).await;
    clock.set(after(-5_000_000));

    let found = one.find(&key(&new)).await.expect("an answer").expect("found");

    assert_eq!(found.now, after(10_000_000));
}

pub(super) async fn time_does_not_go_back(Pair { one, other, clock }: Pair) {
    let new = new();
    put(&one, &new).await;
    put(&other, &super::new()).await;
    clock.set(after(10_000_000));
    let time = async |store: &Arc<dyn Store>| store.find(&key(&new)).await.expect("an answer").expect("found").now;
    assert_eq!((time(&one).await, time(&other).await), (after(10_000_000), after(10_000_000)));

    clock.set(after(-5_000_000));

    assert_eq!((time(&one).await, time(&other).await), (after(10_000_000), after(10_000_000)));
    let later = NewRecord { digest: Digest(*random()), ..new.clone() };
    assert_eq!(one.insert(&later).await.expect("inserted").created, after(10_000_000));
    assert!(!other.advance(&key(&new), &version("1"), &version("2")).await.expect("an answer"), "it was seen ended");
}
