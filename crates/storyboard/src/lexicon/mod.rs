//! What the words of a prompt say about time, weather, place, colour, subjects, motion and
//! framing, in twelve languages, of which a text has one. It looks words up; it does not understand sentences.

mod able;
mod bind;
mod concepts;
mod joint;
mod language;
mod moves;
mod nouns;
mod read;
mod reading;
mod scan;
mod shapes;
mod tokens;
mod words;
mod worn;

pub(super) use able::able;
pub(super) use language::Language;
#[cfg(test)]
pub(super) use read::read;
pub(super) use read::{is_read, language_of, read_as, word_for};
pub(super) use reading::{Hearing, Reading, Role, Tint};
pub(super) use shapes::shapes;
pub(super) use tokens::is_cjk;

use super::colour::Rgb;
use super::subject::{Act, Subject};
use moves::{Verb, Way};

/// Light by the hour.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Hour {
    Dawn,
    Day,
    Golden,
    Dusk,
    Night,
}

/// The weather.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Weather {
    Clear,
    Clouds,
    Rain,
    /// Snow lies.
    Snow,
    /// Snow falls.
    Snowfall,
    Storm,
    /// Bolts strike.
    Lightning,
    /// Heavy rain, beside `Rain`.
    Downpour,
    /// Light rain, beside `Rain`.
    Drizzle,
    /// Driven snow, beside `Snow` and `Snowfall`.
    Blizzard,
    Fog,
    Wind,
    Rainbow,
    Aurora,
    /// Stars fall.
    Meteors,
}

/// The time of the year.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Season {
    Spring,
    Summer,
    Autumn,
    Winter,
}

/// At which end of the clip the picture comes from or goes to black.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fade {
    In,
    Out,
}

/// Where a scene plays.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Place {
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
    /// Things on a table, seen close.
    Table,
    Sky,
    Abstract,
}

impl Place {
    /// Whether somebody can stand there.
    pub(super) fn has_ground(self) -> bool {
        !matches!(self, Self::Space | Self::Sky | Self::Underwater)
    }
}

/// Movement that the words ask for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Motion {
    Fast,
    Slow,
    Still,
}

/// Camera moves that the words ask for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Framing {
    Close,
    Wide,
    Aerial,
    PushIn,
    PullOut,
    PanLeft,
    PanRight,
    TiltUp,
    TiltDown,
    Orbit,
    /// The camera stands.
    Static,
    Timelapse,
}

/// The temper of picture and sound.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Mood {
    Calm,
    Joyful,
    Sad,
    Tense,
    Dreamy,
}

/// What one word can mean.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Meaning {
    Hour(Hour),
    Weather(Weather),
    Season(Season),
    Place(Place),
    Subject(Subject),
    Colour(Rgb),
    Count(u32),
    /// A share of the usual size.
    Size(f32),
    Act(Act),
    Motion(Motion),
    Verb(Verb),
    Way(Way),
    Framing(Framing),
    Mood(Mood),
    Fade(Fade),
    /// No sound at all.
    Silence,
    /// The same, when it stands alone between commas.
    AloneSilence,
    /// No music; what the place sounds like stays.
    NoMusic,
    /// Music and sound, for a negative prompt to name.
    Music,
    Sound,
    /// The moon is a sickle.
    Crescent,
    /// Bright signs and lit windows.
    Neon,
    /// Grass, earth, trees: what a colour before it paints.
    Ground,
    /// What a colour before it paints high up.
    Heaven,
    /// Takes away what follows.
    Not,
    /// Takes away what stands before it.
    NotAfter,
    And,
    Or,
    From,
    /// One thing turns into another.
    Become,
    /// Asks for nothing that could be drawn.
    Ignore,
}
