//! The scene of a prompt that names no place: discs, ribbons and hills of pure colour, moving
//! slowly.

use super::{cast, particles};
use crate::lexicon::Mood;
use crate::raster::colour::{Rgb, smooth};
use crate::raster::layer::Heave;
use crate::raster::noise::cloudy;
use crate::raster::particles::ParticleKind;
use crate::raster::pen::Ink;
use crate::raster::wash::WashBlend;
use crate::scene::scene_builder::{PlaneLayout, SceneBuilder};

/// Sets of colours for prompts that name none.
const HARMONIES: [[u32; 5]; 6] = [
    [0x26_3a5c, 0x4f_7a94, 0xe8_c9a0, 0xd9_7a5a, 0xf3_ead8],
    [0x3a_2a4c, 0x8a_5a84, 0xf0_b49a, 0xe4_6f6a, 0xfa_e6cc],
    [0x1f_4048, 0x3f_8480, 0xe9_d8a6, 0xee_9b50, 0xf6_f1e0],
    [0x2c_3a32, 0x6d_8a62, 0xe2_d2a2, 0xc9_7a4c, 0xf2_ecd8],
    [0x2a_2f58, 0x5a_6cae, 0xc9_b6e0, 0xf0_94a8, 0xf8_ecf0],
    [0x34_3a44, 0x6e_7c8c, 0xb9_c2c6, 0xd8_a85c, 0xec_ebe6],
];

pub(super) fn paint_abstract(stage: &mut SceneBuilder<'_>) {
    let (unit, width, height, palette) = (stage.unit, stage.width, stage.height, stage.palette);
    // A mood fixes the harmony; the random number is drawn only without one.
    let pick = match stage.reading.mood {
        Some(Mood::Sad) => 5,
        Some(Mood::Dreamy) => 4,
        Some(Mood::Joyful) => 2,
        _ => stage.rng.below(HARMONIES.len()),
    };
    // Colour words rule the harmony; an hour alone only leans on it.
    let tinted = !stage.reading.tints.is_empty();
    let timed = stage.reading.hour.is_some();
    let own = [
        palette.sky_top,
        palette.sky_middle,
        palette.sky_low,
        palette.accent,
        palette.orb,
    ];
    let mut colours = HARMONIES[pick].map(Rgb::hex);
    if tinted {
        for (colour, tint) in colours.iter_mut().zip(own) {
            *colour = colour.tinted(tint, 0.8);
        }
    } else if timed {
        for (colour, tint) in colours.iter_mut().zip(own) {
            *colour = colour.mix(tint, 0.45);
        }
    }
    let [deep, middle, light, warm, pale] = colours;
    stage.rng.switch_to("middle", 0.0);
    let (cx, cy) = (
        width * stage.rng.range(0.35, 0.65),
        height * stage.rng.range(0.3, 0.44),
    );
    stage.add_wash(0.05, WashBlend::Cover, 0.0, |x, y| {
        let v = (y / height).clamp(0.0, 1.0);
        let away = (x - cx).hypot(y - cy) / (unit * 0.9);
        deep.mix(middle, smooth(0.0, 0.9, v))
            .mix(light, 0.55 * (-away * away * 2.0).exp())
    });
    veil(stage, pale, deep);
    let radius = unit * stage.rng.range(0.2, 0.27);
    disc(stage, (cx, cy), radius, warm, pale);
    let area = [0.0, 0.0, width, height];
    let count = (60.0 * width / unit) as usize;
    stage.rng.switch_to("dust", 0.0);
    let dust = particles(stage, ParticleKind::Dust, count, area, pale);
    stage.add_particles(dust.at_depth(0.3));
    let inks = [
        middle.mix(light, 0.35),
        warm.mix(middle, 0.45),
        middle,
        deep.mix(warm, 0.25),
        deep,
    ];
    for (index, ink) in inks.into_iter().enumerate() {
        ribbon(stage, index, ink, pale);
        if index == 1 {
            cast::place_fliers(stage, height * 0.7, cx);
        }
    }
    let floor = height * 0.86;
    cast::place_walkers(stage, 1.0, &move |_| floor);
}

/// Light and shade that drift over the ground, so that no part of it stands still.
fn veil(stage: &mut SceneBuilder<'_>, pale: Rgb, deep: Rgb) {
    let (unit, height) = (stage.unit, stage.height);
    for (ink, size, side) in [(pale, 0.42, 1.0), (deep, 0.3, -1.0_f32)] {
        let seed = stage.rng.next();
        let plane = PlaneLayout {
            pitch: 4.0,
            drift: unit * 0.14 * side,
            brush: 0.0,
            ..PlaneLayout::new(0.08, -unit * 0.1, height * 1.1)
        };
        stage.add_field(plane, |x, y| {
            let body = cloudy(seed, x / (unit * size), y / (unit * size * 0.7), 3);
            (ink, 0.34 * smooth(0.02, 0.4, body))
        });
    }
}

fn disc(stage: &mut SceneBuilder<'_>, (x, y): (f32, f32), radius: f32, warm: Rgb, pale: Rgb) {
    stage.rng.switch_to("disc", 0.0);
    let rings = stage.rng.below(2);
    let plane = PlaneLayout::new(0.15, y - radius * 1.9, y + radius * 1.9).brushed(0.03);
    stage.add_plane(plane, |pen, _, _| {
        pen.glow(x, y, radius * 1.8, pale, 0.35);
        let ink = Ink::down(y - radius, pale.mix(warm, 0.3), y + radius, warm);
        pen.circle(x, y, radius, ink);
        if rings == 1 {
            for n in 1..4 {
                let out = radius * (1.0 + 0.16 * n as f32);
                let ring = tiny_skia::PathBuilder::from_circle(x, y, out);
                pen.line(ring, radius * 0.012, Ink::Flat(pale, 0.5 - 0.12 * n as f32));
            }
        }
    });
}

/// A band of colour with a flowing upper edge; each nearer one is lower and faster.
fn ribbon(stage: &mut SceneBuilder<'_>, index: usize, ink: Rgb, pale: Rgb) {
    stage.rng.switch_to("ribbon", index as f32);
    let (unit, height) = (stage.unit, stage.height);
    let near = index as f32 / 4.0;
    let seed = stage.rng.next();
    let base = height * (0.5 + 0.1 * index as f32);
    let tilt = stage.rng.signed() * 0.12;
    let middle = stage.width * 0.5;
    let wave = unit * (0.14 - 0.015 * index as f32);
    // Neighbouring bands flow in opposite directions.
    let side = if index.is_multiple_of(2) { 1.0 } else { -1.0 };
    let drift = unit * (0.06 + 0.06 * near) * side;
    let heave = Heave {
        reach: unit * 0.045,
        rate: 1.4 + 0.25 * near,
        phase: index as f32 * 1.9,
    };
    let plane = PlaneLayout {
        drift,
        heave: Some(heave),
        brush: 0.045,
        ..PlaneLayout::new(0.25 + 0.85 * near, base - unit * 0.4, height * 1.2)
    };
    let edge = ink.mix(pale, 0.4);
    stage.add_plane(plane, |pen, left, right| {
        let line = SceneBuilder::profile(left, right, 4.0, height * 1.25, move |x| {
            base + wave * cloudy(seed, x / (unit * 0.75), 0.4, 2) * 1.3 + (x - middle) * tilt
        });
        let (upper, lower) = (ink.lift(0.06), ink.lift(-0.06));
        pen.shape(
            &line,
            Ink::down(base - wave, upper, base + unit * 0.5, lower),
        );
        let rim: Vec<(f32, f32)> = line.iter().copied().take(line.len() - 2).collect();
        pen.stroke(&rim, unit * 0.004, Ink::Flat(edge, 0.6));
    });
}
