//! High waves of a sea in a storm: ridges with foam on their crests, nearer ones larger, that roll
//! and heave against each other. The level water under them is painted elsewhere.

use super::layer::Heave;
use super::noise::{cloudy, ridged};
use super::{Plane, Stage};
use crate::colour::{Rgb, smooth};

/// The ridges behind boats.
pub(super) fn far(stage: &mut Stage<'_>, horizon: f32, shore: f32) {
    for near in [0.12, 0.3] {
        ridge(stage, near, (horizon, shore));
    }
}

/// The ridges before boats.
pub(super) fn near(stage: &mut Stage<'_>, horizon: f32, shore: f32) {
    for near in [0.62, 0.95] {
        ridge(stage, near, (horizon, shore));
    }
}

fn ridge(stage: &mut Stage<'_>, near: f32, (horizon, shore): (f32, f32)) {
    let (unit, palette) = (stage.unit, stage.palette);
    let seed = stage.rng.next();
    let base = horizon + (shore - horizon) * near;
    let tall = unit * (0.028 + 0.085 * near);
    let size = unit * (0.16 + 0.42 * near);
    let body = palette.water.under(palette.light);
    let lit = body.mix(palette.sky_low, 0.42 - 0.22 * near);
    let dark = body.lift(-0.09 - 0.03 * near);
    let foam = palette
        .lit(Rgb::hex(0xf4_f8fa), 0.05)
        .mix(palette.sky_low, 0.2);
    let side = if ((near * 10.0) as u32).is_multiple_of(2) {
        1.0
    } else {
        -1.0
    };
    let plane = Plane {
        pitch: if near < 0.5 { 1.5 } else { 2.0 },
        drift: side * unit * (0.03 + 0.06 * near),
        heave: Some(Heave {
            reach: tall * 0.5,
            rate: 1.5 - 0.5 * near,
            phase: near * 9.0,
        }),
        brush: 0.04,
        ..Plane::new(0.3 + 0.6 * near, base - tall * 2.0, base + tall * 2.6)
    };
    stage.field(plane, |x, y| {
        let crest = base - tall * (1.5 * ridged(seed, x / size, 3) - 0.35);
        let below = (y - crest) / tall;
        if below < -0.1 {
            return (lit, 0.0);
        }
        let lace = cloudy(seed ^ 5, x / (size * 0.09), y / (tall * 0.3), 3);
        let cap = smooth(0.34 + 0.4 * lace, 0.02, below) * smooth(-0.02, 0.02, below);
        let streak = smooth(
            0.18,
            0.4,
            cloudy(seed ^ 9, x / (size * 0.5), y / (tall * 0.22), 3),
        );
        let water = lit
            .mix_plain(dark, smooth(0.0, 1.5, below))
            .mix_plain(foam, streak * 0.22);
        // It sinks back into the level water below.
        let alpha = smooth(-0.04, 0.05, below) * smooth(2.7, 1.4, below);
        (water.mix_plain(foam, cap * 0.85), alpha)
    });
}
