//! How subjects look: flat, few-coloured shapes in a square of 100 by 100, y down. Feet stand
//! at the bottom; what flies hangs around the middle.

mod air;
mod animal;
mod land;
mod water;

use super::colour::Rgb;
use super::lexicon::Subject;
use super::pen::Pen;

/// The colours of one subject, already under the scene's light.
#[derive(Clone, Copy, Debug)]
pub(super) struct Look {
    pub(super) main: Rgb,
    pub(super) trim: Rgb,
    pub(super) dark: Rgb,
    pub(super) pale: Rgb,
    pub(super) lamp: Rgb,
    /// Whether lamps and windows are lit.
    pub(super) lit: bool,
}

/// The row of the square that stands where the subject is.
pub(super) fn anchor(subject: Subject) -> f32 {
    match subject {
        Subject::Boat => 91.0,
        one if one.flies() => 50.0,
        _ => 98.0,
    }
}

/// How far the drawing reaches from its anchor, in sides of the square.
pub(super) fn reach(subject: Subject) -> f32 {
    match subject {
        Subject::Lighthouse => 2.4,
        Subject::Car => 1.3,
        Subject::Train => 2.6,
        Subject::Kite => 1.2,
        _ => 1.05,
    }
}

/// Draws `subject` at `t` seconds of its own life.
pub(super) fn draw(pen: &mut Pen, subject: Subject, look: &Look, t: f32) {
    match subject {
        Subject::Sun | Subject::Moon => {}
        Subject::Balloon => air::balloon(pen, look),
        Subject::ToyBalloon => air::toy_balloon(pen, look, t),
        Subject::Birds => air::birds(pen, look, t),
        Subject::Kite => air::kite(pen, look, t),
        Subject::Butterfly => air::butterfly(pen, look, t),
        Subject::Plane => air::plane(pen, look),
        Subject::Rocket => air::rocket(pen, look, t),
        Subject::Saucer => air::saucer(pen, look, t),
        Subject::Planet => air::planet(pen, look),
        Subject::Boat => water::boat(pen, look),
        Subject::Fish => water::fish(pen, look, t),
        Subject::Whale => water::whale(pen, look, t),
        Subject::Lighthouse => water::lighthouse(pen, look, t),
        Subject::Tree => land::tree(pen, look),
        Subject::House => land::house(pen, look),
        Subject::Car => land::car(pen, look, t),
        Subject::Train => land::train(pen, look),
        Subject::Flower => land::flowers(pen, look, t),
        Subject::Cat => animal::cat(pen, look, t),
        Subject::Dog => animal::dog(pen, look, t),
        Subject::Horse => animal::horse(pen, look, t),
        Subject::Camel => animal::camel(pen, look, t),
        Subject::Person => animal::person(pen, look, t),
        Subject::Umbrella => animal::umbrella(pen, look, t),
    }
}
