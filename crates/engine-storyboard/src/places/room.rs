//! A room: a wall, a window onto the hour and weather outside, curtains, a sill for small things, and for others a floor
//! of boards with a rug and furniture along the wall.

use super::{cast, land, particles, sky, weather};
use crate::lexicon::Hour;
use crate::raster::colour::{Rgb, smooth};
use crate::raster::layer::Sway;
use crate::raster::noise::cloudy;
use crate::raster::particles::ParticleKind;
use crate::raster::pen::{Ink, Pen, smooth as curve};
use crate::raster::wash::WashBlend;
use crate::rng::Rng;
use crate::scene::scene_builder::{PlaneLayout, SceneBuilder};
use crate::subject::{Act, BodyKind, Stance, Subject};

/// The opening in the wall: left, top, right, bottom.
type WindowBox = [f32; 4];

/// Width of a curtain, in stage units.
const CURTAIN: f32 = 0.17;

pub(super) fn paint_room(stage: &mut SceneBuilder<'_>) {
    let (unit, width, height) = (stage.unit, stage.width, stage.height);
    // Two rooms: with a floor for large or lively figures, else a close view of the window with its
    // sill.
    let floor = needs_floor(stage).then_some(height * if stage.is_portrait() { 0.74 } else { 0.7 });
    let (sill, half, tall) = match floor {
        Some(line) => (line - unit * 0.24, unit * 0.3, unit * 0.36),
        None => {
            let sill = height * if stage.is_portrait() { 0.72 } else { 0.76 };
            (sill, unit * 0.52, (unit * 0.66).min(sill * 0.88))
        }
    };
    let half = half.min(width * 0.4);
    let middle = width * (0.5 + stage.rng.signed() * 0.05);
    let window = [middle - half, sill - tall, middle + half, sill];
    let orb = sky::paint_sky(stage, sill);
    // The view is painted first and whole; the wall then leaves only the window open.
    let far = land::paint_meadow(stage, 0.25, sill - unit * 0.1, 0.05, 0.55);
    land::paint_pines(stage, 0.25, &far, 30, 0.06);
    sky::add_bloom(stage, (orb.x, orb.y), 0.5);
    outside(stage, window);
    let ground = sill + unit * 0.022;
    let paints = colours(stage);
    if let Some(line) = floor {
        stage.nearness *= NEARNESS;
        wall(stage, window, paints);
        pot(stage, window, ground, false);
        curtains(stage, window);
        boards(stage, line, paints.0, paints.1);
        furniture(stage, line, paints.0);
        cast::place_fliers(stage, line * 0.8, orb.x);
        let stand = line + (height - line) * 0.46;
        cast::place_walkers(stage, 1.0, &move |_| stand);
    } else {
        cast::place_fliers(stage, sill * 0.9, orb.x);
        wall(stage, window, paints);
        let mut seats = cast::standing_figures(stage);
        // Between the curtains, which hang before the sill.
        // Less than half of a curtain's width: figures may be behind its edge.
        let inset = unit * CURTAIN * 0.4;
        let sides = (middle - half + inset, middle + half - inset);
        cast::gather_figures(stage, &mut seats, sides);
        cast::place_standing(stage, &seats, &|_| true, 0.6, &|_| ground);
        if seats.len() < 2 {
            // Beside the person who sits there.
            let right = seats.first().is_some_and(|seat| seat.is_left_of(middle));
            pot(stage, window, ground, right);
        }
        curtains(stage, window);
    }
    light(stage, window);
}

/// Rain or snow behind the window, by its area in stage units.
fn outside(stage: &mut SceneBuilder<'_>, [left, top, right, bottom]: WindowBox) {
    stage.rng.switch_to("outside", 0.0);
    let area = [left - 20.0, top - 20.0, right + 20.0, bottom + 4.0];
    let share = (right - left) * (bottom - top) / (stage.unit * stage.unit);
    let counts = ((700.0 * share) as usize, (400.0 * share) as usize);
    weather::paint_behind_window(stage, area, counts, 0.4);
}

/// Paper and woodwork, in the room's light.
pub(super) fn colours(stage: &mut SceneBuilder<'_>) -> (Rgb, Rgb) {
    stage.rng.switch_to("paper", 0.0);
    const PAPERS: [u32; 4] = [0xc8_a58c, 0x9a_a68c, 0x8c_98a8, 0xb8_8c80];
    let palette = stage.palette;
    let paper = Rgb::hex(PAPERS[stage.rng.below(4)]).tinted(palette.wall, 0.3);
    let glow = if palette.is_dark() {
        palette.lamp
    } else {
        palette.glow
    };
    // Indoors it is darker than outside even by day.
    let dim = if palette.is_dark() { 0.45 } else { 0.72 };
    let lamp = palette.light.mix(Rgb::WHITE, 0.35);
    let wall = paper.under(lamp).mix(Rgb::BLACK, 1.0 - dim).mix(glow, 0.1);
    let wood = Rgb::hex(0xe8_ddcc)
        .under(lamp)
        .mix(Rgb::BLACK, (1.0 - dim) * 0.6);
    (wall, wood)
}

fn wall(stage: &mut SceneBuilder<'_>, window: WindowBox, (near, wood): (Rgb, Rgb)) {
    let (unit, width, height) = (stage.unit, stage.width, stage.height);
    let dark = near.lift(-0.14);
    let accent = stage.palette.accent.mix(near, 0.4);
    let plane = PlaneLayout::new(0.6, -unit * 0.2, height * 1.2);
    let [left, top, right, bottom] = window;
    stage.add_plane(plane, |pen, from, to| {
        let (start, end) = (-unit * 0.2, height * 1.2);
        let ink = Ink::down(0.0, dark, bottom, near);
        pen.rect(from, start, left - from, end - start, ink);
        pen.rect(right, start, to - right, end - start, ink);
        pen.rect(left - 1.0, start, right - left + 2.0, top - start, ink);
        let below = Ink::down(bottom, near, height, dark);
        pen.rect(left - 1.0, bottom, right - left + 2.0, end - bottom, below);
        frame(pen, window, unit, wood);
        // A picture hangs beside the window if there is room for it.
        let space = width - right;
        let (x, y) = (right + space * 0.3, top + unit * 0.06);
        let (w, h) = (space * 0.4, unit * 0.2);
        if w > unit * 0.1 {
            let m = unit * 0.012;
            pen.rect(x, y, w, h, wood.lift(-0.2));
            pen.rect(x + m, y + m, w - m * 2.0, h - m * 2.0, near.lift(0.14));
            pen.circle(x + w * 0.6, y + h * 0.42, w.min(h) * 0.16, accent);
        }
    });
}

/// The window's bars and its sill.
fn frame(pen: &mut Pen, window: WindowBox, unit: f32, wood: Rgb) {
    let [left, top, right, bottom] = window;
    let (bar, wide, tall) = (unit * 0.026, right - left, bottom - top);
    let bars = [
        (left - bar, top - bar, wide + bar * 2.0, bar),
        (left - bar, top - bar, bar, tall + bar),
        (right, top - bar, bar, tall + bar),
        ((left + right) * 0.5 - bar * 0.3, top, bar * 0.6, tall),
        (left, top + tall * 0.36, wide, bar * 0.5),
    ];
    for (x, y, w, h) in bars {
        let edge = (h * 0.2).min(2.0);
        pen.rect(x, y, w, h, wood);
        pen.rect(x, y + h - edge, w, edge, Ink::Flat(Rgb::BLACK, 0.2));
    }
    let (board, out) = (unit * 0.05, unit * 0.09);
    let (from, long) = (left - out, wide + out * 2.0);
    let (edge, shade) = (bottom + board * 0.72, wood.lift(-0.12));
    pen.rect(from, bottom, long, board, wood.lift(0.03));
    pen.rect(from, edge, long, board * 0.28, shade);
    let under = bottom + board;
    let shadow = [
        (0.0, under, Rgb::BLACK, 0.3),
        (0.0, under + board * 1.6, Rgb::BLACK, 0.0),
    ];
    pen.rect(from, under, long, board * 1.6, Ink::Line(shadow));
}

/// A plant in a pot at the left or `right` end of the sill.
fn pot(stage: &mut SceneBuilder<'_>, [left, _, right, _]: WindowBox, ground: f32, at_right: bool) {
    stage.rng.switch_to("pot", 0.0);
    let (unit, palette) = (stage.unit, stage.palette);
    // Where somebody sits, a pot would stand in the way.
    if !stage.reading.roles.is_empty() {
        return;
    }
    let mut rng = stage.rng.fork("pot");
    let light = palette.light.mix(Rgb::WHITE, 0.3);
    let (clay, leaf) = (
        Rgb::hex(0xb8_6848).under(light),
        Rgb::hex(0x46_7a4c).under(light),
    );
    let x = if at_right {
        right - unit * 0.1
    } else {
        left + unit * 0.1
    };
    let sway = Sway {
        reach: unit * 0.004,
        root: ground,
        rate: 0.8,
        bend: 5.0 / unit,
    };
    let plane = PlaneLayout {
        sway: Some(sway),
        brush: 0.05,
        ..PlaneLayout::new(0.62, ground - unit * 0.36, ground + 4.0)
    };
    stage.add_plane(plane, |pen, _, _| {
        for n in 0..11 {
            let angle = (n as f32 / 10.0 - 0.5) * 2.3 + rng.signed() * 0.12;
            let long = unit * rng.range(0.12, 0.2);
            let foot = (x, ground - unit * 0.085);
            let tip = (foot.0 + long * angle.sin(), foot.1 - long * angle.cos());
            let side = (angle.cos() * long * 0.13, angle.sin() * long * 0.13);
            let mid = ((foot.0 + tip.0) * 0.5, (foot.1 + tip.1) * 0.5 - long * 0.08);
            let (a, b) = (
                (mid.0 - side.0, mid.1 - side.1),
                (mid.0 + side.0, mid.1 + side.1),
            );
            pen.fill(curve(&[foot, a, tip, b]), leaf.lift(rng.signed() * 0.05));
        }
        let (w, rim) = (unit * 0.062, ground - unit * 0.1);
        let (low, lip) = (w * 0.72, ground - unit * 0.11);
        let body = [
            (x - w, rim),
            (x + w, rim),
            (x + low, ground),
            (x - low, ground),
        ];
        pen.shape(&body, clay);
        pen.rect(x - w * 1.1, lip, w * 2.2, unit * 0.026, clay.lift(0.05));
    });
}

fn curtains(stage: &mut SceneBuilder<'_>, [left, window_top, right, window_bottom]: WindowBox) {
    stage.rng.switch_to("curtains", 0.0);
    let (unit, palette, height) = (stage.unit, stage.palette, stage.height);
    let cloth = palette
        .accent
        .under(palette.light.mix(Rgb::WHITE, 0.4))
        .mix(Rgb::BLACK, 0.15);
    let wide = unit * CURTAIN;
    let top = window_top - unit * 0.07;
    let bottom = (window_bottom + unit * 0.24).min(height * 1.1);
    let sway = Sway {
        reach: unit * 0.004,
        root: top,
        rate: 0.7,
        bend: 3.0 / unit,
    };
    let plane = PlaneLayout {
        sway: Some(sway),
        brush: 0.05,
        ..PlaneLayout::new(0.75, top - unit * 0.04, bottom)
    };
    stage.add_plane(plane, |pen, _, _| {
        let rail = palette.lit(Rgb::hex(0x4a_3a30), 0.0);
        let long = right - left + wide * 2.2;
        pen.rect(
            left - wide * 1.1,
            top - unit * 0.012,
            long,
            unit * 0.014,
            rail,
        );
        for (from, sign) in [(left - wide * 0.95, 1.0), (right + wide * 0.95, -1.0_f32)] {
            for fold in 0..6 {
                let x = from + sign * wide * fold as f32 / 6.0;
                let w = wide / 6.0 * 1.3;
                let tone = cloth.lift(if fold % 2 == 0 { 0.025 } else { -0.045 });
                let flare = w * 0.25;
                let (a, b) = (x, x + sign * w);
                let (low_a, low_b) = (a + sign * flare * 0.5, b + sign * flare);
                let cloth = [(a, top), (b, top), (low_b, bottom), (low_a, bottom)];
                pen.shape(&cloth, tone);
            }
        }
    });
}

/// The window's light falling into the room.
fn light(stage: &mut SceneBuilder<'_>, [left, top, right, bottom]: WindowBox) {
    stage.rng.switch_to("dust", 0.0);
    let (unit, palette) = (stage.unit, stage.palette);
    let strength = match palette.hour {
        Hour::Night => 0.1,
        Hour::Dusk => 0.18,
        _ => 0.26,
    };
    let (x, y) = ((left + right) * 0.5, (top + bottom) * 0.5);
    stage.add_wash(0.6, WashBlend::Light, 0.1, |px, py| {
        let away = ((px - x) * 0.8).hypot(py - y) / (unit * 0.75);
        let share = strength * smooth(1.2, 0.0, away);
        palette.glow.scaled(share)
    });
    let area = [left, top, right, bottom + unit * 0.2];
    let dust = particles(stage, ParticleKind::Dust, 40, area, palette.orb);
    stage.add_particles(dust);
}

/// Magnification of the figures compared with open scenes: they stand in front of the furniture.
const NEARNESS: f32 = 1.4;

/// Whether the figures of this scene are too large, too lively or too many for a window sill.
fn needs_floor(stage: &SceneBuilder<'_>) -> bool {
    let lively = stage.reading.roles.iter().any(|role| {
        let moves = matches!(
            role.act,
            Some(Act::Walk | Act::Run | Act::Jump | Act::Dance | Act::Move)
        );
        let facts = role.subject.facts();
        let carried = !matches!(facts.stance, Stance::Flies | Stance::Hangs);
        carried && (moves || !perches(role.subject))
    });
    lively || cast::is_crowded(stage, cast::FigureMedium::Ground)
}

/// Whether `subject` has room on a window sill.
fn perches(subject: Subject) -> bool {
    let facts = subject.facts();
    match facts.body {
        BodyKind::Bird => !matches!(subject, Subject::Flamingo | Subject::Penguin),
        BodyKind::Insect => true,
        BodyKind::Quadruped => subject == Subject::Cat || facts.size < 0.24,
        BodyKind::Plant => facts.size <= 0.4,
        BodyKind::Thing => facts.stance == Stance::Lies,
        _ => false,
    }
}

/// Boards from the wall's foot at `line` towards the viewer, and a rug.
fn boards(stage: &mut SceneBuilder<'_>, line: f32, wall: Rgb, wood: Rgb) {
    const WOODS: [u32; 3] = [0x9a_7048, 0x86_5c40, 0xb0_8a60];
    let (unit, palette, height) = (stage.unit, stage.palette, stage.height);
    let seed = stage.rng.next();
    let tint = Rgb::hex(WOODS[stage.rng.below(WOODS.len())]);
    let lamp = palette.light.mix(Rgb::WHITE, 0.35);
    let dim = if palette.is_dark() { 0.5 } else { 0.8 };
    let base = tint.under(lamp).mix(Rgb::BLACK, 1.0 - dim).mix(wall, 0.12);
    let (bright, deep) = (base.lift(0.05), base.lift(-0.08));
    let (vanish, rise) = (stage.width * 0.5, line - height * 0.34);
    let plane = PlaneLayout::new(0.9, line - 2.0, height * 1.2).brushed(0.04);
    stage.add_field(plane, |x, y| {
        let far = y - rise;
        let u = (x - vanish) / far * (height - rise) / (unit * 0.2);
        let (board, across) = (u.floor(), u - u.floor());
        let salt = seed ^ (board as i64).cast_unsigned();
        let along = height / far * 6.0;
        // Noise that is drawn out along the board.
        let grain = cloudy(salt, across * 6.0, along, 3);
        let own = cloudy(salt, 0.5, 0.5, 1) * 0.5;
        let tone = deep.mix_plain(bright, (0.5 + grain * 0.5 + own).clamp(0.0, 1.0));
        let seam = smooth(0.035, 0.0, across.min(1.0 - across)) * 0.35;
        // The wall's foot lies in shadow.
        let foot = smooth(unit * 0.05, 0.0, y - line) * 0.3;
        (
            tone.mix_plain(Rgb::BLACK, seam.max(foot)),
            (y - line + 0.5).clamp(0.0, 1.0),
        )
    });
    skirting(stage, line, wood);
    rug(stage, line, base);
}

fn skirting(stage: &mut SceneBuilder<'_>, line: f32, wood: Rgb) {
    let unit = stage.unit;
    let plane = PlaneLayout::new(0.62, line - unit * 0.06, line + unit * 0.012).brushed(0.03);
    stage.add_plane(plane, |pen, left, right| {
        let tall = unit * 0.042;
        let (top, long) = (line - tall, right - left);
        pen.rect(left, top, long, tall + 4.0, wood.lift(-0.08));
        pen.rect(left, top, long, tall * 0.16, wood);
    });
}

fn rug(stage: &mut SceneBuilder<'_>, line: f32, base: Rgb) {
    let (unit, palette, width, height) = (stage.unit, stage.palette, stage.width, stage.height);
    let light = palette.light.mix(Rgb::WHITE, 0.3);
    let cloth = palette.accent.under(light).mix(base, 0.35).lift(-0.05);
    let pale = palette.second_accent.under(light).mix(base, 0.35);
    let y = line + (height - line) * 0.52;
    let half = (unit * 0.68).min(width * 0.46);
    let plane = PlaneLayout::new(0.95, y - unit * 0.2, y + unit * 0.2).brushed(0.08);
    stage.add_plane(plane, |pen, _, _| {
        for (share, ink) in [
            (1.0, cloth.lift(-0.08)),
            (0.96, cloth),
            (0.84, pale),
            (0.79, cloth),
            (0.34, pale),
            (0.28, cloth.lift(-0.05)),
        ] {
            pen.ellipse(width * 0.5, y, half * share, half * 0.17 * share, ink);
        }
    });
}

/// A bookcase at one side, an armchair and a lamp at the other, which shines in the dark.
fn furniture(stage: &mut SceneBuilder<'_>, line: f32, wall: Rgb) {
    let (unit, palette, width) = (stage.unit, stage.palette, stage.width);
    let mut rng = stage.rng.fork("furniture");
    let left = rng.chance(0.5);
    let light = palette.light.mix(Rgb::WHITE, 0.3);
    let dim = if palette.is_dark() { 0.45 } else { 0.2 };
    let shown = |code: u32| Rgb::hex(code).under(light).mix(Rgb::BLACK, dim);
    let lit = palette.is_dark();
    let plane = PlaneLayout::new(0.66, line - unit * 1.1, line + unit * 0.1);
    // Furniture keeps clear of the window in the middle, and stays in the frame even if it is
    // narrow.
    let aside = (width * 0.5 - unit * 0.47).max(unit * 0.1);
    let lamp = if left { width - aside } else { aside };
    stage.add_plane(plane, |pen, _, _| {
        let foot = line + unit * 0.025;
        let at = |share: f32| if left { share } else { width - share };
        bookcase(pen, (at(aside * 0.42), foot), unit, &shown, &mut rng);
        let cloth = palette.second_accent.under(light).mix(wall, 0.3);
        let cloth = cloth.mix(Rgb::BLACK, dim * 0.7);
        let chair = width - at(aside * 0.5);
        armchair(pen, (chair, foot + unit * 0.02), unit, cloth);
        let (pole, shade) = (shown(0x3a_3430), shown(0xe8_d4a8));
        let glow = lit.then_some(palette.lamp);
        floor_lamp(pen, (lamp, foot), unit, (pole, glow), shade);
    });
    if lit {
        let (colour, y) = (palette.lamp, line - unit * 0.55);
        stage.add_wash(0.66, WashBlend::Light, 0.05, |px, py| {
            let away = (px - lamp).hypot(py - y) / (unit * 0.95);
            let share = 0.2 * smooth(1.0, 0.0, away);
            colour.scaled(share)
        });
    }
}

fn bookcase(
    pen: &mut Pen,
    (x, foot): (f32, f32),
    unit: f32,
    shown: &dyn Fn(u32) -> Rgb,
    rng: &mut Rng,
) {
    const BOOKS: [u32; 7] = [
        0xb0_4a3c, 0x3f_6a8a, 0xd0_a048, 0x5a_7a50, 0x8a_5a80, 0xd8_c8a8, 0x44_5060,
    ];
    let (half, tall) = (unit * 0.15, unit * 0.6);
    let (wood, inner) = (shown(0x8a_5e3c), shown(0x4a_3224));
    pen.rect(x - half, foot - tall, half * 2.0, tall, wood);
    let (gap, board) = (tall / 4.0, unit * 0.014);
    for shelf in 0..4_u8 {
        let bottom = foot - board - gap * f32::from(shelf);
        let (left, long) = (x - half + board, (half - board) * 2.0);
        pen.rect(left, bottom - gap + board, long, gap - board, inner);
        let mut at = x - half + board * 1.4;
        while at < x + half - board * 2.4 {
            let wide = unit * rng.range(0.012, 0.024);
            let high = (gap - board) * rng.range(0.6, 0.9);
            if rng.chance(0.86) {
                let back = shown(BOOKS[rng.below(BOOKS.len())]);
                pen.rect(at, bottom - high, wide * 0.92, high, back);
            }
            at += wide;
        }
    }
}

fn armchair(pen: &mut Pen, (x, foot): (f32, f32), unit: f32, cloth: Rgb) {
    let u = unit * 0.01;
    pen.ellipse(x, foot, 17.0 * u, 1.6 * u, Ink::Flat(Rgb::BLACK, 0.3));
    for (left, top, wide, tall, ink) in [
        (-13.0, 38.0, 26.0, 30.0, cloth.lift(-0.03)),
        (-11.0, 19.0, 22.0, 16.0, cloth.lift(0.03)),
        (-16.0, 24.0, 7.0, 22.0, cloth),
        (9.0, 24.0, 7.0, 22.0, cloth.lift(-0.05)),
    ] {
        let (left, right) = (x + left * u, x + (left + wide) * u);
        let (top, bottom) = (foot - top * u, foot - (top - tall) * u);
        let r = 2.6 * u;
        let path = curve(&[
            (left + r, top),
            (right - r, top),
            (right, top + r),
            (right, bottom - r * 0.4),
            (right - r * 0.4, bottom),
            (left + r * 0.4, bottom),
            (left, bottom - r * 0.4),
            (left, top + r),
        ]);
        pen.fill(path, ink);
    }
}

fn floor_lamp(
    pen: &mut Pen,
    (x, foot): (f32, f32),
    unit: f32,
    (pole, lamp): (Rgb, Option<Rgb>),
    shade: Rgb,
) {
    let u = unit * 0.01;
    let top = foot - 62.0 * u;
    if let Some(glow) = lamp {
        pen.glow(x, top + 4.0 * u, 34.0 * u, glow, 0.5);
    }
    pen.rect(x - 0.5 * u, top, u, 62.0 * u, pole);
    pen.ellipse(x, foot, 6.0 * u, 1.1 * u, pole);
    let ink = lamp.unwrap_or(shade);
    let (upper, lower) = (top - 4.0 * u, top + 9.0 * u);
    let (half, wide) = (4.6 * u, 8.4 * u);
    let hood = [
        (x - half, upper),
        (x + half, upper),
        (x + wide, lower),
        (x - wide, lower),
    ];
    pen.shape(&hood, ink);
}
