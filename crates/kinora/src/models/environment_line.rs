//! The progress of the installation of an engine's programs: a line on a terminal, and elsewhere a
//! message for each step.

use std::sync::{Mutex, PoisonError};

use kinora_engine_catalogue::EnvironmentWatcher;

use crate::output::{print, print_message, printable, size};
use crate::progress::StatusLine;

/// The line.
#[derive(Debug)]
pub(super) struct EnvironmentLine {
    line: StatusLine,
    shown: Mutex<ShownParts>,
}

#[derive(Debug, Default)]
struct ShownParts {
    step: String,
    size: String,
    output: String,
}

impl Default for EnvironmentLine {
    fn default() -> Self {
        Self {
            line: StatusLine::new(),
            shown: Mutex::default(),
        }
    }
}

impl EnvironmentLine {
    /// Removes the line.
    pub(super) fn clear(&self) {
        self.line.clear();
    }

    fn change(&self, change: impl FnOnce(&mut ShownParts)) {
        let mut shown = self.shown.lock().unwrap_or_else(PoisonError::into_inner);
        change(&mut shown);
        self.line.show(&shown.text());
    }
}

impl ShownParts {
    fn text(&self) -> String {
        let parts = [&self.step, &self.size, &self.output];
        let parts = parts.map(String::as_str);
        let parts = parts.into_iter().filter(|part| !part.is_empty());
        format!("    {}", parts.collect::<Vec<_>>().join("  "))
    }
}

impl EnvironmentWatcher for EnvironmentLine {
    fn step(&self, text: &str) {
        if !self.line.is_shown() {
            print_message(text);
        }
        self.change(|shown| {
            *shown = ShownParts {
                step: text.to_owned(),
                ..ShownParts::default()
            };
        });
    }

    fn note(&self, text: &str) {
        self.line.clear();
        print(&format!("    {}\n", printable(text)));
    }

    fn line(&self, text: &str) {
        self.change(|shown| shown.output = printable(text.trim()));
    }

    fn grown(&self, bytes: u64, whole: Option<u64>) {
        let whole = whole.map_or_else(String::new, |whole| format!(" of {}", size(whole)));
        self.change(|shown| shown.size = format!("{}{whole}", size(bytes)));
    }
}
