//! Reads time, weather, place, colour, subjects, motion and framing from the words of a prompt, which is in one of
//! twelve languages. It looks words up and does not understand sentences.

mod bind;
mod language;
mod lost;
mod meaning;
mod moves;
mod read;
mod reading;
mod scan;
mod words;

pub(crate) use language::Language;
pub(crate) use lost::shapes;
pub(crate) use meaning::{Fade, Framing, Hour, Meaning, Mood, Motion, Season, Verb, Way, Weather};
#[cfg(test)]
pub(crate) use read::read;
pub(crate) use read::{is_read, language_of, read_as, word_for};
pub(crate) use reading::{Hearing, Lost, Reading, Role, Tint, able};
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
