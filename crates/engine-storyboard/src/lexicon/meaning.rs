//! The meanings that one word can have, and the keys by which the word files name them. Nouns come from the catalogue of
//! subjects; this file lists all other keys.

use self::Meaning::{
    Act as A, Colour, Count, Framing as F, Hour as H, Mood as O, Motion as M, Place as P,
    Season as S, Size, Verb as V, Way as Y, Weather as W,
};
use super::Place;
use crate::raster::colour::Rgb;
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
pub(crate) enum FadeEnd {
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

/// A verb of the camera.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
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
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum MoveDirection {
    Left,
    Right,
    Up,
    Down,
    In,
    Out,
}

const fn ink(code: u32) -> Meaning {
    Colour(Rgb::hex(code))
}

/// The keys beside the nouns.
const CONCEPTS: &[(&str, Meaning)] = &[
    ("hour-dawn", H(Hour::Dawn)),
    ("hour-day", H(Hour::Day)),
    ("hour-golden", H(Hour::Golden)),
    ("hour-dusk", H(Hour::Dusk)),
    ("hour-night", H(Hour::Night)),
    ("weather-clear", W(Weather::Clear)),
    ("weather-clouds", W(Weather::Clouds)),
    ("weather-rain", W(Weather::Rain)),
    ("weather-snow", W(Weather::Snow)),
    ("weather-snowfall", W(Weather::Snowfall)),
    ("weather-storm", W(Weather::Storm)),
    ("weather-lightning", W(Weather::Lightning)),
    ("weather-downpour", W(Weather::Downpour)),
    ("weather-drizzle", W(Weather::Drizzle)),
    ("weather-blizzard", W(Weather::Blizzard)),
    ("weather-fog", W(Weather::Fog)),
    ("weather-wind", W(Weather::Wind)),
    ("weather-rainbow", W(Weather::Rainbow)),
    ("weather-aurora", W(Weather::Aurora)),
    ("weather-meteors", W(Weather::Meteors)),
    ("season-spring", S(Season::Spring)),
    ("season-summer", S(Season::Summer)),
    ("season-autumn", S(Season::Autumn)),
    ("season-winter", S(Season::Winter)),
    ("place-sea", P(Place::Sea)),
    ("place-mountains", P(Place::Mountains)),
    ("place-forest", P(Place::Forest)),
    ("place-desert", P(Place::Desert)),
    ("place-city", P(Place::City)),
    ("place-hills", P(Place::Hills)),
    ("place-lake", P(Place::Lake)),
    ("place-space", P(Place::Space)),
    ("place-underwater", P(Place::Underwater)),
    ("place-room", P(Place::Room)),
    ("place-table", P(Place::Table)),
    ("place-sky", P(Place::Sky)),
    ("place-abstract", P(Place::Abstract)),
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
    ("count-1", Count(1)),
    ("count-2", Count(2)),
    ("count-3", Count(3)),
    ("count-4", Count(4)),
    ("count-5", Count(5)),
    ("count-6", Count(6)),
    ("count-7", Count(7)),
    ("count-8", Count(8)),
    ("count-9", Count(9)),
    ("count-10", Count(10)),
    ("count-11", Count(11)),
    ("count-12", Count(12)),
    ("count-20", Count(20)),
    ("count-50", Count(50)),
    ("size-large", Size(1.5)),
    ("size-small", Size(0.6)),
    ("size-child", Size(0.78)),
    ("act-stand", A(Act::Stand)),
    ("act-sit", A(Act::Sit)),
    ("act-sleep", A(Act::Sleep)),
    ("act-walk", A(Act::Walk)),
    ("act-run", A(Act::Run)),
    ("act-jump", A(Act::Jump)),
    ("act-dance", A(Act::Dance)),
    ("act-eat", A(Act::Eat)),
    ("act-move", A(Act::Move)),
    ("act-fly", A(Act::Fly)),
    ("act-land", A(Act::Land)),
    ("act-rise", A(Act::Rise)),
    ("act-fall", A(Act::Fall)),
    ("act-swim", A(Act::Swim)),
    ("act-open", A(Act::Open)),
    ("act-wave", A(Act::Wave)),
    ("act-play", A(Act::Play)),
    ("act-read", A(Act::Read)),
    ("act-turn", A(Act::Turn)),
    ("act-burn", A(Act::Burn)),
    ("motion-fast", M(Motion::Fast)),
    ("motion-slow", M(Motion::Slow)),
    ("motion-still", M(Motion::Still)),
    ("camera-pan", V(CameraVerb::Pan)),
    ("camera-tilt", V(CameraVerb::Tilt)),
    ("camera-zoom", V(CameraVerb::Zoom)),
    ("camera-other", V(CameraVerb::Other)),
    ("camera-near", V(CameraVerb::Near)),
    ("way-left", Y(MoveDirection::Left)),
    ("way-right", Y(MoveDirection::Right)),
    ("way-up", Y(MoveDirection::Up)),
    ("way-down", Y(MoveDirection::Down)),
    ("way-in", Y(MoveDirection::In)),
    ("way-out", Y(MoveDirection::Out)),
    ("from", Meaning::From),
    ("frame-close", F(Framing::Close)),
    ("frame-wide", F(Framing::Wide)),
    ("frame-aerial", F(Framing::Aerial)),
    ("frame-push-in", F(Framing::PushIn)),
    ("frame-pull-out", F(Framing::PullOut)),
    ("frame-pan-left", F(Framing::PanLeft)),
    ("frame-pan-right", F(Framing::PanRight)),
    ("frame-tilt-up", F(Framing::TiltUp)),
    ("frame-tilt-down", F(Framing::TiltDown)),
    ("frame-orbit", F(Framing::Orbit)),
    ("frame-static", F(Framing::Static)),
    ("frame-timelapse", F(Framing::Timelapse)),
    ("mood-calm", O(Mood::Calm)),
    ("mood-joyful", O(Mood::Joyful)),
    ("mood-sad", O(Mood::Sad)),
    ("mood-tense", O(Mood::Tense)),
    ("mood-dreamy", O(Mood::Dreamy)),
    ("fade-in", Meaning::Fade(FadeEnd::In)),
    ("fade-out", Meaning::Fade(FadeEnd::Out)),
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
    ("beside-left", Meaning::Beside(MoveDirection::Left)),
    ("beside-right", Meaning::Beside(MoveDirection::Right)),
];

/// The meanings of `key`; empty for an unknown key.
pub(super) fn meanings(key: &str) -> Vec<Meaning> {
    // A key may join several by `&`, such as a moon and the night. One unknown part makes all
    // of it unknown.
    let all: Option<Vec<Meaning>> = key
        .split('&')
        .map(|part| {
            let concept = CONCEPTS.iter().find(|(name, _)| *name == part);
            concept.map(|(_, meaning)| *meaning).or_else(|| {
                Subject::ALL
                    .iter()
                    .copied()
                    .find(|one| one.facts().noun.to_lowercase().replace(' ', "-") == part)
                    .map(Meaning::Subject)
            })
        })
        .collect();
    all.unwrap_or_default()
}
