//! The cast: which subjects of the prompt appear, how large, where they stand or fly, and how
//! they move. Silent about what they look like.

use super::actor::Actor;
use super::art::Look;
use super::colour::Rgb;
use super::lexicon::{Motion, Place, Subject};
use super::sky::Orb;
use super::{Stage, rng};

/// The colours of a subject `distance` (0.0 to 1.0) away.
pub(super) fn look(stage: &Stage<'_>, subject: Subject, distance: f32) -> Look {
    let palette = &stage.palette;
    let natural = match subject {
        Subject::Tree => palette.ground.lift(-0.04),
        Subject::Cat => Rgb::hex(0x3a_3440),
        Subject::Dog => Rgb::hex(0x9a_6a44),
        Subject::Horse => Rgb::hex(0x6e_4630),
        Subject::Camel => Rgb::hex(0xb0_8252),
        Subject::Whale => Rgb::hex(0x4a_6f94),
        Subject::Fish => palette.accent,
        Subject::Saucer => Rgb::hex(0x9a_a6b4),
        Subject::Lighthouse => Rgb::hex(0xc8_3f38),
        Subject::House => Rgb::hex(0xa8_5840),
        Subject::Planet => Rgb::hex(0xd0_a878),
        _ => palette.accent,
    };
    let main = stage.reading.colour_of(subject).unwrap_or(natural);
    let trim = if subject == Subject::Camel {
        palette.accent
    } else {
        palette.second_accent
    };
    // A subject keeps some light of its own, so that it reads even at night.
    let light = palette
        .light
        .mix(Rgb::WHITE, if palette.is_dark() { 0.42 } else { 0.2 });
    let shown = |colour: Rgb| colour.under(light).mix(palette.haze, distance * 0.6);
    Look {
        main: shown(main),
        trim: shown(trim),
        dark: shown(Rgb::hex(0x2a_2630)),
        pale: shown(Rgb::hex(0xf3_ece0)),
        lamp: palette.lamp,
        lit: palette.is_dark() || stage.place == Place::Space,
    }
}

/// Speed along the frame in pixels per second; negative to the left.
fn pace(stage: &Stage<'_>) -> f32 {
    let reading = stage.reading;
    let base = if reading.moves(Motion::Still) {
        0.0
    } else if reading.moves(Motion::Fast) {
        2.0
    } else if reading.moves(Motion::Slow) {
        0.6
    } else {
        1.0
    };
    base * stage.unit
}

fn size_of(subject: Subject) -> f32 {
    match subject {
        Subject::Balloon => 0.46,
        Subject::ToyBalloon => 0.34,
        Subject::Birds => 0.5,
        Subject::Kite => 0.26,
        Subject::Butterfly => 0.16,
        Subject::Plane => 0.34,
        Subject::Rocket | Subject::Saucer => 0.42,
        Subject::Planet => 0.62,
        Subject::Fish => 0.55,
        Subject::Whale => 0.85,
        Subject::Boat => 0.4,
        Subject::Lighthouse => 0.5,
        Subject::Tree => 0.52,
        Subject::House => 0.32,
        Subject::Car => 0.4,
        Subject::Train => 0.6,
        Subject::Cat => 0.36,
        Subject::Dog => 0.26,
        Subject::Horse => 0.36,
        Subject::Camel => 0.36,
        Subject::Person => 0.32,
        Subject::Umbrella => 0.36,
        Subject::Flower => 0.5,
        Subject::Sun | Subject::Moon => 0.0,
    }
}

/// Pixels per second, in units, that a subject moves by its nature.
fn speed_of(subject: Subject) -> f32 {
    match subject {
        Subject::Balloon => 0.012,
        Subject::ToyBalloon => 0.02,
        Subject::Birds => 0.05,
        Subject::Butterfly => 0.035,
        Subject::Plane => 0.09,
        Subject::Rocket | Subject::Saucer => 0.035,
        Subject::Fish => 0.03,
        Subject::Whale => 0.04,
        Subject::Boat => 0.022,
        Subject::Car => 0.06,
        Subject::Train => 0.1,
        Subject::Horse => 0.06,
        Subject::Camel | Subject::Person | Subject::Umbrella => 0.03,
        _ => 0.0,
    }
}

fn shown(stage: &Stage<'_>, flying: bool) -> Vec<Subject> {
    let sky_like = |one: &Subject| matches!(one, Subject::Sun | Subject::Moon);
    let all = stage
        .reading
        .subjects
        .iter()
        .copied()
        .filter(|one| !sky_like(one));
    // Someone with an umbrella is one figure; boats float where there is water.
    let umbrella = stage.reading.subjects.contains(&Subject::Umbrella);
    let water = matches!(stage.place, Place::Sea | Place::Lake);
    let all = all
        .filter(move |one| !(umbrella && *one == Subject::Person))
        .filter(move |one| flying || !(water && *one == Subject::Boat));
    all.filter(|one| one.flies() == flying).take(3).collect()
}

/// Horizontal place and direction of the `nth` subject: on a third, moving into the frame.
fn spot(stage: &mut Stage<'_>, nth: usize, mirrored: bool) -> (f32, bool) {
    const THIRDS: [f32; 3] = [0.36, 0.68, 0.18];
    let at = THIRDS[nth % 3] + stage.rng.signed() * 0.05;
    let at = if mirrored { 1.0 - at } else { at };
    (stage.width * at, at > 0.5)
}

fn travel(stage: &Stage<'_>, subject: Subject, left: bool) -> (f32, f32) {
    let speed = pace(stage) * speed_of(subject) * if left { -1.0 } else { 1.0 };
    let climbs = subject.flies() && !matches!(subject, Subject::Planet);
    let rise: f32 = if !climbs {
        0.0
    } else if stage.reading.moves(Motion::Rise) {
        -0.03
    } else if stage.reading.moves(Motion::Fall) {
        0.025
    } else if matches!(subject, Subject::Balloon | Subject::ToyBalloon) {
        -0.008
    } else {
        0.0
    };
    let rise = if subject == Subject::Rocket {
        rise.min(-0.05)
    } else {
        rise
    };
    (speed, rise * stage.unit)
}

/// Puts what flies into the sky above `horizon`, away from `orb`.
pub(super) fn fliers(stage: &mut Stage<'_>, horizon: f32, orb: Orb) {
    for (nth, subject) in shown(stage, true).into_iter().enumerate() {
        let (x, left) = spot(stage, nth, orb.x < stage.width * 0.5);
        let size = fit(stage, subject);
        let share = if subject == Subject::Planet {
            0.34
        } else {
            0.46 + 0.12 * stage.rng.signed()
        };
        let travel = travel(stage, subject, left);
        // Rising, it starts lower; falling, higher: the middle of the way is in the picture.
        let way = travel.1 * stage.seconds;
        let middle = (horizon * share).max(size * 0.54 + way.abs() * 0.5);
        let y = middle - way * 0.5;
        let x = x - travel.0 * stage.seconds * 0.4;
        add(stage, subject, (x, y), size, 0.75, left, travel);
    }
}

/// A size that the frame can hold.
pub(super) fn fit(stage: &Stage<'_>, subject: Subject) -> f32 {
    let wish = size_of(subject) * stage.unit * stage.nearness;
    wish.min(stage.width * 0.8).min(stage.height * 0.62)
}

/// Puts what stands or walks onto the ground, whose height at `x` is `ground(x)`.
pub(super) fn walkers(stage: &mut Stage<'_>, depth: f32, ground: &dyn Fn(f32) -> f32) {
    for (nth, subject) in shown(stage, false).into_iter().enumerate() {
        let mirrored = stage.rng.chance(0.5);
        let (x, left) = spot(stage, nth, mirrored);
        let size = fit(stage, subject);
        let travel = travel(stage, subject, left);
        let x = x - travel.0 * stage.seconds * 0.4;
        // Along a moving subject's way the ground is taken as level: its lowest point.
        let way = travel.0 * stage.seconds;
        let y = (0..=8)
            .map(|n| ground(x + way * n as f32 / 8.0))
            .fold(f32::MIN, f32::max);
        add(
            stage,
            subject,
            (x, y + size * 0.01),
            size,
            depth,
            left,
            travel,
        );
    }
}

/// Puts boats (and what else is asked for and can float) onto the water at stage row `y`.
pub(super) fn floaters(stage: &mut Stage<'_>, y: f32, depth: f32, orb: Orb) {
    let boats = stage
        .reading
        .subjects
        .iter()
        .filter(|one| **one == Subject::Boat)
        .count();
    for (nth, subject) in std::iter::repeat_n(Subject::Boat, boats).enumerate() {
        let (x, left) = spot(stage, nth, orb.x < stage.width * 0.5);
        let size = fit(stage, subject);
        let travel = travel(stage, subject, left);
        let mut actor = make(stage, subject, (x, y), size, depth, left, travel);
        actor.bob = size * 0.012;
        actor.rock = 2.2;
        actor.mirrored = 0.3;
        stage.actor(actor);
    }
}

pub(super) fn add(
    stage: &mut Stage<'_>,
    subject: Subject,
    at: (f32, f32),
    size: f32,
    depth: f32,
    left: bool,
    travel: (f32, f32),
) {
    let actor = make(stage, subject, at, size, depth, left, travel);
    stage.actor(actor);
}

fn make(
    stage: &mut Stage<'_>,
    subject: Subject,
    (x, y): (f32, f32),
    size: f32,
    depth: f32,
    left: bool,
    speed: (f32, f32),
) -> Actor {
    let (bob, rock) = match subject {
        Subject::Balloon | Subject::ToyBalloon => (0.02, 2.4),
        Subject::Birds | Subject::Butterfly => (0.03, 2.0),
        Subject::Saucer => (0.025, 3.0),
        Subject::Kite => (0.05, 9.0),
        Subject::Fish | Subject::Whale => (0.03, 2.2),
        Subject::Plane => (0.01, 1.0),
        _ => (0.0, 0.0),
    };
    let still = stage.reading.moves(Motion::Still);
    let fast = stage.reading.moves(Motion::Fast);
    let rng: &mut rng::Rng = &mut stage.rng;
    let phase = rng.range(0.0, std::f32::consts::TAU);
    // Letters and lamps would look wrong turned around; these are symmetric or face the way.
    let faces_left = left
        && !matches!(
            subject,
            Subject::House | Subject::Lighthouse | Subject::Planet
        );
    Actor {
        subject,
        x,
        y,
        size,
        depth,
        speed,
        bob: bob * size,
        rock,
        phase,
        pace: if still {
            0.4
        } else if fast {
            1.5
        } else {
            1.0
        },
        faces_left,
        look: look(stage, subject, 0.0),
        mirrored: 0.0,
    }
}
