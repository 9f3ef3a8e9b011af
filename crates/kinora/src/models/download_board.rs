//! The progress of downloads: one line for all of them on a terminal, and elsewhere a line for each
//! tenth of a file.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use kinora_contract::Stopwatch;
use kinora_http_download::{DownloadError, DownloadSource, DownloadWatcher};

use crate::output::{print_message, printable, size};
use crate::progress::{StatusLine, bar_cells, minutes_and_seconds};
use crate::system;

/// Minimum time for an estimate of the speed.
const SECONDS_MIN: u64 = 2;

/// The progress of all files.
#[derive(Debug)]
pub(super) struct DownloadBoard {
    line: StatusLine,
    begun: Stopwatch,
    rows: Vec<Arc<DownloadRow>>,
}

/// The progress of one file.
#[derive(Debug)]
pub(super) struct DownloadRow {
    name: String,
    line: StatusLine,
    held: AtomicU64,
    /// Length of the file in bytes; 0 while it is unknown.
    whole: AtomicU64,
    received: AtomicU64,
    /// Number of tenths that have been reported.
    reported_tenths: AtomicU64,
    is_checked: AtomicBool,
}

/// The sums of all files.
#[derive(Clone, Copy, Debug, Default)]
struct DownloadSums {
    held: u64,
    /// `None` while a length is unknown.
    whole: Option<u64>,
    received: u64,
}

impl DownloadBoard {
    /// A row for each source, in their order.
    pub(super) fn new(sources: &[DownloadSource]) -> Self {
        let line = StatusLine::new();
        Self {
            line,
            begun: system::stopwatch(),
            rows: sources
                .iter()
                .map(|source| {
                    let held = kinora_http_download::partial_bytes(&source.path);
                    let name = source.path.file_name().unwrap_or_default();
                    Arc::new(DownloadRow {
                        name: printable(&name.to_string_lossy()),
                        line,
                        held: AtomicU64::new(held.unwrap_or(0)),
                        whole: AtomicU64::new(source.bytes.unwrap_or(0)),
                        received: AtomicU64::new(0),
                        reported_tenths: AtomicU64::new(0),
                        is_checked: AtomicBool::new(false),
                    })
                })
                .collect(),
        }
    }

    pub(super) fn rows(&self) -> &[Arc<DownloadRow>] {
        &self.rows
    }

    /// Updates the line on the terminal.
    pub(super) fn draw(&self) {
        if !self.line.is_shown() {
            return;
        }
        let mut checked = self
            .rows
            .iter()
            .filter(|row| row.is_checked.load(Ordering::Relaxed));
        let seconds = self.begun.elapsed().as_secs();
        let mut text = progress_text(self.sums(), seconds);
        if let Some(row) = checked.next() {
            text = format!("{text}  checking {}", row.name);
        }
        self.line.show(&text);
    }

    /// Removes the line, so that other output can follow.
    pub(super) fn clear(&self) {
        self.line.clear();
    }

    fn sums(&self) -> DownloadSums {
        // Relaxed loads, here and below: each counter is shown for itself, and nothing is decided
        // by how they relate.
        let mut sums = DownloadSums {
            whole: Some(0),
            ..DownloadSums::default()
        };
        for row in &self.rows {
            let whole = row.whole.load(Ordering::Relaxed);
            sums.held += row.held.load(Ordering::Relaxed);
            sums.received += row.received.load(Ordering::Relaxed);
            sums.whole = sums.whole.filter(|_| whole > 0).map(|all| all + whole);
        }
        sums
    }
}

impl Drop for DownloadBoard {
    fn drop(&mut self) {
        self.clear();
    }
}

impl DownloadRow {
    /// Marks the file as complete or failed.
    pub(super) fn end(&self) {
        self.is_checked.store(false, Ordering::Relaxed);
    }

    fn announce(&self, text: &str) {
        if !self.line.is_shown() {
            print_message(&format!("{}: {text}", self.name));
        }
    }
}

impl DownloadWatcher for DownloadRow {
    fn begun(&self, held: u64, whole: u64) {
        self.is_checked.store(false, Ordering::Relaxed);
        self.held.store(held, Ordering::Relaxed);
        self.whole.store(whole, Ordering::Relaxed);
        match held {
            0 => self.announce(&format!("downloading {}", size(whole))),
            held => self.announce(&format!(
                "downloading the rest of {}, {} are here",
                size(whole),
                size(held)
            )),
        }
        self.reported_tenths
            .store(tenths(held, whole), Ordering::Relaxed);
    }

    fn grown(&self, held: u64) {
        let before = self.held.swap(held, Ordering::Relaxed);
        let more = held.saturating_sub(before);
        self.received.fetch_add(more, Ordering::Relaxed);
        let tenths = tenths(held, self.whole.load(Ordering::Relaxed));
        // Where no terminal overwrites the line, ten lines for a file are enough: a log of a
        // nightly pull stays readable.
        if tenths > self.reported_tenths.swap(tenths, Ordering::Relaxed) {
            self.announce(&format!("{} %", tenths * 10));
        }
    }

    fn checking(&self) {
        self.is_checked.store(true, Ordering::Relaxed);
        self.announce("checking its SHA-256");
    }

    fn retrying(&self, error: &DownloadError, wait: Duration, retry: u32, retries_max: u32) {
        self.is_checked.store(false, Ordering::Relaxed);
        self.line.clear();
        print_message(&format!(
            "{}: {}; trying again in {:.0} s ({retry} of {retries_max})",
            self.name,
            printable(&error.to_string()),
            wait.as_secs_f64().ceil()
        ));
    }
}

fn tenths(held: u64, whole: u64) -> u64 {
    held.saturating_mul(10).checked_div(whole).unwrap_or(0)
}

/// The line for these sums, given the seconds since the start.
fn progress_text(sums: DownloadSums, seconds: u64) -> String {
    let time = minutes_and_seconds(seconds);
    let speed = sums.received.checked_div(seconds).unwrap_or(0);
    let is_known = seconds >= SECONDS_MIN && speed > 0;
    let per_second = if is_known {
        format!("  {}/s", size(speed))
    } else {
        String::new()
    };
    let Some(whole) = sums.whole.filter(|whole| *whole > 0) else {
        return format!("{}{per_second}  {time}", size(sums.held));
    };
    let percent = sums.held.saturating_mul(100) / whole;
    let percent = u8::try_from(percent.min(100)).unwrap_or(100);
    let left = if is_known {
        let seconds = whole.saturating_sub(sums.held) / speed;
        format!(", about {} left", minutes_and_seconds(seconds))
    } else {
        String::new()
    };
    format!(
        "{} {percent:3} %  {} of {}{per_second}  {time}{left}",
        bar_cells(percent),
        size(sums.held),
        size(whole)
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_line_says_what_a_person_waits_for() {
        let sums = |held, whole, received| DownloadSums {
            held,
            whole,
            received,
        };
        let gb = 1_000_000_000;
        for (sums, seconds, expected) in [
            (
                sums(0, Some(4 * gb), 0),
                0,
                "[------------------------]   0 %  0 bytes of 4.0 GB  0:00",
            ),
            (
                sums(2 * gb, Some(4 * gb), gb),
                10,
                "[############------------]  50 %  2.0 GB of 4.0 GB  100 MB/s  0:10, about 0:20 left",
            ),
            (sums(2 * gb, None, gb), 10, "2.0 GB  100 MB/s  0:10"),
        ] {
            assert_eq!(progress_text(sums, seconds), expected);
        }
    }

    #[test]
    fn tenths_of_nothing_are_none() {
        assert_eq!([tenths(0, 0), tenths(5, 0), tenths(99, 100)], [0, 0, 9]);
    }
}
