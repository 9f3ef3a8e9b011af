//! Things: their drawings, and how the parts move, burn, steam and open. `people` draws the people who use them.

use std::f32::consts::PI;

use tiny_skia::Transform;

use super::rig::PartPose;
use super::{ActMoment, SubjectColours, part_number};
use crate::raster::colour::{Rgb, smooth};
use crate::raster::pen::{Ink, Pen};
use crate::subject::{Act, Subject};

pub(super) fn draw(pen: &mut Pen, subject: Subject, look: &SubjectColours, m: &ActMoment) {
    pen.within(whole(subject, m), |pen| {
        behind(pen, subject, look, m);
        super::plain(pen, subject, look, &|part| pose(subject, look, m, part));
        before(pen, subject, look, m);
    });
}

/// Motion of the thing as a whole.
fn whole(subject: Subject, m: &ActMoment) -> Transform {
    match (m.act, subject) {
        (Act::Dance, _) => {
            let lean = 7.0 * (m.t * 4.2).sin();
            let up = 5.0 * (m.t * 4.2).cos().abs();
            about_foot(Transform::from_translate(0.0, -up).pre_rotate(lean))
        }
        (Act::Open, Subject::Egg) => {
            let hatching = smooth(0.3, 0.8, m.share);
            let strong = 7.0 * hatching * (m.t * 1.1).sin().max(0.0);
            about_foot(Transform::from_rotate(strong * (m.t * 19.0).sin()))
        }
        (Act::Turn, Subject::Clock | Subject::Ball | Subject::Bell | Subject::Hourglass) => {
            Transform::identity()
        }
        (Act::Turn, _) => {
            let turn = (m.t * 1.5).cos();
            // Edge-on a flat thing would vanish.
            let across = if turn.abs() < 0.06 { 0.06 } else { turn };
            Transform::from_translate(50.0, 0.0)
                .pre_scale(across, 1.0)
                .pre_translate(-50.0, 0.0)
        }
        _ => Transform::identity(),
    }
}

/// `inner` about the foot of the square.
fn about_foot(inner: Transform) -> Transform {
    Transform::from_translate(50.0, 98.0)
        .pre_concat(inner)
        .pre_translate(-50.0, -98.0)
}

/// Light behind the thing.
fn behind(pen: &mut Pen, subject: Subject, look: &SubjectColours, m: &ActMoment) {
    let flicker = flicker(m);
    let strong = if look.lit { 0.62 } else { 0.34 };
    match subject {
        Subject::Candle if burns(subject, m) => {
            glow(pen, look, (50.0, 26.0), 34.0 * flicker, strong);
        }
        Subject::Lantern if burns(subject, m) => {
            glow(pen, look, (50.0, 58.0), 56.0 * flicker, strong);
        }
        Subject::Campfire if burns(subject, m) => {
            smoke(pen, look, m, (50.0, 40.0));
            glow(pen, look, (50.0, 66.0), 60.0 * flicker, strong);
        }
        Subject::Lamp if shines(look, m) => glow(pen, look, (50.0, 42.0), 44.0, strong),
        Subject::Chest => {
            let open = open(subject, m);
            glow(pen, look, (50.0, 50.0), 46.0, 0.5 * open);
        }
        Subject::Laptop | Subject::Phone | Subject::Television if look.lit => {
            let alpha = 0.22 * open(subject, m).max(0.4);
            glow(pen, look, (50.0, 58.0), 50.0, alpha);
        }
        _ => {}
    }
}

/// Air and light before the thing.
fn before(pen: &mut Pen, subject: Subject, look: &SubjectColours, m: &ActMoment) {
    match subject {
        Subject::Cup => steam(pen, m, (46.0, 49.0), 38.0),
        Subject::Soup => steam(pen, m, (46.0, 56.0), 44.0),
        Subject::Teapot => steam(pen, m, (93.0, 41.0), 30.0),
        Subject::Campfire if burns(subject, m) => sparks(pen, look, m, (50.0, 62.0)),
        Subject::Cake if burns(subject, m) => {
            glow(pen, look, (50.0, 24.0), 34.0 * flicker(m), 0.4);
        }
        Subject::Drum if m.act == Act::Play => notes(pen, look, m, (50.0, 38.0)),
        Subject::Piano if m.act == Act::Play => notes(pen, look, m, (50.0, 36.0)),
        Subject::Violin | Subject::Guitar if m.act == Act::Play => {
            notes(pen, look, m, (56.0, 46.0));
        }
        Subject::Chest | Subject::Gift => {
            let open = open(subject, m);
            if open > 0.25 {
                burst(pen, look, m, (46.0, 44.0), open);
            }
        }
        Subject::Crown => glints(pen, m, &[(50.0, 23.0), (22.0, 64.0), (80.0, 58.0)]),
        Subject::Sword => glints(pen, m, &[(46.0, 52.0), (53.0, 78.0)]),
        Subject::Key => glints(pen, m, &[(62.0, 42.0), (22.0, 70.0)]),
        Subject::Crystal => glints(pen, m, &[(40.0, 34.0), (60.0, 62.0), (18.0, 60.0)]),
        Subject::Glass => glints(pen, m, &[(31.0, 22.0)]),
        Subject::Bottle => glints(pen, m, &[(34.0, 50.0)]),
        Subject::Bell => glints(pen, m, &[(38.0, 44.0)]),
        _ => {}
    }
}

#[cfg(test)]
mod tests;

// Effects in the air around things, as functions of time: steam, smoke, glow, sparks, glints and
// notes. They are not parts of drawings.

/// A flame's light, around 1.0.
fn flicker(m: &ActMoment) -> f32 {
    1.0 + 0.05 * (m.t * 7.3).sin() + 0.04 * (m.t * 12.1 + 1.0).sin()
}

/// Lamplight around a point, in `alpha` at its middle.
fn glow(pen: &mut Pen, look: &SubjectColours, at: (f32, f32), radius: f32, alpha: f32) {
    if alpha > 0.01 {
        pen.glow(at.0, at.1, radius, look.lamp, alpha);
        pen.glow(at.0, at.1, radius * 0.5, look.lamp, alpha * 0.6);
    }
}

/// Three wisps of steam that rise `tall` from a point and thin out.
fn steam(pen: &mut Pen, m: &ActMoment, from: (f32, f32), tall: f32) {
    for wisp in 0..3_u8 {
        let own = f32::from(wisp);
        let x = from.0 + (own - 1.0) * tall * 0.24;
        let strength = 0.6 + 0.4 * (m.t * 0.7 + own * 2.1).sin();
        let height = tall * (0.86 + 0.14 * (m.t * 0.9 + own * 1.3).sin());
        let points: Vec<(f32, f32)> = (0..=12_u8)
            .map(|n| f32::from(n) / 12.0)
            .map(|s| {
                let sway = (s * 6.5 - m.t * 2.2 + own * 1.9).sin() * (0.02 + 0.11 * s) * tall;
                (x + sway, from.1 - s * height)
            })
            .collect();
        for (wide, alpha) in [(0.17, 0.14), (0.09, 0.24), (0.035, 0.34)] {
            let fade = Ink::Line([
                (0.0, from.1, Rgb::WHITE, alpha * strength),
                (0.0, from.1 - height, Rgb::WHITE, 0.0),
            ]);
            pen.stroke(&points, tall * wide, fade);
        }
    }
}

/// Puffs of smoke that grow as they rise.
fn smoke(pen: &mut Pen, look: &SubjectColours, m: &ActMoment, from: (f32, f32)) {
    let colour = look.under_light(Rgb::hex(0xb8_b4b4));
    for puff in 0..5_u8 {
        let own = f32::from(puff) * 0.2;
        let way = (m.t * 0.16 + own).fract();
        let x = from.0 + 5.0 * (m.t * 0.7 + own * 9.0).sin() * way + way * 12.0;
        let alpha = 0.26 * (1.0 - way) * (way * 5.0).min(1.0);
        pen.glow(x, from.1 - way * 34.0, 7.0 + way * 13.0, colour, alpha);
    }
}

/// Sparks that rise from a fire and die.
fn sparks(pen: &mut Pen, look: &SubjectColours, m: &ActMoment, from: (f32, f32)) {
    let colour = look.lamp.mix(Rgb::hex(0xff_9040), 0.5);
    for spark in 0..12_u8 {
        let own = f32::from(spark) * 0.618_034;
        let way = (m.t * (0.3 + 0.25 * own.fract()) + own * 5.0).fract();
        let x = from.0
            + 38.0 * ((own * 3.1).fract() - 0.5) * (0.5 + way)
            + 3.0 * (m.t * 3.0 + own * 20.0).sin();
        let alpha = (1.0 - way) * (way * 8.0).min(1.0);
        pen.circle(x, from.1 - way * 60.0, 1.0, Ink::Flat(colour, alpha));
    }
}

/// A four-pointed star of light.
fn star(pen: &mut Pen, x: f32, y: f32, size: f32, ink: Ink) {
    let thin = size * 0.16;
    pen.shape(
        &[
            (x, y - size),
            (x + thin, y - thin),
            (x + size, y),
            (x + thin, y + thin),
            (x, y + size),
            (x - thin, y + thin),
            (x - size, y),
            (x - thin, y - thin),
        ],
        ink,
    );
}

/// Glints that come and go at shiny points.
fn glints(pen: &mut Pen, m: &ActMoment, places: &[(f32, f32)]) {
    for ((x, y), own) in places.iter().zip(0_u8..) {
        let at = (m.t * 0.4 + f32::from(own) * 0.37 + f32::from(m.nth) * 0.21).fract();
        let shine = (1.0 - ((at - 0.5) * 6.0).abs()).max(0.0);
        if shine > 0.02 {
            star(pen, *x, *y, 7.0 * shine, Ink::Flat(Rgb::WHITE, 0.9 * shine));
        }
    }
}

/// Glitter from a thing that has just opened.
fn burst(pen: &mut Pen, look: &SubjectColours, m: &ActMoment, from: (f32, f32), open: f32) {
    let colours = [look.lamp, look.trim, Rgb::WHITE];
    for (n, colour) in (0..12_u8).zip(colours.iter().cycle()) {
        let own = f32::from(n) * 0.618_034;
        let way = (m.t * 0.45 + own * 3.0).fract();
        let angle = -1.57 + 1.9 * ((own * 2.7).fract() - 0.5);
        let far = 10.0 + way * 40.0;
        let alpha = open * (1.0 - way) * (way * 6.0).min(1.0);
        let (x, y) = (from.0 + far * angle.cos(), from.1 + far * angle.sin());
        let ink = Ink::Flat(*colour, alpha);
        star(pen, x, y, 2.2 + 1.6 * own.fract(), ink);
    }
}

/// Rising musical notes.
fn notes(pen: &mut Pen, look: &SubjectColours, m: &ActMoment, from: (f32, f32)) {
    for n in 0..3_u8 {
        let own = f32::from(n) / 3.0;
        let way = (m.t * 0.28 + own).fract();
        let x = from.0 + 26.0 * (own - 0.33) + 4.0 * (m.t * 2.0 + own * 7.0).sin() + way * 10.0;
        let y = from.1 - way * 24.0;
        let colour = if n == 1 { look.trim } else { look.dark };
        let ink = Ink::Flat(colour, (way * (1.0 - way) * 6.0).min(1.0));
        pen.ellipse(x, y, 3.0, 2.3, ink);
        let stem = [(x + 2.6, y), (x + 2.6, y - 10.0), (x + 6.0, y - 7.0)];
        pen.stroke(&stem, 1.2, ink);
    }
}

// The poses of the parts of things: hands and bells follow the time, lids and doors the share of
// the shot that is over. It draws nothing.

/// Whether it burns.
fn burns(subject: Subject, m: &ActMoment) -> bool {
    match subject {
        Subject::Candle | Subject::Lantern | Subject::Campfire => m.act != Act::Sleep,
        _ => m.act == Act::Burn,
    }
}

/// Whether a lamp is on.
fn shines(look: &SubjectColours, m: &ActMoment) -> bool {
    look.lit || matches!(m.act, Act::Burn | Act::Open)
}

/// How far it is open, 0.0 to 1.0.
fn open(subject: Subject, m: &ActMoment) -> f32 {
    match (m.act, subject) {
        (Act::Open, _) => smooth(0.1, 0.75, m.share),
        (Act::Read, Subject::Book) => 1.0,
        (Act::Sleep, _) => 0.0,
        (_, Subject::Laptop | Subject::Phone) => 1.0,
        _ => 0.0,
    }
}

fn pose(subject: Subject, look: &SubjectColours, m: &ActMoment, part: &str) -> PartPose {
    match (subject, part) {
        (Subject::Cake, "candles") => PartPose::shown_if(burns(subject, m)),
        (Subject::Cake, "fruit") => PartPose::shown_if(!burns(subject, m)),
        (_, _) if part.starts_with("flame-") => flame(m, part_number(part), burns(subject, m)),
        (_, "shining") => PartPose::shown_if(subject == Subject::Door || shines(look, m)),
        (Subject::Clock, _) => clock(m, part),
        (Subject::Hourglass, _) => hourglass(m, part),
        (Subject::Book, _) => book(m, part),
        (Subject::Bell, "bell") => wave(m, ringing(m), 3.4, 0.0),
        (Subject::Bell, "clapper") => wave(m, ringing(m) * 0.8, 3.4, -0.9),
        (Subject::Ball, "ball") => PartPose::turned((m.gone * 100.0 / 44.0).to_degrees()),
        (Subject::Heart, "heart") => {
            let size = beat(m.t);
            PartPose::scaled(size, size)
        }
        (Subject::Door, "leaf") => PartPose::scaled((1.0 - 0.88 * open(subject, m)).max(0.1), 1.0),
        (Subject::Chest, "lid") => PartPose::turned(24.0 * open(subject, m)),
        (Subject::Gift, "lid") => PartPose::turned(30.0 * open(subject, m))
            .shift(2.0 * open(subject, m), -5.0 * open(subject, m)),
        (Subject::Laptop, "screen") => PartPose::scaled(1.0, open(subject, m).max(0.05)),
        (Subject::Laptop, "panel") => PartPose::shown_if(open(subject, m) > 0.12),
        (Subject::Laptop, "cursor") => PartPose::shown_if((m.t * 1.2).fract() < 0.55),
        (Subject::Phone, "screen") => PartPose::shown_if(open(subject, m) > 0.0),
        (Subject::Phone, "message") => message(m),
        (Subject::Camera, "flash") => flash(m),
        (Subject::Egg, "crack") => PartPose::shown_if(m.act == Act::Open && m.share > 0.4),
        (Subject::Piano, _) if part.starts_with("key-") => PartPose::shown_if(
            m.act == Act::Play && (m.t * 1.7 + part_number(part) * 0.31).fract() < 0.3,
        ),
        (Subject::Guitar | Subject::Violin, "strings") if m.act == Act::Play => {
            PartPose::shifted(0.35 * (m.t * 61.0).sin(), 0.0)
        }
        (Subject::Guitar | Subject::Violin, "guitar") if m.act == Act::Play => {
            wave(m, 1.6, 3.1, 0.0)
        }
        (Subject::Lantern, "handle") => wave(m, 5.0, 1.1, 0.0),
        (Subject::Vase, "bunch") => wave(m, 1.2, 0.9, 0.0),
        (Subject::Vase, _) => wave(m, 4.0, 1.1, part_number(part)),
        (Subject::Drum, _) if part.starts_with("stick-") && m.act == Act::Play => {
            let side = if part == "stick-left" { 1.0 } else { -1.0 };
            PartPose::turned(-side * 16.0 * (m.t * 9.0 * side).sin().max(0.0))
        }
        (Subject::Television, "screen") => PartPose::shown_if(m.act != Act::Sleep),
        (Subject::Television, "news") => {
            PartPose::shifted(-16.0 * (m.t * 0.8).sin() - 14.0, 3.0 * (m.t * 1.6).cos())
        }
        (Subject::Letter, _) => letter(m, part),
        (Subject::Telescope, "tube") => wave(m, 3.0, 0.6, 0.0),
        (Subject::TeddyBear, _) => teddy(m, part),
        (_, "leaf-right") => wave(m, 3.0, 1.1, 0.0),
        (Subject::Snowman, _) => snowman(m, part),
        _ => PartPose::REST,
    }
}

/// A swing by up to `degrees`; `rate` in radians per second, `phase` in radians.
fn wave(m: &ActMoment, degrees: f32, rate: f32, phase: f32) -> PartPose {
    PartPose::turned(degrees * (m.t * rate + phase).sin())
}

/// A flame that leans and stretches, each in its own rhythm.
fn flame(m: &ActMoment, nth: f32, burns: bool) -> PartPose {
    if !burns {
        return PartPose::HIDDEN;
    }
    let t = m.t + nth * 2.3;
    let tall = 1.0 + 0.1 * (t * 9.1).sin() + 0.07 * (t * 14.7).sin();
    PartPose::turned(4.0 * (t * 5.3).sin() + 2.5 * (t * 8.9).sin())
        .scale(1.0 - 0.4 * (tall - 1.0), tall)
}

/// The hands of a clock: in real time, or fast if the words make it turn.
fn clock(m: &ActMoment, part: &str) -> PartPose {
    // It starts at nine minutes past ten, as clocks in shop windows do.
    let minutes = match m.act {
        Act::Turn => m.t * 8.0,
        _ => m.t / 60.0,
    } + 9.0;
    let hours = 10.0 + minutes / 60.0;
    match part {
        "hour" => PartPose::turned(hours * 30.0),
        "minute" => PartPose::turned(minutes * 6.0),
        "second" => {
            // A tick is quick, with a little swing at its end.
            let (whole, rest) = (m.t.floor(), m.t.fract());
            // A damped oscillation: the hand overshoots and settles within a fifth of a second.
            let swing = (-rest * 18.0).exp() * (rest * 60.0).cos();
            PartPose::turned((whole + 1.0 - swing) * 6.0)
        }
        "hammer" if m.act == Act::Play => PartPose::turned(22.0 * (m.t * 50.0).sin()),
        _ => PartPose::REST,
    }
}

/// The sand of an hourglass: the area of the upper heap falls evenly, and the lower one grows.
fn hourglass(m: &ActMoment, part: &str) -> PartPose {
    let run = 0.04 + 0.93 * m.share;
    match part {
        "upper" => {
            let left = (1.0 - run).max(0.0).sqrt();
            PartPose::scaled(left, left)
        }
        "lower" => PartPose::scaled(1.0, run.sqrt()),
        "stream" => PartPose::shown_if(m.share < 0.97),
        _ => PartPose::REST,
    }
}

/// The cover of a book, which turns over to the left, and its pages, which follow for a reader.
fn book(m: &ActMoment, part: &str) -> PartPose {
    let open = open(Subject::Book, m);
    let turn = (PI * open).cos();
    // The last third of every three seconds.
    let page = (m.t / 3.0).fract() * 3.0 - 2.0;
    match part {
        "book" => PartPose::shifted(-20.0 * (1.0 - open), 0.0),
        "cover" => PartPose::scaled(not_edge_on(turn), 1.0),
        "front" => PartPose::shown_if(turn >= 0.0),
        "inside" => PartPose::shown_if(turn < 0.0),
        "leaf" if open > 0.99 && page > 0.0 => {
            let turn = (PI * smooth(0.0, 1.0, page)).cos();
            PartPose::scaled(not_edge_on(turn), 1.0)
        }
        "leaf" => PartPose::HIDDEN,
        _ => PartPose::REST,
    }
}

/// Width of a page that turns, which never vanishes.
fn not_edge_on(turn: f32) -> f32 {
    if turn.abs() < 0.03 { 0.03 } else { turn }
}

/// An envelope: its flap turns up, then the page comes out.
fn letter(m: &ActMoment, part: &str) -> PartPose {
    let open = open(Subject::Letter, m);
    let turn = (PI * (open * 2.0).min(1.0)).cos();
    match part {
        "flap" if turn > 0.0 => PartPose::scaled(1.0, turn.max(0.03)),
        "flap-open" if turn <= 0.0 => PartPose::scaled(1.0, (-turn).max(0.03)),
        "flap" | "flap-open" => PartPose::HIDDEN,
        "page" => PartPose::shifted(0.0, -34.0 * (open * 2.0 - 1.0).max(0.0)),
        _ => PartPose::REST,
    }
}

fn teddy(m: &ActMoment, part: &str) -> PartPose {
    match (part, m.act) {
        ("arm-right", Act::Wave) => PartPose::turned(-112.0 + 16.0 * (m.t * 6.0).sin()),
        ("arm-left" | "arm-right", Act::Dance) => wave(m, 30.0, 5.0, 0.0),
        ("head", Act::Dance | Act::Wave) => wave(m, 4.0, 5.0, 0.0),
        ("head", Act::Sleep) => PartPose::turned(9.0),
        _ => PartPose::REST,
    }
}

/// Angle of a swinging bell, degrees.
fn ringing(m: &ActMoment) -> f32 {
    match m.act {
        Act::Play | Act::Turn | Act::Move | Act::Wave | Act::Jump => 24.0,
        Act::Sleep => 0.0,
        _ => 9.0,
    }
}

/// The size of a beating heart: two beats, then rest, once a second.
fn beat(t: f32) -> f32 {
    let at = t.fract();
    // Half a sine: the first beat is stronger and shorter than the second.
    let [first, second] = [(0.0, 0.24), (0.26, 0.3)].map(|(start, long)| {
        let share = ((at - start) / long).clamp(0.0, 1.0);
        (share * PI).sin()
    });
    0.92 + 0.08 * first + 0.05 * second
}

/// A message that pops up every five seconds and stays for three.
fn message(m: &ActMoment) -> PartPose {
    let at = (m.t / 5.0).fract() * 5.0;
    if m.act == Act::Sleep || at > 3.0 {
        return PartPose::HIDDEN;
    }
    let size = smooth(0.0, 0.25, at).max(0.02);
    PartPose::scaled(size, size)
}

/// A flash of a fifth of a second every four.
fn flash(m: &ActMoment) -> PartPose {
    let at = (m.t / 4.0).fract() * 4.0 - 1.0;
    if !(0.0..0.2).contains(&at) {
        return PartPose::HIDDEN;
    }
    let size = 0.4 + (at * 5.0 * PI).sin();
    PartPose::scaled(size, size)
}

fn snowman(m: &ActMoment, part: &str) -> PartPose {
    match (part, m.act) {
        ("arm-right", Act::Wave) => PartPose::turned(-30.0 + 18.0 * (m.t * 6.0).sin()),
        ("arm-left", Act::Dance) => wave(m, 24.0, 4.2, 0.0),
        ("arm-right", Act::Dance) => wave(m, 24.0, 4.2, 0.6),
        ("arm-left" | "arm-right", _) => wave(m, 2.0, 1.1, 0.0),
        ("chest", _) => wave(m, 0.8, 1.0, 0.0),
        ("head", _) => wave(m, 3.0, 0.8, 0.7),
        ("scarf", _) => wave(m, 9.0, 1.9, 0.0),
        _ => PartPose::REST,
    }
}
