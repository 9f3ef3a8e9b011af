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

pub(crate) use language::Language;
pub(crate) use lost_words::shape_words;
pub(crate) use meaning::{
    CameraVerb, FadeEnd, Framing, Hour, Meaning, Mood, Motion, MoveDirection, Season, Weather,
};
#[cfg(test)]
pub(crate) use reader::read;
pub(crate) use reader::{is_supported, language_of, read_as, word_for};
pub(crate) use reading::{ColourTint, LostWords, Reading, Role, SoundWishes, possible_act};
pub(crate) use scan::is_cjk;

/// The location of a scene.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
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
