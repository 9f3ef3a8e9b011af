//! The places: each file paints one kind, back to front, from palette and seed.

mod abstract_scene;
mod cast;
mod city;
mod forest;
mod heavens;
mod land;
mod room;
mod sea;
mod sky;
mod space;
mod table;
#[cfg(test)]
mod tests;
mod underwater;
mod weather;

pub(crate) use cast::{FigureShortage, PreviousPlace, shortages};
pub(crate) use weather::paint_weather;

use crate::lexicon::Place;
use crate::raster::colour::Rgb;
use crate::raster::particles::{ParticleKind, Particles};
use crate::scene::scene_builder::{PlaneLayout, SceneBuilder};

/// Paints the whole scene onto `stage`.
pub(crate) fn build(stage: &mut SceneBuilder<'_>) {
    match stage.place {
        Place::Sea => sea::paint_sea(stage),
        Place::Lake => sea::paint_lake(stage),
        Place::Mountains => land::paint_mountains(stage),
        Place::Desert => land::paint_desert(stage),
        Place::Hills => land::paint_hills(stage),
        Place::Forest => forest::paint_forest(stage),
        Place::City => city::paint_city(stage),
        Place::Space => space::paint_space(stage),
        Place::Underwater => underwater::paint_underwater(stage),
        Place::Room => room::paint_room(stage),
        Place::Table => table::paint_table(stage),
        Place::Sky => sky::paint_above_clouds(stage),
        Place::Abstract => abstract_scene::paint_abstract(stage),
    }
    cast::place_near_fliers(stage);
    paint_weather(stage);
}

/// `count` marks over `area` (left, top, right, bottom), scattered by the stage's chance.
fn particles(
    stage: &mut SceneBuilder<'_>,
    mark: ParticleKind,
    count: usize,
    area: [f32; 4],
    colour: Rgb,
) -> Particles {
    Particles::new(mark, count, area, stage.unit, colour, &mut stage.rng)
}

impl PlaneLayout {
    /// It, with that strength of the brush texture.
    fn brushed(self, brush: f32) -> Self {
        Self { brush, ..self }
    }
}
