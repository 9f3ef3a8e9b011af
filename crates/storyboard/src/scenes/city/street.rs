//! The street before the houses: a pavement at their foot, a road, a crossing, and a pavement in front for
//! those who walk. It paints no houses.

use crate::colour::{Rgb, smooth};
use crate::lexicon::Weather;
use crate::noise::cloudy;
use crate::pen::Ink;
use crate::scenes::{Plane, Stage};
use crate::stage::Element;
use crate::subject::{Body, Stance, Subject};
use crate::water::Water;

/// Stage rows of a street, from far to near.
#[derive(Clone, Copy, Debug)]
pub(super) struct Street {
    /// Foot of the houses.
    pub(super) foot: f32,
    /// Where the road begins.
    kerb: f32,
    /// Where the pavement in front begins, when somebody walks on it.
    pub(super) near: Option<f32>,
}

/// The parts of a street.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Lane {
    /// In the row of the houses.
    House,
    Road,
    Pavement,
}

/// Where `subject` belongs.
pub(super) fn lane(subject: Subject) -> Lane {
    let facts = subject.facts();
    match (subject, facts.body) {
        (Subject::Fountain | Subject::Statue | Subject::Bench | Subject::LampPost, _) => {
            Lane::Pavement
        }
        (Subject::Tent | Subject::Igloo, _) => Lane::Pavement,
        (Subject::Bicycle, _) => Lane::Pavement,
        (_, Body::Building) => Lane::House,
        _ if facts.stance == Stance::Rolls => Lane::Road,
        _ => Lane::Pavement,
    }
}

impl Street {
    pub(super) fn of(stage: &Stage<'_>, walkers: bool) -> Self {
        let (height, unit) = (stage.height, stage.unit);
        let foot = match (stage.tall(), walkers) {
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
    pub(super) fn row(&self, lane: Lane, height: f32) -> f32 {
        match (lane, self.near) {
            (Lane::House, _) => self.kerb - (self.kerb - self.foot) * 0.3,
            (Lane::Road, Some(near)) => near - (near - self.kerb) * 0.22,
            (Lane::Pavement, Some(near)) => near + (height - near) * 0.27,
            // On a road without a pavement they walk before the cars.
            (Lane::Pavement, None) => self.foot + (height - self.foot) * 0.62,
            (Lane::Road, None) => self.foot + (height - self.foot) * 0.36,
        }
    }

    /// Paints it.
    pub(super) fn lay(&self, stage: &mut Stage<'_>) {
        let wet = stage.reading.has(Weather::Rain) || stage.reading.has(Weather::Storm);
        self.road(stage, wet);
        self.far_side(stage);
        self.markings(stage);
        if let Some(near) = self.near {
            pavement(stage, near, wet);
        }
    }

    fn road(&self, stage: &mut Stage<'_>, wet: bool) {
        let (unit, palette) = (stage.unit, stage.palette);
        let asphalt = palette.lit(Rgb::hex(0x5a_5f6c), 0.08);
        let asphalt = whitened(stage, asphalt, 0.35);
        let shine = match (wet, palette.is_dark()) {
            (true, _) => 0.34,
            (_, true) => 0.68,
            _ => 0.86,
        };
        stage.elements.push(Element::Water(Water {
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
    fn far_side(&self, stage: &mut Stage<'_>) {
        let (unit, palette) = (stage.unit, stage.palette);
        let stone = whitened(stage, palette.lit(Rgb::hex(0x8c_8f98), 0.15), 0.6);
        let Self { foot, kerb, .. } = *self;
        let plane = Plane {
            brush: 0.03,
            ..Plane::new(0.57, foot - 4.0, kerb + unit * 0.02)
        };
        stage.plane(plane, |pen, left, right| {
            let wide = right - left;
            let ink = Ink::down(foot, stone.lift(-0.12), kerb, stone.lift(-0.02));
            pen.rect(left, foot - 2.0, wide, kerb - foot + 2.0, ink);
            pen.rect(
                left,
                kerb - unit * 0.004,
                wide,
                unit * 0.004,
                stone.lift(0.05),
            );
            pen.rect(left, kerb, wide, unit * 0.008, stone.lift(-0.2));
        });
    }

    /// The dashed line of the road, and a crossing.
    fn markings(&self, stage: &mut Stage<'_>) {
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
        let plane = Plane {
            brush: 0.0,
            ..Plane::new(depth, self.kerb, bottom)
        };
        let crossing = self.near.is_some();
        stage.plane(plane, |pen, left, right| {
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
fn whitened(stage: &Stage<'_>, colour: Rgb, share: f32) -> Rgb {
    if stage.reading.is_snowy() {
        colour.mix(stage.palette.lit(Rgb::hex(0xf2_f6fb), 0.1), share)
    } else {
        colour
    }
}

/// Slabs from the kerb at `near` down; where it is wet they mirror what the road mirrors.
fn pavement(stage: &mut Stage<'_>, near: f32, wet: bool) {
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
    let plane = Plane {
        brush: 0.04,
        ..Plane::new(0.95, near - kerb - 3.0, height * 1.2)
    };
    stage.field(plane, |x, y| {
        let below = y - near;
        if below < 0.0 {
            // The kerb's face, seen from the pavement, is a dark line.
            let line = smooth(-kerb, -kerb * 0.4, below);
            return (stone.lift(-0.3), line * 0.8);
        }
        let far = y - rise;
        let u = (x - vanish) / far * (height - rise) / (unit * 0.24);
        let v = (far / unit).ln() * 7.0;
        let joint = |at: f32| (at - at.round()).abs();
        let row = v.floor();
        let u = u + if row.rem_euclid(2.0) < 1.0 { 0.0 } else { 0.5 };
        let seam: f32 = if joint(u) < 0.014 || joint(v) < 0.022 {
            0.16
        } else {
            0.0
        };
        let slab = cloudy(seed ^ (row as i64).cast_unsigned(), u.floor() * 3.7, 0.4, 1) * 0.09;
        let tone = if below < edge {
            stone.lift(0.06)
        } else {
            stone
        };
        let tone = Rgb {
            r: tone.r * (1.0 + slab),
            g: tone.g * (1.0 + slab),
            b: tone.b * (1.0 + slab),
        };
        let deep = smooth(0.0, height - near, below) * 0.22;
        (tone.mix_plain(Rgb::BLACK, seam.max(deep)), cover)
    });
}
