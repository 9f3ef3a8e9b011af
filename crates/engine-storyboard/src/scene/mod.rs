//! A scene: painted once from a shot's reading, then drawn at any time. It is immutable after painting, so that
//! several painters can draw frames of it at once. Hidden rows of planes are skipped.

pub(crate) mod actor;
pub(crate) mod camera;
pub(crate) mod events;
pub(crate) mod palette;
pub(crate) mod scene_builder;

use kinora_contract::{Resolution, Size};

use crate::lexicon::{Framing, Hour, Place, Reading, Weather};
use crate::places::{self, FigureShortage, PreviousPlace};
use crate::raster::canvas::Canvas;
use crate::raster::resample::RowScratch;
use crate::raster::{layer, wash};
use crate::revise::SceneSetting;
use crate::rng::{Rng, hash};
use crate::script::Shot;
use crate::subject::Subject;
use actor::Actor;
use camera::{CameraMove, CameraView, FramePulse};
use events::shot_events;
use palette::Palette;
use scene_builder::{SceneBuilder, SceneElement};

/// A painted scene.
#[derive(Debug)]
pub(crate) struct Scene {
    elements: Vec<SceneElement>,
    camera: CameraMove,
    seconds: f32,
    unit: f32,
    centre: (f32, f32),
    pixels: f32,
    vignette: f32,
}

/// The length that shapes are sized by: near the short side, a little more in wide frames.
fn unit(width: f32, height: f32) -> f32 {
    // The geometric mean of the sides, bound to the short one: wide frames have slightly larger
    // figures, and none has figures that leave it.
    ((width * height).sqrt() * 0.75).clamp(width.min(height) * 0.9, width.min(height) * 1.05)
}

fn hour(reading: &Reading, place: Place, rng: &mut Rng) -> Hour {
    let by_chance = [
        Hour::Golden,
        Hour::Day,
        Hour::Dawn,
        Hour::Golden,
        Hour::Dusk,
        Hour::Day,
    ];
    // Drawn even if the words name an hour: the palette follows from the same stream and must not
    // change with it.
    let chance = by_chance[rng.below(by_chance.len())];
    match (reading.hour, place) {
        (_, Place::Space) => Hour::Night,
        (Some(hour), _) => hour,
        (None, Place::Desert | Place::Underwater) => Hour::Day,
        (None, _) if reading.neon => Hour::Night,
        // No low sun shines through what hides the sky.
        (None, _) if hides_sky(reading) => Hour::Day,
        // At dusk snow could be any ground.
        (None, _) if reading.is_snowy() && chance == Hour::Dusk => Hour::Day,
        (None, _) => chance,
    }
}

fn hides_sky(reading: &Reading) -> bool {
    let hides = [
        Weather::Storm,
        Weather::Downpour,
        Weather::Blizzard,
        Weather::Rainbow,
    ];
    hides.iter().any(|weather| reading.has_weather(*weather))
}

fn place(reading: &Reading, rng: &mut Rng) -> Place {
    const WILD: [Place; 5] = [
        Place::Abstract,
        Place::Hills,
        Place::Sea,
        Place::Abstract,
        Place::Mountains,
    ];
    // Drawn even if the words name a place, for the same reason as in `hour`.
    let chance = WILD[rng.below(WILD.len())];
    let unread = reading.roles.is_empty() && reading.hour.is_none() && reading.weather.is_empty();
    reading
        .place
        .unwrap_or(if unread { chance } else { Place::Hills })
}

/// The size of the stage of a film in frames of `size`, and frame pixels per stage pixel. All
/// resolutions of a shape share one stage, so that a draft and its final are the same film.
pub(crate) fn stage_size(size: Size) -> (Size, f32) {
    let stage = Resolution::P720.shaped_like(size);
    let across = size.width as f32 / stage.width as f32;
    let down = size.height as f32 / stage.height as f32;
    (stage, across.max(down))
}

/// Magnification of the subjects.
fn nearness(closer: bool, reading: &Reading) -> f32 {
    let far = reading.has_framing(Framing::Wide) || reading.has_framing(Framing::Aerial);
    if closer || reading.has_framing(Framing::Close) {
        1.55
    } else if far {
        0.72
    } else {
        1.0
    }
}

/// Palette and place of a shot.
fn palette_and_place(reading: &Reading, whole: &str, seed: u32) -> (Palette, Place) {
    // The palette of all shots is drawn from the same numbers: one film, one look.
    let mut film = Rng::new(u64::from(seed) ^ hash(whole.as_bytes()).rotate_left(21));
    let place = place(reading, &mut film);
    let hour = hour(reading, place, &mut film);
    (Palette::new(reading, hour, &mut film), place)
}

/// The hour and the place of `shot`, by its words or by chance.
pub(crate) fn scene_setting(shot: &Shot, whole: &str, seed: u32) -> SceneSetting {
    let (palette, place) = palette_and_place(&shot.reading, whole, seed);
    let hour = palette.hour;
    SceneSetting { place, hour }
}

/// The colours that `shot` would be painted with. `whole` is the entire prompt.
pub(crate) fn palette(shot: &Shot, whole: &str, seed: u32) -> Palette {
    palette_and_place(&shot.reading, whole, seed).0
}

/// The figures that the words of `shot` ask for and its scene does not draw.
pub(crate) fn shortages(shot: &Shot, whole: &str, seed: u32) -> Vec<FigureShortage> {
    let place = scene_setting(shot, whole, seed).place;
    places::shortages(place, &shot.reading.roles)
}

impl Scene {
    /// Paints the scene of `shot` for frames of `size`. `whole` is the entire prompt.
    pub(crate) fn paint(shot: &Shot, whole: &str, seed: u32, size: Size, fps: u32) -> Self {
        Self::build(shot, whole, seed, size, fps, places::build)
    }

    /// Paints only the rain, snow and fog in front of the scene of `shot`, with a static camera: it
    /// is drawn over other pictures.
    pub(crate) fn weather(shot: &Shot, whole: &str, seed: u32, size: Size, fps: u32) -> Self {
        let camera = CameraMove::REST;
        let scene = Self::build(shot, whole, seed, size, fps, places::paint_weather);
        Self { camera, ..scene }
    }

    fn build(
        shot: &Shot,
        whole: &str,
        seed: u32,
        size: Size,
        fps: u32,
        paint: fn(&mut SceneBuilder<'_>),
    ) -> Self {
        // Palette, scene, events and sound rotate their hashes by 21, 9, 27 and 33 bits, so that
        // the same words give each a stream of its own.
        let key = hash(whole.as_bytes()) ^ hash(shot.text.as_bytes()).rotate_left(9);
        let rng = Rng::new(u64::from(seed).wrapping_mul(0x9e37_79b9) ^ key);
        let reading = &shot.reading;
        let camera = CameraMove::choose(
            reading,
            &mut rng.fork(if shot.closer { "near" } else { "far" }),
        );
        let seconds = (shot.end - shot.appears()) as f32 / fps as f32;
        let (stage, pixels) = stage_size(size);
        let (wide, high) = (stage.width as f32, stage.height as f32);
        let on = |reading: &Reading, kept: Vec<PreviousPlace>, bare: bool| {
            let (palette, place) = palette_and_place(reading, whole, seed);
            let mut stage = SceneBuilder {
                width: wide,
                height: high,
                pixels,
                unit: unit(wide, high),
                seconds,
                palette,
                reading,
                place,
                rng: rng.fork(if shot.closer { "closer" } else { "scene" }),
                nearness: nearness(shot.closer, reading),
                events: shot_events(shot, whole, seed, fps),
                elements: Vec::new(),
                bare,
                paved: false,
                previous_places: kept,
                placed: Vec::new(),
            };
            paint(&mut stage);
            (stage.elements, stage.placed)
        };
        // Every version before this one says where its figures are.
        let before = reading
            .past
            .iter()
            .fold(Vec::new(), |kept, past| on(past, kept, true).1);
        let (elements, _) = on(reading, before, false);
        let unit = unit(wide, high);
        let (palette, _) = palette_and_place(reading, whole, seed);
        let vignette = if palette.is_dark() { 0.42 } else { 0.3 };
        let centre = (wide * 0.5, high * 0.48);
        Self {
            elements,
            camera,
            seconds,
            unit,
            centre,
            pixels,
            vignette,
        }
    }

    pub(crate) fn vignette(&self) -> f32 {
        self.vignette
    }

    /// Boxes of the figures in the frame `time_s` after their shot began to show, each with its
    /// subject: left, top, right, bottom as shares of the frame.
    pub(crate) fn figures(&self, time_s: f32) -> Vec<(Subject, [f32; 4])> {
        self.boxes(time_s, |actor, view| {
            Some((actor.subject, actor.square(view)))
        })
    }

    /// The boxes of the heads in the frame then, as shares of it.
    pub(crate) fn heads(&self, time_s: f32) -> Vec<[f32; 4]> {
        let heads = self.boxes(time_s, |actor, view| {
            Some((actor.subject, actor.head(view)?))
        });
        heads.into_iter().map(|(_, head)| head).collect()
    }

    fn boxes(
        &self,
        time_s: f32,
        of: impl Fn(&Actor, &CameraView) -> Option<(Subject, [f32; 4])>,
    ) -> Vec<(Subject, [f32; 4])> {
        let view = self
            .camera
            .view_at(time_s, self.seconds, self.unit, self.centre);
        // The sides of the stage, back from the centre that `build` derives from them.
        let (wide, high) = (self.centre.0 / 0.5, self.centre.1 / 0.48);
        let actors = self.elements.iter().filter_map(|element| match element {
            SceneElement::Actor(actor) => of(actor, &view),
            _ => None,
        });
        let shares = actors.map(|(subject, [left, top, right, bottom])| {
            let share = [left / wide, top / high, right / wide, bottom / high];
            (subject, share)
        });
        shares.collect()
    }

    /// Draws the scene `time_s` after its shot began to show.
    pub(crate) fn draw(
        &self,
        time_s: f32,
        pulse: FramePulse,
        canvas: &mut Canvas,
        scratch: &mut RowScratch,
    ) {
        let mut view = self
            .camera
            .view_at(time_s, self.seconds, self.unit, self.centre);
        view.zoom *= pulse.zoom;
        view.pixels = self.pixels;
        // The flat elements in runs, each with the place of its first.
        // Planes and washes that follow each other are laid together, row by row, so that a row of
        // the canvas stays in the cache for all of them. Any other element ends a run.
        let mut runs: Vec<(usize, Vec<FlatElement<'_>>)> = Vec::new();
        for (index, element) in self.elements.iter().enumerate() {
            let Some(flat) = FlatElement::from_element(element, &view) else {
                continue;
            };
            match runs.last_mut() {
                Some((at, run)) if *at + run.len() == index => run.push(flat),
                _ => runs.push((index, vec![flat])),
            }
        }
        let first = self.first_needed(&view, &runs, canvas.height);
        let mut runs = runs.into_iter().peekable();
        for (index, element) in self.elements.iter().enumerate() {
            match element {
                SceneElement::Plane(_) | SceneElement::Wash(_) => {
                    if let Some((at, mut run)) = runs.next_if(|(at, _)| *at == index) {
                        draw_flats(&mut run, at, &first, canvas, scratch);
                    }
                }
                SceneElement::Actor(actor) => actor.draw(&view, canvas),
                SceneElement::Water(water) => water.draw(&view, canvas, |y| first[y] <= index),
                SceneElement::Particles(particles) => particles.draw(&view, canvas),
                SceneElement::Lightning(lightning) => lightning.draw(&view, canvas),
            }
        }
    }

    /// Finds, for each row of the frame, the first element that no later plane hides there. Rows
    /// above a water's horizon keep what the water mirrors, even if planes nearer than the water
    /// will hide it.
    fn first_needed(
        &self,
        view: &CameraView,
        runs: &[(usize, Vec<FlatElement<'_>>)],
        height: usize,
    ) -> Vec<usize> {
        let water = self
            .elements
            .iter()
            .enumerate()
            .rev()
            .find_map(|(index, one)| match one {
                SceneElement::Water(water) => Some((index, water.first_row(view))),
                _ => None,
            });
        (0..height)
            .map(|y| {
                let reach = water
                    .filter(|(_, row)| y < *row)
                    .map_or(usize::MAX, |(index, _)| index);
                let flats = runs.iter().flat_map(|(at, run)| {
                    run.iter()
                        .enumerate()
                        .map(move |(nth, one)| (at + nth, one))
                });
                let hiding = flats
                    .rev()
                    .find(|(index, one)| *index < reach && one.hides(y));
                hiding.map_or(0, |(index, _)| index)
            })
            .collect()
    }
}

/// A plane or wash under one camera view.
#[derive(Debug)]
enum FlatElement<'a> {
    Plane(layer::ProjectedLayer<'a>),
    Wash(wash::ProjectedWash<'a>),
}

impl<'a> FlatElement<'a> {
    /// `None` if the element is not flat.
    fn from_element(element: &'a SceneElement, view: &CameraView) -> Option<Self> {
        match element {
            SceneElement::Plane(layer) => {
                Some(Self::Plane(layer::ProjectedLayer::new(layer, view)))
            }
            SceneElement::Wash(wash) => Some(Self::Wash(wash::ProjectedWash::new(wash, view))),
            _ => None,
        }
    }

    /// Whether it hides everything behind it in row `y` of the frame.
    fn hides(&self, y: usize) -> bool {
        match self {
            Self::Plane(plane) => plane.hides(y),
            Self::Wash(_) => false,
        }
    }
}

/// Draws `flats`, back to front; the first of them is the scene's element `at`. In row `y` it skips
/// those before element `first[y]`.
fn draw_flats(
    flats: &mut [FlatElement<'_>],
    at: usize,
    first: &[usize],
    canvas: &mut Canvas,
    scratch: &mut RowScratch,
) {
    for (y, first) in first.iter().enumerate() {
        let row = canvas.row(y);
        for flat in flats.iter_mut().skip(first.saturating_sub(at)) {
            match flat {
                FlatElement::Plane(plane) => plane.draw_row(y, row, scratch),
                FlatElement::Wash(wash) => wash.draw_row(y, row, scratch),
            }
        }
    }
}
