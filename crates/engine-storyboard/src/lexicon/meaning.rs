//! The meanings that one word can have, and the keys by which the word files name them. Nouns come from the catalogue of
//! subjects, and keys such as `hour-dawn` from the names of variants; this file lists all others.

use serde::Deserialize;
use serde::de::value::{Error, StrDeserializer};
use serde::de::{DeserializeOwned, IntoDeserializer};

use super::Place;
use crate::raster::colour::Rgb;
use crate::subject::{Act, Subject};

/// The time of day, which sets the light.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Hour {
    Dawn,
    Day,
    Golden,
    Dusk,
    Night,
}

/// The weather.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
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
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Season {
    Spring,
    Summer,
    Autumn,
    Winter,
}

/// The end of the clip that fades from or to black.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum FadeEnd {
    In,
    Out,
}

/// The movement that the words ask for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Motion {
    Fast,
    Slow,
    Still,
}

/// The camera moves and distances that the words ask for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
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
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
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
    Verb(CameraVerb),
    Way(MoveDirection),
    Framing(Framing),
    Mood(Mood),
    Fade(FadeEnd),
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
    Beside(MoveDirection),
}

/// Methods that give the value of one kind of meaning.
macro_rules! values {
    ($($name:ident $kind:ident $value:ty;)*) => {
        impl Meaning {
            $(pub(crate) fn $name(&self) -> Option<$value> {
                match self {
                    Self::$kind(value) => Some(*value),
                    _ => None,
                }
            })*
        }
    };
}

values! {
    subject Subject Subject;
    weather Weather Weather;
    season Season Season;
    act Act Act;
    verb Verb CameraVerb;
}

/// A verb of the camera.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum CameraVerb {
    Pan,
    Tilt,
    Zoom,
    /// A move only with a direction.
    Other,
    /// Other subjects do it too, so its direction must stand just beside it.
    Near,
}

/// A direction.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum MoveDirection {
    Left,
    Right,
    Up,
    Down,
    In,
    Out,
}

const fn ink(code: u32) -> Meaning {
    Meaning::Colour(Rgb::hex(code))
}

/// The keys that are neither nouns nor the names of variants.
const CONCEPTS: &[(&str, Meaning)] = &[
    ("neon", Meaning::Neon),
    ("ground", Meaning::Ground),
    ("water", Meaning::Water),
    ("sky", Meaning::Heaven),
    ("colour-red", ink(0xd3_2f2f)),
    ("colour-orange", ink(0xf0_8228)),
    ("colour-yellow", ink(0xf2_c832)),
    ("colour-gold", ink(0xe0_a83a)),
    ("colour-green", ink(0x3f_9c52)),
    ("colour-teal", ink(0x1f_a3a3)),
    ("colour-blue", ink(0x2f_66c8)),
    ("colour-indigo", ink(0x2b_3a8c)),
    ("colour-purple", ink(0x80_48b8)),
    ("colour-pink", ink(0xe8_6fa4)),
    ("colour-white", ink(0xf2_f0ea)),
    ("colour-black", ink(0x22_2228)),
    ("colour-grey", ink(0x8a_9098)),
    ("colour-brown", ink(0x8a_5a3a)),
    ("size-large", Meaning::Size(1.5)),
    ("size-small", Meaning::Size(0.6)),
    ("size-child", Meaning::Size(0.78)),
    ("from", Meaning::From),
    ("sound-none", Meaning::Silence),
    ("silent-alone", Meaning::AloneSilence),
    ("music", Meaning::Music),
    ("sound", Meaning::Sound),
    ("crescent", Meaning::Crescent),
    ("music-none", Meaning::NoMusic),
    ("become", Meaning::Become),
    ("not", Meaning::Not),
    ("not-after", Meaning::NotAfter),
    ("and", Meaning::And),
    ("or", Meaning::Or),
    ("ignore", Meaning::Ignore),
    ("undrawn", Meaning::Undrawn),
    ("style", Meaning::Style),
    ("part", Meaning::Part),
    ("relation", Meaning::Relation),
];

/// The meanings of `key`; empty for an unknown key.
pub(super) fn meanings(key: &str) -> Vec<Meaning> {
    // A key may join several by `&`, such as a moon and the night. One unknown part makes all
    // of it unknown.
    let all: Option<Vec<Meaning>> = key.split('&').map(meaning).collect();
    all.unwrap_or_default()
}

fn meaning(key: &str) -> Option<Meaning> {
    if let Some((_, meaning)) = CONCEPTS.iter().find(|(name, _)| *name == key) {
        return Some(*meaning);
    }
    let (kind, name) = key.split_once('-').unwrap_or_default();
    match kind {
        "hour" => variant_named(name).map(Meaning::Hour),
        "weather" => variant_named(name).map(Meaning::Weather),
        "season" => variant_named(name).map(Meaning::Season),
        "place" => variant_named(name).map(Meaning::Place),
        "count" => name.parse().ok().map(Meaning::Count),
        "act" => variant_named(name).map(Meaning::Act),
        "motion" => variant_named(name).map(Meaning::Motion),
        "camera" => variant_named(name).map(Meaning::Verb),
        "way" => variant_named(name).map(Meaning::Way),
        "frame" => variant_named(name).map(Meaning::Framing),
        "mood" => variant_named(name).map(Meaning::Mood),
        "fade" => variant_named(name).map(Meaning::Fade),
        "beside" => variant_named(name).map(Meaning::Beside),
        _ => {
            let mut subjects = Subject::ALL.iter().copied();
            let subject =
                subjects.find(|one| one.facts().noun.to_lowercase().replace(' ', "-") == key);
            subject.map(Meaning::Subject)
        }
    }
}

/// The variant of an enumeration by its name in kebab case.
pub(crate) fn variant_named<T: DeserializeOwned>(name: &str) -> Option<T> {
    let name: StrDeserializer<'_, Error> = name.into_deserializer();
    T::deserialize(name).ok()
}
