//! The process tree of a command, found in `/proc`: its descendants, its process group, and
//! processes that carry its mark in their environment; also their resident memory. A command
//! adopts orphans ([`adopt_orphans`]), so a descendant cannot leave the tree by starting a session
//! or group of its own.

use std::collections::BTreeSet;
use std::fs;

use kinora_system::process::{living_processes, resident_bytes};
use rustix::process::{Pid, Signal, kill_process};

/// Environment variable that carries a command's mark.
const MARK: &str = "ENGINE_PROCESS_MARK";
/// Each round kills every process found; only a fork bomb needs several.
const ROUNDS_MAX: usize = 50;

/// The living processes of a tree: `root`, its process group, and all descendants of these.
pub(crate) fn process_tree(root: u32) -> Option<BTreeSet<u32>> {
    let living = living_processes()?;
    let mut found: BTreeSet<u32> = living
        .iter()
        .filter(|entry| entry.id == root || entry.group == root)
        .map(|entry| entry.id)
        .collect();
    // Until nothing is added: ids wrap around, so a child may be listed before its parent.
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

/// Whether any process of the tree other than `root` is alive.
pub(crate) fn has_descendants(root: u32) -> bool {
    process_tree(root).is_some_and(|family| family.iter().any(|id| *id != root))
}

/// A mark that is unique within this service, as name and value of an environment variable.
pub(crate) fn mark(number: usize) -> (&'static str, String) {
    (MARK, format!("{}-{number}", std::process::id()))
}

/// The living processes with `mark`, including any that were reparented after their parent died.
fn processes_with_mark(mark: &str) -> BTreeSet<u32> {
    let variable = format!("{MARK}={mark}");
    let living = living_processes().unwrap_or_default();
    living
        .into_iter()
        .map(|entry| entry.id)
        .filter(|id| {
            // The environment at `execve`, which children inherit: a process that changes its
            // own later still carries the mark here.
            let environment = fs::read(format!("/proc/{id}/environ")).unwrap_or_default();
            environment
                .split(|byte| *byte == 0)
                .any(|one| one == variable.as_bytes())
        })
        .collect()
}

/// Kills every process of the tree except `root`, which is stopped meanwhile so that it starts
/// no others.
pub(crate) fn kill_tree(root: u32, mark: &str) {
    send(root, Signal::STOP);
    // Each listing of `/proc` is a snapshot: a process found in it may fork before the signal
    // arrives. The next round finds that child, because a killed parent hands its children to
    // `root`, which adopts orphans and, being stopped, starts none itself.
    for _ in 0..ROUNDS_MAX {
        let mut left = process_tree(root).unwrap_or_default();
        left.extend(processes_with_mark(mark));
        left.remove(&root);
        if left.is_empty() {
            return;
        }
        left.into_iter().for_each(|id| send(id, Signal::KILL));
    }
}

/// Kills the descendants of `root`, which may be this process.
pub(crate) fn kill_descendants(root: u32) {
    let mut left = process_tree(root).unwrap_or_default();
    left.remove(&root);
    left.into_iter().for_each(|id| send(id, Signal::KILL));
}

fn send(id: u32, signal: Signal) {
    if let Some(pid) = i32::try_from(id).ok().and_then(Pid::from_raw) {
        // Fails only if it is gone, or another user's.
        let _ = kill_process(pid, signal);
    }
}

/// Makes this process, and the program that it becomes, the parent of descendants whose own
/// parent dies. On failure, init adopts them as usual.
pub fn adopt_orphans() {
    #[cfg(target_os = "linux")]
    // The attribute survives `execve` but not `fork` (PR_SET_CHILD_SUBREAPER(2const)), which is
    // why this runs in the child just before it becomes the command.
    let _ = rustix::process::set_child_subreaper(Some(rustix::process::getpid()));
}

/// Resident memory in bytes of a process tree. Shared pages count once for each process.
pub(crate) fn family_resident_bytes(process_id: u32) -> Option<u64> {
    // A process that ended after the listing has no entry any more and counts as 0.
    let held = process_tree(process_id)?
        .into_iter()
        .filter_map(resident_bytes);
    Some(held.sum())
}

/// Makes the kernel kill this process before others when memory runs out. A failure leaves the
/// default order.
pub(crate) fn prefer_oom_kill() {
    // 1,000 is the maximum; half leaves room for an operator's own choices.
    let _ = fs::write("/proc/self/oom_score_adj", "500");
}

#[cfg(test)]
mod tests {
    #[cfg(target_os = "linux")]
    use std::process::Command;

    use super::*;

    #[test]
    #[cfg(target_os = "linux")]
    fn a_family_is_a_process_its_group_and_their_descendants() {
        let mut child = Command::new("sleep").arg("1000").spawn().unwrap();
        let own = std::process::id();
        assert!(
            process_tree(own)
                .unwrap()
                .is_superset(&[own, child.id()].into())
        );
        assert_eq!(process_tree(child.id()).unwrap(), [child.id()].into());
        assert!(has_descendants(own) && !has_descendants(child.id()));
        child.kill().unwrap();
        // A zombie is none of its family.
        while process_tree(own).unwrap().contains(&child.id()) {
            std::thread::yield_now();
        }
        child.wait().unwrap();
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn descendants_are_killed_and_the_root_stays() {
        let script = "sleep 100 & wait; exit 7";
        let mut root = Command::new("sh").args(["-c", script]).spawn().unwrap();
        while !has_descendants(root.id()) {
            std::thread::yield_now();
        }
        kill_descendants(root.id());
        assert_eq!(root.wait().unwrap().code(), Some(7));
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn this_process_holds_some_memory() {
        let held = family_resident_bytes(std::process::id()).unwrap();
        assert!(held >= resident_bytes(std::process::id()).unwrap() / 2);
    }
}
