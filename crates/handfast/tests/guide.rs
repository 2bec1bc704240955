//! The guide says what is so: its code is part of a program that is built and run, and prints what the guide shows.

use std::process::Command;

const GUIDE: &str = include_str!("../../../docs/guide/handles.md");
const PROGRAM: &str = include_str!("../examples/handles.rs");

fn blocks(language: &str) -> Vec<&'static str> {
    let fence = format!("```{language}\n");
    GUIDE.split(&fence).skip(1).filter_map(|rest| rest.split("```").next()).collect()
}

#[test]
fn every_line_of_code_is_part_of_the_program() {
    let code = blocks("rust");

    assert!(code.len() >= 7);
    for block in code {
        assert!(PROGRAM.contains(block), "not in examples/handles.rs:\n{block}");
    }
}

#[test]
fn the_program_prints_what_the_guide_shows() {
    let cargo = std::env::var("CARGO").unwrap_or_else(|_| "cargo".to_owned());
    let output = Command::new(cargo)
        .args(["run", "-q", "--locked", "--all-features", "--example", "handles"])
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .output()
        .expect("cargo runs");

    let (out, err) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{err}");
    assert_eq!(blocks("text"), [out.as_ref()]);
    for line in err.lines() {
        assert!(serde_json::from_str::<serde_json::Value>(line).is_ok(), "an audit event: {line}");
    }
    assert!(!err.contains("bsk_") && !err.contains("alice"), "{err}");
}

/// The README shows the heart of the example that the crate's documentation runs.
#[test]
fn the_readme_shows_what_the_documentation_runs() {
    let readme = include_str!("../../../README.md");
    let documentation = include_str!("../src/lib.rs");
    let shown = readme.split("```rust\n").nth(1).and_then(|rest| rest.split("```").next()).expect("a block");

    for line in shown.lines().filter(|line| !line.is_empty()) {
        assert!(documentation.contains(&format!("//! {line}\n")), "{line}");
    }
}
