//! Makes the frames of a job in order: several threads paint, one delivers. Memory stays bounded:
//! every painter holds at most one finished frame, and a set is dropped after its last frame.

use std::num::NonZero;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread;

use super::clip_painter::ClipPainter;
use crate::edit::remake::Remake;
use crate::edit::{EditSource, SourceFrames as SourceReel};
use crate::options::StoryboardKind;
use crate::sound::{ClipSound, samples};
use kinora_engine::{ClipSink, EngineError, FrameJob, JobControl, SourceVideo, WorkStage};

/// Maximum number of threads that paint one clip.
const WORKERS_MAX: usize = 8;

/// The channels of one painter.
struct PainterLane {
    frames: Receiver<Vec<u8>>,
    spent: SyncSender<Vec<u8>>,
    /// Source frames of an edit, in the order in which this painter needs them.
    sources: SyncSender<Vec<u8>>,
}

/// A painter's ends of the channels.
struct PainterChannels {
    out: SyncSender<Vec<u8>>,
    spent: Receiver<Vec<u8>>,
    sources: Receiver<Vec<u8>>,
}

/// Paints runs `first`, `first + step`, … until the last one, or until the receiver is gone.
fn paint_runs(
    film: &ClipPainter<'_>,
    first: u32,
    step: usize,
    blends: bool,
    seat: &PainterChannels,
) {
    let mut easel = film.painter_memory();
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
        film.draw(
            film.painted_frame(run),
            source.as_deref(),
            &mut easel,
            &mut rgb,
        );
        if seat.out.send(rgb).is_err() {
            return;
        }
    }
}

/// Makes the clip of `job`.
pub(crate) fn make_clip(
    job: &FrameJob<'_>,
    options: &StoryboardKind,
    sink: &mut dyn ClipSink,
    control: &JobControl,
) -> Result<(), EngineError> {
    control.report(WorkStage::Preparing, 0.0)?;
    let source = job.spec.edit.as_ref().and(job.materials.source.as_deref());
    let strength = job.spec.edit.as_ref().map_or(1.0, |edit| edit.strength);
    // Nothing of the edit shows. The source's own frames are better than any that were painted
    // again.
    if let Some(source) = source.filter(|_| strength <= 0.0) {
        copy_source(job, options, source, sink, control)?;
        return control.report(WorkStage::Finishing, 1.0);
    }
    let film = ClipPainter::new(job, options, EditSource::open(job, control)?);
    let seen = matches!(film.source, EditSource::Observed(_));
    let reel = source.filter(|_| seen).map(SourceReel::new).transpose()?;
    paint_all(&film, job, options, reel, sink, control)?;
    control.report(WorkStage::Finishing, 1.0)
}

fn paint_all(
    film: &ClipPainter<'_>,
    job: &FrameJob<'_>,
    options: &StoryboardKind,
    reel: Option<SourceReel>,
    sink: &mut dyn ClipSink,
    control: &JobControl,
) -> Result<(), EngineError> {
    let threads = options
        .threads
        .or_else(|| thread::available_parallelism().ok());
    let threads = threads.map_or(1, NonZero::get).min(WORKERS_MAX);
    let blends = reel.is_some();
    thread::scope(|scope| {
        let mut lanes = Vec::new();
        let mut painters = Vec::new();
        for first in 0..threads {
            // A painter holds one finished frame and paints another: with a slow sink it blocks, and
            // memory is bounded by the number of painters.
            let (out, frames) = sync_channel(1);
            // Buffers go back to their painter, which fills them again instead of allocating.
            let (spent, back) = sync_channel(2);
            // Room for one being painted, one waiting and one more: feeding never blocks.
            let (sources, needed) = sync_channel(3);
            lanes.push(PainterLane {
                frames,
                spent,
                sources,
            });
            let seat = PainterChannels {
                out,
                spent: back,
                sources: needed,
            };
            painters
                .push(scope.spawn(move || paint_runs(film, first as u32, threads, blends, &seat)));
        }
        let result = deliver_frames(film, job, lanes, reel, sink, control);
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
fn copy_source(
    job: &FrameJob<'_>,
    options: &StoryboardKind,
    source: &dyn SourceVideo,
    sink: &mut dyn ClipSink,
    control: &JobControl,
) -> Result<(), EngineError> {
    let mut reel = SourceReel::new(source)?;
    let ground = Remake::from_job(job).map_or(EditSource::None, EditSource::Remade);
    let mut track = FrameSound::new(job, &ClipPainter::new(job, options, ground));
    for frame in 0..job.clip.frames {
        control.report(WorkStage::Generating, done(frame, job.clip.frames))?;
        sink.frame(&reel.next()?)?;
        track.play(frame, sink)?;
    }
    Ok(())
}

fn done(frame: u32, frames: u32) -> f64 {
    f64::from(frame) / f64::from(frames)
}

/// The sound beside the frames, when the clip has any.
struct FrameSound {
    /// The sounds to mix, each with its volume.
    sounds: Vec<(ClipSound, f32)>,
    fps: u32,
}

impl FrameSound {
    fn new(job: &FrameJob<'_>, film: &ClipPainter<'_>) -> Self {
        let fps = job.clip.fps;
        let sounds = match &film.source {
            _ if !job.clip.audio => Vec::new(),
            EditSource::Remade(remake) => remake.sounds(job),
            EditSource::None | EditSource::Observed(_) => {
                vec![(ClipSound::new(job, &film.schedule.sound_shots()), 1.0)]
            }
        };
        Self { sounds, fps }
    }

    fn play(&mut self, frame: u32, sink: &mut dyn ClipSink) -> Result<(), EngineError> {
        let end = samples(frame + 1, self.fps);
        if let [(sound, _)] = &mut self.sounds[..] {
            return sink.audio(sound.samples_until(end));
        }
        let mut mixed: Vec<f32> = Vec::new();
        for (sound, share) in &mut self.sounds {
            let pcm = sound.samples_until(end);
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
fn deliver_frames(
    film: &ClipPainter<'_>,
    job: &FrameJob<'_>,
    lanes: Vec<PainterLane>,
    mut reel: Option<SourceReel>,
    sink: &mut dyn ClipSink,
    control: &JobControl,
) -> Result<(), EngineError> {
    let (frames, hold) = (job.clip.frames, film.hold());
    let mut track = FrameSound::new(job, film);
    let mut rgb = Vec::new();
    let mut fed = 0;
    for frame in 0..frames {
        control.report(WorkStage::Generating, done(frame, frames))?;
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
