//! The meanings that one word can have.

use super::super::colour::Rgb;
use super::super::subject::{Act, Subject};
use super::place::Place;

/// Light by the hour.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in super::super) enum Hour {
    Dawn,
    Day,
    Golden,
    Dusk,
    Night,
}

/// The weather.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in super::super) enum Weather {
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
pub(in super::super) enum Season {
    Spring,
    Summer,
    Autumn,
    Winter,
}

/// At which end of the clip the picture comes from or goes to black.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in super::super) enum Fade {
    In,
    Out,
}

/// Movement that the words ask for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in super::super) enum Motion {
    Fast,
    Slow,
    Still,
}

/// Camera moves that the words ask for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in super::super) enum Framing {
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
pub(in super::super) enum Mood {
    Calm,
    Joyful,
    Sad,
    Tense,
    Dreamy,
}

/// What one word can mean.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(in super::super) enum Meaning {
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

/// A verb of the camera.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in super::super) enum Verb {
    Pan,
    Tilt,
    Zoom,
    /// Says nothing without a direction.
    Other,
    /// Others do it too: its direction stands right beside it.
    Near,
}

/// A direction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in super::super) enum Way {
    Left,
    Right,
    Up,
    Down,
    In,
    Out,
}
