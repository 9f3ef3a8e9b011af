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

use crate::lexicon::Place;
use crate::scene::scene_builder::SceneBuilder;

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
    weather::paint_weather(stage);
}

/// Paints only what falls and drifts before a scene.
pub(crate) fn paint_weather(stage: &mut SceneBuilder<'_>) {
    weather::paint_weather(stage);
}
