//! The places: each file paints one kind, back to front, from palette and seed.

mod cast;
mod city;
mod dream;
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

pub(crate) use cast::{Kept, Shortage, shortages};

use super::lexicon::Place;
use super::{art, lexicon, rng, subject};
use crate::raster::{layer, lightning, noise, particles, pen, wash, water};
use crate::scene::stage::{Plane, Stage};
use crate::scene::{events, palette};

/// Paints the whole scene onto `stage`.
pub(crate) fn build(stage: &mut Stage<'_>) {
    match stage.place {
        Place::Sea => sea::sea(stage),
        Place::Lake => sea::lake(stage),
        Place::Mountains => land::mountains(stage),
        Place::Desert => land::desert(stage),
        Place::Hills => land::hills(stage),
        Place::Forest => forest::forest(stage),
        Place::City => city::city(stage),
        Place::Space => space::space(stage),
        Place::Underwater => underwater::underwater(stage),
        Place::Room => room::room(stage),
        Place::Table => table::table(stage),
        Place::Sky => sky::above(stage),
        Place::Abstract => dream::dream(stage),
    }
    cast::near(stage);
    weather::weather(stage);
}

/// Paints only what falls and drifts before a scene.
pub(crate) fn weather(stage: &mut Stage<'_>) {
    weather::weather(stage);
}
