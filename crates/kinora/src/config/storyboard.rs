//! The settings of the embedded engine, wherever it runs.

use serde::{Deserialize, Serialize};

use crate::failure::Failure;

/// Longest mark: it has two short lines in the narrowest frame.
const MARK_CHARS_MAX: usize = 80;

/// The embedded engine. Its process is told the same.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Storyboard {
    /// 0: one per core.
    pub(crate) threads: u32,
    pub(crate) caption: bool,
    pub(crate) mark: bool,
    pub(crate) mark_text: String,
    pub(crate) system_fonts: bool,
}

impl Default for Storyboard {
    fn default() -> Self {
        let options = kinora_storyboard::Options::default();
        Self {
            threads: 0,
            caption: options.caption,
            mark: options.mark,
            mark_text: options.mark_text,
            system_fonts: true,
        }
    }
}

impl Storyboard {
    /// What no type says.
    pub(super) fn check(&self) -> Result<(), Failure> {
        let text = &self.mark_text;
        let long = text.chars().count() > MARK_CHARS_MAX;
        if long || text.trim().is_empty() || text.contains(char::is_control) {
            return Err(Failure::new(format!(
                "A storyboard's mark_text must have 1 to {MARK_CHARS_MAX} characters and no line breaks; \
                 `mark = false` takes the mark away."
            )));
        }
        Ok(())
    }
}
