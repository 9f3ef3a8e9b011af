//! The room for those who need a floor: boards, a rug, a skirting board and furniture along the wall.

use crate::colour::{Rgb, smooth};
use crate::noise::cloudy;
use crate::pen::{Ink, Pen};
use crate::rng::Rng;
use crate::scenes::{Plane, Stage, cast};
use crate::subject::{Act, Body, Stance, Subject};
use crate::wash::Meeting;

/// How much nearer than in the open the figures are: they stand before the furniture.
pub(super) const NEARNESS: f32 = 1.4;

/// Whether somebody in this scene is too large, or too lively, for a window sill, or too many are.
pub(super) fn needed(stage: &Stage<'_>) -> bool {
    let lively = stage.reading.roles.iter().any(|role| {
        let moves = matches!(
            role.act,
            Some(Act::Walk | Act::Run | Act::Jump | Act::Dance | Act::Move)
        );
        let facts = role.subject.facts();
        let carried = !matches!(facts.stance, Stance::Flies | Stance::Hangs);
        carried && (moves || !perches(role.subject))
    });
    lively || cast::is_crowded(stage, cast::Group::Ground)
}

/// Whether `subject` has room on a window sill.
fn perches(subject: Subject) -> bool {
    let facts = subject.facts();
    match facts.body {
        Body::Bird => !matches!(subject, Subject::Flamingo | Subject::Penguin),
        Body::Insect => true,
        Body::Quadruped => subject == Subject::Cat || facts.size < 0.24,
        Body::Plant => facts.size <= 0.4,
        Body::Thing => facts.stance == Stance::Lies,
        _ => false,
    }
}

/// Boards from the wall's foot at `line` towards the viewer, and a rug.
pub(super) fn floor(stage: &mut Stage<'_>, line: f32, wall: Rgb, wood: Rgb) {
    const WOODS: [u32; 3] = [0x9a_7048, 0x86_5c40, 0xb0_8a60];
    let (unit, palette, height) = (stage.unit, stage.palette, stage.height);
    let seed = stage.rng.next();
    let tint = Rgb::hex(WOODS[stage.rng.below(WOODS.len())]);
    let lamp = palette.light.mix(Rgb::WHITE, 0.35);
    let dim = if palette.is_dark() { 0.5 } else { 0.8 };
    let base = tint.under(lamp).mix(Rgb::BLACK, 1.0 - dim).mix(wall, 0.12);
    let (bright, deep) = (base.lift(0.05), base.lift(-0.08));
    let (vanish, rise) = (stage.width * 0.5, line - height * 0.34);
    let plane = Plane {
        brush: 0.04,
        ..Plane::new(0.9, line - 2.0, height * 1.2)
    };
    stage.field(plane, |x, y| {
        let far = y - rise;
        let u = (x - vanish) / far * (height - rise) / (unit * 0.2);
        let (board, across) = (u.floor(), u - u.floor());
        let salt = seed ^ (board as i64).cast_unsigned();
        let along = height / far * 6.0;
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

fn skirting(stage: &mut Stage<'_>, line: f32, wood: Rgb) {
    let unit = stage.unit;
    let plane = Plane {
        brush: 0.03,
        ..Plane::new(0.62, line - unit * 0.06, line + unit * 0.012)
    };
    stage.plane(plane, |pen, left, right| {
        let tall = unit * 0.042;
        pen.rect(
            left,
            line - tall,
            right - left,
            tall + 4.0,
            wood.lift(-0.08),
        );
        pen.rect(left, line - tall, right - left, tall * 0.16, wood);
    });
}

fn rug(stage: &mut Stage<'_>, line: f32, base: Rgb) {
    let (unit, palette, width, height) = (stage.unit, stage.palette, stage.width, stage.height);
    let light = palette.light.mix(Rgb::WHITE, 0.3);
    let cloth = palette.accent.under(light).mix(base, 0.35).lift(-0.05);
    let pale = palette.second_accent.under(light).mix(base, 0.35);
    let y = line + (height - line) * 0.52;
    let half = (unit * 0.68).min(width * 0.46);
    let plane = Plane {
        brush: 0.08,
        ..Plane::new(0.95, y - unit * 0.2, y + unit * 0.2)
    };
    stage.plane(plane, |pen, _, _| {
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
pub(super) fn furniture(stage: &mut Stage<'_>, line: f32, wall: Rgb) {
    let (unit, palette, width) = (stage.unit, stage.palette, stage.width);
    let mut rng = stage.rng.fork("furniture");
    let left = rng.chance(0.5);
    let light = palette.light.mix(Rgb::WHITE, 0.3);
    let dim = if palette.is_dark() { 0.45 } else { 0.2 };
    let shown = |code: u32| Rgb::hex(code).under(light).mix(Rgb::BLACK, dim);
    let lit = palette.is_dark();
    let plane = Plane {
        brush: 0.05,
        ..Plane::new(0.66, line - unit * 1.1, line + unit * 0.1)
    };
    let aside = (width * 0.5 - unit * 0.47).max(unit * 0.1);
    let lamp = if left { width - aside } else { aside };
    stage.plane(plane, |pen, _, _| {
        let foot = line + unit * 0.025;
        let at = |share: f32| if left { share } else { width - share };
        bookcase(pen, (at(aside * 0.42), foot), unit, &shown, &mut rng);
        let cloth = palette.second_accent.under(light).mix(wall, 0.3);
        let cloth = cloth.mix(Rgb::BLACK, dim * 0.7);
        let chair = width - at(aside * 0.5);
        armchair(pen, (chair, foot + unit * 0.02), unit, cloth);
        lamp_of(
            pen,
            (lamp, foot),
            unit,
            (shown(0x3a_3430), lit.then_some(palette.lamp)),
            shown(0xe8_d4a8),
        );
    });
    if lit {
        let (colour, y) = (palette.lamp, line - unit * 0.55);
        stage.wash(0.66, Meeting::Light, 0.05, |px, py| {
            let away = (px - lamp).hypot(py - y) / (unit * 0.95);
            let share = 0.2 * smooth(1.0, 0.0, away);
            Rgb {
                r: colour.r * share,
                g: colour.g * share,
                b: colour.b * share,
            }
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
        pen.rect(
            x - half + board,
            bottom - gap + board,
            (half - board) * 2.0,
            gap - board,
            inner,
        );
        let mut at = x - half + board * 1.4;
        while at < x + half - board * 2.4 {
            let wide = unit * rng.range(0.012, 0.024);
            let high = (gap - board) * rng.range(0.6, 0.9);
            if rng.chance(0.86) {
                pen.rect(
                    at,
                    bottom - high,
                    wide * 0.92,
                    high,
                    shown(BOOKS[rng.below(BOOKS.len())]),
                );
            }
            at += wide;
        }
    }
}

fn armchair(pen: &mut Pen, (x, foot): (f32, f32), unit: f32, cloth: Rgb) {
    let u = unit * 0.01;
    let part = |pen: &mut Pen, left: f32, top: f32, wide: f32, tall: f32, ink: Rgb| {
        let (left, top, right, bottom) = (
            x + left * u,
            foot - top * u,
            x + (left + wide) * u,
            foot - (top - tall) * u,
        );
        let r = 2.6 * u;
        let path = crate::pen::smooth(&[
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
    };
    pen.ellipse(x, foot, 17.0 * u, 1.6 * u, Ink::Flat(Rgb::BLACK, 0.3));
    part(pen, -13.0, 38.0, 26.0, 30.0, cloth.lift(-0.03));
    part(pen, -11.0, 19.0, 22.0, 16.0, cloth.lift(0.03));
    part(pen, -16.0, 24.0, 7.0, 22.0, cloth);
    part(pen, 9.0, 24.0, 7.0, 22.0, cloth.lift(-0.05));
}

fn lamp_of(
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
    pen.shape(
        &[
            (x - 4.6 * u, top - 4.0 * u),
            (x + 4.6 * u, top - 4.0 * u),
            (x + 8.4 * u, top + 9.0 * u),
            (x - 8.4 * u, top + 9.0 * u),
        ],
        ink,
    );
}
