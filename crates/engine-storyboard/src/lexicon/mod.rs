//! Reads time, weather, place, colour, subjects, motion and framing from the words of a prompt, which is in one of
//! twelve languages. It looks words up and does not understand sentences.

mod binding;
mod camera_moves;
mod dictionary;
mod language;
mod lost_words;
mod meaning;
mod reader;
mod reading;
mod scan;

use serde::Deserialize;

pub(crate) use language::Language;
pub(crate) use lost_words::shape_words;
pub(crate) use meaning::{
    CameraVerb, FadeEnd, Framing, Hour, Meaning, Mood, Motion, MoveDirection, Season, Weather,
    variant_named,
};
#[cfg(test)]
pub(crate) use reader::read;
pub(crate) use reader::{language_of, read_as, word_for};
pub(crate) use reading::{ColourTint, LostWords, Reading, Role, SoundWishes, possible_act};
pub(crate) use scan::is_cjk;

/// Whether `word` is one of `words`, which white space separates.
pub(crate) fn is_one_of(words: &str, word: &str) -> bool {
    words.split_whitespace().any(|one| one == word)
}

/// The location of a scene.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Place {
    Sea,
    Mountains,
    Forest,
    Desert,
    City,
    Hills,
    Lake,
    Space,
    Underwater,
    Room,
    /// Things on a table, in close-up.
    Table,
    Sky,
    Abstract,
}

impl Place {
    /// Whether figures can stand on its ground.
    pub(crate) fn has_ground(self) -> bool {
        !matches!(self, Self::Space | Self::Sky | Self::Underwater)
    }
}
