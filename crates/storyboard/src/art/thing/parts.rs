//! The poses of the parts of things: hands and bells follow the time, lids and doors the share of the shot that is
//! over. It draws nothing.

use crate::art::rig::Pose;
use crate::art::{Look, Moment};
use crate::colour::smooth;
use crate::subject::{Act, Subject};

/// Whether it burns.
pub(super) fn burns(subject: Subject, m: &Moment) -> bool {
    match subject {
        Subject::Candle | Subject::Lantern | Subject::Campfire => m.act != Act::Sleep,
        _ => m.act == Act::Burn,
    }
}

/// Whether a lamp is on.
pub(super) fn shines(look: &Look, m: &Moment) -> bool {
    look.lit || matches!(m.act, Act::Burn | Act::Open)
}

/// How far it is open, 0.0 to 1.0.
pub(super) fn open(subject: Subject, m: &Moment) -> f32 {
    match (m.act, subject) {
        (Act::Open, _) => smooth(0.1, 0.75, m.share),
        (Act::Read, Subject::Book) => 1.0,
        (Act::Sleep, _) => 0.0,
        (_, Subject::Laptop | Subject::Phone) => 1.0,
        _ => 0.0,
    }
}

/// The number at the end of a part's name.
fn nth(part: &str) -> f32 {
    let digits = part.rsplit('-').next().unwrap_or_default();
    digits.parse().unwrap_or(0.0)
}

fn shown(yes: bool) -> Pose {
    if yes { Pose::REST } else { Pose::HIDDEN }
}

pub(super) fn pose(subject: Subject, look: &Look, m: &Moment, part: &str) -> Pose {
    let wave =
        |degrees: f32, rate: f32, phase: f32| Pose::turned(degrees * (m.t * rate + phase).sin());
    match (subject, part) {
        (Subject::Cake, "candles") => shown(burns(subject, m)),
        (Subject::Cake, "fruit") => shown(!burns(subject, m)),
        (_, _) if part.starts_with("flame-") => flame(m, nth(part), burns(subject, m)),
        (_, "shining") => shown(subject == Subject::Door || shines(look, m)),
        (Subject::Clock, _) => clock(m, part),
        (Subject::Hourglass, _) => hourglass(m, part),
        (Subject::Book, _) => book(m, part),
        (Subject::Bell, "bell") => wave(ringing(m), 3.4, 0.0),
        (Subject::Bell, "clapper") => wave(ringing(m) * 0.8, 3.4, -0.9),
        (Subject::Ball, "ball") => Pose::turned((m.gone * 100.0 / 44.0).to_degrees()),
        (Subject::Heart, "heart") => {
            let size = beat(m.t);
            Pose::scaled(size, size)
        }
        (Subject::Door, "leaf") => Pose::scaled((1.0 - 0.88 * open(subject, m)).max(0.1), 1.0),
        (Subject::Chest, "lid") => Pose::turned(24.0 * open(subject, m)),
        (Subject::Gift, "lid") => Pose {
            degrees: 30.0 * open(subject, m),
            shift: (2.0 * open(subject, m), -5.0 * open(subject, m)),
            ..Pose::REST
        },
        (Subject::Laptop, "screen") => Pose::scaled(1.0, open(subject, m).max(0.05)),
        (Subject::Laptop, "panel") => shown(open(subject, m) > 0.12),
        (Subject::Laptop, "cursor") => shown((m.t * 1.2).fract() < 0.55),
        (Subject::Phone, "screen") => shown(open(subject, m) > 0.0),
        (Subject::Phone, "message") => message(m),
        (Subject::Camera, "flash") => flash(m),
        (Subject::Egg, "crack") => shown(m.act == Act::Open && m.share > 0.4),
        (Subject::Piano, _) if part.starts_with("key-") => {
            shown(m.act == Act::Play && (m.t * 1.7 + nth(part) * 0.31).fract() < 0.3)
        }
        (Subject::Guitar | Subject::Violin, "strings") if m.act == Act::Play => {
            Pose::shifted(0.35 * (m.t * 61.0).sin(), 0.0)
        }
        (Subject::Guitar | Subject::Violin, "guitar") if m.act == Act::Play => wave(1.6, 3.1, 0.0),
        (Subject::Lantern, "handle") => wave(5.0, 1.1, 0.0),
        (Subject::Vase, "bunch") => wave(1.2, 0.9, 0.0),
        (Subject::Vase, _) => wave(4.0, 1.1, nth(part)),
        (Subject::Drum, _) if part.starts_with("stick-") && m.act == Act::Play => {
            let side = if part == "stick-left" { 1.0 } else { -1.0 };
            Pose::turned(-side * 16.0 * (m.t * 9.0 * side).sin().max(0.0))
        }
        (Subject::Television, "screen") => shown(m.act != Act::Sleep),
        (Subject::Television, "news") => {
            Pose::shifted(-16.0 * (m.t * 0.8).sin() - 14.0, 3.0 * (m.t * 1.6).cos())
        }
        (Subject::Letter, _) => letter(m, part),
        (Subject::Telescope, "tube") => wave(3.0, 0.6, 0.0),
        (Subject::TeddyBear, _) => teddy(m, part),
        (_, "leaf-right") => wave(3.0, 1.1, 0.0),
        (Subject::Snowman, _) => snowman(m, part),
        _ => Pose::REST,
    }
}

/// A flame that leans and stretches, each in its own rhythm.
fn flame(m: &Moment, nth: f32, burns: bool) -> Pose {
    if !burns {
        return Pose::HIDDEN;
    }
    let t = m.t + nth * 2.3;
    let tall = 1.0 + 0.1 * (t * 9.1).sin() + 0.07 * (t * 14.7).sin();
    Pose {
        degrees: 4.0 * (t * 5.3).sin() + 2.5 * (t * 8.9).sin(),
        scale: (1.0 - 0.4 * (tall - 1.0), tall),
        ..Pose::REST
    }
}

/// The hands of a clock: in real time, or fast if the words make it turn.
fn clock(m: &Moment, part: &str) -> Pose {
    let minutes = match m.act {
        Act::Turn => m.t * 8.0,
        _ => m.t / 60.0,
    } + 9.0;
    let hours = 10.0 + minutes / 60.0;
    match part {
        "hour" => Pose::turned(hours * 30.0),
        "minute" => Pose::turned(minutes * 6.0),
        "second" => {
            // A tick is quick, with a little swing at its end.
            let (whole, rest) = (m.t.floor(), m.t.fract());
            let swing = (-rest * 18.0).exp() * (rest * 60.0).cos();
            Pose::turned((whole + 1.0 - swing) * 6.0)
        }
        "hammer" if m.act == Act::Play => Pose::turned(22.0 * (m.t * 50.0).sin()),
        _ => Pose::REST,
    }
}

/// The sand of an hourglass: the areas of both heaps have a constant sum.
fn hourglass(m: &Moment, part: &str) -> Pose {
    let run = 0.04 + 0.93 * m.share;
    match part {
        "upper" => {
            let left = (1.0 - run).max(0.0).sqrt();
            Pose::scaled(left, left)
        }
        "lower" => Pose::scaled(1.0, run.sqrt()),
        "stream" => shown(m.share < 0.97),
        _ => Pose::REST,
    }
}

/// The cover of a book, which turns over to the left, and its pages, which follow for a reader.
fn book(m: &Moment, part: &str) -> Pose {
    let open = open(Subject::Book, m);
    let turn = (std::f32::consts::PI * open).cos();
    let thin = |turn: f32| if turn.abs() < 0.03 { 0.03 } else { turn };
    // The last third of every three seconds.
    let page = (m.t / 3.0).fract() * 3.0 - 2.0;
    match part {
        "book" => Pose::shifted(-20.0 * (1.0 - open), 0.0),
        "cover" => Pose::scaled(thin(turn), 1.0),
        "front" => shown(turn >= 0.0),
        "inside" => shown(turn < 0.0),
        "leaf" if open > 0.99 && page > 0.0 => {
            let turn = (std::f32::consts::PI * smooth(0.0, 1.0, page)).cos();
            Pose::scaled(thin(turn), 1.0)
        }
        "leaf" => Pose::HIDDEN,
        _ => Pose::REST,
    }
}

/// An envelope: its flap turns up, then the page comes out.
fn letter(m: &Moment, part: &str) -> Pose {
    let open = open(Subject::Letter, m);
    let turn = (std::f32::consts::PI * (open * 2.0).min(1.0)).cos();
    match part {
        "flap" if turn > 0.0 => Pose::scaled(1.0, turn.max(0.03)),
        "flap-open" if turn <= 0.0 => Pose::scaled(1.0, (-turn).max(0.03)),
        "flap" | "flap-open" => Pose::HIDDEN,
        "page" => Pose::shifted(0.0, -34.0 * (open * 2.0 - 1.0).max(0.0)),
        _ => Pose::REST,
    }
}

fn teddy(m: &Moment, part: &str) -> Pose {
    let swing = |degrees: f32| Pose::turned(degrees * (m.t * 5.0).sin());
    match (part, m.act) {
        ("arm-right", Act::Wave) => Pose::turned(-112.0 + 16.0 * (m.t * 6.0).sin()),
        ("arm-left" | "arm-right", Act::Dance) => swing(30.0),
        ("head", Act::Dance | Act::Wave) => swing(4.0),
        ("head", Act::Sleep) => Pose::turned(9.0),
        _ => Pose::REST,
    }
}

/// Angle of a swinging bell, degrees.
fn ringing(m: &Moment) -> f32 {
    match m.act {
        Act::Play | Act::Turn | Act::Move | Act::Wave | Act::Jump => 24.0,
        Act::Sleep => 0.0,
        _ => 9.0,
    }
}

/// The size of a beating heart: two beats, then rest, once a second.
fn beat(t: f32) -> f32 {
    let at = t.fract();
    let bump = |start: f32, long: f32| {
        let share = ((at - start) / long).clamp(0.0, 1.0);
        (share * std::f32::consts::PI).sin()
    };
    0.92 + 0.08 * bump(0.0, 0.24) + 0.05 * bump(0.26, 0.3)
}

/// A message that pops up every five seconds and stays for three.
fn message(m: &Moment) -> Pose {
    let at = (m.t / 5.0).fract() * 5.0;
    if m.act == Act::Sleep || at > 3.0 {
        return Pose::HIDDEN;
    }
    let size = smooth(0.0, 0.25, at).max(0.02);
    Pose::scaled(size, size)
}

/// A flash of a fifth of a second every four.
fn flash(m: &Moment) -> Pose {
    let at = (m.t / 4.0).fract() * 4.0 - 1.0;
    if !(0.0..0.2).contains(&at) {
        return Pose::HIDDEN;
    }
    let size = 0.4 + (at * 5.0 * std::f32::consts::PI).sin();
    Pose::scaled(size, size)
}

fn snowman(m: &Moment, part: &str) -> Pose {
    let wave =
        |degrees: f32, rate: f32, phase: f32| Pose::turned(degrees * (m.t * rate + phase).sin());
    match (part, m.act) {
        ("arm-right", Act::Wave) => Pose::turned(-30.0 + 18.0 * (m.t * 6.0).sin()),
        ("arm-left", Act::Dance) => wave(24.0, 4.2, 0.0),
        ("arm-right", Act::Dance) => wave(24.0, 4.2, 0.6),
        ("arm-left" | "arm-right", _) => wave(2.0, 1.1, 0.0),
        ("chest", _) => wave(0.8, 1.0, 0.0),
        ("head", _) => wave(3.0, 0.8, 0.7),
        ("scarf", _) => wave(9.0, 1.9, 0.0),
        _ => Pose::REST,
    }
}
