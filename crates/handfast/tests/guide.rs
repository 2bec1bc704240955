//! The guide says what is so: its code is part of a program that is built and run, and prints what the guide shows.

use std::process::Command;

struct Guide {
    text: &'static str,
    program: &'static str,
    example: &'static str,
}

const HANDLES: Guide = Guide {
    text: include_str!("../../../docs/guide/handles.md"),
    program: include_str!("../examples/handles.rs"),
    example: "handles",
};
const REQUEST_STATE: Guide = Guide {
    text: include_str!("../../../docs/guide/request-state.md"),
    program: include_str!("../examples/request_state.rs"),
    example: "request_state",
};
const SESSIONS: Guide = Guide {
    text: include_str!("../../../docs/guide/sessions.md"),
    program: include_str!("../examples/sessions.rs"),
    example: "sessions",
};
const MIGRATING: Guide = Guide {
    text: include_str!("../../../docs/guide/migrating-from-sessions.md"),
    program: include_str!("../examples/migrating.rs"),
    example: "migrating",
};

impl Guide {
    fn blocks(&self, language: &str) -> Vec<&'static str> {
        let fence = format!("```{language}\n");
        self.text.split(&fence).skip(1).filter_map(|rest| rest.split("```").next()).collect()
    }

    /// What the program prints, and what it says on standard error.
    fn run(&self) -> (String, String) {
        let cargo = std::env::var("CARGO").unwrap_or_else(|_| "cargo".to_owned());
        let output = Command::new(cargo)
            .args(["run", "-q", "--locked", "--all-features", "--example", self.example])
            .current_dir(env!("CARGO_MANIFEST_DIR"))
            .output()
            .expect("cargo runs");
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        assert!(output.status.success(), "{}", text(&output.stderr));
        (text(&output.stdout), text(&output.stderr))
    }
}

#[test]
fn every_line_of_code_is_part_of_the_program() {
    for (guide, least) in [(HANDLES, 6), (REQUEST_STATE, 6), (SESSIONS, 3), (MIGRATING, 3)] {
        let code = guide.blocks("rust");

        assert!(code.len() >= least);
        for block in code {
            assert!(guide.program.contains(block), "not in examples/{}.rs:\n{block}", guide.example);
        }
    }
}

#[test]
fn the_program_prints_what_the_guide_shows() {
    let (out, err) = HANDLES.run();

    assert_eq!(HANDLES.blocks("text"), [out.as_str()]);
    for line in err.lines() {
        assert!(serde_json::from_str::<serde_json::Value>(line).is_ok(), "an audit event: {line}");
    }
    assert!(!err.contains("bsk_") && !err.contains("alice"), "{err}");

    for guide in [REQUEST_STATE, MIGRATING] {
        let (out, _) = guide.run();
        assert_eq!(guide.blocks("text"), [out.as_str()]);
    }
}

#[test]
fn the_guide_names_every_counter() {
    let counters = include_str!("../src/tally.rs")
        .split('"')
        .filter(|word| word.ends_with("_total") || *word == "sse_streams_open");
    for counter in counters {
        assert!(SESSIONS.text.contains(&format!("`{counter}")), "{counter}");
    }
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
