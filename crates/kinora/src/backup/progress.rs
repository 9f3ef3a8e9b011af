//! The progress of a command, on one line of a terminal; nothing elsewhere.

use std::io::{IsTerminal, Write};
use std::time::Duration;

use kinora_contract::Stopwatch;

use crate::system;

/// Interval of updates.
const EVERY: Duration = Duration::from_millis(100);

/// A line that is updated in place, and removed at the end.
#[derive(Debug)]
pub(crate) struct Progress {
    terminal: bool,
    all: u64,
    done: u64,
    shown: Option<Stopwatch>,
}

impl Progress {
    pub(crate) fn new() -> Self {
        Self {
            terminal: std::io::stderr().is_terminal(),
            all: 0,
            done: 0,
            shown: None,
        }
    }

    /// Sets the number of steps.
    pub(crate) fn of(mut self, all: u64) -> Self {
        self.all = all;
        self
    }

    /// Shows the current activity.
    pub(crate) fn say(&mut self, what: &str) {
        self.show(&format!("{what} ..."));
    }

    /// Counts one more step.
    pub(crate) fn step(&mut self, what: &str) {
        self.done += 1;
        if self
            .shown
            .as_ref()
            .is_none_or(|shown| shown.elapsed() >= EVERY)
        {
            self.shown = Some(system::stopwatch());
            self.show(&line(self.done, self.all, what));
        }
    }

    fn show(&self, text: &str) {
        if self.terminal {
            let mut out = std::io::stderr().lock();
            // If the terminal is gone, continue without it.
            let _ = write!(out, "\r\x1b[K{text}").and_then(|()| out.flush());
        }
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.show("");
    }
}

fn line(done: u64, all: u64, what: &str) -> String {
    let percent = done.min(all) * 100 / all.max(1);
    format!("{done} of {all} {what} ({percent} %)")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_says_how_far_it_is() {
        assert_eq!(line(3, 4, "tasks"), "3 of 4 tasks (75 %)");
        assert_eq!(line(1, 0, "tasks"), "1 of 0 tasks (0 %)");
    }
}
