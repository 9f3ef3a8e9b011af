//! Engine to file: runs the engine on a separate thread and feeds its frames and sound directly
//! into the recorder, so that encoding overlaps generation. The async side only waits.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use kinora_contract::{Size, VideoSpec};
use kinora_engine::{
    CHANNELS, Clip, Control, Engine, EngineError, Job, Materials, Picture, Preview, SAMPLE_RATE_HZ,
    Sink, Stage,
};
use kinora_media::{
    AudioFormat, ClipFormat, Provenance, RecorderOptions, Recording, Sealer, Written,
};
use kinora_scratch::Scratch;
use kinora_traces::{Span, Trail};
use tokio::sync::oneshot;

use crate::error::RecordError;
use crate::late_recorder::{LateRecorder, Plan};
use crate::mark::{Marked, Marker};
use crate::seal::{measured, seal};

/// Everything that a recording thread needs, as owned values.
pub(crate) struct RecordJob {
    pub(crate) engine: Arc<dyn Engine>,
    pub(crate) spec: VideoSpec,
    pub(crate) materials: Materials,
    pub(crate) clip: Clip,
    pub(crate) provenance: Provenance,
    pub(crate) staged: Staged,
    pub(crate) options: RecorderOptions,
    pub(crate) marker: Option<Marker>,
    pub(crate) sealer: Option<Arc<dyn Sealer>>,
    pub(crate) control: Control,
    pub(crate) trail: Trail,
}

/// A recorded clip and the file that holds it.
pub(crate) struct Recorded {
    pub(crate) recording: Recording,
    pub(crate) staged: Staged,
    /// Length and SHA-256 of that file.
    pub(crate) written: Written,
}

/// A file in the scratch folder. Dropping this removes it, so a failed or unneeded run leaves
/// nothing behind, wherever it ended.
pub(crate) struct Staged {
    path: PathBuf,
    /// The folder exists as long as it has files.
    _scratch: Arc<Scratch>,
}

impl Staged {
    pub(crate) fn new(scratch: &Arc<Scratch>, name: &str) -> Self {
        Self {
            path: scratch.path().join(name),
            _scratch: scratch.clone(),
        }
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for Staged {
    fn drop(&mut self) {
        match std::fs::remove_file(&self.path) {
            Err(error) if error.kind() != ErrorKind::NotFound => {
                tracing::warn!(%error, "scratch file not removed; the next start removes it");
            }
            _ => {}
        }
    }
}

/// Makes the file on a separate thread. `held` is dropped when that thread ends, however late: it
/// keeps the slot occupied by an engine that does not return.
pub(crate) async fn record<T: Send + 'static>(
    job: RecordJob,
    held: T,
) -> Result<Recorded, RecordError> {
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

fn record_blocking(job: RecordJob) -> Result<Recorded, RecordError> {
    job.control.report(Stage::Preparing, 0.0)?;
    let size = job.clip.size;
    let mark = job.marker.and_then(|marker| marker.mark(size));
    let plan = Plan {
        path: job.staged.path(),
        format: clip_format(job.clip),
        options: job.options,
        provenance: job.provenance.clone(),
    };
    let recorder = if job.engine.decides_length(&job.spec) {
        LateRecorder::Undecided(Some(Box::new(plan)))
    } else {
        LateRecorder::Decided(Box::new(plan.begin()?))
    };
    let mut sink = RecorderSink {
        recorder,
        marked: mark.map(|mark| Marked::new(mark, size)),
        size,
        preview: job.control.preview.clone(),
        span: job.trail.span("open"),
        trail: Some(job.trail.clone()),
    };
    let work = Job {
        spec: &job.spec,
        materials: &job.materials,
        clip: job.clip,
    };
    job.engine.generate(&work, &mut sink, &job.control)?;
    sink.span = job.trail.span("encode");
    job.control.report(Stage::Finishing, 0.5)?;
    let (mut recording, mut written) = sink.recorder.finish()?;
    let path = job.staged.path();
    if seal(job.sealer.as_deref(), path, &job.provenance)? {
        written = measured(path)?;
        recording.info.file_bytes = written.bytes;
    }
    Ok(Recorded {
        recording,
        staged: job.staged,
        written,
    })
}

fn clip_format(clip: Clip) -> ClipFormat {
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
    marked: Option<Marked>,
    size: Size,
    preview: Preview,
    /// `open` until the first frame, `render` until the last, then `encode` for the remaining
    /// encoding.
    span: Span,
    /// Where `render` starts; taken when it does.
    trail: Option<Trail>,
}

impl Sink for RecorderSink<'_> {
    fn decide(&mut self, frames: u32) -> Result<(), EngineError> {
        self.recorder.decide(frames)
    }

    fn frame(&mut self, rgb: &[u8]) -> Result<(), EngineError> {
        if let Some(trail) = self.trail.take() {
            self.span = trail.span("render");
        }
        let rgb = match &mut self.marked {
            Some(marked) => marked.on(rgb),
            None => rgb,
        };
        // The current frame is the best picture of an unfinished clip.
        if self.preview.is_wanted() {
            self.preview.show(Picture {
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
