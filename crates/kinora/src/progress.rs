//! The progress of a command on a terminal: one line of standard error that is updated in place, and
//! removed at the end. Nothing is written if standard error is not a terminal.

use std::io::{IsTerminal, Write};
use std::time::Duration;

use kinora_contract::Stopwatch;
use rustix::termios::tcgetwinsize;

use crate::output::shortened;
use crate::system;

const CELLS: usize = 24;
/// Width of a terminal that does not report one.
const COLUMNS: usize = 80;

/// A line of standard error; shown only on a terminal.
#[derive(Clone, Copy, Debug)]
pub(crate) struct StatusLine {
    is_shown: bool,
}

impl StatusLine {
    /// The line on standard error.
    pub(crate) fn new() -> Self {
        Self {
            is_shown: std::io::stderr().is_terminal() && !is_dumb(),
        }
    }

    /// Whether there is a terminal.
    pub(crate) const fn is_shown(self) -> bool {
        self.is_shown
    }

    /// Shows `text` instead of the last one, as far as it fits.
    pub(crate) fn show(self, text: &str) {
        // The last column stays free. Some terminals wrap when it is filled, and the line could
        // then not be overwritten in place.
        let text = shortened(text, width().saturating_sub(1));
        self.write(&format!("\r\x1b[K{text}"));
    }

    /// Removes the line, so that other output can follow.
    pub(crate) fn clear(self) {
        self.write("\r\x1b[K");
    }

    /// Writes `text` as it is.
    fn write(self, text: &str) {
        if self.is_shown {
            let mut out = std::io::stderr().lock();
            // If the terminal is gone, continue without it.
            let _ = out.write_all(text.as_bytes()).and_then(|()| out.flush());
        }
    }
}

/// Whether the terminal shows control sequences as text, as shells inside editors do (`TERM=dumb`).
pub(crate) fn is_dumb() -> bool {
    std::env::var("TERM").is_ok_and(|term| term == "dumb")
}

fn width() -> usize {
    let size = tcgetwinsize(std::io::stderr()).map(|size| size.ws_col.into());
    size.ok().filter(|columns| *columns > 0).unwrap_or(COLUMNS)
}

/// Draws a bar that is filled to `percent`.
pub(crate) fn bar_cells(percent: u8) -> String {
    let full = usize::from(percent.min(100)) * CELLS / 100;
    format!("[{}{}]", "#".repeat(full), "-".repeat(CELLS - full))
}

/// Formats a time as minutes and seconds, such as `1:05`, and from an hour on as `2:01:05`.
pub(crate) fn minutes_and_seconds(seconds: u64) -> String {
    let (hours, minutes, seconds) = (seconds / 3600, seconds / 60 % 60, seconds % 60);
    match hours {
        0 => format!("{minutes}:{seconds:02}"),
        _ => format!("{hours}:{minutes:02}:{seconds:02}"),
    }
}

/// Interval of updates.
const EVERY: Duration = Duration::from_millis(100);

/// A line that is updated in place, and removed at the end.
#[derive(Debug)]
pub(crate) struct ProgressLine {
    line: StatusLine,
    all: u64,
    done: u64,
    shown: Option<Stopwatch>,
}

impl ProgressLine {
    pub(crate) fn new() -> Self {
        Self {
            line: StatusLine::new(),
            all: 0,
            done: 0,
            shown: None,
        }
    }

    /// Sets the number of steps.
    pub(crate) fn with_total(mut self, all: u64) -> Self {
        self.all = all;
        self
    }

    /// Shows the current activity.
    pub(crate) fn show_activity(&self, what: &str) {
        self.line.show(&format!("{what} ..."));
    }

    /// Counts one more step.
    pub(crate) fn step(&mut self, what: &str) {
        // Redrawing for each of 100,000 tasks would take longer than the work, so the line changes
        // at most ten times a second.
        self.done += 1;
        if self
            .shown
            .as_ref()
            .is_none_or(|shown| shown.elapsed() >= EVERY)
        {
            self.shown = Some(system::stopwatch());
            self.line.show(&step_text(self.done, self.all, what));
        }
    }
}

impl Drop for ProgressLine {
    fn drop(&mut self) {
        self.line.clear();
    }
}

fn step_text(done: u64, all: u64, what: &str) -> String {
    // `all` is 0 while the number of steps is unknown.
    let percent = done.min(all) * 100 / all.max(1);
    format!("{done} of {all} {what} ({percent} %)")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_says_how_far_it_is() {
        assert_eq!(step_text(3, 4, "tasks"), "3 of 4 tasks (75 %)");
        assert_eq!(step_text(1, 0, "tasks"), "1 of 0 tasks (0 %)");
    }
}
