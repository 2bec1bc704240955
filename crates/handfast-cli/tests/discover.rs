//! `handfast discover` and `--dry-run`: what a run would work with, shown and written down.

mod support;

use support::{Ran, Scratch, Twin, free_port, handfast, on_stdio, outcomes, ran, report};

#[test]
fn the_map_is_printed_for_a_person() {
    let ran = ran(&[&["discover", "--"][..], &on_stdio("flawed")].concat());

    assert_eq!(ran.code, 0, "{ran:?}");
    for line in [
        "6 tools, 1 prompts, 1 resources and templates",
        "handle minted by open_workspace at structuredContent/workspace_id",
        "  accepted by tools/call read_workspace#workspace_id",
        "  accepted by tools/call append_note#workspace_id",
        "  accepted by tools/call archive_workspace#workspace_id",
        "  accepted by prompts/get summarise_workspace#workspace_id",
        "  accepted by resources/read workspace://{workspace_id}/notes#workspace_id",
        "left out: purge_workspace: declares destructiveHint",
    ] {
        assert!(ran.stdout.lines().any(|shown| shown == line), "`{line}` is not in\n{}", ran.stdout);
    }
    assert_eq!(ran.stderr.lines().count(), 1, "that tools are called: {}", ran.stderr);
}

#[test]
fn a_written_profile_gives_the_same_verdicts() {
    let scratch = Scratch::new("discover");
    for twin in ["flawed", "sound", "text-only-handles-flawed", "renamed-handles"] {
        let path = scratch.path(&format!("{twin}.toml")).display().to_string();
        let ran = ran(&[&["discover", "--write", &path, "--"][..], &on_stdio(twin)].concat());
        assert_eq!(ran.code, 0, "{ran:?}");
        assert!(ran.stderr.contains(&format!("wrote {path}")), "{}", ran.stderr);

        let (code, found) = report(&[&["--"][..], &on_stdio(twin)].concat());
        let (code_with, with) = report(&[&["--profile", &path, "--"][..], &on_stdio(twin)].concat());

        assert_eq!((code_with, outcomes(&with)), (code, outcomes(&found)), "{twin}");
    }
}

#[test]
fn a_server_without_handles_is_told_to_have_none() {
    let ran = ran(&[&["discover", "--"][..], &on_stdio("legacy")].concat());

    assert_eq!(ran.code, 0);
    assert!(ran.stdout.contains("no handle found"), "{}", ran.stdout);
    assert!(ran.stdout.contains("hands nothing out: echo"), "{}", ran.stdout);
}

#[test]
fn where_there_is_no_server_nothing_is_written() {
    let scratch = Scratch::new("discover-nothing");
    let path = scratch.path("profile.toml");
    let url = format!("http://127.0.0.1:{}/mcp", free_port());
    for (target, reason) in
        [(&[url.as_str()][..], "no-server-answered"), (&["--", "/nonexistent"], "target-not-executable")]
    {
        let shown = path.display().to_string();
        let ran = Ran::of(handfast().args(["discover", "--write", &shown]).args(target));

        assert_eq!((ran.code, ran.stdout.as_str()), (3, ""));
        assert!(ran.stderr.contains(reason), "{}", ran.stderr);
        assert!(!path.exists());
    }
}

#[test]
fn a_dry_run_prints_what_would_be_called_and_calls_nothing() {
    let twin = Twin::start("flawed");
    let ran = ran(&["probe", "--dry-run", &twin.url]);

    assert_eq!(ran.code, 0, "{ran:?}");
    let canary = "tools/call open_workspace {\"label\":\"hf-a";
    for line in [
        canary,
        "tools/call read_workspace {\"workspace_id\":\"<handle>\"}",
        "left out   purge_workspace: declares destructiveHint",
    ] {
        assert!(ran.stdout.lines().any(|shown| shown.starts_with(line)), "`{line}` is not in\n{}", ran.stdout);
    }
    assert!(!ran.stderr.contains("this calls the server's tools"), "it does not: {}", ran.stderr);
}

#[test]
fn a_dry_run_shows_what_wider_options_would_add() {
    let ran = ran(&[&["probe", "--dry-run", "--include-destructive", "--"][..], &on_stdio("flawed")].concat());

    assert!(ran.stdout.contains("tools/call purge_workspace {\"workspace_id\":\"<handle>\"}"), "{}", ran.stdout);
    assert!(!ran.stdout.contains("left out"));
}

#[test]
fn a_dry_run_without_a_server_is_3() {
    let url = format!("http://127.0.0.1:{}/mcp", free_port());
    let ran = ran(&["probe", "--dry-run", &url]);

    assert_eq!((ran.code, ran.stdout.as_str()), (3, ""));
    assert!(ran.stderr.contains("no-server-answered"), "{}", ran.stderr);
}

#[test]
fn that_tools_are_called_is_said_once_and_on_standard_error() {
    for arguments in [&["probe", "--"][..], &["discover", "--"]] {
        let ran = ran(&[arguments, &on_stdio("sound")].concat());

        assert_eq!(ran.stderr.matches("make sure that you are authorised to test it").count(), 1, "{}", ran.stderr);
        assert!(!ran.stdout.contains("authorised"));
    }
}
