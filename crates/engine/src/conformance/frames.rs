//! The contract of every engine that makes frames, checked through [`Engine`], a [`ClipSink`] and a
//! [`JobControl`].

use kinora_contract::{ModelPreset, VideoSpec};

use super::{CheckError, CheckResult, require};
use crate::{
    CHANNELS, ClipSink, Engine, EngineError, FrameJob, JobControl, JobMaterials, SAMPLE_RATE_HZ,
};

/// How a check disturbs a job.
#[derive(Clone, Copy, Debug, Default)]
enum Disturbance {
    #[default]
    None,
    /// A cancel at the first progress above 0.
    CancelAtProgress,
    /// A cancel when the sink takes the frame with this index.
    CancelAtFrame(u32),
    /// The sink refuses the frame with this index.
    RefuseFrame(u32),
}

/// A sink that records what it receives and disturbs the engine.
#[derive(Debug, Default)]
struct WitnessSink {
    frames: u32,
    planned: u32,
    /// The engine's own decisions on the length.
    decided: Vec<u32>,
    samples: u64,
    /// FNV-1a over all bytes and samples.
    hash: u64,
    wrong_size: bool,
    wild_sample: bool,
    frame_bytes: usize,
    control: JobControl,
    disturbance: Disturbance,
}

impl WitnessSink {
    fn hash_byte(&mut self, byte: u8) {
        self.hash = (self.hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
    }
}

/// The error of a failing sink; the engine must return it unchanged.
#[derive(Debug, thiserror::Error)]
#[error("the witness refuses")]
struct SinkRefusal;

impl ClipSink for WitnessSink {
    fn decide(&mut self, frames: u32) -> Result<(), EngineError> {
        // A decision after a frame comes too late; 0 marks it as wrong.
        self.decided.push(if self.frames == 0 { frames } else { 0 });
        Ok(())
    }

    fn frame(&mut self, rgb: &[u8]) -> Result<(), EngineError> {
        match self.disturbance {
            Disturbance::RefuseFrame(index) if index == self.frames => {
                return Err(EngineError::Sink(Box::new(SinkRefusal)));
            }
            Disturbance::CancelAtFrame(index) if index == self.frames => {
                self.control.cancel.cancel();
            }
            _ => {}
        }
        self.wrong_size |= rgb.len() != self.frame_bytes;
        self.frames += 1;
        for byte in rgb {
            self.hash_byte(*byte);
        }
        Ok(())
    }

    fn audio(&mut self, pcm: &[f32]) -> Result<(), EngineError> {
        self.samples += pcm.len() as u64;
        self.wild_sample |= pcm
            .iter()
            .any(|sample| sample.is_nan() || sample.abs() > 1.0);
        for byte in pcm.iter().flat_map(|sample| sample.to_le_bytes()) {
            self.hash_byte(byte);
        }
        Ok(())
    }
}

/// A sink after a job, and the job's result.
type Witnessed = (WitnessSink, Result<(), EngineError>);

fn run(
    engine: &dyn Engine,
    spec: &VideoSpec,
    materials: &JobMaterials,
    disturbance: Disturbance,
) -> Result<Witnessed, CheckError> {
    run_with(None, engine, spec, materials, disturbance)
}

fn run_with(
    preset: Option<&ModelPreset>,
    engine: &dyn Engine,
    spec: &VideoSpec,
    materials: &JobMaterials,
    disturbance: Disturbance,
) -> Result<Witnessed, CheckError> {
    let clip = engine
        .plan(spec, materials)
        .map_err(|error| CheckError::Broken(format!("plan refused: {error}")))?;
    let control = JobControl::default();
    if matches!(disturbance, Disturbance::CancelAtProgress) {
        control.cancel.cancel_at_progress();
    }
    let mut seen = WitnessSink {
        planned: clip.frames,
        frame_bytes: clip.size.pixels() as usize * 3,
        control: control.clone(),
        disturbance,
        ..WitnessSink::default()
    };
    let result = engine.generate(
        &FrameJob {
            spec,
            materials,
            clip,
            preset,
        },
        &mut seen,
        &control,
    );
    Ok((seen, result))
}

/// Runs every check with `spec` and `materials`, which the engine must support; use small and short
/// ones.
///
/// # Errors
/// The first broken promise.
pub fn check(engine: &dyn Engine, spec: &VideoSpec, materials: &JobMaterials) -> CheckResult {
    outline(engine, spec, materials)?;
    repeats(engine, spec, materials)?;
    obeys_cancel(engine, spec, materials)?;
    leaves_no_trace(engine, spec, materials)?;
    leaves_no_trace_of_a_step(engine, spec, materials)?;
    returns_sink_errors(engine, spec, materials)
}

/// A number that is the same for the same frames and sound.
///
/// # Errors
/// If the engine makes none.
pub fn fingerprint(
    engine: &dyn Engine,
    spec: &VideoSpec,
    materials: &JobMaterials,
) -> Result<u64, CheckError> {
    fingerprint_with(None, engine, spec, materials)
}

fn fingerprint_with(
    preset: Option<&ModelPreset>,
    engine: &dyn Engine,
    spec: &VideoSpec,
    materials: &JobMaterials,
) -> Result<u64, CheckError> {
    let (seen, result) = run_with(preset, engine, spec, materials, Disturbance::None)?;
    result.map_err(|error| CheckError::Broken(format!("generation failed: {error}")))?;
    Ok(seen.hash)
}

/// A job that was stopped after its first frame changes nothing about the next one.
///
/// # Errors
/// The broken promise.
pub fn leaves_no_trace(
    engine: &dyn Engine,
    spec: &VideoSpec,
    materials: &JobMaterials,
) -> CheckResult {
    leaves_no_trace_after(Disturbance::CancelAtFrame(1), engine, spec, materials)
}

/// The same of a job that was stopped at its first progress: engines that compute all frames before they deliver one
/// are then between two steps, where a cache is the usual trace.
///
/// # Errors
/// The broken promise.
pub fn leaves_no_trace_of_a_step(
    engine: &dyn Engine,
    spec: &VideoSpec,
    materials: &JobMaterials,
) -> CheckResult {
    leaves_no_trace_after(Disturbance::CancelAtProgress, engine, spec, materials)
}

fn leaves_no_trace_after(
    stop: Disturbance,
    engine: &dyn Engine,
    spec: &VideoSpec,
    materials: &JobMaterials,
) -> CheckResult {
    let before = fingerprint(engine, spec, materials)?;
    let (seen, stopped) = run(engine, spec, materials, stop)?;
    // If all frames arrived, the cancel came too late to leave a trace, and the check proves
    // nothing.
    let whole = seen.decided.last().unwrap_or(&seen.planned);
    if matches!(stop, Disturbance::CancelAtProgress) && seen.frames == *whole {
        return Err(CheckError::Untested(
            "the engine reports no progress above 0 before its last frame, so no job can be stopped while it computes"
                .to_owned(),
        ));
    }
    require(
        matches!(stopped, Err(EngineError::Cancelled)),
        "a cancel is answered as one",
    )?;
    let after = fingerprint(engine, spec, materials)?;
    require(
        before == after,
        "a job that was stopped leaves no trace in the next one",
    )
}

/// The clip matches its plan exactly, and progress rises to the end. Returns its [`fingerprint`].
///
/// # Errors
/// The broken promise.
pub fn outline(
    engine: &dyn Engine,
    spec: &VideoSpec,
    materials: &JobMaterials,
) -> Result<u64, CheckError> {
    let clip = engine
        .plan(spec, materials)
        .map_err(|error| CheckError::Broken(format!("plan refused: {error}")))?;
    let again = engine
        .plan(spec, materials)
        .map_err(|error| CheckError::Broken(format!("plan refused: {error}")))?;
    require(clip == again, "planning twice gives the same clip")?;
    let (seen, result) = run(engine, spec, materials, Disturbance::None)?;
    result.map_err(|error| CheckError::Broken(format!("generation failed: {error}")))?;
    let frames = length(engine.decides_length(spec), &seen.decided, clip.frames)?;
    require(
        seen.frames == frames,
        "the number of frames is the planned one, or the one that it decided",
    )?;
    require(!seen.wrong_size, "every frame has the planned size")?;
    require(!seen.wild_sample, "every sample lies in -1.0 to 1.0")?;
    let channels = u64::from(CHANNELS);
    let per_second = u64::from(SAMPLE_RATE_HZ) * channels;
    let length = u64::from(frames) * per_second / u64::from(clip.fps);
    // Within a frame: rates that do not divide 48,000 cannot match exactly.
    let near = seen.samples.abs_diff(length) <= per_second / u64::from(clip.fps);
    require(
        if clip.audio { near } else { seen.samples == 0 },
        "sound is as long as the picture",
    )?;
    require(
        seen.samples.is_multiple_of(channels),
        "sound comes in whole stereo samples",
    )?;
    let progress = &seen.control.progress;
    require(!progress.has_fallen(), "progress never falls")?;
    require(!progress.has_left_range(), "progress lies in 0.0 to 1.0")?;
    let is_whole = (progress.fraction() - 1.0).abs() < 1e-6;
    require(is_whole, "progress ends at the whole")?;
    require(
        progress.reports() >= u64::from(frames),
        "every frame is a sign of life",
    )?;
    Ok(seen.hash)
}

/// The clip follows an input: with another one, the clip is another one too. `first` is the [`fingerprint`] with
/// materials that differ from `other` in the `input` alone.
///
/// # Errors
/// The broken promise.
pub fn follows(
    engine: &dyn Engine,
    spec: &VideoSpec,
    input: &str,
    first: u64,
    other: &JobMaterials,
) -> CheckResult {
    let second = fingerprint(engine, spec, other)?;
    require(
        first != second,
        &format!("the clip follows the {input}: another {input} gives another clip"),
    )
}

/// The clip follows the preset, which leaves nothing behind: the job after it, without a preset, makes the clip of before.
/// `preset` must change the clip.
///
/// # Errors
/// The broken promise.
pub fn obeys_preset(
    engine: &dyn Engine,
    spec: &VideoSpec,
    materials: &JobMaterials,
    preset: &ModelPreset,
) -> CheckResult {
    let before = fingerprint(engine, spec, materials)?;
    let changed = fingerprint_with(Some(preset), engine, spec, materials)?;
    require(
        before != changed,
        "the clip follows the preset: another preset gives another clip",
    )?;
    let after = fingerprint(engine, spec, materials)?;
    require(
        before == after,
        "a preset leaves nothing behind: the job after it, without a preset, makes the clip of before",
    )?;
    let again = fingerprint_with(Some(preset), engine, spec, materials)?;
    require(again == changed, "the same preset gives the same clip")
}

/// The number of frames that the clip should have.
fn length(is_undecided: bool, decided: &[u32], planned: u32) -> Result<u32, CheckError> {
    match decided {
        [] if !is_undecided => Ok(planned),
        [frames] if is_undecided && (1..=planned).contains(frames) => Ok(*frames),
        _ => Err(CheckError::Broken(
            "the length is decided once, before the first frame, if it is left to the engine, and is at most the \
             longest allowed one"
                .to_owned(),
        )),
    }
}

/// The same spec gives the same bytes; another seed gives others.
///
/// # Errors
/// The broken promise.
pub fn repeats(engine: &dyn Engine, spec: &VideoSpec, materials: &JobMaterials) -> CheckResult {
    let (first, _) = run(engine, spec, materials, Disturbance::None)?;
    let (second, _) = run(engine, spec, materials, Disturbance::None)?;
    require(
        first.hash == second.hash,
        "the same spec gives the same frames and sound",
    )?;
    let other = VideoSpec {
        seed: spec.seed.wrapping_add(1),
        ..spec.clone()
    };
    let (third, _) = run(engine, &other, materials, Disturbance::None)?;
    require(first.hash != third.hash, "another seed gives another clip")
}

/// A cancel stops the work at once, even if it came before the start.
///
/// # Errors
/// The broken promise.
pub fn obeys_cancel(
    engine: &dyn Engine,
    spec: &VideoSpec,
    materials: &JobMaterials,
) -> CheckResult {
    let (seen, result) = run(engine, spec, materials, Disturbance::CancelAtFrame(2))?;
    require(
        matches!(result, Err(EngineError::Cancelled)),
        "a cancel is answered as one",
    )?;
    // Three frames have arrived at the cancel; one more may be on its way through a buffer.
    require(seen.frames <= 4, "a cancel is obeyed within a frame")
}

/// The engine returns the sink's error unchanged, and passes on nothing more.
///
/// # Errors
/// The broken promise.
pub fn returns_sink_errors(
    engine: &dyn Engine,
    spec: &VideoSpec,
    materials: &JobMaterials,
) -> CheckResult {
    let (seen, result) = run(engine, spec, materials, Disturbance::RefuseFrame(3))?;
    let same = matches!(&result, Err(EngineError::Sink(cause)) if cause.is::<SinkRefusal>());
    require(same, "the sink's own error is returned")?;
    require(
        seen.frames == 3,
        "nothing is handed over after the sink refused",
    )
}
