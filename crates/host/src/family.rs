//! The processes that a command started, found in `/proc`: its children and theirs, those of its group, and those that
//! carry its mark in their environment. A command adopts what loses its parent ([`adopt_orphans`]), so that a session or
//! a group of its own hides no process from its family while the command lives.

use std::collections::BTreeSet;
use std::fs;

use rustix::process::{Pid, Signal, kill_process};

/// The variable with the mark of a command.
const MARK: &str = "ENGINE_PROCESS_MARK";
/// Each round ends all that is found; only what starts others all the time needs several.
const ROUNDS_MAX: usize = 50;

/// A process as `/proc/PID/stat` shows it (proc_pid_stat(5)).
struct Entry {
    id: u32,
    parent: u32,
    group: u32,
}

/// All processes that have not ended.
fn living() -> Option<Vec<Entry>> {
    let processes = fs::read_dir("/proc").ok()?.flatten();
    let numbers = processes.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    Some(numbers.filter_map(entry).collect())
}

/// Zombies and dead processes only wait to be reaped.
fn entry(id: u32) -> Option<Entry> {
    let stat = fs::read_to_string(format!("/proc/{id}/stat")).ok()?;
    // The name stands in brackets and may hold any.
    let (_, after) = stat.rsplit_once(')')?;
    let mut fields = after.split_whitespace();
    let state = fields.next()?;
    let (parent, group) = (fields.next()?.parse().ok()?, fields.next()?.parse().ok()?);
    (!matches!(state, "Z" | "X")).then_some(Entry { id, parent, group })
}

/// The process `root`, those of its group and all that descend from them, as far as they live.
pub(crate) fn of(root: u32) -> Option<BTreeSet<u32>> {
    let living = living()?;
    let mut found: BTreeSet<u32> = living
        .iter()
        .filter(|entry| entry.id == root || entry.group == root)
        .map(|entry| entry.id)
        .collect();
    loop {
        let before = found.len();
        // The root may have ended before its last children are handed to another parent.
        let children: Vec<u32> = living
            .iter()
            .filter(|entry| entry.parent == root || found.contains(&entry.parent))
            .map(|entry| entry.id)
            .collect();
        found.extend(children);
        if found.len() == before {
            return Some(found);
        }
    }
}

/// Whether a process other than `root` itself is left of its family.
pub(crate) fn is_left(root: u32) -> bool {
    of(root).is_some_and(|family| family.iter().any(|id| *id != root))
}

/// A mark that no other command of this service has, as a variable of its environment.
pub(crate) fn mark(number: usize) -> (&'static str, String) {
    (MARK, format!("{}-{number}", std::process::id()))
}

/// The living processes with `mark`: those that lost their parent after it had died.
fn marked(mark: &str) -> BTreeSet<u32> {
    let variable = format!("{MARK}={mark}");
    let living = living().unwrap_or_default();
    living
        .into_iter()
        .map(|entry| entry.id)
        .filter(|id| {
            let environment = fs::read(format!("/proc/{id}/environ")).unwrap_or_default();
            environment
                .split(|byte| *byte == 0)
                .any(|one| one == variable.as_bytes())
        })
        .collect()
}

/// Ends the family of `root` but for `root` itself, which is stopped meanwhile so that it starts no other.
pub(crate) fn end(root: u32, mark: &str) {
    send(root, Signal::STOP);
    for _ in 0..ROUNDS_MAX {
        let mut left = of(root).unwrap_or_default();
        left.extend(marked(mark));
        left.remove(&root);
        if left.is_empty() {
            return;
        }
        left.into_iter().for_each(|id| send(id, Signal::KILL));
    }
}

fn send(id: u32, signal: Signal) {
    if let Some(pid) = i32::try_from(id).ok().and_then(Pid::from_raw) {
        // Fails only if it is gone, or another user's.
        let _ = kill_process(pid, signal);
    }
}

/// Makes this process, and the program that it becomes, the parent of all its descendants that lose theirs. A failure leaves
/// them to the system's first process.
pub fn adopt_orphans() {
    #[cfg(target_os = "linux")]
    let _ = rustix::process::set_child_subreaper(Some(rustix::process::getpid()));
}

#[cfg(test)]
#[cfg(target_os = "linux")]
mod tests {
    use std::process::Command;

    use super::*;

    #[test]
    fn a_family_is_a_process_its_group_and_their_descendants() {
        let mut child = Command::new("sleep").arg("1000").spawn().unwrap();
        let own = std::process::id();
        assert!(of(own).unwrap().is_superset(&[own, child.id()].into()));
        assert_eq!(of(child.id()).unwrap(), [child.id()].into());
        assert!(is_left(own) && !is_left(child.id()));
        child.kill().unwrap();
        // A zombie is none of its family.
        while of(own).unwrap().contains(&child.id()) {
            std::thread::yield_now();
        }
        child.wait().unwrap();
    }
}
