//! From a job to frames in order: several threads paint, one hands over. Memory stays flat:
//! every painter holds one finished frame at most, and a scene is dropped after its last.

use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;

use super::canvas::Canvas;
use super::caption::{Caption, Page};
use super::colour::smooth;
use super::scene::{Bench, Scene};
use super::script::{Shot, shots};
use super::sound::Sound;
use super::{FPS, Options};
use crate::{Control, EngineError, Job, Sink, Stage};

/// Frames over which a clip comes up from black, and goes.
const FADE_FRAMES: u32 = FPS / 4;
/// Scenes that may be kept at once: a dissolve needs two.
const WORKERS_MAX: usize = 8;

/// A shot that is ready to be drawn.
#[derive(Debug)]
struct Set {
    scene: Scene,
    caption: Caption,
}

/// A clip and the scenes of it that are in use.
#[derive(Debug)]
struct Film {
    prompt: String,
    seed: u32,
    width: usize,
    height: usize,
    frames: u32,
    shots: Vec<Shot>,
    sets: Vec<Mutex<Option<Arc<Set>>>>,
    slate: Option<Page>,
}

/// One painter's memory.
#[derive(Debug)]
struct Easel {
    canvas: Canvas,
    second: Option<Canvas>,
    bench: Bench,
}

impl Film {
    fn new(job: &Job<'_>) -> Self {
        let (spec, clip) = (job.spec, job.clip);
        let avoid = spec.negative_prompt.as_deref().unwrap_or_default();
        let shots = shots(&spec.prompt, avoid, clip.frames);
        let (width, height) = (clip.size.width as usize, clip.size.height as usize);
        let slate = format!("KINORA STORYBOARD · seed {}", spec.seed);
        Self {
            prompt: spec.prompt.clone(),
            seed: spec.seed,
            width,
            height,
            frames: clip.frames,
            sets: shots.iter().map(|_| Mutex::new(None)).collect(),
            shots,
            slate: Page::slate(&slate, width, height),
        }
    }

    /// The set of shot `index`, painted at its first use.
    fn set(&self, index: usize) -> Arc<Set> {
        let mut held = self.sets[index]
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        let set = held.get_or_insert_with(|| {
            let shot = &self.shots[index];
            let scene = Scene::paint(shot, &self.prompt, self.seed, self.width, self.height);
            let caption = Caption::new(&shot.text, shot.start, shot.end, self.width, self.height);
            Arc::new(Set { scene, caption })
        });
        Arc::clone(set)
    }

    /// Lets go of the sets that no frame from `frame` on needs.
    fn strike(&self, frame: u32) {
        for (shot, set) in self.shots.iter().zip(&self.sets) {
            if shot.end <= frame {
                *set.lock().unwrap_or_else(PoisonError::into_inner) = None;
            }
        }
    }

    fn draw(&self, frame: u32, easel: &mut Easel, rgb: &mut Vec<u8>) {
        let seconds = |frames: u32| frames as f32 / FPS as f32;
        let index = self
            .shots
            .iter()
            .position(|shot| frame < shot.end)
            .unwrap_or(0);
        let shot = &self.shots[index];
        let set = self.set(index);
        let Easel {
            canvas,
            second,
            bench,
        } = easel;
        set.scene
            .draw(seconds(frame - shot.appears().min(frame)), canvas, bench);
        let mut vignette = set.scene.vignette();
        if let Some(next) = self
            .shots
            .get(index + 1)
            .filter(|next| frame >= next.appears())
        {
            let coming = self.set(index + 1);
            let share = (frame - next.appears() + 1) as f32 / (next.dissolve + 1) as f32;
            let share = smooth(0.0, 1.0, share);
            let other = second.get_or_insert_with(|| Canvas::new(self.width, self.height));
            coming
                .scene
                .draw(seconds(frame - next.appears()), other, bench);
            canvas.dissolve(other, share);
            vignette += (coming.scene.vignette() - vignette) * share;
        } else {
            *second = None;
        }
        set.caption.lay(frame, canvas);
        if let Some(slate) = &self.slate {
            slate.lay(canvas, 1.0);
        }
        let edge = (frame + 1).min(self.frames - frame) as f32 / (FADE_FRAMES + 1) as f32;
        canvas.finish(vignette, 0.25 + 0.75 * smooth(0.0, 1.0, edge), rgb);
    }
}

/// Where one painter's frames come out and where emptied ones go back.
struct Lane {
    frames: Receiver<Vec<u8>>,
    spent: SyncSender<Vec<u8>>,
}

/// Paints frames `first`, `first + step`, … until done or no longer wanted.
fn paint(
    film: &Film,
    first: u32,
    step: usize,
    out: &SyncSender<Vec<u8>>,
    spent: &Receiver<Vec<u8>>,
) {
    let mut easel = Easel {
        canvas: Canvas::new(film.width, film.height),
        second: None,
        bench: Bench::default(),
    };
    for frame in (first..film.frames).step_by(step) {
        let mut rgb = spent.try_recv().unwrap_or_default();
        film.draw(frame, &mut easel, &mut rgb);
        if out.send(rgb).is_err() {
            return;
        }
    }
}

/// Makes the clip of `job` with so many threads.
pub(super) fn clip(
    job: &Job<'_>,
    options: &Options,
    sink: &mut dyn Sink,
    control: &Control,
) -> Result<(), EngineError> {
    control.report(Stage::Preparing, 0.0)?;
    let cores = || thread::available_parallelism().map_or(1, std::num::NonZero::get);
    let threads = options
        .threads
        .map_or_else(cores, std::num::NonZero::get)
        .clamp(1, WORKERS_MAX);
    let film = Film::new(job);
    let result = thread::scope(|scope| {
        let film = &film;
        let mut lanes = Vec::new();
        let mut painters = Vec::new();
        for first in 0..threads {
            let (out, frames) = sync_channel(1);
            let (spent, back) = sync_channel(2);
            lanes.push(Lane { frames, spent });
            painters.push(scope.spawn(move || paint(film, first as u32, threads, &out, &back)));
        }
        let result = hand_over(film, job, lanes, sink, control);
        // Joined by hand, every one: a painter's panic is this clip's failure, not the process's.
        let lost = painters
            .into_iter()
            .filter_map(|painter| painter.join().err())
            .count();
        let whole = lost == 0;
        if whole || result.is_err() {
            result
        } else {
            Err(failed())
        }
    });
    result?;
    control.report(Stage::Finishing, 1.0)
}

fn failed() -> EngineError {
    EngineError::Failed("a painter stopped".to_owned())
}

/// Takes the frames in order and gives them, with their sound, to the sink.
fn hand_over(
    film: &Film,
    job: &Job<'_>,
    lanes: Vec<Lane>,
    sink: &mut dyn Sink,
    control: &Control,
) -> Result<(), EngineError> {
    let clip = job.clip;
    let mut sound = clip
        .audio
        .then(|| Sound::new(&film.shots, &film.prompt, film.seed, clip.frames));
    for (frame, lane) in (0..clip.frames).zip((0..lanes.len()).cycle()) {
        control.report(Stage::Generating, f64::from(frame) / f64::from(clip.frames))?;
        let lane = &lanes[lane];
        let rgb = lane.frames.recv().map_err(|_| failed())?;
        sink.frame(&rgb)?;
        // A painter that is done takes nothing back; the frame is then simply dropped.
        let _ = lane.spent.try_send(rgb);
        if let Some(sound) = &mut sound {
            sink.audio(sound.frame())?;
        }
        film.strike(frame + 1);
    }
    Ok(())
}
