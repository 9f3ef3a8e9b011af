//! The city: three rows of houses, windows that light up, signs, and a wet street with a crossing and pavements. The figures
//! stand in its lanes: in the row of houses, on the road, or on the pavement in front.

use super::{cast, sky};
use crate::raster::colour::{Rgb, smooth};
use crate::raster::noise::cloudy;
use crate::raster::pen::{Ink, Pen};
use crate::raster::water::Water;
use crate::rng::Rng;
use crate::scene::palette::Palette;
use crate::scene::scene_builder::{PlaneLayout, SceneBuilder, SceneElement};
use crate::subject::{BodyKind, Stance, Subject};

/// One row of buildings.
#[derive(Clone, Copy, Debug)]
struct HouseRow {
    depth: f32,
    foot: f32,
    tall: (f32, f32),
    wide: (f32, f32),
    distance: f32,
    signs: bool,
}

pub(super) fn paint_city(stage: &mut SceneBuilder<'_>) {
    let seats = cast::standing_figures(stage);
    let walkers = stage.reading.roles.iter().any(|role| {
        role.subject.facts().stance != Stance::Flies
            && street_lane(role.subject) == StreetLane::Pavement
    });
    let walkers = cast::had_pavement(stage).unwrap_or(walkers);
    stage.paved = walkers;
    let street = Street::new(stage, walkers);
    let orb = sky::paint_sky(stage, street.foot * 0.92);
    let unit = stage.unit;
    let up = if stage.is_portrait() { 1.3 } else { 1.0 };
    let rows = [
        (0.15, (0.28, 0.6), (0.07, 0.13), 0.8),
        (0.32, (0.24, 0.5), (0.1, 0.18), 0.52),
        (0.55, (0.16, 0.42), (0.14, 0.26), 0.2),
    ];
    // Back to front: depth, lowest and highest house, narrowest and widest, and how far the air
    // covers it.
    for (index, (depth, tall, wide, distance)) in rows.into_iter().enumerate() {
        // Before the nearest row: birds pass behind its houses.
        if index == 2 {
            sky::add_bloom(stage, (orb.x, orb.y), 0.45);
            cast::place_fliers(stage, street.foot * 0.86, orb.x);
        }
        let row = HouseRow {
            depth,
            foot: street.foot + unit * 0.004,
            tall: (tall.0 * unit * up, tall.1 * unit * up),
            wide: (wide.0 * unit, wide.1 * unit),
            distance,
            signs: index > 0,
        };
        buildings(stage, row);
    }
    street.paint(stage);
    let height = stage.height;
    for (lane, depth) in [
        (StreetLane::House, 0.6),
        (StreetLane::Road, 0.85),
        (StreetLane::Pavement, 1.0),
    ] {
        let row = street.row(lane, height);
        let wanted = |one| street_lane(one) == lane;
        cast::place_standing(stage, &seats, &wanted, depth, &|_| row);
    }
    lamps(stage, street.foot);
}

fn buildings(stage: &mut SceneBuilder<'_>, row: HouseRow) {
    stage.rng.switch_to("row", row.depth);
    let (unit, palette) = (stage.unit, stage.palette);
    let neon = stage.reading.neon;
    let mut rng = stage.rng.fork("row");
    let night = palette.is_dark();
    let signs = [
        palette.accent,
        palette.second_accent,
        Rgb::hex(0xff_4fa0),
        Rgb::hex(0x37_d6e0),
        palette.lamp,
    ];
    let highest = row.foot - row.tall.1 - unit * 0.15;
    let plane = PlaneLayout::new(row.depth, highest, row.foot + 2.0);
    let wall = palette.wall;
    let snow = (stage.reading.is_snowy()).then(|| palette.lit(Rgb::hex(0xf2_f6fb), row.distance));
    stage.add_plane(plane, |pen, left, right| {
        let mut x = left - rng.range(0.0, row.wide.0);
        while x < right {
            let wide = rng.range(row.wide.0, row.wide.1);
            let tall = rng.range(row.tall.0, row.tall.1);
            let tone = wall
                .lift(rng.signed() * 0.07)
                .mix(palette.sand, rng.unit() * 0.3);
            let dim = if night { 0.72 } else { 1.0 };
            let face = palette.lit(tone, row.distance).mix(Rgb::BLACK, 1.0 - dim);
            let top = row.foot - tall;
            let haze = face.mix(palette.haze, 0.3 + 0.25 * row.distance);
            let ink = Ink::down(top, face, row.foot, haze);
            let shade = Ink::Flat(Rgb::BLACK, 0.1);
            pen.rect(x, top, wide, tall + 2.0, ink);
            pen.rect(x + wide * 0.72, top, wide * 0.28, tall, shade);
            // Lights and signs by night move no house.
            let mut own = rng.fork("house");
            roof(pen, x, top, wide, face, &mut own);
            if let Some(white) = snow {
                let thick = unit * 0.006;
                pen.rect(x - 1.0, top - thick, wide + 2.0, thick * 1.8, white);
            }
            windows(pen, &palette, (x, top, wide, tall), row, face, &mut own);
            if row.signs && (neon || (night && own.chance(0.25))) {
                let colour = signs[own.below(signs.len())];
                sign(pen, (x, top, wide, tall), unit, colour, &mut own);
            }
            x += wide + unit * rng.range(-0.004, 0.012);
        }
    });
}

fn roof(pen: &mut Pen, x: f32, top: f32, wide: f32, face: Rgb, rng: &mut Rng) {
    // Boxes on the roof as shares of its width: left, top, width and height.
    let boxes: &[[f32; 4]] = match rng.below(4) {
        0 => &[[0.2, 0.16, 0.6, 0.17], [0.49, 0.5, 0.025, 0.36]],
        1 => &[[0.12, 0.1, 0.22, 0.11]],
        2 => &[],
        _ => &[[0.6, 0.12, 0.14, 0.13], [0.25, 0.2, 0.02, 0.2]],
    };
    for [left, up, across, tall] in boxes {
        let (x, y) = (x + wide * left, top - wide * up);
        pen.rect(x, y, wide * across, wide * tall, face);
    }
    if boxes.is_empty() {
        let (right, foot) = (x + wide, top + 0.5);
        pen.shape(
            &[(x, foot), (right, foot), (right, top - wide * 0.14)],
            face,
        );
    }
}

fn windows(
    pen: &mut Pen,
    palette: &Palette,
    (x, top, wide, tall): (f32, f32, f32, f32),
    row: HouseRow,
    face: Rgb,
    rng: &mut Rng,
) {
    // Windows have the same size in all houses of a row: wide houses have more of them.
    let columns = (wide / (row.wide.0 * 0.17)).floor().max(2.0) as usize;
    let cell = wide / (columns as f32 + 0.6);
    let (w, h) = (cell * 0.52, cell * rng.range(0.5, 0.85));
    let storeys = (tall / (h * 1.9)).floor().max(1.0) as usize;
    let night = palette.is_dark();
    let share = if night { 0.42 } else { 0.0 };
    let dark = if night {
        face.lift(-0.05)
    } else {
        face.mix(palette.sky_middle, 0.3).lift(-0.06)
    };
    let warm = palette.lamp.mix(palette.haze, row.distance * 0.55);
    for storey in 0..storeys {
        for column in 0..columns {
            let wx = x + cell * (0.55 + column as f32);
            let wy = top + h * (0.9 + storey as f32 * 1.9);
            // No windows in the lowest storey.
            if wy + h > row.foot - h {
                continue;
            }
            let lit = rng.chance(share);
            let tone = if lit {
                warm.lift(rng.signed() * 0.05 - 0.03)
            } else {
                dark
            };
            pen.rect(wx, wy, w, h, tone);
        }
    }
}

fn sign(
    pen: &mut Pen,
    (x, top, wide, tall): (f32, f32, f32, f32),
    unit: f32,
    colour: Rgb,
    rng: &mut Rng,
) {
    let bright = colour.mix(Rgb::WHITE, 0.35);
    let upright = rng.chance(0.6);
    let (w, h) = if upright {
        (wide * 0.14, tall * rng.range(0.2, 0.4))
    } else {
        (wide * 0.6, wide * 0.13)
    };
    let sx = x + rng.range(0.05, 0.8) * (wide - w);
    let sy = top + tall * rng.range(0.25, 0.62);
    pen.glow(sx + w * 0.5, sy + h * 0.5, w.max(h) * 1.1, colour, 0.4);
    let (rim, both) = (unit * 0.003, unit * 0.006);
    pen.rect(sx - rim, sy - rim, w + both, h + both, colour.lift(-0.2));
    pen.rect(sx, sy, w, h, Ink::Flat(colour, 0.85));
    let count = (if upright { h / w } else { w / h }).max(2.0) as usize;
    for n in 0..count {
        let share = (n as f32 + 0.5) / count as f32;
        let (cx, cy) = if upright {
            (sx + w * 0.5, sy + h * share)
        } else {
            (sx + w * share, sy + h * 0.5)
        };
        let r = w.min(h) * 0.26;
        match rng.below(3) {
            0 => pen.rect(cx - r, cy - r, r * 2.0, r * 0.6, bright),
            1 => pen.circle(cx, cy, r * 0.8, bright),
            _ => pen.rect(cx - r * 0.3, cy - r, r * 0.6, r * 2.0, bright),
        }
    }
}

fn lamps(stage: &mut SceneBuilder<'_>, street: f32) {
    stage.rng.switch_to("lamps", 0.0);
    let (unit, palette, height, width) = (stage.unit, stage.palette, stage.height, stage.width);
    let mut rng = stage.rng.fork("lamps");
    let tone = palette.lit(Rgb::hex(0x22_242c), 0.0);
    let lit = palette.is_dark();
    let plane = PlaneLayout::new(1.25, street - unit * 0.75, height * 1.2).brushed(0.0);
    let first = if rng.chance(0.5) { 0.06 } else { 0.94 };
    stage.add_plane(plane, |pen, _, _| {
        let across = if first < 0.5 { width } else { -width } * 0.55;
        for x in [first * width, (1.0 - first) * width + across] {
            let top = street - unit * 0.5;
            let arm = if x < width * 0.5 { 1.0 } else { -1.0 };
            let (left, tall) = (x - unit * 0.006, height * 1.2 - top);
            pen.rect(left, top, unit * 0.012, tall, tone);
            let bow = [
                (x, top),
                (x + arm * unit * 0.03, top - unit * 0.025),
                (x + arm * unit * 0.1, top - unit * 0.03),
            ];
            pen.stroke(&bow, unit * 0.009, tone);
            let bulb = (x + arm * unit * 0.1, top - unit * 0.018);
            let hood = bulb.1 - unit * 0.008;
            pen.ellipse(bulb.0, hood, unit * 0.026, unit * 0.01, tone);
            if lit {
                pen.glow(bulb.0, bulb.1, unit * 0.2, palette.lamp, 0.42);
                let bright = palette.lamp.mix(Rgb::WHITE, 0.4);
                pen.ellipse(bulb.0, bulb.1, unit * 0.018, unit * 0.008, bright);
            }
        }
    });
}

/// Stage rows of a street, from far to near.
#[derive(Clone, Copy, Debug)]
struct Street {
    /// Foot of the houses.
    foot: f32,
    /// Row at which the road begins.
    kerb: f32,
    /// Row at which the pavement in front begins; `None` if no figure walks on it.
    near: Option<f32>,
}

/// The parts of a street.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum StreetLane {
    /// The row of houses.
    House,
    Road,
    Pavement,
}

/// Lane of `subject`.
fn street_lane(subject: Subject) -> StreetLane {
    let facts = subject.facts();
    match (subject, facts.body) {
        (Subject::Fountain | Subject::Statue | Subject::Bench | Subject::LampPost, _)
        | (Subject::Tent | Subject::Igloo | Subject::Bicycle, _) => StreetLane::Pavement,
        (_, BodyKind::Building) => StreetLane::House,
        _ if facts.stance == Stance::Rolls => StreetLane::Road,
        _ => StreetLane::Pavement,
    }
}

impl Street {
    fn new(stage: &SceneBuilder<'_>, walkers: bool) -> Self {
        let (height, unit) = (stage.height, stage.unit);
        let foot = match (stage.is_portrait(), walkers) {
            (true, true) => 0.72,
            (true, false) => 0.76,
            (false, true) => 0.66,
            (false, false) => 0.72,
        } * height;
        Self {
            foot,
            kerb: foot + unit * 0.026,
            near: walkers.then_some(foot + (height - foot) * 0.42),
        }
    }

    /// Row of the feet in `lane`.
    fn row(&self, lane: StreetLane, height: f32) -> f32 {
        match (lane, self.near) {
            (StreetLane::House, _) => self.kerb - (self.kerb - self.foot) * 0.3,
            (StreetLane::Road, Some(near)) => near - (near - self.kerb) * 0.22,
            (StreetLane::Pavement, Some(near)) => near + (height - near) * 0.27,
            // On a road without a pavement they walk before the cars.
            (StreetLane::Pavement, None) => self.foot + (height - self.foot) * 0.62,
            (StreetLane::Road, None) => self.foot + (height - self.foot) * 0.36,
        }
    }

    /// Paints it.
    fn paint(&self, stage: &mut SceneBuilder<'_>) {
        let wet = stage.reading.is_rainy();
        self.road(stage, wet);
        self.far_side(stage);
        self.markings(stage);
        if let Some(near) = self.near {
            pavement(stage, near, wet);
        }
    }

    fn road(&self, stage: &mut SceneBuilder<'_>, wet: bool) {
        let (unit, palette) = (stage.unit, stage.palette);
        let asphalt = palette.lit(Rgb::hex(0x5a_5f6c), 0.08);
        // Snow is cleared from roads sooner than from pavements.
        let asphalt = whitened(stage, asphalt, 0.35);
        // How much of the mirror asphalt covers: wet streets reflect most, by night even dry ones a
        // little.
        let shine = match (wet, palette.is_dark()) {
            (true, _) => 0.34,
            (_, true) => 0.68,
            _ => 0.86,
        };
        stage.elements.push(SceneElement::Water(Water {
            horizon: self.foot,
            bottom: stage.height * 1.12,
            depth: 0.55,
            far: asphalt.lift(0.03),
            near: asphalt.lift(-0.1),
            cover: (shine, (shine + 0.16).min(0.95)),
            reach: unit * 0.006,
            rate: if wet { 2.0 } else { 0.0 },
        }));
    }

    /// The pavement at the foot of the houses and its kerb.
    fn far_side(&self, stage: &mut SceneBuilder<'_>) {
        let (unit, palette) = (stage.unit, stage.palette);
        let stone = whitened(stage, palette.lit(Rgb::hex(0x8c_8f98), 0.15), 0.6);
        let Self { foot, kerb, .. } = *self;
        let plane = PlaneLayout::new(0.57, foot - 4.0, kerb + unit * 0.02).brushed(0.03);
        stage.add_plane(plane, |pen, left, right| {
            let wide = right - left;
            let ink = Ink::down(foot, stone.lift(-0.12), kerb, stone.lift(-0.02));
            pen.rect(left, foot - 2.0, wide, kerb - foot + 2.0, ink);
            let lip = unit * 0.004;
            pen.rect(left, kerb - lip, wide, lip, stone.lift(0.05));
            pen.rect(left, kerb, wide, unit * 0.008, stone.lift(-0.2));
        });
    }

    /// The dashed line of the road, and a crossing.
    fn markings(&self, stage: &mut SceneBuilder<'_>) {
        let (unit, palette, height, width) = (stage.unit, stage.palette, stage.height, stage.width);
        let line = palette.lit(Rgb::hex(0xe8_e2d0), 0.1);
        let end = self.near.unwrap_or(height * 1.1);
        let share = if self.near.is_some() { 0.46 } else { 0.6 };
        let y = self.kerb + (end.min(height) - self.kerb) * share;
        let thick = unit * if self.near.is_some() { 0.007 } else { 0.011 };
        let at = width * if stage.rng.chance(0.5) { 0.2 } else { 0.8 };
        let (top, vanish) = (self.kerb + unit * 0.014, width * 0.5);
        let bottom = end.min(height * 1.1);
        let depth = if self.near.is_some() { 0.75 } else { 0.9 };
        let plane = PlaneLayout::new(depth, self.kerb, bottom).brushed(0.0);
        // Nobody crosses a road without a pavement in front.
        let crossing = self.near.is_some();
        stage.add_plane(plane, |pen, left, right| {
            let mut x = left;
            while x < right {
                let wide = unit * 0.13;
                let clear = crossing && (x + wide * 0.5 - at).abs() < unit * 0.3;
                if !clear {
                    let slab = [
                        (x + wide * 0.06, y),
                        (x + wide, y),
                        (x + wide * 0.96, y + thick),
                        (x, y + thick),
                    ];
                    pen.shape(&slab, Ink::Flat(line, 0.5));
                }
                x += unit * 0.27;
            }
            if crossing {
                // The stripes run towards the point in which the street's lines meet.
                let spread = 1.0 + (bottom - top) / (unit * 0.5);
                for stripe in -3..=3_i32 {
                    let far = at + stripe as f32 * unit * 0.06;
                    let (w, out) = (unit * 0.026, vanish + (far - vanish) * spread);
                    let zebra = [
                        (far - w * 0.5, top),
                        (far + w * 0.5, top),
                        (out + w * 0.5 * spread, bottom - unit * 0.012),
                        (out - w * 0.5 * spread, bottom - unit * 0.012),
                    ];
                    pen.shape(&zebra, Ink::Flat(line, 0.5));
                }
            }
        });
    }
}

/// `colour` under some snow, when it lies.
fn whitened(stage: &SceneBuilder<'_>, colour: Rgb, share: f32) -> Rgb {
    if stage.reading.is_snowy() {
        colour.mix(stage.palette.lit(Rgb::hex(0xf2_f6fb), 0.1), share)
    } else {
        colour
    }
}

/// Slabs from the kerb at `near` down; where it is wet they mirror what the road mirrors.
fn pavement(stage: &mut SceneBuilder<'_>, near: f32, wet: bool) {
    let (unit, palette, height) = (stage.unit, stage.palette, stage.height);
    let seed = stage.rng.next();
    let stone = whitened(stage, palette.lit(Rgb::hex(0x9a_9a9e), 0.03), 0.75);
    let cover = match (wet, palette.is_dark()) {
        (true, _) => 0.72,
        (_, true) => 0.9,
        _ => 1.0,
    };
    let (vanish, rise) = (stage.width * 0.5, near - height * 0.4);
    let (kerb, edge) = (unit * 0.016, unit * 0.012);
    let plane = PlaneLayout::new(0.95, near - kerb - 3.0, height * 1.2).brushed(0.04);
    stage.add_field(plane, |x, y| {
        let below = y - near;
        if below < 0.0 {
            // The kerb's face, seen from the pavement, is a dark line.
            let line = smooth(-kerb, -kerb * 0.4, below);
            return (stone.lift(-0.3), line * 0.8);
        }
        let far = y - rise;
        // Columns of slabs meet in the vanishing point. Rows are even in the logarithm of the
        // distance, which shrinks them steadily without a true projection.
        let u = (x - vanish) / far * (height - rise) / (unit * 0.24);
        let v = (far / unit).ln() * 7.0;
        let row = v.floor();
        let u = u + if row.rem_euclid(2.0) < 1.0 { 0.0 } else { 0.5 };
        let joint = joint_distance(u) < 0.014 || joint_distance(v) < 0.022;
        let seam: f32 = if joint { 0.16 } else { 0.0 };
        let slab = cloudy(seed ^ (row as i64).cast_unsigned(), u.floor() * 3.7, 0.4, 1) * 0.09;
        let rim = stone.lift(0.06);
        let tone = if below < edge { rim } else { stone }.scaled(1.0 + slab);
        let deep = smooth(0.0, height - near, below) * 0.22;
        (tone.mix_plain(Rgb::BLACK, seam.max(deep)), cover)
    });
}

/// Distance from the nearest whole number.
fn joint_distance(at: f32) -> f32 {
    (at - at.round()).abs()
}
