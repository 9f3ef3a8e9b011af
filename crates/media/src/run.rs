//! One closed run of pictures through one encoder.
//! A run whose first pictures come out too large is started again with a higher quantiser, so
//! that grain cannot balloon a file; the choice depends on the run's pictures alone.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::Receiver;

use kinora_h264::{Config, Encoder, ParameterSets};

use crate::frames::Frame;
use crate::{ClipFormat, MediaError, RecorderOptions};

/// Pictures encoded before the quantiser is settled; they stay in memory until then.
const TRIAL_FRAMES: u32 = 6;
/// How far a run's quantiser may rise above the asked one.
const QP_RAISE_MAX: u8 = 16;
/// Finer differences are not worth another trial.
const QP_STEP: u8 = 1;

/// What all runs of a clip share.
pub(crate) struct RunConfig {
    encoder: Config,
    qp_max: u8,
    /// Ceiling on the mean bytes of a picture.
    frame_bytes_max: u64,
    /// Pictures that an IDR's cost is spread over.
    idr_interval: u64,
}

/// A run's coded samples, one after the other.
pub(crate) struct EncodedRun {
    pub(crate) bytes: Vec<u8>,
    pub(crate) sizes: Vec<u32>,
    pub(crate) parameter_sets: ParameterSets,
}

impl RunConfig {
    pub(crate) fn new(format: &ClipFormat, options: &RecorderOptions) -> Self {
        let pixels = u64::from(format.width) * u64::from(format.height);
        Self {
            encoder: Config {
                width: format.width,
                height: format.height,
                fps: format.fps,
                qp: options.qp,
            },
            qp_max: (options.qp + QP_RAISE_MAX).min(51),
            frame_bytes_max: pixels * u64::from(options.millibits_per_pixel_max) / 8_000,
            idr_interval: u64::from(format.fps),
        }
    }

    /// Mean bytes of a picture if a run goes on as it began: the IDR picture is spread over a
    /// second even in shorter runs, because a single still must not be squeezed to that mean.
    fn mean_bytes(&self, sizes: &[u32]) -> u64 {
        let Some((idr, others)) = sizes.split_first() else {
            return 0;
        };
        let others_sum: u64 = others.iter().copied().map(u64::from).sum();
        let others_mean = others_sum / (others.len() as u64).max(1);
        others_mean + u64::from(*idr) / self.idr_interval.max(1)
    }

    fn fits(&self, run: &EncodedRun) -> bool {
        self.mean_bytes(&run.sizes) <= self.frame_bytes_max
    }
}

/// Encodes `length` pictures from `frames`; `None` when the recorder was dropped meanwhile.
pub(crate) fn encode_run(
    config: &RunConfig,
    length: u32,
    frames: &Receiver<Frame>,
    stopped: &AtomicBool,
) -> Result<Option<EncodedRun>, MediaError> {
    let mut trial = Vec::new();
    while (trial.len() as u32) < TRIAL_FRAMES.min(length) {
        let Ok(frame) = frames.recv() else {
            return Ok(None);
        };
        trial.push(frame);
    }
    let Some((mut encoder, mut run)) = settle(config, &trial, stopped)? else {
        return Ok(None);
    };
    drop(trial);
    while (run.sizes.len() as u32) < length {
        let Ok(frame) = frames.recv() else {
            return Ok(None);
        };
        if stopped.load(Ordering::Relaxed) {
            return Ok(None);
        }
        encode_frame(&mut encoder, &frame, &mut run)?;
    }
    Ok(Some(run))
}

/// Finds the lowest quantiser at which the run's first pictures fit, by bisection: how fast
/// grain shrinks with the quantiser cannot be foretold. The highest allowed one is taken unseen.
fn settle(
    config: &RunConfig,
    trial: &[Frame],
    stopped: &AtomicBool,
) -> Result<Option<(Encoder, EncodedRun)>, MediaError> {
    let asked = config.encoder.qp;
    let first = encode_trial(config, asked, trial)?;
    if config.fits(&first.1) {
        return Ok(Some(first));
    }
    let (mut too_low, mut enough) = (asked, config.qp_max);
    let mut best = None;
    while enough - too_low > QP_STEP {
        if stopped.load(Ordering::Relaxed) {
            return Ok(None);
        }
        let qp = too_low + (enough - too_low) / 2;
        let attempt = encode_trial(config, qp, trial)?;
        if config.fits(&attempt.1) {
            (enough, best) = (qp, Some(attempt));
        } else {
            too_low = qp;
        }
    }
    match best {
        Some(best) => Ok(Some(best)),
        None => encode_trial(config, enough, trial).map(Some),
    }
}

fn encode_trial(
    config: &RunConfig,
    qp: u8,
    frames: &[Frame],
) -> Result<(Encoder, EncodedRun), MediaError> {
    let mut encoder = Encoder::new(&Config {
        qp,
        ..config.encoder
    })?;
    let parameter_sets = encoder.parameter_sets().clone();
    let mut run = EncodedRun {
        bytes: Vec::new(),
        sizes: Vec::new(),
        parameter_sets,
    };
    for frame in frames {
        encode_frame(&mut encoder, frame, &mut run)?;
    }
    Ok((encoder, run))
}

fn encode_frame(
    encoder: &mut Encoder,
    frame: &Frame,
    run: &mut EncodedRun,
) -> Result<(), MediaError> {
    let encoded = encoder.encode(frame.planes())?;
    // The file's list of sync samples has exactly the first picture of each run.
    if encoded.is_idr != run.sizes.is_empty() {
        return Err(MediaError::Mux(
            "an IDR picture is not where it was asked for".into(),
        ));
    }
    let size = u32::try_from(encoded.data.len())
        .map_err(|_| MediaError::Mux("a picture exceeds 4 GiB".into()))?;
    run.bytes.extend_from_slice(&encoded.data);
    run.sizes.push(size);
    Ok(())
}
