//! Processes as the kernel shows them in `/proc`: which ones live, the memory that they hold, and kills for lack of it.

use std::fs;
use std::process::ExitStatus;

/// A process as `/proc/PID/stat` shows it (proc_pid_stat(5)).
#[derive(Clone, Copy, Debug)]
pub struct ProcessEntry {
    /// Its id.
    pub id: u32,
    /// The id of its parent.
    pub parent: u32,
    /// The id of its process group.
    pub group: u32,
}

/// All processes that have not ended. `None` where there is no `/proc`.
pub fn living_processes() -> Option<Vec<ProcessEntry>> {
    let processes = fs::read_dir("/proc").ok()?.flatten();
    let numbers = processes.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    Some(numbers.filter_map(read_process).collect())
}

/// Reads one process; `None` for zombies and dead ones, which only wait to be reaped.
fn read_process(id: u32) -> Option<ProcessEntry> {
    let stat = fs::read_to_string(format!("/proc/{id}/stat")).ok()?;
    // The name is in parentheses and may itself contain parentheses and spaces: search from the end.
    let (_, after) = stat.rsplit_once(')')?;
    let mut fields = after.split_whitespace();
    let state = fields.next()?;
    let (parent, group) = (fields.next()?.parse().ok()?, fields.next()?.parse().ok()?);
    (!matches!(state, "Z" | "X")).then_some(ProcessEntry { id, parent, group })
}

/// Resident memory of a process in bytes, as `VmRSS` of `/proc/PID/status` (proc(5)).
pub fn resident_bytes(process_id: u32) -> Option<u64> {
    let status = fs::read_to_string(format!("/proc/{process_id}/status")).ok()?;
    number_after(&status, "VmRSS:").map(|kib| kib * 1024)
}

/// How many processes the kernel has killed for lack of memory since it started, including in
/// control groups: `oom_kill` of `/proc/vmstat`.
pub fn oom_kills() -> Option<u64> {
    let counters = fs::read_to_string("/proc/vmstat").ok()?;
    number_after(&counters, "oom_kill ")
}

/// Whether the kernel killed a process that ended with `status` for lack of memory; `kills_before` is [`oom_kills`] from
/// before its start.
pub fn was_killed_for_memory(status: Option<ExitStatus>, kills_before: Option<u64>) -> bool {
    #[cfg(unix)]
    let is_killed = status
        .is_some_and(|status| std::os::unix::process::ExitStatusExt::signal(&status) == Some(9));
    #[cfg(not(unix))]
    let is_killed = status.is_some();
    // The counter is the machine's, not the process's, so both signs are needed: SIGKILL, which may also come from a
    // person, and a kill for lack of memory somewhere meanwhile, which may be that of another process.
    is_killed && kills_before < oom_kills()
}

fn number_after(text: &str, name: &str) -> Option<u64> {
    let line = text.lines().find_map(|line| line.strip_prefix(name))?;
    line.split_whitespace().next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_found_by_their_names() {
        let text = "VmPeak:\t  99 kB\nVmRSS:\t  1234 kB\noom_kill 7\n";
        assert_eq!(number_after(text, "VmRSS:"), Some(1234));
        assert_eq!(number_after(text, "oom_kill "), Some(7));
        assert_eq!(number_after(text, "VmSwap:"), None);
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn this_process_lives_and_holds_some_memory() {
        let own = std::process::id();
        let living = living_processes().unwrap();
        let entry = living.iter().find(|entry| entry.id == own).unwrap();
        assert_eq!(entry.parent, std::os::unix::process::parent_id());
        assert!(resident_bytes(own).unwrap() > 1 << 16);
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn a_kill_is_one_for_memory_only_if_the_kernel_counted_one() {
        use std::os::unix::process::ExitStatusExt;

        let (killed, ended) = (ExitStatus::from_raw(9), ExitStatus::from_raw(0));
        let before = oom_kills().unwrap().checked_sub(1);
        assert!(was_killed_for_memory(Some(killed), before));
        assert!(!was_killed_for_memory(Some(killed), Some(u64::MAX)));
        assert!(!was_killed_for_memory(Some(ended), before));
        assert!(!was_killed_for_memory(None, before));
    }
}
