//! Reads time, weather, place, colour, subjects, motion and framing from the words of a prompt, which is in one of
//! twelve languages. It looks words up and does not understand sentences.

mod able;
mod bind;
mod concepts;
mod detect;
mod joint;
mod language;
mod lost;
mod meaning;
mod moves;
mod place;
mod read;
mod reading;
mod scan;
mod shapes;
mod words;
mod worn;

pub(crate) use able::able;
pub(crate) use language::Language;
pub(crate) use meaning::{Fade, Framing, Hour, Meaning, Mood, Motion, Season, Verb, Way, Weather};
pub(crate) use place::Place;
#[cfg(test)]
pub(crate) use read::read;
pub(crate) use read::{is_read, language_of, read_as, word_for};
pub(crate) use reading::{Hearing, Lost, Reading, Role, Tint};
pub(crate) use scan::is_cjk;
pub(crate) use shapes::shapes;
