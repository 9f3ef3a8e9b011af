//! A scene: painted once from a shot's reading, then drawn at any time. It is immutable after painting, so that
//! several painters can draw frames of it at once. Hidden rows of planes are skipped.

pub(crate) mod actor;
pub(crate) mod camera;
pub(crate) mod events;
pub(crate) mod palette;
pub(crate) mod stage;

use kinora_contract::{Resolution, Size};

use super::lexicon::{Framing, Hour, Place, Reading, Weather};
use super::revise::Settled;
use super::rng::{Rng, hash};
use super::scenes::{self, Kept, Shortage};
use super::script::Shot;
use super::subject::Subject;
use crate::raster::canvas::Canvas;
use crate::raster::resample::Scratch;
use crate::raster::{layer, wash};
use actor::Actor;
use camera::{Move, Pulse, View};
use events::events;
use palette::Palette;
use stage::{Element, Stage};

/// A painted scene.
#[derive(Debug)]
pub(crate) struct Scene {
    elements: Vec<Element>,
    camera: Move,
    seconds: f32,
    unit: f32,
    centre: (f32, f32),
    pixels: f32,
    vignette: f32,
}

/// Working memory of one painter.
#[derive(Debug, Default)]
pub(crate) struct Bench {
    scratch: Scratch,
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
        (None, _) if covered(reading) => Hour::Day,
        // At dusk snow could be any ground.
        (None, _) if reading.is_snowy() && chance == Hour::Dusk => Hour::Day,
        (None, _) => chance,
    }
}

fn covered(reading: &Reading) -> bool {
    let hides = [
        Weather::Storm,
        Weather::Downpour,
        Weather::Blizzard,
        Weather::Rainbow,
    ];
    hides.iter().any(|weather| reading.has(*weather))
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
pub(crate) fn stage_of(size: Size) -> (Size, f32) {
    let stage = Resolution::P720.shaped_like(size);
    let across = size.width as f32 / stage.width as f32;
    let down = size.height as f32 / stage.height as f32;
    (stage, across.max(down))
}

/// Magnification of the subjects.
fn nearness(closer: bool, reading: &Reading) -> f32 {
    let far = reading.frames(Framing::Wide) || reading.frames(Framing::Aerial);
    if closer || reading.frames(Framing::Close) {
        1.55
    } else if far {
        0.72
    } else {
        1.0
    }
}

/// Palette and place of a shot.
fn look(reading: &Reading, whole: &str, seed: u32) -> (Palette, Place) {
    // The palette of all shots is drawn from the same numbers: one film, one look.
    let mut film = Rng::new(u64::from(seed) ^ hash(whole.as_bytes()).rotate_left(21));
    let place = place(reading, &mut film);
    let hour = hour(reading, place, &mut film);
    (Palette::new(reading, hour, &mut film), place)
}

/// The hour and the place of `shot`, by its words or by chance.
pub(crate) fn settled(shot: &Shot, whole: &str, seed: u32) -> Settled {
    let (palette, place) = look(&shot.reading, whole, seed);
    let hour = palette.hour;
    Settled { place, hour }
}

/// The colours that `shot` would be painted with. `whole` is the entire prompt.
pub(crate) fn palette(shot: &Shot, whole: &str, seed: u32) -> Palette {
    look(&shot.reading, whole, seed).0
}

/// The figures that the words of `shot` ask for and its scene does not draw.
pub(crate) fn shortages(shot: &Shot, whole: &str, seed: u32) -> Vec<Shortage> {
    let place = settled(shot, whole, seed).place;
    scenes::shortages(place, &shot.reading.roles)
}

impl Scene {
    /// Paints the scene of `shot` for frames of `size`. `whole` is the entire prompt.
    pub(crate) fn paint(shot: &Shot, whole: &str, seed: u32, size: Size, fps: u32) -> Self {
        Self::build(shot, whole, seed, size, fps, scenes::build)
    }

    /// Paints only the rain, snow and fog in front of the scene of `shot`, with a static camera: it
    /// is drawn over other pictures.
    pub(crate) fn weather(shot: &Shot, whole: &str, seed: u32, size: Size, fps: u32) -> Self {
        let camera = Move::REST;
        let scene = Self::build(shot, whole, seed, size, fps, scenes::weather);
        Self { camera, ..scene }
    }

    fn build(
        shot: &Shot,
        whole: &str,
        seed: u32,
        size: Size,
        fps: u32,
        paint: fn(&mut Stage<'_>),
    ) -> Self {
        // Palette, scene, events and sound rotate their hashes by 21, 9, 27 and 33 bits, so that
        // the same words give each a stream of its own.
        let key = hash(whole.as_bytes()) ^ hash(shot.text.as_bytes()).rotate_left(9);
        let rng = Rng::new(u64::from(seed).wrapping_mul(0x9e37_79b9) ^ key);
        let reading = &shot.reading;
        let camera = Move::choose(
            reading,
            &mut rng.fork(if shot.closer { "near" } else { "far" }),
        );
        let seconds = (shot.end - shot.appears()) as f32 / fps as f32;
        let (stage, pixels) = stage_of(size);
        let (wide, high) = (stage.width as f32, stage.height as f32);
        let on = |reading: &Reading, kept: Vec<Kept>, bare: bool| {
            let (palette, place) = look(reading, whole, seed);
            let mut stage = Stage {
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
                events: events(shot, whole, seed, fps),
                elements: Vec::new(),
                bare,
                paved: false,
                kept,
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
        let (palette, _) = look(reading, whole, seed);
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
        of: impl Fn(&Actor, &View) -> Option<(Subject, [f32; 4])>,
    ) -> Vec<(Subject, [f32; 4])> {
        let view = self.camera.at(time_s, self.seconds, self.unit, self.centre);
        // The sides of the stage, back from the centre that `build` derives from them.
        let (wide, high) = (self.centre.0 / 0.5, self.centre.1 / 0.48);
        let actors = self.elements.iter().filter_map(|element| match element {
            Element::Actor(actor) => of(actor, &view),
            _ => None,
        });
        let shares = actors.map(|(subject, [left, top, right, bottom])| {
            let share = [left / wide, top / high, right / wide, bottom / high];
            (subject, share)
        });
        shares.collect()
    }

    /// Draws the scene `time_s` after its shot began to show.
    pub(crate) fn draw(&self, time_s: f32, pulse: Pulse, canvas: &mut Canvas, bench: &mut Bench) {
        let mut view = self.camera.at(time_s, self.seconds, self.unit, self.centre);
        view.zoom *= pulse.zoom;
        view.pixels = self.pixels;
        // The flat elements in runs, each with the place of its first.
        // Planes and washes that follow each other are laid together, row by row, so that a row of
        // the canvas stays in the cache for all of them. Any other element ends a run.
        let mut runs: Vec<(usize, Vec<Flat<'_>>)> = Vec::new();
        for (index, element) in self.elements.iter().enumerate() {
            let Some(flat) = Flat::of(element, &view) else {
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
                Element::Plane(_) | Element::Wash(_) => {
                    if let Some((at, mut run)) = runs.next_if(|(at, _)| *at == index) {
                        lay_all(&mut run, at, &first, canvas, &mut bench.scratch);
                    }
                }
                Element::Actor(actor) => actor.lay(&view, canvas),
                Element::Water(water) => water.lay(&view, canvas, |y| first[y] <= index),
                Element::Particles(particles) => particles.lay(&view, canvas),
                Element::Lightning(lightning) => lightning.lay(&view, canvas),
            }
        }
    }

    /// Finds, for each row of the frame, the first element that no later plane hides there. Rows
    /// above a water's horizon keep what the water mirrors, even if planes nearer than the water
    /// will hide it.
    fn first_needed(
        &self,
        view: &View,
        runs: &[(usize, Vec<Flat<'_>>)],
        height: usize,
    ) -> Vec<usize> {
        let water = self
            .elements
            .iter()
            .enumerate()
            .rev()
            .find_map(|(index, one)| match one {
                Element::Water(water) => Some((index, water.first_row(view))),
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
enum Flat<'a> {
    Plane(layer::Seen<'a>),
    Wash(wash::Seen<'a>),
}

impl<'a> Flat<'a> {
    /// `None` if the element is not flat.
    fn of(element: &'a Element, view: &View) -> Option<Self> {
        match element {
            Element::Plane(layer) => Some(Self::Plane(layer::Seen::new(layer, view))),
            Element::Wash(wash) => Some(Self::Wash(wash::Seen::new(wash, view))),
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
fn lay_all(
    flats: &mut [Flat<'_>],
    at: usize,
    first: &[usize],
    canvas: &mut Canvas,
    scratch: &mut Scratch,
) {
    for (y, first) in first.iter().enumerate() {
        let row = canvas.row(y);
        for flat in flats.iter_mut().skip(first.saturating_sub(at)) {
            match flat {
                Flat::Plane(plane) => plane.lay(y, row, scratch),
                Flat::Wash(wash) => wash.lay(y, row, scratch),
            }
        }
    }
}
