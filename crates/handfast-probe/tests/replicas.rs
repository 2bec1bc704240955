//! Replicas that the operator names: what A minted must serve A at each of them.

mod support;

use handfast_probe::checks;
use handfast_twins::Answers;
use support::{check, probed, served, verdict, whole_run_on};

const LOST: &str = "handle-lost";

async fn with_replica(own: &str, replica: &str) -> (String, Vec<String>) {
    let mut run = whole_run_on(own);
    run.checks = checks::find(LOST).into_iter().collect();
    run.replicas = vec![replica.parse().expect("a URL")];
    let report = probed(&run).await;
    let found = check(&report, LOST);
    let rows = found.evidence.entry_points.iter();
    (verdict(found), rows.map(|point| format!("{} {}", point.row.verdict.word(), point.row.reason.slug())).collect())
}

#[tokio::test]
async fn a_replica_with_a_memory_of_its_own_loses_handles() {
    let (one, other) = (served("sound", Answers::Json).await, served("sound", Answers::Json).await);

    let (verdict, rows) = with_replica(&one.url(), &other.url()).await;

    assert_eq!(verdict, "confirmed lost low");
    assert_eq!(rows, ["confirmed lost", "refuted follows-its-owner"], "lost at the replica, not on another connection");
}

#[tokio::test]
async fn a_replica_with_the_same_memory_loses_none() {
    for answers in [Answers::Json, Answers::Sse] {
        let one = served("sound", answers).await;

        let (verdict, rows) = with_replica(&one.url(), &one.url()).await;

        assert_eq!(verdict, "refuted follows-its-owner");
        assert_eq!(rows, ["refuted follows-its-owner"; 2]);
    }
}

#[tokio::test]
async fn a_replica_that_is_not_there_is_no_loss() {
    let (one, gone) = (served("sound", Answers::Json).await, served("sound", Answers::Json).await);
    let address = gone.url();
    gone.stop().await;

    let (verdict, rows) = with_replica(&one.url(), &address).await;

    assert_eq!(verdict, "errored unreachable");
    assert_eq!(rows, ["refuted follows-its-owner", "errored unreachable"]);
}
