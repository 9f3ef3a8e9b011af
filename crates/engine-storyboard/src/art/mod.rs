//! Draws subjects: flat shapes of few colours in a square of 100 by 100, y down, facing right. Feet stand at the
//! bottom; fliers are around the middle. Shapes are drawings (`drawings/`); their movement is code, one file for each
//! kind of body.

mod bird;
mod building;
#[cfg(test)]
mod creature_tests;
mod effects;
mod gait;
mod insect;
mod people;
mod plant;
mod quadruped;
mod rig;
mod sky;
mod swimmer;
mod thing;
#[cfg(test)]
mod trial;
mod vehicle;

use crate::raster::colour::Rgb;
use crate::raster::pen::Pen;
use crate::subject::{Act, BodyKind, Stance, Subject};
pub(crate) use people::head;
use rig::{PartPose, Rig};

/// The colours of a subject under the scene's light.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SubjectColours {
    pub(crate) main: Rgb,
    pub(crate) trim: Rgb,
    pub(crate) dark: Rgb,
    pub(crate) pale: Rgb,
    pub(crate) lamp: Rgb,
    pub(crate) skin: Rgb,
    pub(crate) hair: Rgb,
    /// Whether lamps and windows are lit.
    pub(crate) lit: bool,
    /// Whether snow lies on it.
    pub(crate) snowy: bool,
    /// The light on all colours, and the air before them.
    pub(crate) light: Rgb,
    pub(crate) haze: Rgb,
    /// Share of the air's colour, 0.0 to 1.0.
    pub(crate) mist: f32,
}

impl SubjectColours {
    /// In white light, outside of any scene.
    pub(crate) const PLAIN: Self = Self {
        main: Rgb::hex(0xd8_523f),
        trim: Rgb::hex(0xf2_c14e),
        dark: Rgb::hex(0x2a_2630),
        pale: Rgb::hex(0xf3_ece0),
        lamp: Rgb::hex(0xff_d27a),
        skin: Rgb::hex(0xd8_a482),
        hair: Rgb::hex(0x3a_2a24),
        lit: false,
        snowy: false,
        light: Rgb::WHITE,
        haze: Rgb::WHITE,
        mist: 0.0,
    };

    /// `colour` under this light and air.
    pub(crate) fn under_light(&self, colour: Rgb) -> Rgb {
        colour.under(self.light).mix(self.haze, self.mist)
    }
}

/// A subject's action at an instant.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct ActMoment {
    pub(crate) act: Act,
    /// Its age, seconds.
    pub(crate) t: f32,
    /// Distance that it has covered, in sides of its square. Steps and wheels follow it.
    pub(crate) gone: f32,
    /// Share of the shot that is over, 0.0 to 1.0. Doors and flowers are open at 1.0.
    pub(crate) share: f32,
    /// Its number among several of its kind, for variety.
    pub(crate) nth: u8,
    /// The subject that holds it, if any.
    pub(crate) holder: Option<Subject>,
}

/// Hops per second of a jumping figure.
pub(crate) const HOPS_HZ: f32 = 0.8;

/// The row of the square at the subject's position.
pub(crate) fn anchor(subject: Subject) -> f32 {
    match subject.facts().stance {
        Stance::Flies | Stance::Swims | Stance::Hangs => 50.0,
        Stance::Floats => 91.0,
        _ => 98.0,
    }
}

/// How far the drawing reaches from its anchor, in sides of the square.
pub(crate) fn reach(subject: Subject) -> f32 {
    match subject {
        // Measured by the tests on every act, with a little to spare; what a drawing reaches beyond
        // this is cut off.
        Subject::Deer | Subject::Giraffe | Subject::Unicorn | Subject::Dinosaur => 1.19,
        Subject::Kangaroo | Subject::Donkey | Subject::Elephant => 1.15,
        Subject::Lighthouse => 2.4,
        Subject::Car | Subject::Taxi | Subject::PoliceCar => 1.3,
        Subject::Train | Subject::SteamTrain => 3.0,
        Subject::Kite | Subject::Comet => 1.2,
        Subject::Volcano => 1.5,
        Subject::Fireworks => 1.6,
        Subject::Bridge | Subject::Factory => 1.4,
        Subject::Windmill
        | Subject::Castle
        | Subject::Church
        | Subject::Skyscraper
        | Subject::Statue => 1.15,
        Subject::Crowd => 1.4,
        // Their glow, or things that fall from them.
        Subject::Candle | Subject::Lantern | Subject::Campfire | Subject::Snowman => 1.19,
        Subject::Gift | Subject::Chest => 1.19,
        Subject::Umbrella => 1.32,
        Subject::Wizard | Subject::Witch => 1.2,
        // Arms above the head.
        _ if subject.facts().body == BodyKind::Person => 1.12,
        _ => 1.05,
    }
}

/// Draws `subject` as it is at `moment`.
pub(crate) fn draw(pen: &mut Pen, subject: Subject, look: &SubjectColours, moment: &ActMoment) {
    match subject.facts().body {
        BodyKind::Sky => sky::draw(pen, subject, look, moment),
        BodyKind::Person => people::draw(pen, subject, look, moment),
        BodyKind::Quadruped => quadruped::draw(pen, subject, look, moment),
        BodyKind::Bird => bird::draw(pen, subject, look, moment),
        BodyKind::Swimmer => swimmer::draw(pen, subject, look, moment),
        BodyKind::Insect => insect::draw(pen, subject, look, moment),
        BodyKind::Vehicle => vehicle::draw(pen, subject, look, moment),
        BodyKind::Building => building::draw(pen, subject, look, moment),
        BodyKind::Plant => plant::draw(pen, subject, look, moment),
        BodyKind::Thing => thing::draw(pen, subject, look, moment),
    }
}

/// The name of a subject's own drawing: its noun, with hyphens.
fn drawing_name(subject: Subject) -> String {
    subject.facts().noun.to_lowercase().replace(' ', "-")
}

fn drawing(subject: Subject) -> Option<&'static Rig> {
    Rig::named(&drawing_name(subject))
}

/// The number that a part's name ends with, as in `seat-3`, or 0.0.
fn part_number(name: &str) -> f32 {
    let digits = name.rsplit('-').next().unwrap_or_default();
    digits.parse().unwrap_or(0.0)
}

/// Draws the subject's own drawing with parts posed by `pose`.
fn plain(pen: &mut Pen, subject: Subject, look: &SubjectColours, pose: &dyn Fn(&str) -> PartPose) {
    if let Some(rig) = drawing(subject) {
        rig.draw(pen, look, pose);
    }
}
