//! Where text goes: results to standard output or a file, remarks to standard error, colour only for a person.

use std::{
    fs::OpenOptions,
    io::{self, IsTerminal, Write},
    path::Path,
};

use handfast_wire::text::is_printable;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

/// What a person has to change; printed as one line, with exit code 2.
#[derive(Debug)]
pub(crate) struct Failure(pub(crate) String);

/// Prints to standard output. A reader that went away is no failure of ours.
pub(crate) fn print(text: &str) -> Result<(), Failure> {
    print_on(text).map(drop)
}

/// Prints a part of something long, and says whether anybody wants the rest.
pub(crate) fn print_on(text: &str) -> Result<bool, Failure> {
    let mut out = anstream::AutoStream::auto(io::stdout());
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(false),
        Err(error) => Err(Failure(format!("standard output: {error}"))),
        Ok(()) => Ok(true),
    }
}

/// Text in which a server's words stand, line by line: nothing in it moves the cursor, rings the bell or turns text around.
pub(crate) fn harmless(text: &str) -> String {
    text.lines().map(|line| on_one_line(line) + "\n").collect()
}

/// The same for text that is to stay on one line.
pub(crate) fn on_one_line(text: &str) -> String {
    text.chars().map(|c| if is_printable(c) { c } else { ' ' }).collect()
}

/// One line to standard error.
pub(crate) fn complain(line: &str) {
    let line = on_one_line(line);
    // Nobody is left to tell if this fails.
    let _ = writeln!(io::stderr(), "handfast: {line}");
}

/// Whether standard output takes colour: a terminal, and neither `NO_COLOR` nor `TERM=dumb` says otherwise.
pub(crate) fn takes_colour() -> bool {
    anstream::AutoStream::choice(&io::stdout()) != anstream::ColorChoice::Never
}

/// Makes sure before a long run that its result can be written.
pub(crate) fn writable(path: &Path) -> Result<(), Failure> {
    let opened = OpenOptions::new().create(true).append(true).open(path);
    opened.map(drop).map_err(|error| Failure(format!("cannot write {}: {error}", path.display())))
}

/// Writes a result to a file.
pub(crate) fn write(path: &Path, text: &str) -> Result<(), Failure> {
    std::fs::write(path, text).map_err(|error| Failure(format!("cannot write {}: {error}", path.display())))
}

/// What is going on, for a person at a terminal; silent anywhere else.
pub(crate) struct Progress(ProgressBar);

impl Progress {
    /// Starts showing.
    pub(crate) fn start() -> Self {
        let bar = if io::stderr().is_terminal() { ProgressBar::new_spinner() } else { ProgressBar::hidden() };
        bar.set_draw_target(if io::stderr().is_terminal() {
            ProgressDrawTarget::stderr()
        } else {
            ProgressDrawTarget::hidden()
        });
        if let Ok(style) = ProgressStyle::with_template("{spinner} {elapsed} {wide_msg}") {
            bar.set_style(style);
        }
        if !bar.is_hidden() {
            bar.enable_steady_tick(std::time::Duration::from_millis(120));
        }
        Self(bar)
    }

    /// Says what happens now.
    pub(crate) fn say(&self, text: &str) {
        self.0.set_message(on_one_line(text));
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.0.finish_and_clear();
    }
}
