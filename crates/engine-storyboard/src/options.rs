//! The settings of the storyboard as an operator writes them.

use std::num::NonZeroUsize;

use serde::Deserialize;

/// Settings of a [`crate::Storyboard`]; omitted ones have their defaults.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct StoryboardKind {
    /// Threads that paint frames of one clip; `None`, as always in the service, takes one per core. A clip is the
    /// same with any number.
    #[serde(skip)]
    pub threads: Option<NonZeroUsize>,
    /// Whether the words of the prompt are shown as captions.
    pub caption: bool,
    /// Whether painted frames carry the mark in the upper left corner.
    pub mark: bool,
    /// Text of the mark; `{seed}` stands for the seed of the clip. Drafts put `DRAFT` before it.
    pub mark_text: String,
    /// Whether fonts of the system set the characters that the built-in fonts lack. Such characters may look
    /// different on another machine; all others look the same on any.
    pub system_fonts: bool,
}

impl Default for StoryboardKind {
    fn default() -> Self {
        Self {
            threads: None,
            caption: true,
            mark: true,
            mark_text: "KINORA STORYBOARD · seed {seed}".to_owned(),
            system_fonts: false,
        }
    }
}
