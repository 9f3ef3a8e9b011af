//! Memory of processes as the system reports it: how much one holds, and whether the kernel has
//! killed processes for lack of memory. Only Linux reports this.

use std::fs;

/// Resident memory of a process in bytes, as `VmRSS` of `/proc/PID/status` (proc(5)).
pub(crate) fn resident_bytes(process_id: u32) -> Option<u64> {
    let status = fs::read_to_string(format!("/proc/{process_id}/status")).ok()?;
    number_after(&status, "VmRSS:").map(|kib| kib * 1024)
}

/// Resident memory of all processes of a group in bytes. Pages that they share count once for each.
pub(crate) fn group_resident_bytes(group_id: u32) -> Option<u64> {
    // One that has just ended holds nothing.
    let held = members(group_id)?.filter_map(|(id, _)| resident_bytes(id));
    Some(held.sum())
}

/// Whether a process of the group has not ended yet.
pub(crate) fn group_lives(group_id: u32) -> Option<bool> {
    // Zombies and dead processes wait to be reaped.
    Some(members(group_id)?.any(|(_, state)| !matches!(state, 'Z' | 'X')))
}

/// The processes of a group with their states.
fn members(group_id: u32) -> Option<impl Iterator<Item = (u32, char)>> {
    let processes = fs::read_dir("/proc").ok()?.flatten();
    let numbers = processes.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    Some(numbers.filter_map(move |id| {
        let (state, group) = state_and_group(id)?;
        (group == group_id).then_some((id, state))
    }))
}

/// The first and the third field after the name in `/proc/PID/stat` (proc(5)), which stands in brackets and may hold any.
fn state_and_group(process_id: u32) -> Option<(char, u32)> {
    let stat = fs::read_to_string(format!("/proc/{process_id}/stat")).ok()?;
    let (_, after) = stat.rsplit_once(')')?;
    let mut fields = after.split_whitespace();
    let state = fields.next()?.chars().next()?;
    let group = fields.nth(1)?.parse().ok()?;
    Some((state, group))
}

/// How many processes the kernel has killed for lack of memory since it started, including in
/// control groups: `oom_kill` of `/proc/vmstat`.
pub(crate) fn oom_kills() -> Option<u64> {
    let counters = fs::read_to_string("/proc/vmstat").ok()?;
    number_after(&counters, "oom_kill ")
}

/// Makes the kernel kill this process before others when memory runs out. A failure leaves the
/// default order.
pub(crate) fn prefer_oom_kill() {
    // 1,000 is the maximum; half leaves room for an operator's own choices.
    let _ = fs::write("/proc/self/oom_score_adj", "500");
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
    fn this_process_holds_some_memory() {
        assert!(resident_bytes(std::process::id()).unwrap() > 1 << 16);
        assert!(oom_kills().is_some());
        let (_, group) = state_and_group(std::process::id()).unwrap();
        assert_eq!(group_lives(group), Some(true));
        let held = group_resident_bytes(group).unwrap();
        assert!(held >= resident_bytes(std::process::id()).unwrap() / 2);
    }
}
