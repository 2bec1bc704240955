//! What reaches a terminal: colour only where it is wanted, and never a control character of a server's.

#[path = "support/relay.rs"]
mod relay;
mod support;

use relay::{Answer, relay};
use support::{Ran, Scratch, Twin, handfast, on_stdio, ran};

/// Clears the screen, rings the bell, and begins a control sequence in one byte.
const EVIL: &str = "\\u001b[2J\\u0007\\u009b1m";

fn assert_harmless(ran: &Ran, told: &str) {
    for (name, text) in [("standard output", &ran.stdout), ("standard error", &ran.stderr)] {
        // Colours are our own; nothing else is. JSON escapes what is below the blank, and needs no more.
        let is_json = text.starts_with('{');
        let ours = |c: char| c == '\n' || c == '\u{1b}' || (is_json && c >= ' ');
        let found = text.chars().find(|&c| c.is_control() && !ours(c));
        assert_eq!(found, None, "{told}: a control character on {name}");
        for evil in ["\u{1b}[2J", "\u{1b}]", "\u{7}"] {
            assert!(!text.contains(evil), "{told}: {evil:?} on {name}");
        }
    }
}

/// A twin whose every word is spiked.
fn spiked(twin: &Twin) -> String {
    relay(&twin.url, |_| {
        Answer::Changed(|body| {
            let mut body = body.to_owned();
            for member in ["text", "message", "description", "title", "label", "owner", "principal", "method"] {
                body = body.replace(&format!("\"{member}\":\""), &format!("\"{member}\":\"{EVIL}"));
            }
            body.replace("\"name\":\"whoami\"", &format!("\"name\":\"whoami{EVIL}\""))
                .replace("\"version\":\"0", &format!("\"version\":\"{EVIL}0"))
        })
    })
}

#[test]
fn the_words_of_a_server_cannot_move_the_cursor() {
    for name in ["flawed", "sound", "ignores-identity", "crashes-on-forgery"] {
        let twin = Twin::start(name);
        let url = spiked(&twin);
        for arguments in [
            &["probe", &url][..],
            &["probe", "--format", "json", &url],
            &["probe", "--dry-run", &url],
            &["discover", &url],
        ] {
            // As if at a terminal: nothing is filtered on the way out.
            let ran = Ran::of(handfast().args(arguments).env("CLICOLOR_FORCE", "1"));
            assert!(ran.code != 2, "{ran:?}");
            assert_harmless(&ran, &format!("{name} {arguments:?}"));
        }
    }
}

#[test]
fn nor_can_its_last_words() {
    let scratch = Scratch::new("terminal-words");
    let server = scratch.script("server", "printf '\\033[2J\\007last words\\n' >&2\nexit 1\n");
    for arguments in
        [&["probe", "--", &server][..], &["discover", "--", &server], &["probe", "--dry-run", "--", &server]]
    {
        let ran = Ran::of(handfast().args(arguments).env("CLICOLOR_FORCE", "1"));
        assert!(ran.said().contains("last words"), "{ran:?}");
        assert_harmless(&ran, &format!("{arguments:?}"));
    }
}

#[test]
fn nor_can_its_noise() {
    let scratch = Scratch::new("terminal-noise");
    let twin = format!("exec '{}' twin sound --transport stdio", support::HANDFAST);
    let server = scratch.script("server", &format!("printf '\\033[2J\\007noise\\n'\n{twin}"));
    for format in ["text", "json"] {
        let ran = Ran::of(handfast().args(["probe", "--format", format, "--", &server]).env("CLICOLOR_FORCE", "1"));
        assert!(ran.said().contains("noise"), "{ran:?}");
        assert_harmless(&ran, format);
    }
}

#[test]
fn what_is_no_terminal_gets_no_colour() {
    for arguments in [
        [&["probe", "--"][..], &on_stdio("flawed")].concat(),
        [&["probe", "--format", "json", "--"][..], &on_stdio("flawed")].concat(),
        [&["probe", "--dry-run", "--"][..], &on_stdio("flawed")].concat(),
        vec!["--help"],
        vec!["checks"],
        vec!["no-such-command"],
    ] {
        let ran = ran(&arguments);
        assert!(!ran.said().contains('\u{1b}'), "{arguments:?}");
    }
}

#[test]
fn colour_can_be_forced_and_refused() {
    let arguments = [&["probe", "--"][..], &on_stdio("flawed")].concat();
    let forced = Ran::of(handfast().args(&arguments).env("CLICOLOR_FORCE", "1"));
    let refused = Ran::of(handfast().args(&arguments).env("CLICOLOR_FORCE", "1").env("NO_COLOR", "1"));

    assert!(forced.stdout.contains("\u{1b}["), "{}", forced.stdout);
    assert!(!refused.said().contains('\u{1b}'), "{}", refused.stdout);
}

#[test]
fn a_file_gets_no_colour_even_where_a_terminal_would() {
    let scratch = Scratch::new("terminal-file");
    let path = scratch.path("report.txt");
    let shown = path.display().to_string();
    let arguments = [&["probe", "--output", &shown, "--"][..], &on_stdio("flawed")].concat();
    Ran::of(handfast().args(&arguments).env("CLICOLOR_FORCE", "1"));

    let written = std::fs::read_to_string(path).expect("it was written");
    assert!(written.contains("confirmed") && !written.contains('\u{1b}'), "{written}");
}

#[test]
fn json_is_never_coloured() {
    let arguments = [&["probe", "--format", "json", "--"][..], &on_stdio("flawed")].concat();
    let forced = Ran::of(handfast().args(&arguments).env("CLICOLOR_FORCE", "1"));

    assert!(forced.json()["totals"]["confirmed"].as_u64().is_some_and(|count| count >= 2));
    assert!(!forced.stdout.contains('\u{1b}'));
}
