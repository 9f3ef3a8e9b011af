//! The progress of the installation of an engine's programs: a line on a terminal, and elsewhere a
//! message for each step.

use std::sync::{Mutex, PoisonError};

use kinora_engine_catalogue::EnvironmentWatcher;

use crate::output::{print, print_message, printable, size};
use crate::progress::StatusLine;

/// The line, with its parts: the step, the size of the folder and the last output.
#[derive(Debug)]
pub(super) struct EnvironmentLine {
    line: StatusLine,
    parts: Mutex<[String; 3]>,
}

impl EnvironmentLine {
    pub(super) fn new() -> Self {
        Self {
            line: StatusLine::new(),
            parts: Mutex::default(),
        }
    }

    /// Removes the line.
    pub(super) fn clear(&self) {
        self.line.clear();
    }

    fn change(&self, change: impl FnOnce(&mut [String; 3])) {
        let mut parts = self.parts.lock().unwrap_or_else(PoisonError::into_inner);
        change(&mut parts);
        let shown = parts.iter().filter(|part| !part.is_empty());
        let shown: Vec<&str> = shown.map(String::as_str).collect();
        self.line.show(&format!("    {}", shown.join("  ")));
    }
}

impl EnvironmentWatcher for EnvironmentLine {
    fn step(&self, text: &str) {
        if !self.line.is_shown() {
            print_message(text);
        }
        self.change(|parts| *parts = [text.to_owned(), String::new(), String::new()]);
    }

    fn note(&self, text: &str) {
        self.line.clear();
        print(&format!("    {}\n", printable(text)));
    }

    fn line(&self, text: &str) {
        self.change(|[_, _, output]| *output = printable(text.trim()));
    }

    fn grown(&self, bytes: u64, whole: Option<u64>) {
        let whole = whole.map_or_else(String::new, |whole| format!(" of {}", size(whole)));
        self.change(|[_, shown, _]| *shown = format!("{}{whole}", size(bytes)));
    }
}
