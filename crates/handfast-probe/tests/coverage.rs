//! What a run says about itself: what was tested where, who was served, and what came of several runs.

mod support;

use handfast_probe::{
    coverage::{State, Surface},
    report::Report,
    verdict::Verdict,
};
use handfast_twins::Answers;
use support::{HANDLE, check, probed, served, whole_run_of, whole_run_on};

async fn whole(name: &str) -> Report {
    let twin = handfast_twins::find(name).expect("a twin");
    let served = served(name, Answers::Json).await;
    probed(&whole_run_of(twin, &served.url())).await
}

fn state(report: &Report, id: &str, at: Surface) -> (State, Vec<&'static str>) {
    let cell = report.coverage.iter().find(|cell| cell.check == id && cell.surface == at);
    cell.map(|cell| (cell.state, cell.why.clone())).unwrap_or_else(|| panic!("no cell for {id} on {at:?}"))
}

#[tokio::test]
async fn every_property_has_a_cell_on_every_surface_that_it_may_stand_on() {
    let report = whole("sound").await;

    for surface in [Surface::Tools, Surface::Prompts, Surface::Resources] {
        assert_eq!(state(&report, HANDLE, surface), (State::Tested, vec![]), "{surface:?}");
    }
    // Only a tool asks for anything here.
    assert_eq!(state(&report, "state-tampered", Surface::Tools).0, State::Tested);
    assert_eq!(state(&report, "state-tampered", Surface::Prompts).0, State::NotApplicable);
    assert_eq!(
        state(&report, "session-foreign-principal", Surface::Requests),
        (State::NotApplicable, vec!["no-session-issued"])
    );
    for found in &report.checks {
        assert!(report.coverage.iter().any(|cell| cell.check == found.id), "{} has no cell", found.id);
    }
}

#[tokio::test]
async fn what_could_not_be_tested_is_neither_safe_nor_absent() {
    let report = whole("ignores-identity").await;

    assert_eq!(state(&report, HANDLE, Surface::Tools), (State::NotTested, vec!["identities-not-distinguished"]));
}

/// The columns of the grid, as `who outcome`.
async fn served_with(name: &str) -> Vec<String> {
    let report = whole(name).await;
    let [access] = &report.access[..] else { panic!("one kind of handle: {:?}", report.access) };
    assert_eq!(access.entry, "tools/call read_workspace#workspace_id");
    access.callers.iter().map(|met| format!("{} {}", met.who, met.outcome)).collect()
}

#[tokio::test]
async fn the_grid_shows_who_is_served_with_a_handle_of_as() {
    let sound = [
        "A served",
        "A with a new token served",
        "B refused",
        "A by another client refused",
        "another tenant refused",
        "nobody refused",
    ];
    assert_eq!(served_with("sound").await, sound);
    for (twin, at, changed) in [
        ("binds-token", 1, "A with a new token refused"),
        ("any-client", 3, "A by another client served"),
        ("other-tenants", 4, "another tenant served"),
    ] {
        let mut expected = sound.map(str::to_owned);
        expected[at] = changed.to_owned();
        assert_eq!(served_with(twin).await, expected, "{twin}");
    }
    let flawed = served_with("flawed").await;
    assert_eq!(flawed.iter().filter(|cell| cell.ends_with(" served")).count(), 5, "{flawed:?}");
}

/// The same of tasks and of sessions: a row for each.
#[tokio::test]
async fn the_grid_has_a_row_for_each_kind_of_thing() {
    let of_b = async |name: &str, entry: &str| {
        let report = whole(name).await;
        let row = report.access.iter().find(|access| access.entry.starts_with(entry)).expect("a row").clone();
        let of = |who: &str| row.callers.iter().find(|met| met.who == who).expect("a caller").outcome;
        assert_eq!((of("A"), of("nobody")), ("served", "refused"), "{name}: {row:?}");
        assert_ne!(of("A with a new token"), "not live", "{name}: {row:?}");
        of("B")
    };
    assert_eq!(of_b("tasks", "tasks/get of ").await, "refused");
    assert_eq!(of_b("task-for-anybody", "tasks/get of ").await, "served");
    assert_eq!(of_b("sessions", "POST under the id").await, "refused");
    assert_eq!(of_b("unbound-sessions", "POST under the id").await, "served");
}

#[tokio::test]
async fn a_check_that_must_be_tested_fails_the_run_where_it_was_not() {
    let report = whole("legacy").await;

    assert_eq!(report.exit_code(false, &[]), 0);
    assert_eq!(report.exit_code(false, &["session-foreign-principal"]), 0);
    assert_eq!(report.exit_code(false, &[HANDLE, "session-foreign-principal"]), 3);
    let untested: Vec<&str> =
        report.untested(&[HANDLE, "session-foreign-principal"]).iter().map(|(id, _)| *id).collect();
    assert_eq!(untested, [HANDLE]);
}

/// Where somebody was let in and nothing shows to what, nothing is shown to be safe either.
#[tokio::test]
async fn what_is_undecided_is_open() {
    let report = whole("names-owner").await;

    let undecided = "cross-use-unattributable";
    assert_eq!((check(&report, HANDLE).verdict, check(&report, HANDLE).reason.slug()), (Verdict::Refuted, undecided));
    assert!(
        report.left_open().iter().any(|(id, at, reason)| *id == HANDLE && at.is_some() && reason.slug() == undecided)
    );
    let required: Vec<&str> = report.untested(&[HANDLE, "state-tampered"]).iter().map(|(id, _)| *id).collect();
    assert_eq!(required, [HANDLE]);
    assert!(whole("sound").await.left_open().iter().all(|(id, ..)| *id != HANDLE));
}

/// A revision without states has nothing of that kind; one with states has, until it is shown.
#[tokio::test]
async fn what_a_revision_does_not_have_is_not_left_open() {
    let open = |report: &Report| report.left_open().iter().map(|(id, ..)| *id).collect::<Vec<&str>>();
    let report = whole("sessions").await;

    assert_eq!(state(&report, "state-tampered", Surface::Tools).0, State::NotApplicable);
    assert!(!open(&report).contains(&"state-tampered"), "{:?}", open(&report));
    // And what only a token that was not given could show was not tested, which is something else.
    let report = whole("sound").await;
    let lifetime = state(&report, "handle-outlives-expiry", Surface::Tools);
    assert_eq!(lifetime, (State::NotTested, vec!["needs-wait"]));
    assert!(!open(&report).contains(&"handle-outlives-expiry"), "{:?}", open(&report));
}

#[tokio::test]
async fn advice_fails_no_run() {
    let report = whole("unsaid-lifetime").await;

    let confirmed: Vec<&str> =
        report.checks.iter().filter(|found| found.verdict == Verdict::Confirmed).map(|found| found.id).collect();
    assert_eq!(confirmed, ["design-retention-unstated"]);
    assert_eq!(report.exit_code(false, &[]), 0);
    assert_eq!(whole("any-client").await.exit_code(false, &[]), 1, "what is low is more than advice");
}

#[tokio::test]
async fn several_runs_are_one_report() {
    let served = served("flawed", Answers::Json).await;
    let run = whole_run_on(&served.url());

    let report = run.repeated(3, &|_| {}).await.expect("usable options");

    assert_eq!(check(&report, HANDLE).runs, [Verdict::Confirmed; 3]);
    assert!(report.checks.iter().all(|found| found.runs.len() == 3));
}
