//! The second step of a run for an engine that makes frames: runs the engine on a separate thread
//! and feeds its frames and sound directly into the recorder, so that encoding overlaps generation.
//! Draws the operator's mark on the frames. The async side only waits. Also the recorded video of either
//! kind of engine, with the operator's signature between its label and its length and hash: a film that cannot
//! be signed is never published.

use std::error::Error;
use std::fmt;
use std::fs;
use std::io;
use std::path::Path;
use std::sync::Arc;

use kinora_blobs::measure_file;
use kinora_contract::{ModelPreset, Size, VideoSpec};
use kinora_engine::{
    CHANNELS, ClipPlan, ClipSink, Engine, EngineError, FrameJob, JobControl, JobMaterials,
    PreviewSlot, RgbPicture, SAMPLE_RATE_HZ, WorkStage,
};
use kinora_media::{
    AudioFormat, ClipFormat, MediaError, ProbeInfo, Provenance, Recorder, RecorderOptions,
    Recording, WrittenFile, probe,
};
use kinora_system::scratch::ScratchFile;
use kinora_traces::{SpanParent, TaskSpan};
use tokio::sync::oneshot;

use crate::error::RecordError;

/// Everything that a recording thread needs, as owned values.
pub(crate) struct RecordJob {
    pub(crate) engine: Arc<dyn Engine>,
    pub(crate) spec: VideoSpec,
    pub(crate) materials: JobMaterials,
    pub(crate) clip: ClipPlan,
    pub(crate) preset: Option<Arc<ModelPreset>>,
    pub(crate) provenance: Provenance,
    pub(crate) staged: ScratchFile,
    pub(crate) options: RecorderOptions,
    pub(crate) marker: Option<WatermarkPainter>,
    pub(crate) signer: Option<Arc<dyn FilmSigner>>,
    pub(crate) control: JobControl,
    pub(crate) trail: SpanParent,
}

/// A recorded clip and the file that holds it.
pub(crate) struct RecordedVideo {
    pub(crate) recording: Recording,
    pub(crate) staged: ScratchFile,
    /// Length and SHA-256 of that file.
    pub(crate) written: WrittenFile,
}

/// Makes the file on a separate thread. `held` is dropped when that thread ends, however late: it
/// keeps the slot occupied by an engine that does not return.
pub(crate) async fn record<T: Send + 'static>(
    job: RecordJob,
    held: T,
) -> Result<RecordedVideo, RecordError> {
    // A thread of its own, not one of a pool: an engine may compute for minutes, or never return,
    // and a lost thread of a pool would be lost to everybody.
    let (answer, answered) = oneshot::channel();
    let name = format!("engine-{}", job.spec.model);
    // The engine's log lines name the task as well.
    let span = tracing::Span::current();
    std::thread::Builder::new().name(name).spawn(move || {
        let _held = held;
        let _logged = span.entered();
        // Nobody listens when the run was given up; the file goes with the answer.
        let _ = answer.send(record_blocking(job));
    })?;
    answered.await.unwrap_or(Err(RecordError::Panicked))
}

fn record_blocking(job: RecordJob) -> Result<RecordedVideo, RecordError> {
    job.control.report(WorkStage::Preparing, 0.0)?;
    let size = job.clip.size;
    let mark = job.marker.and_then(|marker| marker.mark(size));
    let plan = RecorderPlan {
        path: job.staged.path(),
        format: clip_format(job.clip),
        options: job.options,
        provenance: job.provenance.clone(),
    };
    // The recorder needs the number of frames from the start. An engine that decides the length
    // while it works gets its recorder with that decision.
    let recorder = if job.engine.decides_length(&job.spec) {
        LateRecorder::Undecided(Some(Box::new(plan)))
    } else {
        LateRecorder::Decided(Box::new(plan.create_recorder()?))
    };
    let mut sink = RecorderSink {
        recorder,
        marked: mark.map(|mark| WatermarkBlender::new(mark, size)),
        size,
        preview: job.control.preview.clone(),
        span: job.trail.span("open"),
        trail: Some(job.trail.clone()),
    };
    let work = FrameJob {
        spec: &job.spec,
        materials: &job.materials,
        clip: job.clip,
        preset: job.preset.as_deref(),
    };
    job.engine.generate(&work, &mut sink, &job.control)?;
    // Replacing a span ends the one before it.
    sink.span = job.trail.span("encode");
    job.control.report(WorkStage::Finishing, 0.5)?;
    let (mut recording, mut written) = sink.recorder.finish()?;
    let (signer, path) = (job.signer.as_deref(), job.staged.path());
    let is_signed = sign(signer, path, &job.provenance, &mut || {
        job.control.report(WorkStage::Finishing, 0.5).is_ok()
    })?;
    if is_signed {
        // The signature is inside the file, so length and hash are those of the signed one.
        written = measured(path)?;
        recording.info.file_bytes = written.bytes;
    }
    Ok(RecordedVideo {
        recording,
        staged: job.staged,
        written,
    })
}

fn clip_format(clip: ClipPlan) -> ClipFormat {
    let audio = AudioFormat {
        sample_rate_hz: SAMPLE_RATE_HZ,
        channels: CHANNELS,
    };
    ClipFormat {
        width: clip.size.width,
        height: clip.size.height,
        fps: clip.fps,
        frames: clip.frames,
        audio: clip.audio.then_some(audio),
    }
}

struct RecorderSink<'a> {
    recorder: LateRecorder<'a>,
    marked: Option<WatermarkBlender>,
    size: Size,
    preview: PreviewSlot,
    /// `open` until the first frame, `render` until the last, then `encode` for the remaining
    /// encoding.
    span: TaskSpan,
    /// Parent of the `render` span; taken when that begins.
    trail: Option<SpanParent>,
}

impl ClipSink for RecorderSink<'_> {
    fn decide(&mut self, frames: u32) -> Result<(), EngineError> {
        self.recorder.decide(frames)
    }

    fn frame(&mut self, rgb: &[u8]) -> Result<(), EngineError> {
        if let Some(trail) = self.trail.take() {
            self.span = trail.span("render");
        }
        let rgb = match &mut self.marked {
            Some(marked) => marked.blend(rgb),
            None => rgb,
        };
        // The current frame is the best picture of an unfinished clip.
        if self.preview.is_wanted() {
            self.preview.show(RgbPicture {
                size: self.size,
                rgb: rgb.to_vec(),
            });
        }
        self.recorder
            .decided()?
            .push_frame(rgb)
            .map_err(|error| EngineError::Sink(error.into()))
    }

    fn audio(&mut self, pcm: &[f32]) -> Result<(), EngineError> {
        self.recorder
            .decided()?
            .push_audio(pcm)
            .map_err(|error| EngineError::Sink(error.into()))
    }
}

/// Everything that a recorder needs.
pub(crate) struct RecorderPlan<'a> {
    pub(crate) path: &'a Path,
    /// The length is the longest allowed one until it is decided.
    pub(crate) format: ClipFormat,
    pub(crate) options: RecorderOptions,
    pub(crate) provenance: Provenance,
}

impl RecorderPlan<'_> {
    pub(crate) fn create_recorder(self) -> Result<Recorder, MediaError> {
        let recorder = Recorder::create(self.path, self.format, self.options)?;
        Ok(recorder.with_provenance(self.provenance))
    }
}

/// The recorder, once the clip's length is known.
enum LateRecorder<'a> {
    Decided(Box<Recorder>),
    /// `None` after a decision that could not be followed.
    Undecided(Option<Box<RecorderPlan<'a>>>),
}

impl LateRecorder<'_> {
    /// Follows the engine's decision.
    ///
    /// # Errors
    /// The length is known, longer than planned, or zero; or there is no room for the file.
    pub(crate) fn decide(&mut self, frames: u32) -> Result<(), EngineError> {
        let Self::Undecided(plan) = self else {
            return Err(broken(
                "it decided the length of a clip whose length is known",
            ));
        };
        let mut plan = plan
            .take_if(|plan| (1..=plan.format.frames).contains(&frames))
            .ok_or_else(|| broken("it decided for a length that is not allowed"))?;
        plan.format.frames = frames;
        let recorder = plan.create_recorder();
        let recorder = recorder.map_err(|error| EngineError::Sink(error.into()))?;
        *self = Self::Decided(Box::new(recorder));
        Ok(())
    }

    /// The recorder for frames and sound.
    ///
    /// # Errors
    /// The length is not known.
    pub(crate) fn decided(&mut self) -> Result<&mut Recorder, EngineError> {
        match self {
            Self::Decided(recorder) => Ok(recorder),
            Self::Undecided(_) => Err(broken("it began before it had decided the length")),
        }
    }

    /// Finishes the file.
    pub(crate) fn finish(self) -> Result<(Recording, WrittenFile), RecordError> {
        match self {
            Self::Decided(recorder) => Ok(recorder.finish()?),
            Self::Undecided(_) => Err(broken("it ended without a decision on the length").into()),
        }
    }
}

fn broken(what: &str) -> EngineError {
    EngineError::Failed(format!("the engine broke a rule: {what}"))
}

/// Signs finished films. Shared by all threads of a process.
pub trait FilmSigner: Send + Sync + fmt::Debug {
    /// Writes the complete MP4 at `input`, signed, to the new file `output`. Gives up soon after `go_on` returns false.
    ///
    /// # Errors
    /// Whatever keeps it from signing.
    fn sign(
        &self,
        input: &Path,
        output: &Path,
        provenance: &Provenance,
        go_on: &mut dyn FnMut() -> bool,
    ) -> Result<(), Box<dyn Error + Send + Sync>>;
}

/// Replaces the film by a signed one, if films are signed. Returns whether it did.
pub(crate) fn sign(
    signer: Option<&dyn FilmSigner>,
    film: &Path,
    provenance: &Provenance,
    go_on: &mut dyn FnMut() -> bool,
) -> Result<bool, RecordError> {
    let Some(signer) = signer else {
        return Ok(false);
    };
    let signed = film.with_extension("signed.mp4");
    let outcome = signer
        .sign(film, &signed, provenance, go_on)
        .and_then(|()| Ok(check_signed(film, &signed)?))
        .map_err(RecordError::Sign)
        .and_then(|()| Ok(replace_by_signed(film, &signed).map_err(MediaError::Io)?));
    if outcome.is_err() {
        // It may not exist; the next start removes what is left.
        let _ = fs::remove_file(&signed);
    }
    outcome.map(|()| true)
}

/// Whether `signed` is a film like `unsigned`. A signer that fails may still exit as if it had not.
fn check_signed(unsigned: &Path, signed: &Path) -> Result<(), String> {
    // Opening a pipe or a device could block.
    if !fs::symlink_metadata(signed).is_ok_and(|found| found.is_file()) {
        return Err("the signer wrote no file".to_owned());
    }
    let before = probe(unsigned).map_err(|error| error.to_string())?;
    let after = probe(signed).map_err(|why| format!("the signed file is no MP4: {why}"))?;
    let file_bytes = before.file_bytes;
    if (ProbeInfo {
        file_bytes,
        ..after
    }) != before
    {
        return Err(format!(
            "the signed file is another video: {after:?} instead of {before:?}"
        ));
    }
    Ok(())
}

/// Moves the signed film, with the mode of the unsigned one, to its place.
fn replace_by_signed(unsigned: &Path, signed: &Path) -> io::Result<()> {
    fs::set_permissions(signed, fs::metadata(unsigned)?.permissions())?;
    fs::rename(signed, unsigned)
}

/// Length and SHA-256 of a file that did not pass through this process as it is.
pub(crate) fn measured(path: &Path) -> Result<WrittenFile, MediaError> {
    let (bytes, sha256) = measure_file(path)?;
    Ok(WrittenFile { bytes, sha256 })
}

/// Draws the mark for frames of a given size; `None` if it does not fit.
#[derive(Clone)]
pub struct WatermarkPainter(Arc<dyn Fn(Size) -> Option<WatermarkImage> + Send + Sync>);

impl WatermarkPainter {
    /// Creates a painter that uses `draw`.
    pub fn new(draw: impl Fn(Size) -> Option<WatermarkImage> + Send + Sync + 'static) -> Self {
        Self(Arc::new(draw))
    }

    pub(crate) fn mark(&self, size: Size) -> Option<WatermarkImage> {
        (self.0)(size)
    }
}

impl fmt::Debug for WatermarkPainter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("WatermarkPainter")
    }
}

/// A drawn mark.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WatermarkImage {
    /// The column of its first pixel.
    pub left: usize,
    /// The row of its first pixel.
    pub top: usize,
    /// Pixels of a row.
    pub width: usize,
    /// `[height][width][2] u8`: grey, premultiplied, and opacity.
    pub pixels: Vec<[u8; 2]>,
}

/// Marks frames of one size.
struct WatermarkBlender {
    mark: WatermarkImage,
    /// Pixels of a frame's row.
    frame_width: usize,
    /// The last frame, marked.
    frame: Vec<u8>,
}

impl WatermarkBlender {
    pub(crate) fn new(mark: WatermarkImage, size: Size) -> Self {
        Self {
            mark,
            frame_width: size.width as usize,
            frame: Vec::new(),
        }
    }

    /// `rgb [height][width][3] u8` with the mark, clipped to the frame.
    pub(crate) fn blend(&mut self, rgb: &[u8]) -> &[u8] {
        let Self {
            mark,
            frame_width,
            frame,
        } = self;
        frame.clear();
        frame.extend_from_slice(rgb);
        let rows = frame.chunks_exact_mut((*frame_width * 3).max(1));
        let marked_rows = mark.pixels.chunks_exact(mark.width.max(1));
        for (row, marks) in rows.skip(mark.top).zip(marked_rows) {
            let pixels = row.as_chunks_mut::<3>().0;
            for (pixel, [grey, alpha]) in pixels.iter_mut().skip(mark.left).zip(marks) {
                for value in pixel {
                    *value = over(*value, *grey, *alpha);
                }
            }
        }
        frame
    }
}

/// `grey`, premultiplied, with opacity `alpha` over `below`.
fn over(below: u8, grey: u8, alpha: u8) -> u8 {
    // Porter and Duff's "over" (Compositing Digital Images, 1984) with premultiplied grey: `below *
    // (1 - alpha) + grey`, in 255ths; 127 rounds to the nearest.
    let shown = (u32::from(below) * u32::from(255 - alpha) + 127) / 255;
    // Cannot exceed 255: `grey` is at most `alpha`.
    (shown + u32::from(grey)).min(255) as u8
}

#[cfg(test)]
mod mark_tests {
    use super::*;

    #[test]
    fn only_the_marks_pixels_change_and_no_frame_keeps_an_earlier_one() {
        let mark = WatermarkImage {
            left: 1,
            top: 1,
            width: 2,
            pixels: vec![[255, 255], [0, 0], [0, 255], [64, 128]],
        };
        let mut marked = WatermarkBlender::new(mark, Size::new(4, 3));
        let mut expected = [100; 4 * 3 * 3];
        expected[15..18].fill(255);
        expected[27..30].fill(0);
        expected[30..33].fill(114);
        assert_eq!(marked.blend(&[100; 36]), expected);
        assert_eq!(marked.blend(&[0; 36])[..15], [0; 15]);
    }

    #[test]
    fn a_mark_outside_the_frame_is_left_out() {
        let mark = WatermarkImage {
            left: 3,
            top: 2,
            width: 9,
            pixels: vec![[255, 255]; 90],
        };
        let mut marked = WatermarkBlender::new(mark, Size::new(4, 3));
        let frame = marked.blend(&[7; 36]);
        assert_eq!(frame[..33], [7; 33]);
        assert_eq!(frame[33..], [255; 3]);
    }
}
