//! Buildings and landmarks: their drawings, and how doors, sails, wheels, bells, flags, smoke, fire and
//! water move.

use super::effects::{SmokePuffs, chance, flag, smoke};
use super::rig::PartPose;
use super::{ActMoment, SubjectColours, part_number};
use crate::raster::colour::{Rgb, smooth};
use crate::raster::pen::{Ink, Pen};
use crate::subject::{Act, Subject};

pub(super) fn draw(pen: &mut Pen, subject: Subject, look: &SubjectColours, m: &ActMoment) {
    match subject {
        Subject::Lighthouse if look.lit => beam(pen, look, m.t),
        Subject::House => chimney((69.0, 27.0), (2.0, 6.5), 0.25, look).draw(pen, m.t),
        Subject::Factory => {
            chimney((36.4, 20.0), (3.0, 10.0), 0.55, look).draw(pen, m.t + 1.3);
            chimney((19.4, 14.0), (3.4, 11.0), 0.55, look).draw(pen, m.t);
        }
        Subject::Volcano => column(pen, look, m),
        _ => {}
    }
    if subject == Subject::Waterfall {
        super::plain(pen, subject, look, &|name| only_part(name, "back"));
        fall(pen, look, m.t);
        super::plain(pen, subject, look, &|name| only_part(name, "front"));
        spray(pen, look, m.t);
    } else {
        super::plain(pen, subject, look, &|name| pose(name, m));
    }
    for (pole, size) in flags(subject) {
        flag(pen, *pole, *size, m.t + pole.0, look.trim);
    }
    match subject {
        Subject::Fountain => fountain(pen, look, m.t),
        Subject::Volcano => eruption(pen, m),
        _ => {}
    }
}

fn only_part(name: &str, kept: &str) -> PartPose {
    if name.is_empty() || name == kept {
        PartPose::REST
    } else {
        PartPose::HIDDEN
    }
}

/// How far doors, gates and flaps are open, 0.0 to 1.0, with a slow start and end.
fn open(m: &ActMoment) -> f32 {
    if m.act != Act::Open {
        return 0.0;
    }
    // Opens in the first two thirds of the shot; the last third shows the inside.
    smooth(0.0, 1.0, m.share * 1.5)
}

/// The pose of a part; other parts rest.
fn pose(name: &str, m: &ActMoment) -> PartPose {
    // A door that turns about its hinge looks narrower, but never edge-on.
    let leaf = (open(m) * 78.0).to_radians().cos();
    let fair = m.t * 11.0;
    match name {
        "door-left" | "door-right" | "flap-left" | "flap-right" => PartPose::scaled(leaf, 1.0),
        "shutter" => PartPose::scaled(1.0, 1.0 - 0.9 * open(m)),
        "sails" => PartPose::turned(m.t * 34.0 % 360.0),
        "wheel" => PartPose::turned(fair % 360.0),
        // Cabins stay upright and swing a little.
        _ if name.starts_with("seat-") => {
            PartPose::turned(4.0 * (m.t * 1.9 + part_number(name) * 1.3).sin() - fair % 360.0)
        }
        "bell" => PartPose::turned(15.0 * (m.t * 2.9).sin()),
        _ if name.starts_with("lantern-") => {
            PartPose::turned(7.0 * (m.t * 1.6 + part_number(name) * 1.8).sin())
        }
        "blink-a" => PartPose::shown_if((m.t * 0.8).fract() < 0.5),
        _ if name.starts_with("lights-") => {
            PartPose::shown_if(lights_on(part_number(name) as u32, m))
        }
        _ => PartPose::REST,
    }
}

/// Whether a group of windows is lit. It changes now and then.
fn lights_on(group: u32, m: &ActMoment) -> bool {
    // Whole numbers hold for three seconds or so, at another time for each group, and choose anew
    // then.
    let turn = (m.t * 0.35 + group as f32 * 0.37).max(0.0) as u32;
    chance(turn * 8 + group + u32::from(m.nth) * 64) > 0.24
}

/// The top of a pole and the size of its flag.
type FlagPole = ((f32, f32), (f32, f32));

fn flags(subject: Subject) -> &'static [FlagPole] {
    match subject {
        Subject::Castle => &[
            ((42.0, 9.6), (9.0, 4.4)),
            ((61.0, -2.4), (10.0, 5.0)),
            ((12.0, 19.4), (9.0, 4.4)),
            ((88.0, 19.4), (9.0, 4.4)),
        ],
        Subject::Tower => &[((50.0, -2.4), (13.0, 6.4))],
        _ => &[],
    }
}

/// Smoke of a chimney.
fn chimney(from: (f32, f32), radius: (f32, f32), dark: f32, look: &SubjectColours) -> SmokePuffs {
    SmokePuffs {
        from,
        drift: (radius.1 * 1.6, -radius.1 * 3.4),
        radius,
        count: 7,
        life_s: 3.6,
        colour: smoke(look, dark),
        alpha: 0.75,
        soft: false,
    }
}

#[cfg(test)]
mod tests;

// A volcano's smoke and, in an eruption, its lava and its glowing rocks.

const MOUTH: (f32, f32) = (50.0, 30.0);
const HOT: [u32; 3] = [0xff_5a1e, 0xff_9a34, 0xff_e08a];

fn erupts(m: &ActMoment) -> bool {
    m.act == Act::Burn
}

/// Smoke over the mouth; an eruption's is black and high.
fn column(pen: &mut Pen, look: &SubjectColours, m: &ActMoment) {
    let (count, high, wide, dark) = if erupts(m) {
        (8, -52.0, 16.0, 0.85)
    } else {
        (5, -26.0, 8.0, 0.3)
    };
    if erupts(m) {
        pen.glow(MOUTH.0, MOUTH.1, 36.0, Rgb::hex(HOT[0]), 0.5);
    }
    for (nth, lean) in [-14.0, 6.0].into_iter().enumerate() {
        let puffs = SmokePuffs {
            from: (MOUTH.0 + lean * 0.2, MOUTH.1 - 4.0),
            drift: (lean, high),
            radius: (5.0, wide),
            count,
            life_s: 4.2,
            colour: smoke(look, dark - 0.12 * nth as f32),
            alpha: 0.9,
            soft: false,
        };
        puffs.draw(pen, m.t + nth as f32 * 0.9);
    }
}

fn eruption(pen: &mut Pen, m: &ActMoment) {
    if !erupts(m) {
        return;
    }
    streams(pen, m.t);
    bombs(pen, m.t);
    let pulse = 0.8 + 0.2 * (m.t * 7.0).sin();
    pen.glow(MOUTH.0, MOUTH.1 + 1.0, 16.0, Rgb::hex(HOT[2]), 0.7 * pulse);
}

/// Lava on the slopes; bright clots run down in it.
fn streams(pen: &mut Pen, t: f32) {
    const WAYS: [[(f32, f32); 6]; 3] = [
        [
            (45.0, 31.0),
            (42.0, 44.0),
            (43.0, 56.0),
            (36.0, 70.0),
            (37.0, 84.0),
            (30.0, 97.0),
        ],
        [
            (52.0, 31.5),
            (54.0, 46.0),
            (52.0, 60.0),
            (57.0, 74.0),
            (54.0, 86.0),
            (58.0, 97.0),
        ],
        [
            (58.0, 31.0),
            (62.0, 42.0),
            (69.0, 54.0),
            (72.0, 66.0),
            (82.0, 80.0),
            (86.0, 92.0),
        ],
    ];
    for (nth, way) in WAYS.iter().enumerate() {
        pen.stroke(way, 3.4, Rgb::hex(0xc8_3414));
        pen.stroke(way, 1.9, Rgb::hex(HOT[0]));
        let spans = way.len() as f32 - 1.0;
        for clot in 0..7_u32 {
            let share = (t * 0.22 + clot as f32 / 7.0 + nth as f32 * 0.13).rem_euclid(1.0);
            let clot = [share, share + 0.045].map(|share| {
                let along = share.min(0.999) * spans;
                let index = along as usize;
                let (a, b) = (way[index], way[index + 1]);
                let part = along - index as f32;
                (a.0 + (b.0 - a.0) * part, a.1 + (b.1 - a.1) * part)
            });
            let fade = Ink::Flat(Rgb::hex(HOT[2]), 1.0 - 0.6 * share);
            pen.stroke(&clot, 1.1, fade);
        }
    }
}

/// Glowing rocks on parabolas, each with a short tail.
fn bombs(pen: &mut Pen, t: f32) {
    const COUNT: u32 = 22;
    const LIFE_S: f32 = 1.5;
    for nth in 0..COUNT {
        let turn = t / LIFE_S + nth as f32 / COUNT as f32;
        let age = turn.rem_euclid(1.0);
        // Number of the throw: the same rock flies another way each time.
        let throw = (turn.floor() as i32 as u32).wrapping_mul(97) ^ (nth * 13);
        let aside = (chance(throw) - 0.5) * 74.0;
        let high = 34.0 + 30.0 * chance(throw.wrapping_add(1));
        let trail = [(age - 0.05).max(0.0), age].map(|age| {
            let up = high * 4.0 * age * (1.0 - age) - 34.0 * age * age;
            (MOUTH.0 + aside * age, MOUTH.1 - up)
        });
        let colour = Rgb::hex(HOT[(nth % 3) as usize]).mix(Rgb::hex(0x8a_1c10), age * age);
        let size = 1.2 + 1.6 * chance(throw.wrapping_add(2));
        let alpha = ((1.0 - age) * 5.0).min(1.0);
        pen.stroke(&trail, size, Ink::Flat(colour, alpha));
    }
}

// The beam of a lighthouse. By day there is none.

/// The lamp, and how far its beam reaches.
const LAMP: (f32, f32) = (50.0, 14.6);
const REACH: f32 = 215.0;

/// Two beams that sweep around. From the side, they lengthen, shorten and change sides.
fn beam(pen: &mut Pen, look: &SubjectColours, t: f32) {
    let sweep = (t * 0.8).cos();
    for side in [1.0, -1.0] {
        let along = sweep * side;
        // The beam that points away from the viewer is dimmer.
        let near = (t * 0.8).sin() * side;
        let bright = 0.5 * along.abs().sqrt() * (0.8 + 0.2 * near);
        let end = LAMP.0 + REACH * along;
        let spread = 16.0 * along.abs() + 2.0;
        let fade = [
            (LAMP.0, LAMP.1, look.lamp, bright),
            (end, LAMP.1, look.lamp, 0.0),
        ];
        let cone = [
            (LAMP.0, LAMP.1 - 1.5),
            (end, LAMP.1 - spread),
            (end, LAMP.1 + spread),
            (LAMP.0, LAMP.1 + 1.5),
        ];
        if along.abs() > 0.02 {
            pen.shape(&cone, Ink::Line(fade));
        }
    }
    // Once per turn the lamp points at the viewer.
    let flare = (t * 0.8).sin().max(0.0).powi(12);
    pen.glow(LAMP.0, LAMP.1, 22.0 + 26.0 * flare, look.lamp, 0.8);
}

// Falling water: the jets of a fountain, and a waterfall with its foam and spray.

fn white(look: &SubjectColours) -> Rgb {
    look.under_light(Rgb::hex(0xf2_fafd))
}

/// A jet: from a point, over a height, to a point.
struct WaterJet {
    from: (f32, f32),
    over: f32,
    to: (f32, f32),
}

impl WaterJet {
    /// The position of its water after `share` of its path.
    fn at(&self, share: f32) -> (f32, f32) {
        let x = self.from.0 + (self.to.0 - self.from.0) * share;
        let line = self.from.1 + (self.to.1 - self.from.1) * share * share;
        (x, line - self.over * 4.0 * share * (1.0 - share))
    }

    fn draw(&self, pen: &mut Pen, look: &SubjectColours, t: f32, phase: f32) {
        const DROPS: u8 = 6;
        let arc: Vec<(f32, f32)> = (0..=12).map(|n| self.at(n as f32 / 12.0)).collect();
        let blue = look.under_light(Rgb::hex(0xa8_d8ee));
        pen.stroke(&arc, 1.5, Ink::Flat(blue, 0.75));
        for nth in 0..DROPS {
            let share = (t * 1.1 + f32::from(nth) / f32::from(DROPS) + phase).rem_euclid(1.0);
            let (x, y) = self.at(share);
            pen.circle(x, y, 0.7 + 0.5 * share, Ink::Flat(white(look), 0.95));
        }
    }
}

fn fountain(pen: &mut Pen, look: &SubjectColours, t: f32) {
    // Rings spread in the basin from the falling water.
    for nth in 0..4_u8 {
        let age = (t * 0.6 + f32::from(nth) * 0.25).rem_euclid(1.0);
        let x = if nth.is_multiple_of(2) { 14.0 } else { 86.0 };
        let ring = Ink::Flat(white(look), 0.5 * (1.0 - age));
        pen.ellipse(x, 83.4, 2.0 + 7.0 * age, 0.5 + 1.0 * age, ring);
    }
    let breath = (t * 2.3).sin();
    let top = [(50.0, 38.0), (50.0, 17.0 + 1.2 * breath)];
    let blue = look.under_light(Rgb::hex(0xa8_d8ee));
    pen.stroke(&top, 2.2, Ink::Flat(blue, 0.85));
    pen.stroke(&top, 0.8, Ink::Flat(white(look), 0.9));
    for (nth, side) in [-1.0, 1.0].into_iter().enumerate() {
        let phase = nth as f32 * 0.37;
        for (reach, over) in [(9.0, 15.0), (19.0, 19.0)] {
            let jet = WaterJet {
                from: (50.0, 36.0),
                over: over + breath,
                to: (50.0 + side * reach, 55.6),
            };
            jet.draw(pen, look, t, phase + reach * 0.07);
        }
        for (reach, out) in [(13.0, 22.0), (25.0, 36.0)] {
            let jet = WaterJet {
                from: (50.0 + side * reach, 57.4),
                over: 0.6,
                to: (50.0 + side * out, 83.0),
            };
            jet.draw(pen, look, t, phase + reach * 0.11);
        }
    }
}

/// The falling water, between the cliffs behind and before it.
fn fall(pen: &mut Pen, look: &SubjectColours, t: f32) {
    const STREAKS: u32 = 26;
    let sheet = [
        (33.0, 19.0),
        (36.0, 16.4),
        (64.0, 16.4),
        (67.0, 19.0),
        (71.0, 98.0),
        (29.0, 98.0),
    ];
    let blue = look.under_light(Rgb::hex(0x5a_a8cc));
    pen.shape(&sheet, look.main.mix(blue, 0.45));
    for nth in 0..STREAKS {
        let lane = (nth as f32 + 0.5) / STREAKS as f32;
        let speed = 0.75 + 0.5 * chance(nth * 3);
        let age = (t * speed + chance(nth * 3 + 1)).rem_euclid(1.0);
        let long = 10.0 + 16.0 * chance(nth * 3 + 2);
        // Falling water gathers speed.
        let y = 14.0 + 92.0 * age * (0.55 + 0.45 * age);
        let x = 34.0 + 32.0 * lane + (lane - 0.5) * 6.0 * age;
        let (from, to) = (y.max(17.0), (y + long).min(97.0));
        if from < to {
            let streak = [(x, from), (x, to)];
            let colour = if nth.is_multiple_of(3) {
                look.main
            } else {
                white(look)
            };
            pen.stroke(&streak, 0.8 + 0.9 * chance(nth * 5), Ink::Flat(colour, 0.7));
        }
    }
    let lip = [(34.4, 16.8), (65.6, 16.8)];
    pen.stroke(&lip, 1.2, Ink::Flat(white(look), 0.8));
}

/// Foam and spray at the foot of the fall.
fn spray(pen: &mut Pen, look: &SubjectColours, t: f32) {
    let pool = look.under_light(Rgb::hex(0x5a_a8cc));
    pen.ellipse(50.0, 97.6, 40.0, 3.4, pool);
    for nth in 0..4_u8 {
        let age = (t * 0.5 + f32::from(nth) * 0.25).rem_euclid(1.0);
        let ring = Ink::Flat(white(look), 0.5 * (1.0 - age));
        pen.ellipse(50.0, 97.8, 18.0 + 22.0 * age, 1.2 + 1.6 * age, ring);
    }
    for nth in 0..11_u32 {
        let beat = (t * (3.0 + 2.0 * chance(nth)) + nth as f32 * 1.7).sin();
        let x = 31.0 + nth as f32 * 3.8;
        let radius = 2.6 + 1.6 * chance(nth + 40) + 0.7 * beat;
        pen.circle(x, 95.8 - 0.8 * beat, radius, Ink::Flat(white(look), 0.9));
    }
    for (nth, x) in [42.0, 58.0].into_iter().enumerate() {
        let mist = SmokePuffs {
            from: (x, 94.0),
            drift: ((x - 50.0) * 0.8, -22.0),
            radius: (7.0, 14.0),
            count: 4,
            life_s: 2.4,
            colour: white(look),
            alpha: 0.55,
            soft: true,
        };
        mist.draw(pen, t + nth as f32 * 0.7);
    }
}
