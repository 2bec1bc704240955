//! The descendants of a child process, for the end of a run: a process group does not reach who opened a session of its own.
//! Read from `/proc`; where there is none, the group alone is ended.

use std::fs;

use nix::{
    sys::signal::{Signal, kill},
    unistd::Pid,
};

/// A process, with the time of its start: a number alone may be given to another process later.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Process {
    pid: i32,
    parent: i32,
    started: u64,
}

/// Everything that descends from a process, itself left out.
pub(super) fn descendants(of: u32) -> Vec<Process> {
    let all: Vec<Process> = fs::read_dir("/proc")
        .into_iter()
        .flatten()
        .filter_map(|entry| read(entry.ok()?.file_name().to_str()?.parse().ok()?))
        .collect();
    let mut found: Vec<Process> = Vec::new();
    let mut parents = vec![i32::try_from(of).unwrap_or(0)];
    while let Some(parent) = parents.pop() {
        for process in all.iter().filter(|process| process.parent == parent) {
            if !found.contains(process) {
                parents.push(process.pid);
                found.push(process.clone());
            }
        }
    }
    found
}

/// Ends what is still the process that it was.
pub(super) fn end(processes: &[Process]) {
    for process in processes {
        if read(process.pid).is_some_and(|now| now.started == process.started) {
            // It may have ended by itself meanwhile.
            let _ = kill(Pid::from_raw(process.pid), Signal::SIGKILL);
        }
    }
}

/// Parent and start of a process, from the fields behind its name, which may hold anything.
fn read(pid: i32) -> Option<Process> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let fields: Vec<&str> = stat.rsplit_once(')')?.1.split_whitespace().collect();
    Some(Process { pid, parent: fields.get(1)?.parse().ok()?, started: fields.get(19)?.parse().ok()? })
}
