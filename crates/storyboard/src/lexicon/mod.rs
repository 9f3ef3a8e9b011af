//! What the words of a prompt say about time, weather, place, colour, subjects, motion and
//! framing, in six languages, of which a text has one. It looks words up; it does not understand sentences.

mod language;
mod moves;
mod read;
mod reading;
mod table;

#[cfg(test)]
pub(super) use read::read;
pub(super) use read::{is_cjk, language_of, read_as};
pub(super) use reading::{Reading, Tint};

use super::colour::Rgb;

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
    Fog,
    Wind,
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
    Sky,
    Abstract,
}

/// What is drawn into a scene.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Subject {
    Sun,
    Moon,
    Balloon,
    ToyBalloon,
    Boat,
    Birds,
    Tree,
    House,
    Car,
    Train,
    Cat,
    Dog,
    Horse,
    Camel,
    Person,
    Fish,
    Whale,
    Rocket,
    Saucer,
    Lighthouse,
    Flower,
    Kite,
    Butterfly,
    Plane,
    Umbrella,
    Planet,
}

impl Subject {
    /// Where this subject is at home, when the prompt names no place.
    pub(super) fn home(self) -> Option<Place> {
        match self {
            Self::Boat | Self::Lighthouse => Some(Place::Sea),
            Self::Fish | Self::Whale => Some(Place::Underwater),
            Self::Rocket | Self::Saucer | Self::Planet => Some(Place::Space),
            Self::Camel => Some(Place::Desert),
            Self::Car | Self::Umbrella => Some(Place::City),
            Self::Cat => Some(Place::Room),
            Self::Sun | Self::Moon | Self::Birds | Self::Plane => None,
            _ => Some(Place::Hills),
        }
    }

    /// Whether it stays off the ground.
    pub(super) fn flies(self) -> bool {
        matches!(
            self,
            Self::Balloon
                | Self::ToyBalloon
                | Self::Birds
                | Self::Rocket
                | Self::Saucer
                | Self::Kite
                | Self::Butterfly
                | Self::Plane
                | Self::Fish
                | Self::Whale
                | Self::Planet
        )
    }
}

/// What the words say of movement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Motion {
    Rise,
    Fall,
    Travel,
    Fast,
    Slow,
    Still,
}

/// What the words say of the camera.
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
    Place(Place),
    Subject(Subject),
    Colour(Rgb),
    Motion(Motion),
    Framing(Framing),
    Mood(Mood),
    /// Bright signs and lit windows.
    Neon,
    /// Grass, earth, trees: what a colour before it paints.
    Ground,
    /// What a colour before it paints high up.
    Heaven,
    /// Takes away what follows.
    Not,
    /// A new shot begins.
    Then,
}
