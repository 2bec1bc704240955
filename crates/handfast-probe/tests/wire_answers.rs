//! What a server may answer, however it is framed: the verdicts are those of the same server in plain JSON. What is cut short
//! or addressed to somebody else gives none.

mod support;

use handfast_probe::{report::Report, verdict::Verdict};
use handfast_twins::Answers;
use serde_json::{Value, json};
use support::{
    front::{Act, Front, stream_head},
    narrow_run_on, probed, run_on, served, verdicts,
};

type Write = fn(&str) -> Vec<Vec<u8>>;

async fn framed(twin: &str, write: Write, held: bool) -> Report {
    let served = served(twin, Answers::Json).await;
    let front = Front::of(&served.url(), move |_, _| Act::Framed { write, held }).await;
    probed(&narrow_run_on(&front.url())).await
}

/// What is said of a twin that answers in one piece of JSON.
async fn plain(twin: &str) -> String {
    let served = served(twin, Answers::Json).await;
    verdicts(&probed(&narrow_run_on(&served.url())).await)
}

fn stream(events: &str) -> Vec<Vec<u8>> {
    vec![stream_head(), events.as_bytes().to_vec()]
}

/// The bytes in pieces of this size.
fn split(text: &str, size: usize) -> Vec<Vec<u8>> {
    let whole: Vec<u8> = [stream_head(), text.as_bytes().to_vec()].concat();
    whole.chunks(size).map(<[u8]>::to_vec).collect()
}

fn one(body: &str) -> String {
    format!("event: message\ndata: {body}\n\n")
}

/// Another message than the answer, as an event.
fn event(message: Value) -> String {
    one(&message.to_string())
}

fn notifications() -> String {
    let progress =
        json!({"jsonrpc": "2.0", "method": "notifications/progress", "params": {"progressToken": 1, "progress": 0.5}});
    let log =
        json!({"jsonrpc": "2.0", "method": "notifications/message", "params": {"level": "info", "data": "working"}});
    event(progress) + &event(log)
}

const FRAMINGS: [(&str, Write); 17] = [
    ("one event", |body| stream(&one(body))),
    ("no event line", |body| stream(&format!("data: {body}\n\n"))),
    ("no blank after the colon", |body| stream(&format!("data:{body}\n\n"))),
    ("a priming event", |body| stream(&format!("id: 1\ndata:\n\n{}", one(body)))),
    ("an id without data", |body| stream(&format!("id: 1\nretry: 100\n\n{}", one(body)))),
    ("comments", |body| stream(&format!(": hello\n\n: again\n{}: bye\n\n", one(body)))),
    ("CR LF", |body| stream(&one(body).replace('\n', "\r\n"))),
    ("CR", |body| stream(&one(body).replace('\n', "\r"))),
    ("a mark of byte order", |body| stream(&format!("\u{feff}{}", one(body)))),
    ("several data lines", |body| {
        let pretty = serde_json::from_str::<Value>(body).map(|value| format!("{value:#}")).unwrap_or_default();
        stream(&format!("data: {}\n\n", pretty.replace('\n', "\ndata: ")))
    }),
    ("notifications before it", |body| stream(&(notifications() + &one(body)))),
    ("a question of the server before it", |body| {
        stream(&(event(json!({"jsonrpc": "2.0", "id": "s1", "method": "ping"})) + &one(body)))
    }),
    ("an answer to somebody else before it", |body| {
        stream(&(event(json!({"jsonrpc": "2.0", "id": 999_999, "result": {"content": []}})) + &one(body)))
    }),
    ("more after it", |body| stream(&(one(body) + &notifications()))),
    ("split in the middle of everything", |body| split(&(notifications() + &one(body)), 7)),
    ("split at every byte", |body| {
        // The whole of a long listing byte by byte would take long and show no more.
        if body.len() > 500 { split(&one(body), 61) } else { split(&one(body).replace('\n', "\r\n"), 1) }
    }),
    ("another spelling of the type", |body| {
        let head = "HTTP/1.1 200 so\r\nContent-Type: Text/Event-Stream; charset=utf-8\r\nconnection: close\r\n\r\n";
        vec![head.as_bytes().to_vec(), one(body).into_bytes()]
    }),
];

#[tokio::test]
async fn every_framing_gives_the_same_verdicts() {
    let plain = plain("flawed").await;
    for (name, write) in FRAMINGS {
        assert_eq!(verdicts(&framed("flawed", write, false).await), plain, "{name}");
    }
}

#[tokio::test]
async fn a_stream_that_stays_open_after_the_answer_is_not_waited_for() {
    let plain = plain("sound").await;
    for (name, write) in [FRAMINGS[0], FRAMINGS[3], FRAMINGS[10]] {
        assert_eq!(verdicts(&framed("sound", write, true).await), plain, "{name}");
    }
}

#[tokio::test]
async fn json_in_pieces_and_with_blanks_is_json() {
    let plain = plain("flawed").await;
    let writes: [(&str, Write); 3] = [
        ("in pieces", |body| {
            let head = "HTTP/1.1 200 so\r\ncontent-type: application/json\r\nconnection: close\r\n\r\n";
            [head, body].concat().as_bytes().chunks(19).map(<[u8]>::to_vec).collect()
        }),
        ("in chunks", |body| {
            let head = "HTTP/1.1 200 so\r\ncontent-type: application/json; charset=utf-8\r\ntransfer-encoding: chunked\r\nconnection: close\r\n\r\n";
            let chunks = body
                .as_bytes()
                .chunks(100)
                .map(|chunk| [format!("{:x}\r\n", chunk.len()).as_bytes(), chunk, b"\r\n"].concat());
            std::iter::once(head.as_bytes().to_vec()).chain(chunks).chain([b"0\r\n\r\n".to_vec()]).collect()
        }),
        ("with blanks", |body| {
            let head = "HTTP/1.1 200 so\r\nContent-Type: APPLICATION/JSON\r\nconnection: close\r\n\r\n";
            vec![format!("{head}\r\n \t{body}\r\n\r\n").into_bytes()]
        }),
    ];
    for (name, write) in writes {
        assert_eq!(verdicts(&framed("flawed", write, false).await), plain, "{name}");
    }
}

#[tokio::test]
async fn what_is_cut_short_or_meant_for_another_gives_no_verdict() {
    let writes: [(&str, Write); 6] = [
        ("a stream without an answer", |_| stream(&notifications())),
        ("a stream that is cut", |body| stream(&one(body)[..body.len() / 2])),
        ("an event that is cut before its end", |body| stream(one(body).trim_end_matches('\n'))),
        ("an empty stream", |_| stream("")),
        ("an accepted notification", |_| {
            vec![b"HTTP/1.1 202 so\r\ncontent-length: 0\r\nconnection: close\r\n\r\n".to_vec()]
        }),
        ("an answer to another request", |_| {
            stream(&event(
                json!({"jsonrpc": "2.0", "id": "other", "result": {"resultType": "complete", "tools": [], "content": []}}),
            ))
        }),
    ];
    for (name, write) in writes {
        // Honest at first, so that there is something to conclude wrongly.
        let served = served("flawed", Answers::Json).await;
        for honest in [0, 9, 30] {
            let act = move |number, _: &support::front::Recorded| {
                if number < honest { Act::Forward } else { Act::Framed { write, held: false } }
            };
            let front = Front::of(&served.url(), act).await;
            let report = probed(&run_on(&front.url())).await;

            for check in &report.checks {
                assert_ne!(check.verdict, Verdict::Refuted, "{name} after {honest}: {}", check.id);
            }
            let state = support::check(&report, support::STATE);
            assert_ne!(state.verdict, Verdict::Confirmed, "{name} after {honest}");
        }
    }
}

#[tokio::test]
async fn a_result_that_is_no_object_is_no_answer() {
    for result in [json!(null), json!([]), json!("done"), json!(7), json!(true)] {
        let served = served("flawed", Answers::Json).await;
        let told = result.to_string();
        let front = Front::of(&served.url(), move |_, request| match request.method() {
            "tools/call" => Act::Result(result.clone()),
            _ => Act::Forward,
        })
        .await;

        let report = probed(&run_on(&front.url())).await;

        for check in &report.checks {
            assert!(matches!(check.verdict, Verdict::Skipped | Verdict::Errored), "{told}: {}", verdicts(&report));
        }
    }
}
