//! What a process takes of its machine, as Linux tells it under `/proc`.

use std::path::Path;
use std::time::Duration;

use crate::Outcome;

/// A moment's look.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Footprint {
    /// Resident memory in KiB, now.
    pub(super) memory_kib: u64,
    /// Resident memory in KiB, at its highest.
    pub(super) memory_peak_kib: u64,
    /// Open descriptors.
    pub(super) descriptors: u64,
    /// Files under its data folder.
    pub(super) files: u64,
    /// Their bytes.
    pub(super) file_bytes: u64,
}

impl Footprint {
    /// Of the process `id`, whose data lie in `data`.
    pub(super) fn of(id: u32, data: &Path) -> Outcome<Self> {
        let status = std::fs::read_to_string(format!("/proc/{id}/status"))?;
        let kib = |name: &str| {
            let line = status.lines().find_map(|line| line.strip_prefix(name));
            let text = line.and_then(|line| line.split_whitespace().next());
            text.and_then(|text| text.parse().ok()).unwrap_or_default()
        };
        let mut found = Self {
            memory_kib: kib("VmRSS:"),
            memory_peak_kib: kib("VmHWM:"),
            descriptors: std::fs::read_dir(format!("/proc/{id}/fd"))?.count() as u64,
            ..Self::default()
        };
        found.count_files(data);
        Ok(found)
    }

    /// Files may come and go meanwhile.
    fn count_files(&mut self, folder: &Path) {
        for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
            match entry.metadata() {
                Ok(found) if found.is_dir() => self.count_files(&entry.path()),
                Ok(found) => {
                    self.files += 1;
                    self.file_bytes += found.len();
                }
                Err(_) => {}
            }
        }
    }
}

/// Time of all threads of the process on a processor so far; threads that have ended are not counted.
pub(super) fn processor_time(id: u32) -> Outcome<Duration> {
    let mut nanoseconds = 0;
    for thread in std::fs::read_dir(format!("/proc/{id}/task"))?.flatten() {
        // The first number, in nanoseconds (Documentation/scheduler/sched-stats.rst).
        let times = std::fs::read_to_string(thread.path().join("schedstat")).unwrap_or_default();
        let first = times
            .split(' ')
            .next()
            .and_then(|text| text.parse::<u64>().ok());
        nanoseconds += first.unwrap_or_default();
    }
    Ok(Duration::from_nanos(nanoseconds))
}
