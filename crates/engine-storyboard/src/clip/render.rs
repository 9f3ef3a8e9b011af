//! Makes the frames of a job in order: several threads paint, one delivers. Memory stays bounded:
//! every painter holds at most one finished frame, and a set is dropped after its last frame.

use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread;

use super::film::Film;
use crate::edit::remake::Remake;
use crate::edit::{Ground, Reel as SourceReel};
use crate::options::Options;
use crate::sound::{Sound, samples};
use kinora_engine::{Control, EngineError, Footage, Job, Sink, Stage};

/// Maximum number of threads that paint one clip.
const WORKERS_MAX: usize = 8;

/// The channels of one painter.
struct Lane {
    frames: Receiver<Vec<u8>>,
    spent: SyncSender<Vec<u8>>,
    /// Source frames of an edit, in the order in which this painter needs them.
    sources: SyncSender<Vec<u8>>,
}

/// A painter's ends of the channels.
struct Seat {
    out: SyncSender<Vec<u8>>,
    spent: Receiver<Vec<u8>>,
    sources: Receiver<Vec<u8>>,
}

fn lane() -> (Lane, Seat) {
    // A painter holds one finished frame and paints another: with a slow sink it blocks, and memory
    // is bounded by the number of painters.
    let (out, frames) = sync_channel(1);
    // Buffers go back to their painter, which fills them again instead of allocating.
    let (spent, back) = sync_channel(2);
    // Room for one being painted, one waiting and one more: feeding never blocks.
    let (sources, needed) = sync_channel(3);
    let lane = Lane {
        frames,
        spent,
        sources,
    };
    let seat = Seat {
        out,
        spent: back,
        sources: needed,
    };
    (lane, seat)
}

/// Paints runs `first`, `first + step`, … until the last one, or until the receiver is gone.
fn paint(film: &Film<'_>, first: u32, step: usize, blends: bool, seat: &Seat) {
    let mut easel = film.easel();
    let runs = film.clip.frames.div_ceil(film.hold());
    // Every `step`-th run is this painter's, so that the other side knows without a queue whose
    // frame is next.
    for run in (first..runs).step_by(step) {
        let source = if blends {
            let Ok(source) = seat.sources.recv() else {
                return;
            };
            Some(source)
        } else {
            None
        };
        let mut rgb = seat.spent.try_recv().unwrap_or_default();
        film.draw(film.painted(run), source.as_deref(), &mut easel, &mut rgb);
        if seat.out.send(rgb).is_err() {
            return;
        }
    }
}

/// Makes the clip of `job`.
pub(crate) fn clip(
    job: &Job<'_>,
    options: &Options,
    sink: &mut dyn Sink,
    control: &Control,
) -> Result<(), EngineError> {
    control.report(Stage::Preparing, 0.0)?;
    let source = job.spec.edit.as_ref().and(job.materials.source.as_deref());
    let strength = job.spec.edit.as_ref().map_or(1.0, |edit| edit.strength);
    // Nothing of the edit shows. The source's own frames are better than any that were painted
    // again.
    if let Some(source) = source.filter(|_| strength <= 0.0) {
        keep(job, options, source, sink, control)?;
        return control.report(Stage::Finishing, 1.0);
    }
    let film = Film::new(job, options, Ground::of(job, control)?);
    let seen = matches!(film.ground, Ground::Seen(_));
    let reel = source.filter(|_| seen).map(SourceReel::new).transpose()?;
    paint_all(&film, job, options, reel, sink, control)?;
    control.report(Stage::Finishing, 1.0)
}

fn paint_all(
    film: &Film<'_>,
    job: &Job<'_>,
    options: &Options,
    reel: Option<SourceReel>,
    sink: &mut dyn Sink,
    control: &Control,
) -> Result<(), EngineError> {
    let threads = options
        .threads
        .map_or_else(
            || thread::available_parallelism().map_or(1, std::num::NonZero::get),
            std::num::NonZero::get,
        )
        .clamp(1, WORKERS_MAX);
    let blends = reel.is_some();
    thread::scope(|scope| {
        let mut lanes = Vec::new();
        let mut painters = Vec::new();
        for first in 0..threads {
            let (lane, seat) = lane();
            lanes.push(lane);
            painters.push(scope.spawn(move || paint(film, first as u32, threads, blends, &seat)));
        }
        let result = hand_over(film, job, lanes, reel, sink, control);
        // Joined by hand, every one: a painter's panic is this clip's failure, not the process's.
        let lost = painters
            .into_iter()
            .filter_map(|painter| painter.join().err())
            .count();
        if lost == 0 || result.is_err() {
            result
        } else {
            Err(failed())
        }
    })
}

fn failed() -> EngineError {
    EngineError::Failed("a painter stopped".to_owned())
}

/// Delivers an edit of strength 0.0: the source's frames, byte for byte.
fn keep(
    job: &Job<'_>,
    options: &Options,
    source: &dyn Footage,
    sink: &mut dyn Sink,
    control: &Control,
) -> Result<(), EngineError> {
    let mut reel = SourceReel::new(source)?;
    let ground = Remake::of(job).map_or(Ground::None, Ground::Remade);
    let mut track = Accompaniment::new(job, &Film::new(job, options, ground));
    for frame in 0..job.clip.frames {
        control.report(Stage::Generating, done(frame, job.clip.frames))?;
        sink.frame(&reel.next()?)?;
        track.play(frame, sink)?;
    }
    Ok(())
}

fn done(frame: u32, frames: u32) -> f64 {
    f64::from(frame) / f64::from(frames)
}

/// The sound beside the frames, when the clip has any.
struct Accompaniment {
    /// The sounds to mix, each with its volume.
    sounds: Vec<(Sound, f32)>,
    fps: u32,
}

impl Accompaniment {
    fn new(job: &Job<'_>, film: &Film<'_>) -> Self {
        let fps = job.clip.fps;
        let sounds = match &film.ground {
            _ if !job.clip.audio => Vec::new(),
            Ground::Remade(remake) => remake.sounds(job),
            Ground::None | Ground::Seen(_) => vec![(Sound::new(job, &film.reel.heard()), 1.0)],
        };
        Self { sounds, fps }
    }

    fn play(&mut self, frame: u32, sink: &mut dyn Sink) -> Result<(), EngineError> {
        let end = samples(frame + 1, self.fps);
        if let [(sound, _)] = &mut self.sounds[..] {
            return sink.audio(sound.until(end));
        }
        let mut mixed: Vec<f32> = Vec::new();
        for (sound, share) in &mut self.sounds {
            let pcm = sound.until(end);
            mixed.resize(pcm.len(), 0.0);
            for (sum, part) in mixed.iter_mut().zip(pcm) {
                *sum += part * *share;
            }
        }
        match mixed[..] {
            [] => Ok(()),
            _ => sink.audio(&mixed),
        }
    }
}

/// Sends source frames to the painters, and their frames in order, with sound, to the sink.
fn hand_over(
    film: &Film<'_>,
    job: &Job<'_>,
    lanes: Vec<Lane>,
    mut reel: Option<SourceReel>,
    sink: &mut dyn Sink,
    control: &Control,
) -> Result<(), EngineError> {
    let (frames, hold) = (job.clip.frames, film.hold());
    let mut track = Accompaniment::new(job, film);
    let mut rgb = Vec::new();
    let mut fed = 0;
    for frame in 0..frames {
        control.report(Stage::Generating, done(frame, frames))?;
        if frame % hold == 0 {
            let run = (frame / hold) as usize;
            // A source plays in one direction only: it is read here, in order and one round ahead,
            // and each frame is handed to the painter of its run.
            while let Some(reel) = reel.as_mut().filter(|_| fed < frames as usize)
                && fed <= run + lanes.len()
            {
                // A painter that is gone is noticed where its frame is awaited.
                let _ = lanes[fed % lanes.len()].sources.send(reel.next()?);
                fed += 1;
            }
            let lane = &lanes[run % lanes.len()];
            // A painter that is done takes nothing back; the frame is then simply dropped.
            let next = lane.frames.recv().map_err(|_| failed())?;
            let before = std::mem::replace(&mut rgb, next);
            let _ = lane.spent.try_send(before);
        }
        sink.frame(&rgb)?;
        track.play(frame, sink)?;
        film.strike(frame + 1);
    }
    Ok(())
}
