//! Space: stars, a nebula, a planet whose limb fills a corner, and travellers.

use super::{cast, sky};
use crate::raster::colour::{Rgb, smooth};
use crate::raster::noise::cloudy;
use crate::raster::pen::Ink;
use crate::raster::wash::WashBlend;
use crate::scene::scene_builder::{PlaneLayout, SceneBuilder, SceneElement};
use crate::subject::Subject;

pub(super) fn paint_space(stage: &mut SceneBuilder<'_>) {
    let (unit, palette) = (stage.unit, stage.palette);
    let seed = stage.rng.next();
    let warm = Rgb::hex([0xc8_4f8c, 0xe0_8048, 0x7a_5ad0][stage.rng.below(3)]);
    let tinted = !stage.reading.tints.is_empty();
    let (first, second) = if tinted {
        (palette.accent, palette.second_accent)
    } else {
        (warm, Rgb::hex(0x2f_7fb8))
    };
    let deep = palette.sky_top.lift(-0.03);
    let middle = palette.sky_middle;
    let slope = stage.rng.range(-0.6, 0.6);
    let (width, height) = (stage.width, stage.height);
    stage.add_wash(0.04, WashBlend::Cover, 0.0, |x, y| {
        let (u, v) = (x / unit, y / unit);
        // Distance from a slanting band, within which the nebula lies.
        let band = (y - height * 0.45 - (x - width * 0.5) * slope) / (unit * 0.42);
        let warp = cloudy(seed ^ 3, u * 1.4, v * 1.4, 3);
        let gas = cloudy(seed, u * 1.9 + warp, v * 1.9 + warp * 0.6, 5);
        let body = smooth(-0.25, 0.75, gas) * (-band * band * 0.8).exp();
        let dust = smooth(0.1, 0.6, cloudy(seed ^ 9, u * 3.1 + warp, v * 3.1, 4))
            * (-band * band * 2.0).exp();
        let hue = smooth(-0.4, 0.4, cloudy(seed ^ 21, u * 1.1, v * 1.1, 3));
        deep.mix(middle, 0.5 * body)
            .mix(first.mix(second, hue), body * 0.62)
            .mix(deep, dust * 0.55)
    });
    for depth in [0.03, 0.1, 0.22] {
        stage.rng.switch_to("stars", depth);
        // `add_stars` lays them at the depth of a sky; they are taken back to get a depth of their own,
        // so that layers of stars shift against each other.
        sky::add_stars(stage, height * 1.05, 0.55);
        if let Some(SceneElement::Particles(stars)) = stage.elements.pop() {
            stage.add_particles(stars.at_depth(depth));
        }
    }
    stage.rng.switch_to("side", 0.0);
    let left = stage.rng.chance(0.5);
    let light = (if left { width * 0.1 } else { width * 0.9 }, height * 0.2);
    if !stage.reading.shows(Subject::Planet) {
        limb(stage, left);
    }
    if stage.reading.shows(Subject::Moon) {
        moon(stage, left);
    }
    cast::place_fliers(stage, height * 0.95, light.0);
    let ground = height * 0.99;
    cast::place_walkers(stage, 1.0, &move |_| ground);
    sky::add_bloom(stage, light, 0.5);
}

/// The lit edge of a large planet, with a thin shell of air.
fn limb(stage: &mut SceneBuilder<'_>, left: bool) {
    stage.rng.switch_to("limb", 0.0);
    let (unit, palette, width, height) = (stage.unit, stage.palette, stage.width, stage.height);
    let seed = stage.rng.next();
    let radius = unit * stage.rng.range(0.75, 1.1);
    let x = if left { width * 0.82 } else { width * 0.18 };
    let y = height + radius * 0.52;
    let surface = Rgb::hex([0x2f_6fa8, 0xb8_7448, 0x4a_8a7a][stage.rng.below(3)])
        .tinted(palette.second_accent, 0.25);
    let land = surface.lift(0.12).saturate(0.7);
    let air = surface.lift(0.25).mix(Rgb::WHITE, 0.2);
    let night = Rgb::hex(0x05_0812);
    let side = if left { -0.75 } else { 0.75 };
    let plane = PlaneLayout::new(0.35, y - radius * 1.12, height * 1.15).brushed(0.0);
    stage.add_field(plane, |px, py| {
        let (dx, dy) = ((px - x) / radius, (py - y) / radius);
        let away = dx.hypot(dy);
        if away > 1.1 {
            return (air, 0.0);
        }
        let sun = smooth(-0.5, 0.75, dx * side - dy * 0.7 - 0.2);
        if away > 1.0 {
            // Air outside of the disc thins out with the third power of the height.
            let shell = (1.0 - (away - 1.0) / 0.1).max(0.0);
            return (air, shell * shell * shell * 0.6 * sun);
        }
        let clouds = smooth(0.02, 0.4, cloudy(seed, dx * 4.0 + 7.0, dy * 9.0, 5));
        let soil = smooth(-0.05, 0.2, cloudy(seed ^ 4, dx * 3.0, dy * 3.0, 4));
        let ground = surface
            .mix_plain(land, soil * 0.6)
            .mix_plain(Rgb::WHITE, clouds * 0.45);
        let rim = smooth(0.86, 1.0, away);
        let lit = night.mix_plain(ground.mix_plain(air, rim * 0.7), sun);
        (lit, ((1.0 - away) * radius + 0.5).clamp(0.0, 1.0))
    });
}

fn moon(stage: &mut SceneBuilder<'_>, left: bool) {
    stage.rng.switch_to("moon", 0.0);
    let (unit, palette, height) = (stage.unit, stage.palette, stage.height);
    let x = stage.width * if left { 0.24 } else { 0.76 };
    let (y, r) = (height * 0.24, unit * 0.08);
    let plane = PlaneLayout::new(0.2, y - r * 2.2, y + r * 2.2).brushed(0.03);
    stage.add_plane(plane, |pen, _, _| {
        pen.glow(x, y, r * 2.0, palette.glow, 0.3);
        pen.circle(x, y, r, palette.orb.lift(-0.05));
        let shade = [(Rgb::BLACK, 0.0), (Rgb::BLACK, 0.7)];
        pen.circle(
            x,
            y,
            r,
            Ink::Round(x - r * 0.4, y - r * 0.4, r * 1.7, shade),
        );
    });
}
