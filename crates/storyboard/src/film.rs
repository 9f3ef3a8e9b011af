//! One clip while it is made: its takes, the sets that are in use, and the drawing of any frame.
//! It decides no times and runs no threads.

use std::sync::{Arc, Mutex, PoisonError};

use kinora_contract::VideoSpec;

use super::canvas::Canvas;
use super::caption::{Caption, Page};
use super::colour::smooth;
use super::cover::{Fit, cover, fit, fitted};
use super::edit::Rhythm;
use super::morph::Morph;
use super::motion::{Pulse, Swell};
use super::palette::Palette;
use super::photo::{Look, Photo};
use super::reel::{Reel, Show, Take};
use super::restyle::{Restyle, Tints};
use super::rng::{Rng, hash};
use super::scene::{Bench, Scene, palette};
use super::script::Shot;
use super::sound::{Track, samples};
use kinora_engine::{Clip, Job, Materials, Picture};

/// How many frames of a draft show one painted frame.
const DRAFT_HOLD: u32 = 3;
/// How long letters, slate and vignette take to come in after a frame of the caller's, seconds.
const LETTERS_S: f32 = 0.5;
/// How long the hour's colour takes to come in there, seconds.
const GRADE_S: f32 = 2.0;

/// What a take is drawn from.
#[derive(Debug)]
enum Set {
    Painted(Scene),
    Photo(Photo),
    Morph(Morph),
}

/// A thing that is made at its first use and let go after its last.
type Slot<T> = Mutex<Option<Arc<T>>>;

fn held<T>(slot: &Slot<T>, make: impl FnOnce() -> T) -> Arc<T> {
    let mut held = slot.lock().unwrap_or_else(PoisonError::into_inner);
    Arc::clone(held.get_or_insert_with(|| Arc::new(make())))
}

fn slots<T>(count: usize) -> Vec<Slot<T>> {
    (0..count).map(|_| Mutex::new(None)).collect()
}

fn release<T>(slot: &Slot<T>) {
    *slot.lock().unwrap_or_else(PoisonError::into_inner) = None;
}

/// A clip and what of it is in use.
#[derive(Debug)]
pub(super) struct Film<'a> {
    spec: &'a VideoSpec,
    materials: &'a Materials,
    pub(super) clip: Clip,
    pub(super) reel: Reel,
    sets: Vec<Slot<Set>>,
    tints: Vec<Slot<Tints>>,
    restyle: Slot<Restyle>,
    rhythm: Option<Rhythm>,
    captions: Vec<Slot<Caption>>,
    slate: Option<Page>,
    swell: Swell,
    /// How far an edit leaves its source; 1.0 without one.
    pub(super) strength: f32,
}

/// One painter's memory.
#[derive(Debug)]
pub(super) struct Easel {
    canvas: Canvas,
    second: Option<Canvas>,
    third: Option<Canvas>,
    bench: Bench,
}

impl<'a> Film<'a> {
    /// The film of `job`; for an edit with the `rhythm` of its source.
    pub(super) fn new(job: &Job<'a>, rhythm: Option<Rhythm>) -> Self {
        let Job {
            spec,
            materials,
            clip,
        } = *job;
        let whole = [clip.frames];
        let ends = rhythm
            .as_ref()
            .map_or(&whole[..], |rhythm| rhythm.ends.as_slice());
        let reel = Reel::new(job, ends);
        let draft = if spec.draft { "DRAFT · " } else { "" };
        let slate = format!("KINORA STORYBOARD · {draft}seed {}", spec.seed);
        let swell = match &rhythm {
            Some(rhythm) => Swell::of_levels(rhythm.light.clone(), clip.fps),
            None => Track::lay(&materials.audios, samples(clip.frames, clip.fps))
                .map_or_else(Swell::default, |track| {
                    Swell::of_sound(&track, clip.frames, clip.fps)
                }),
        };
        Self {
            spec,
            materials,
            clip,
            sets: slots(reel.takes.len()),
            tints: slots(reel.takes.len()),
            restyle: Mutex::new(None),
            rhythm,
            captions: slots(reel.lines.len()),
            reel,
            slate: Page::slate(&slate, clip.size),
            swell,
            strength: spec
                .edit
                .as_ref()
                .map_or(1.0, |edit| edit.strength.clamp(0.0, 1.0) as f32),
        }
    }

    /// How many frames in a row show the same painted frame.
    pub(super) fn hold(&self) -> u32 {
        if self.spec.draft && self.spec.edit.is_none() {
            DRAFT_HOLD
        } else {
            1
        }
    }

    /// The frame that is painted for the `nth` run of [`Film::hold`] frames: the middle one, but
    /// at both ends the outermost.
    pub(super) fn painted(&self, nth: u32) -> u32 {
        let first = nth * self.hold();
        let last = (first + self.hold()).min(self.clip.frames) - 1;
        if first == 0 {
            0
        } else if last + 1 == self.clip.frames {
            last
        } else {
            u32::midpoint(first, last)
        }
    }

    pub(super) fn easel(&self) -> Easel {
        Easel {
            canvas: self.canvas(),
            second: None,
            third: None,
            bench: Bench::default(),
        }
    }

    fn canvas(&self) -> Canvas {
        let size = self.clip.size;
        Canvas::new(size.width as usize, size.height as usize)
    }

    fn palette(&self, shot: &Shot) -> Palette {
        palette(shot, &self.spec.prompt, self.spec.seed)
    }

    /// The set of take `index`, made at its first use.
    fn set(&self, index: usize) -> Arc<Set> {
        let take = &self.reel.takes[index];
        held(&self.sets[index], || self.build(take, index))
    }

    fn build(&self, take: &Take, index: usize) -> Set {
        let (shot, spec, clip) = (&take.shot, self.spec, self.clip);
        let mut rng = Rng::new(u64::from(spec.seed) ^ hash(spec.prompt.as_bytes()))
            .fork(&format!("photo {index}"));
        let materials = self.materials;
        match (take.show, &materials.first_frame) {
            (Show::Image(image, again), _) => materials.images.get(image).map(|picture| {
                let fit = fit(picture, clip.size.width as usize, clip.size.height as usize);
                let way = Look::way(&shot.reading, &mut rng);
                let (mut from, mut to) = match fit {
                    Fit::Whole => Look::straight(way),
                    Fit::Tall => Look::raised(way),
                    Fit::Wide => way,
                };
                if again % 2 == 1 {
                    // Seen again: from nearer, so that a new shot is a new view.
                    from.zoom += 0.22;
                    to.zoom += 0.22;
                }
                Set::Photo(self.photo(picture, vec![from, to], shot, fit == Fit::Whole))
            }),
            (Show::Frames, Some(first)) => Some(self.frames(first, shot, &mut rng)),
            _ => None,
        }
        .unwrap_or_else(|| {
            let scene = Scene::paint(shot, &spec.prompt, spec.seed, clip.size, clip.fps);
            Set::Painted(scene)
        })
    }

    /// The first frame with a camera that follows the lines, or on to the last frame.
    fn frames(&self, first: &Picture, shot: &Shot, rng: &mut Rng) -> Set {
        let goal = Look::goal(&shot.reading, rng);
        let Some(last) = &self.materials.last_frame else {
            let goals = self.reel.lines.iter().skip(1);
            let later: Vec<Look> = goals.map(|line| Look::goal(&line.reading, rng)).collect();
            let path = [Look::REST, goal].into_iter().chain(later).collect();
            return Set::Photo(self.photo(first, path, shot, false));
        };
        // Both move the same way across, so that one camera seems to pass from one to the other.
        let before = Look {
            across: -goal.across,
            down: -goal.down,
            zoom: goal.zoom,
        };
        let first = self.photo(first, vec![Look::REST, goal], shot, false);
        let last = self.photo(last, vec![before, Look::REST], shot, false);
        let size = self.clip.size;
        let (width, height) = (size.width as usize, size.height as usize);
        Set::Morph(Morph::new(first, last, width, height, rng.next()))
    }

    fn photo(&self, picture: &Picture, path: Vec<Look>, shot: &Shot, whole: bool) -> Photo {
        let size = self.clip.size;
        let (width, height) = (size.width as usize, size.height as usize);
        let texture = if whole {
            fitted(picture, width, height)
        } else {
            cover(picture, width, height)
        };
        Photo::new(texture, path, &self.palette(shot))
    }

    /// Lets go of what no frame from `frame` on needs.
    pub(super) fn strike(&self, frame: u32) {
        let past = |shot: &Shot| shot.end <= frame;
        for (index, take) in self.reel.takes.iter().enumerate() {
            if past(&take.shot) {
                release(&self.sets[index]);
                release(&self.tints[index]);
            }
        }
        for (line, caption) in self.reel.lines.iter().zip(&self.captions) {
            if past(line) {
                release(caption);
            }
        }
    }

    /// Draws take `index` at `frame` of the clip.
    fn take(
        &self,
        index: usize,
        frame: u32,
        canvas: &mut Canvas,
        spare: &mut Option<Canvas>,
        bench: &mut Bench,
    ) -> f32 {
        let shot = &self.reel.takes[index].shot;
        let at = frame - shot.appears().min(frame);
        let long = shot.end - shot.appears();
        let share = at as f32 / long.saturating_sub(1).max(1) as f32;
        let pulse = Pulse {
            light: 1.0,
            ..self.swell.at(frame)
        };
        let grade = self.away(frame, GRADE_S);
        match &*self.set(index) {
            Set::Painted(scene) => {
                let time_s = at as f32 / self.clip.fps as f32;
                scene.draw(time_s, pulse, canvas, bench);
                return scene.vignette();
            }
            Set::Photo(photo) => photo.draw(share, grade, pulse, canvas),
            Set::Morph(morph) => {
                let second = spare.get_or_insert_with(|| self.canvas());
                morph.draw(share, grade, pulse, canvas, second);
            }
        }
        0.12
    }

    /// Nothing on a frame that the caller gave, all of it `seconds` and more away from one.
    fn away(&self, frame: u32, seconds: f32) -> f32 {
        let share = |frames: u32| smooth(0.0, seconds, frames as f32 / self.clip.fps as f32);
        let materials = self.materials;
        let first = materials.first_frame.as_ref().map_or(1.0, |_| share(frame));
        let left = self.clip.frames - 1 - frame;
        let last = materials.last_frame.as_ref().map_or(1.0, |_| share(left));
        first.min(last)
    }

    /// Light at the ends of the clip, where it comes up from black and goes.
    fn light(&self, frame: u32) -> f32 {
        let edge = |frames: u32, take: Option<&Take>| {
            // A take of a few frames is to be seen, not faded.
            let long = take.map_or(0, |take| take.shot.end - take.shot.start);
            let fade = (self.clip.fps / 4).min(long / 6);
            0.25 + 0.75 * smooth(0.0, 1.0, frames as f32 / (fade + 1) as f32)
        };
        let (materials, takes) = (self.materials, &self.reel.takes);
        if let Some(rhythm) = &self.rhythm {
            // Where the source is still seen, it brings its own fade.
            return if self.strength < 1.0 {
                1.0
            } else {
                rhythm.fade(frame)
            };
        }
        let first = match materials.first_frame {
            Some(_) => 1.0,
            None => edge(frame + 1, takes.first()),
        };
        let last = match materials.last_frame {
            Some(_) => 1.0,
            None => edge(self.clip.frames - frame, takes.last()),
        };
        first.min(last)
    }

    /// Draws `frame` of the clip into `rgb`; for an edit over its `source` frame.
    pub(super) fn draw(
        &self,
        frame: u32,
        source: Option<&[u8]>,
        easel: &mut Easel,
        rgb: &mut Vec<u8>,
    ) {
        let takes = &self.reel.takes;
        let index = takes
            .iter()
            .position(|take| frame < take.shot.end)
            .unwrap_or(0);
        let Easel {
            canvas,
            second,
            third,
            bench,
        } = easel;
        let mut vignette = self.take(index, frame, canvas, third, bench);
        let next = takes.get(index + 1).map(|take| &take.shot);
        if let Some(next) = next.filter(|next| frame >= next.appears() && next.dissolve > 0) {
            let share = (frame - next.appears() + 1) as f32 / (next.dissolve + 1) as f32;
            let share = smooth(0.0, 1.0, share);
            let other = second.get_or_insert_with(|| self.canvas());
            let coming = self.take(index + 1, frame, other, third, bench);
            canvas.dissolve(other, share);
            vignette += (coming - vignette) * share;
        }
        if let (Some(source), Some(rhythm)) = (source, &self.rhythm) {
            let tints = held(&self.tints[index], || {
                Tints::new(&self.palette(&takes[index].shot))
            });
            let light = (rhythm.mean(frame), rhythm.fade(frame));
            self.restyle().blend(source, &tints, light, canvas);
        }
        let ink = self.away(frame, LETTERS_S) * smooth(0.3, 0.5, self.strength);
        self.letter(frame, ink, canvas);
        let light = self.light(frame) * self.swell_light(frame);
        canvas.finish(vignette * ink * self.strength, light, rgb);
    }

    fn restyle(&self) -> Arc<Restyle> {
        let (size, seed) = (self.clip.size, u64::from(self.spec.seed));
        held(&self.restyle, || {
            Restyle::new(
                self.strength,
                size.width as usize,
                size.height as usize,
                seed,
            )
        })
    }

    fn swell_light(&self, frame: u32) -> f32 {
        1.0 - (1.0 - self.swell.at(frame).light) * self.strength
    }

    /// Lays caption and slate over the picture.
    fn letter(&self, frame: u32, ink: f32, canvas: &mut Canvas) {
        let (fps, size) = (self.clip.fps, self.clip.size);
        for (line, caption) in self.reel.lines.iter().zip(&self.captions) {
            if (line.start..line.end).contains(&frame) {
                let span = (line.start, line.end);
                held(caption, || Caption::new(&line.text, span, size, fps)).lay(frame, ink, canvas);
            }
        }
        if let Some(slate) = &self.slate {
            slate.lay(canvas, ink);
        }
    }
}
