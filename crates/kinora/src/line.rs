//! One line of the terminal, below everything else, that is updated in place. Nothing if standard
//! error is not a terminal.

use std::io::{IsTerminal, Write};

use rustix::termios::tcgetwinsize;

use crate::table::shortened;

const CELLS: usize = 24;
/// If the terminal does not report its width.
const COLUMNS: usize = 80;

/// The line.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Line {
    is_shown: bool,
}

impl Line {
    /// The line on standard error.
    pub(crate) fn new() -> Self {
        let is_dumb = std::env::var("TERM").is_ok_and(|term| term == "dumb");
        Self {
            is_shown: std::io::stderr().is_terminal() && !is_dumb,
        }
    }

    /// Whether there is a terminal.
    pub(crate) const fn is_shown(self) -> bool {
        self.is_shown
    }

    /// Shows `text` instead of the last one, as far as it fits.
    pub(crate) fn say(self, text: &str) {
        let text = shortened(text, width().saturating_sub(1));
        self.write(&format!("\r\x1b[K{text}"));
    }

    /// Removes the line, so that other output can follow.
    pub(crate) fn clear(self) {
        self.write("\r\x1b[K");
    }

    /// Writes `text` as it is.
    pub(crate) fn write(self, text: &str) {
        if self.is_shown {
            let mut out = std::io::stderr().lock();
            // If the terminal is gone, continue without it.
            let _ = out.write_all(text.as_bytes()).and_then(|()| out.flush());
        }
    }
}

fn width() -> usize {
    let size = tcgetwinsize(std::io::stderr()).map(|size| size.ws_col.into());
    size.ok().filter(|columns| *columns > 0).unwrap_or(COLUMNS)
}

/// A bar of this length in percent.
pub(crate) fn cells(percent: u8) -> String {
    let full = usize::from(percent.min(100)) * CELLS / 100;
    format!("[{}{}]", "#".repeat(full), "-".repeat(CELLS - full))
}

/// Minutes and seconds.
pub(crate) fn clock(seconds: u64) -> String {
    format!("{}:{:02}", seconds / 60, seconds % 60)
}
