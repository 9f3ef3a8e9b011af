//! A scene: painted once from a shot's reading, then drawn at any time. It is immutable after
//! painting, so that several painters can draw frames of it at once.

use kinora_contract::{Resolution, Size};

use super::camera::Move;
use super::canvas::Canvas;
use super::layer::{Scratch, Seen, lay_all};
use super::lexicon::{Framing, Hour, Place, Reading};
use super::motion::Pulse;
use super::palette::Palette;
use super::rng::{Rng, hash};
use super::scenes;
use super::script::Shot;
use super::stage::{Element, Stage};
use super::view::View;

/// A painted scene.
#[derive(Debug)]
pub(super) struct Scene {
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
pub(super) struct Bench {
    scratch: Vec<Scratch>,
}

/// The length that shapes are sized by: near the short side, a little more in wide frames.
fn unit(width: f32, height: f32) -> f32 {
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
    let chance = by_chance[rng.below(by_chance.len())];
    match (reading.hour, place) {
        (_, Place::Space) => Hour::Night,
        (Some(hour), _) => hour,
        (None, Place::Desert | Place::Underwater) => Hour::Day,
        (None, _) if reading.neon => Hour::Night,
        (None, _) => chance,
    }
}

fn place(reading: &Reading, rng: &mut Rng) -> Place {
    const WILD: [Place; 5] = [
        Place::Abstract,
        Place::Hills,
        Place::Sea,
        Place::Abstract,
        Place::Mountains,
    ];
    let chance = WILD[rng.below(WILD.len())];
    let unread = reading.subjects.is_empty() && reading.hour.is_none();
    reading
        .place
        .unwrap_or(if unread { chance } else { Place::Hills })
}

/// The size of the stage of a film in frames of `size`, and frame pixels per stage pixel. All
/// resolutions of a shape share one stage, so that a draft and its final are the same film.
pub(super) fn stage_of(size: Size) -> (Size, f32) {
    let stage = size
        .named()
        .map_or(size, |(_, ratio)| Resolution::P720.size(ratio));
    let across = size.width as f32 / stage.width as f32;
    let down = size.height as f32 / stage.height as f32;
    (stage, across.max(down))
}

/// The palette of a shot, its place, and the camera's chance.
fn look(shot: &Shot, whole: &str, seed: u32) -> (Palette, Place) {
    // The palette of all shots is drawn from the same numbers: one film, one look.
    let mut film = Rng::new(u64::from(seed) ^ hash(whole.as_bytes()).rotate_left(21));
    let place = place(&shot.reading, &mut film);
    let hour = hour(&shot.reading, place, &mut film);
    (Palette::new(&shot.reading, hour, &mut film), place)
}

/// The colours that `shot` would be painted with. `whole` is the entire prompt.
pub(super) fn palette(shot: &Shot, whole: &str, seed: u32) -> Palette {
    look(shot, whole, seed).0
}

impl Scene {
    /// Paints the scene of `shot` for frames of `size`. `whole` is the entire prompt.
    pub(super) fn paint(shot: &Shot, whole: &str, seed: u32, size: Size, fps: u32) -> Self {
        let key = hash(whole.as_bytes()) ^ hash(shot.text.as_bytes()).rotate_left(9);
        let rng = Rng::new(u64::from(seed).wrapping_mul(0x9e37_79b9) ^ key);
        let reading = &shot.reading;
        let (palette, place) = look(shot, whole, seed);
        let camera = Move::choose(
            reading,
            &mut rng.fork(if shot.closer { "near" } else { "far" }),
        );
        let seconds = (shot.end - shot.appears()) as f32 / fps as f32;
        let (stage, pixels) = stage_of(size);
        let (wide, high) = (stage.width as f32, stage.height as f32);
        let close = shot.closer || reading.frames(Framing::Close);
        let far = reading.frames(Framing::Wide) || reading.frames(Framing::Aerial);
        let nearness = if close {
            1.55
        } else if far {
            0.72
        } else {
            1.0
        };
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
            nearness,
            elements: Vec::new(),
        };
        scenes::build(&mut stage);
        let vignette = if palette.is_dark() { 0.42 } else { 0.3 };
        let (unit, elements) = (stage.unit, stage.elements);
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

    pub(super) fn vignette(&self) -> f32 {
        self.vignette
    }

    /// Draws the scene `time_s` after its shot began to show.
    pub(super) fn draw(&self, time_s: f32, pulse: Pulse, canvas: &mut Canvas, bench: &mut Bench) {
        let mut view = self.camera.at(time_s, self.seconds, self.unit, self.centre);
        view.zoom *= pulse.zoom;
        view.pixels = self.pixels;
        let mut seen: Vec<(usize, Seen<'_>)> = Vec::new();
        for (index, element) in self.elements.iter().enumerate() {
            if let Element::Plane(layer) = element {
                let scratch = bench.scratch.pop().unwrap_or_default();
                seen.push((index, Seen::new(layer, &view, scratch)));
            }
        }
        let first = self.first_needed(&view, &seen, canvas.height);
        let mut planes = seen.into_iter().peekable();
        let mut together: Vec<(usize, Seen<'_>)> = Vec::new();
        for (index, element) in self.elements.iter().enumerate() {
            let needed = |y: usize| first[y] <= index;
            match element {
                Element::Plane(_) => {
                    together.extend(planes.next());
                    // Planes that follow each other are laid row by row, while a row is at hand.
                    if !matches!(self.elements.get(index + 1), Some(Element::Plane(_))) {
                        lay_all(&mut together, canvas, &first);
                        let spent = together.drain(..).map(|(_, plane)| plane.into_scratch());
                        bench.scratch.extend(spent);
                    }
                }
                Element::Wash(wash) => wash.lay(&view, canvas, needed),
                Element::Actor(actor) => actor.lay(&view, canvas),
                Element::Water(water) => water.lay(&view, canvas, needed),
                Element::Particles(particles) => particles.lay(&view, canvas),
            }
        }
    }

    /// For each row of the frame the first element that is not hidden there by a later plane.
    /// Above its horizon a water still mirrors what planes nearer than itself will hide.
    fn first_needed(&self, view: &View, seen: &[(usize, Seen<'_>)], height: usize) -> Vec<usize> {
        let water = self
            .elements
            .iter()
            .enumerate()
            .rev()
            .find_map(|(index, one)| match one {
                Element::Water(water) => Some((index, water.first_row(view))),
                _ => None,
            });
        let first = |y: usize| {
            let reach = water
                .filter(|(_, row)| y < *row)
                .map_or(usize::MAX, |(index, _)| index);
            let hiding = seen
                .iter()
                .rev()
                .find(|(index, one)| *index < reach && one.hides(y));
            hiding.map_or(0, |(index, _)| *index)
        };
        (0..height).map(first).collect()
    }
}
