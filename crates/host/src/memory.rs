//! Memory of processes as the system reports it: how much one holds, and whether the kernel has
//! killed processes for lack of memory. Only Linux reports this.

use std::fs;

use crate::family;

/// Resident memory of a process in bytes, as `VmRSS` of `/proc/PID/status` (proc(5)).
pub(crate) fn resident_bytes(process_id: u32) -> Option<u64> {
    let status = fs::read_to_string(format!("/proc/{process_id}/status")).ok()?;
    number_after(&status, "VmRSS:").map(|kib| kib * 1024)
}

/// Resident memory in bytes of a process and all that it started. Pages that they share count once for each.
pub(crate) fn family_resident_bytes(process_id: u32) -> Option<u64> {
    // One that has just ended holds nothing.
    let held = family::of(process_id)?
        .into_iter()
        .filter_map(resident_bytes);
    Some(held.sum())
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
        let held = family_resident_bytes(std::process::id()).unwrap();
        assert!(held >= resident_bytes(std::process::id()).unwrap() / 2);
    }
}
