//! What may happen once happens once.

use std::time::Duration;

use super::{Pair, after};
use crate::store::SpendId;

pub(super) async fn what_is_spent_is_spent_once(Pair { one, other, .. }: Pair) {
    let (id, neighbour) = (SpendId([7; 16]), SpendId([8; 16]));

    assert!(one.spend(&id, after(1)).await.expect("an answer"));
    assert!(!other.spend(&id, after(1)).await.expect("an answer"));
    assert!(!one.spend(&id, after(2)).await.expect("an answer"));
    assert!(other.spend(&neighbour, after(1)).await.expect("an answer"));
}

pub(super) async fn of_many_who_spend_at_once_one_is_first(Pair { one, other, .. }: Pair) {
    for round in 0..10 {
        let id = SpendId([round; 16]);
        let all: Vec<_> = (0..8)
            .map(|which| if which % 2 == 0 { one.clone() } else { other.clone() })
            .map(|store| tokio::spawn(async move { store.spend(&id, after(1)).await.expect("an answer") }))
            .collect();
        let mut first = 0;
        for one in all {
            first += usize::from(one.await.expect("no panic"));
        }
        assert_eq!(first, 1);
    }
}

pub(super) async fn a_mark_stays_until_its_time_is_over(Pair { one, other, clock }: Pair) {
    let (early, late) = (SpendId([1; 16]), SpendId([2; 16]));
    for (id, until) in [(early, after(1_000_000)), (late, after(2_000_000))] {
        assert!(one.spend(&id, until).await.expect("an answer"));
    }
    let second = Duration::from_secs(1);
    let purge = async || one.purge(second, 100).await.expect("an answer");
    clock.set(after(2_000_000));
    assert_eq!(purge().await, 0, "not for longer");
    clock.set(after(2_000_001));
    assert_eq!(purge().await, 1);

    assert!(!other.spend(&SpendId([3; 16]), after(2_000_001)).await.expect("an answer"), "it may have been forgotten");
    assert!(!other.spend(&late, after(3_000_000)).await.expect("an answer"));
    assert!(other.spend(&early, after(3_000_000)).await.expect("an answer"));
    clock.set(after(4_000_001));
    assert_eq!(one.purge(second, 1).await.expect("an answer"), 1, "no more than the limit");
}
