//! A test that runs in a process of its own: the test program, started once more for one of its tests.
#![allow(dead_code, reason = "no test needs all of it")]

use std::process::{Child, Command, Stdio};

/// What the child is told, and by what it knows that it is one.
const TOLD: &str = "HANDFAST_TEST_CHILD";

/// Starts the test of this name in a process of its own, and tells it something.
pub(crate) fn start(test: &str, told: &str) -> Child {
    let program = Command::new(std::env::current_exe().expect("this program"));
    by(program, test, told).spawn().expect("it starts")
}

/// The same by a command of one's own, which ends with the test program.
pub(crate) fn by(mut program: Command, test: &str, told: &str) -> Command {
    program.args([test, "--exact", "--nocapture", "--test-threads=1"]).env(TOLD, told);
    program.stdin(Stdio::piped()).stdout(Stdio::piped());
    program
}

/// What this process was told, if it is a child.
pub(crate) fn told() -> Option<String> {
    std::env::var(TOLD).ok()
}

/// Prints a line to whoever started this process, at once.
pub(crate) fn tell(line: &str) {
    use std::io::Write;
    let mut out = std::io::stdout().lock();
    // The test program may have begun a line of its own. The parent may have gone; then nobody is told.
    let _ = writeln!(out, "\n{line}").and_then(|()| out.flush());
}
