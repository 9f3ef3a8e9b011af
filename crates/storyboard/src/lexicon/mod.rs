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
mod mention;
mod moves;
mod nouns;
mod place;
mod read;
mod reading;
mod scan;
mod shapes;
mod tokens;
mod words;
mod worn;

pub(super) use able::able;
pub(super) use language::Language;
pub(super) use meaning::{Fade, Framing, Hour, Meaning, Mood, Motion, Season, Verb, Way, Weather};
pub(super) use place::Place;
#[cfg(test)]
pub(super) use read::read;
pub(super) use read::{is_read, language_of, read_as, word_for};
pub(super) use reading::{Hearing, Lost, Reading, Role, Tint};
pub(super) use shapes::shapes;
pub(super) use tokens::is_cjk;
