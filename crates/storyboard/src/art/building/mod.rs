//! Buildings and landmarks: their drawings, and how doors, sails, wheels, bells, flags and smoke move. Light, fire and
//! water have their own files.

mod fire;
mod light;
mod water;

use super::effects::{Puffs, chance, flag, smoke};
use super::rig::Pose;
use super::{Look, Moment};
use crate::pen::Pen;
use crate::subject::{Act, Subject};

pub(super) fn draw(pen: &mut Pen, subject: Subject, look: &Look, m: &Moment) {
    match subject {
        Subject::Lighthouse if look.lit => light::beam(pen, look, m.t),
        Subject::House => chimney((69.0, 27.0), (2.0, 6.5), 0.25, look).draw(pen, m.t),
        Subject::Factory => {
            chimney((36.4, 20.0), (3.0, 10.0), 0.55, look).draw(pen, m.t + 1.3);
            chimney((19.4, 14.0), (3.4, 11.0), 0.55, look).draw(pen, m.t);
        }
        Subject::Volcano => fire::column(pen, look, m),
        _ => {}
    }
    if subject == Subject::Waterfall {
        let only = |kept: &'static str| move |name: &str| kept_part(name, kept);
        super::plain(pen, subject, look, &only("back"));
        water::fall(pen, look, m.t);
        super::plain(pen, subject, look, &only("front"));
        water::spray(pen, look, m.t);
    } else {
        super::plain(pen, subject, look, &|name| pose(name, m));
    }
    for (pole, size) in flags(subject) {
        flag(pen, *pole, *size, m.t + pole.0, look.trim);
    }
    match subject {
        Subject::Fountain => water::fountain(pen, look, m.t),
        Subject::Volcano => fire::eruption(pen, m),
        _ => {}
    }
}

fn kept_part(name: &str, kept: &str) -> Pose {
    if name.is_empty() || name == kept {
        Pose::REST
    } else {
        Pose::HIDDEN
    }
}

/// How far doors, gates and flaps are open, 0.0 to 1.0, with a slow start and end.
fn open(m: &Moment) -> f32 {
    if m.act != Act::Open {
        return 0.0;
    }
    // Opens in the first two thirds of the shot; the last third shows the inside.
    let share = (m.share * 1.5).clamp(0.0, 1.0);
    share * share * (3.0 - 2.0 * share)
}

/// The pose of a part; other parts rest.
fn pose(name: &str, m: &Moment) -> Pose {
    // A door that turns about its hinge looks narrower, but never edge-on.
    let leaf = (open(m) * 78.0).to_radians().cos();
    let fair = m.t * 11.0;
    match name {
        "door-left" | "door-right" | "flap-left" | "flap-right" => Pose::scaled(leaf, 1.0),
        "shutter" => Pose::scaled(1.0, 1.0 - 0.9 * open(m)),
        "sails" => Pose::turned(m.t * 34.0 % 360.0),
        "wheel" => Pose::turned(fair % 360.0),
        // Cabins stay upright and swing a little.
        _ if name.starts_with("seat-") => {
            Pose::turned(4.0 * (m.t * 1.9 + number(name) as f32 * 1.3).sin() - fair % 360.0)
        }
        "bell" => Pose::turned(15.0 * (m.t * 2.9).sin()),
        _ if name.starts_with("lantern-") => {
            Pose::turned(7.0 * (m.t * 1.6 + number(name) as f32 * 1.8).sin())
        }
        "blink-a" => shown((m.t * 0.8).fract() < 0.5),
        _ if name.starts_with("lights-") => shown(lights_on(number(name), m)),
        _ => Pose::REST,
    }
}

/// Whether a group of windows is lit. It changes now and then.
fn lights_on(group: u32, m: &Moment) -> bool {
    let turn = (m.t * 0.35 + group as f32 * 0.37).max(0.0) as u32;
    chance(turn * 8 + group + u32::from(m.nth) * 64) > 0.24
}

fn shown(shown: bool) -> Pose {
    if shown { Pose::REST } else { Pose::HIDDEN }
}

/// The number that a part's name ends with.
fn number(name: &str) -> u32 {
    let digit = name.chars().last().and_then(|last| last.to_digit(10));
    digit.unwrap_or(0)
}

/// The top of a pole and the size of its flag.
type Flag = ((f32, f32), (f32, f32));

fn flags(subject: Subject) -> &'static [Flag] {
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
fn chimney(from: (f32, f32), radius: (f32, f32), dark: f32, look: &Look) -> Puffs {
    Puffs {
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
