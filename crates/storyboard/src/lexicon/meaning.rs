//! The meanings that one word can have.

use super::place::Place;
use crate::colour::Rgb;
use crate::subject::{Act, Subject};

/// The time of day, which sets the light.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Hour {
    Dawn,
    Day,
    Golden,
    Dusk,
    Night,
}

/// The weather.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Weather {
    Clear,
    Clouds,
    Rain,
    /// Snow on the ground.
    Snow,
    /// Falling snow.
    Snowfall,
    Storm,
    /// Bolts of lightning.
    Lightning,
    /// Heavy rain, with `Rain`.
    Downpour,
    /// Light rain, with `Rain`.
    Drizzle,
    /// Driven snow, with `Snow` and `Snowfall`.
    Blizzard,
    Fog,
    Wind,
    Rainbow,
    Aurora,
    /// Shooting stars.
    Meteors,
}

/// The season.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Season {
    Spring,
    Summer,
    Autumn,
    Winter,
}

/// The end of the clip that fades from or to black.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fade {
    In,
    Out,
}

/// The movement that the words ask for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Motion {
    Fast,
    Slow,
    Still,
}

/// The camera moves and distances that the words ask for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Framing {
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
    /// The camera does not move.
    Static,
    Timelapse,
}

/// The mood of picture and sound.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mood {
    Calm,
    Joyful,
    Sad,
    Tense,
    Dreamy,
}

/// The meaning of a word.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Meaning {
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
    /// No sound at all, if the word stands alone between commas.
    AloneSilence,
    /// No music; the ambience stays.
    NoMusic,
    /// Music and sound, which a negative prompt can exclude.
    Music,
    Sound,
    /// A crescent moon.
    Crescent,
    /// Bright signs and lit windows.
    Neon,
    /// Grass, earth, trees: a colour in front of it paints the ground.
    Ground,
    /// Water, of a sea or a lake.
    Water,
    /// A colour in front of it paints the sky.
    Heaven,
    /// Negates the words that follow.
    Not,
    /// Negates the words before it.
    NotAfter,
    And,
    Or,
    From,
    /// One thing turns into another.
    Become,
    /// A word that asks for nothing.
    Ignore,
    /// A noun without a drawing that would be taken for another word.
    Undrawn,
    /// A style or a quality, which no drawing follows.
    Style,
    /// A part of a body, whose look no drawing follows.
    Part,
    /// A relation between things, which no drawing follows.
    Relation,
    /// Left or right of another thing.
    Beside(Way),
}

/// A verb of the camera.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verb {
    Pan,
    Tilt,
    Zoom,
    /// A move only with a direction.
    Other,
    /// Other subjects do it too, so its direction must stand just beside it.
    Near,
}

/// A direction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Way {
    Left,
    Right,
    Up,
    Down,
    In,
    Out,
}
