//! An example, built and running as by hand.
#![allow(dead_code, reason = "no test needs all of it")]

use std::{
    io::{BufRead, BufReader, Lines},
    process::{Child, ChildStdout, Command, Stdio},
};

/// It ends with the test.
pub(crate) struct Example {
    process: Child,
    lines: Lines<BufReader<ChildStdout>>,
}

impl Example {
    pub(crate) fn start(name: &str, arguments: &[&str]) -> Self {
        let cargo = std::env::var("CARGO").unwrap_or_else(|_| "cargo".to_owned());
        let built = Command::new(cargo)
            .args(["build", "-q", "--locked", "--all-features", "--example", name])
            .current_dir(env!("CARGO_MANIFEST_DIR"))
            .status();
        assert!(built.expect("cargo runs").success());
        // Tests stand in `deps`, and examples in a folder beside that.
        let tests = std::env::current_exe().expect("this program");
        let example = tests.ancestors().nth(2).expect("a folder").join("examples").join(name);
        let mut command = Command::new(example);
        command.args(arguments).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut process = command.spawn().expect("it runs");
        let lines = BufReader::new(process.stdout.take().expect("it is piped")).lines();
        Self { process, lines }
    }

    /// What stands after this mark in the next line that it prints.
    pub(crate) fn after(&mut self, mark: &str) -> String {
        let line = self.lines.next().expect("it says something").expect("text");
        line.strip_prefix(mark).unwrap_or_else(|| panic!("not `{mark}`: {line}")).to_owned()
    }
}

impl Drop for Example {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}
