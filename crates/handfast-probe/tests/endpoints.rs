//! Where a run looks for the server: the usual paths where the operator names none, the given one where there is one, and
//! never another origin. A credential goes nowhere else.

mod support;

use handfast_probe::{report::Report, target::candidate_urls};
use handfast_twins::Answers;
use support::{
    front::{Act, Front, Recorded},
    probed, reasons, run_on, served, verdicts,
};

/// The paths that were asked, each once, in order.
fn paths(front: &Front) -> Vec<String> {
    let mut paths: Vec<String> = front.seen().into_iter().map(|seen| seen.path).collect();
    paths.dedup();
    paths
}

/// A twin that answers at one path, and knows no other.
async fn answering_at(path: &'static str) -> (handfast_twins::Served, Front) {
    let served = served("flawed", Answers::Json).await;
    let act = move |_: usize, request: &Recorded| {
        if request.path == path { Act::Forward } else { Act::Status(404, Vec::new()) }
    };
    let front = Front::of(&served.url(), act).await;
    (served, front)
}

fn is_found(report: &Report) -> bool {
    report.checks.iter().all(|check| check.verdict.word() == "confirmed")
}

#[tokio::test]
async fn without_a_path_the_usual_ones_are_tried_in_turn() {
    for (path, tried) in [("/mcp", &["/mcp"][..]), ("/", &["/mcp", "/"]), ("/rpc", &["/mcp", "/", "/rpc"])] {
        for slash in ["", "/"] {
            let (_served, front) = answering_at(path).await;

            let report = probed(&run_on(&format!("{}{slash}", front.origin()))).await;

            assert!(is_found(&report), "{path}: {}", verdicts(&report));
            assert_eq!(paths(&front), tried);
            assert_eq!(report.target.endpoint, Some(format!("{}{path}", front.origin())));
        }
    }
}

#[tokio::test]
async fn with_a_path_no_other_is_tried() {
    for given in ["/rpc", "/mcp", "/api/v1/", "/?tenant=1"] {
        let (_served, front) = answering_at("/somewhere-else").await;

        let report = probed(&run_on(&format!("{}{given}", front.origin()))).await;

        assert_eq!(reasons(&report), ["no-server-answered"; 2]);
        assert_eq!(paths(&front), [given]);
    }
}

#[test]
fn candidates_keep_everything_else_of_the_url() {
    let of =
        |text: &str| candidate_urls(&text.parse().expect("a URL")).iter().map(ToString::to_string).collect::<Vec<_>>();

    assert_eq!(of("https://h:8443"), ["https://h:8443/mcp", "https://h:8443/", "https://h:8443/rpc"]);
    assert_eq!(of("http://h/?a=b"), ["http://h/?a=b"]);
    assert_eq!(of("http://[::1]:8000/x"), ["http://[::1]:8000/x"]);
}

#[tokio::test]
async fn a_path_that_wants_another_credential_does_not_end_the_search() {
    let served = served("flawed", Answers::Json).await;
    let act = |_: usize, request: &Recorded| match request.path.as_str() {
        "/rpc" => Act::Forward,
        _ => Act::Status(401, Vec::new()),
    };
    let front = Front::of(&served.url(), act).await;

    assert!(is_found(&probed(&run_on(&front.origin())).await));
}

#[tokio::test]
async fn where_every_path_refuses_the_credential_that_is_the_reason() {
    let front = Front::start(None, |_, request| match request.path.as_str() {
        "/" => Act::Status(403, Vec::new()),
        _ => Act::Status(404, Vec::new()),
    })
    .await;

    let report = probed(&run_on(&front.origin())).await;

    assert_eq!(reasons(&report), ["needs-identity:a"; 2]);
}

/// Redirects `/old` to a place, and serves the twin at `/mcp`.
fn moved(
    status: u16,
    place: impl Fn(&Recorded) -> String + Send + Sync,
) -> impl Fn(usize, &Recorded) -> Act + Send + Sync {
    move |_, request| match request.path.as_str() {
        "/mcp" => Act::Forward,
        _ => Act::Status(status, vec![("location", place(request))]),
    }
}

#[tokio::test]
async fn a_redirect_within_the_origin_is_followed() {
    for status in [307, 308] {
        let served = served("flawed", Answers::Json).await;
        let front = Front::of(&served.url(), moved(status, |_| "/mcp".to_owned())).await;

        let report = probed(&run_on(&format!("{}/old", front.origin()))).await;

        assert!(is_found(&report), "{status}: {}", verdicts(&report));
    }
}

#[tokio::test]
async fn a_redirect_to_another_origin_is_not_followed_and_no_credential_arrives_there() {
    let served = served("flawed", Answers::Json).await;
    let elsewhere = Front::of(&served.url(), |_, _| Act::Forward).await;
    for (name, place) in [
        ("another port", elsewhere.url()),
        ("another name of the host", elsewhere.url().replace("127.0.0.1", "localhost")),
        ("without a scheme", elsewhere.url().trim_start_matches("http:").to_owned()),
        ("with a user", elsewhere.url().replace("http://", "http://127.0.0.1@")),
    ] {
        for status in [301, 302, 303, 307, 308] {
            let place = place.clone();
            let front = Front::of(&served.url(), moved(status, move |_| place.clone())).await;

            let report = probed(&run_on(&format!("{}/old", front.origin()))).await;

            assert_eq!(reasons(&report), ["no-server-answered"; 2], "{name}, {status}");
            let arrived = elsewhere.seen();
            assert!(arrived.is_empty(), "{name}, {status}: {:?}", arrived[0].headers);
        }
    }
}

#[tokio::test]
async fn nor_is_one_after_a_redirect_within_the_origin() {
    let served = served("flawed", Answers::Json).await;
    let elsewhere = Front::of(&served.url(), |_, _| Act::Forward).await;
    let place = elsewhere.url();
    let front = Front::of(
        &served.url(),
        moved(307, move |request| if request.path == "/old" { "/older".into() } else { place.clone() }),
    )
    .await;

    let report = probed(&run_on(&format!("{}/old", front.origin()))).await;

    assert_eq!(reasons(&report), ["no-server-answered"; 2]);
    assert_eq!(paths(&front).first().map(String::as_str), Some("/old"));
    assert!(paths(&front).contains(&"/older".to_owned()) && elsewhere.seen().is_empty());
}

#[tokio::test]
async fn a_server_that_begins_to_redirect_half_way_gets_no_verdict() {
    let served = served("flawed", Answers::Json).await;
    let elsewhere = Front::of(&served.url(), |_, _| Act::Forward).await;
    let place = elsewhere.url();
    let front = Front::of(&served.url(), move |number, _| match number {
        0..25 => Act::Forward,
        _ => Act::Status(307, vec![("location", place.clone())]),
    })
    .await;

    let report = probed(&run_on(&front.url())).await;

    assert!(report.checks.iter().all(|check| check.verdict.word() != "refuted"), "{}", verdicts(&report));
    assert!(elsewhere.seen().is_empty());
}

#[tokio::test]
async fn a_redirect_that_leads_nowhere_ends() {
    let front = Front::start(None, |number, _| Act::Status(307, vec![("location", format!("/{number}"))])).await;

    let report = probed(&run_on(&front.url())).await;

    assert_eq!(reasons(&report), ["no-server-answered"; 2]);
    assert!(front.seen().len() < 60, "{} requests", front.seen().len());
}
