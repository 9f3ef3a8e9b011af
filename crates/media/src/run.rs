//! Encodes one closed run of pictures with one encoder. If the first pictures come out too large,
//! the run restarts with a higher quantiser, so grain cannot inflate a file; the choice depends
//! only on the run's own pictures.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::Receiver;

use kinora_h264::{Config, Encoder, ParameterSets};

use crate::frames::Frame;
use crate::{ClipFormat, MediaError, RecorderOptions};

/// Number of pictures encoded before the quantiser is settled; they stay in memory until then.
const TRIAL_FRAMES: u32 = 6;
/// How far a run's quantiser may rise above the requested one.
const QP_RAISE_MAX: u8 = 16;
/// Finer differences are not worth another trial.
const QP_STEP: u8 = 1;

/// Settings shared by all runs of a clip.
pub(crate) struct RunConfig {
    encoder: Config,
    qp_max: u8,
    /// Maximum mean size of a picture in bytes.
    frame_bytes_max: u64,
    /// Number of pictures over which to spread an IDR's cost.
    idr_interval: u64,
}

/// A run's coded samples in sequence.
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

    /// Mean size of a picture if the run continues as it began. The IDR picture is spread over a
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

/// Encodes `length` pictures from `frames`; `None` if the recorder was dropped meanwhile.
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

/// Finds the lowest quantiser at which the first pictures fit, by bisection: how fast grain shrinks
/// is unpredictable. The highest allowed one is accepted without checking the fit.
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
            "the encoder put an IDR picture in the wrong place".into(),
        ));
    }
    let size = u32::try_from(encoded.data.len())
        .map_err(|_| MediaError::Mux("a picture exceeds 4 GiB".into()))?;
    run.bytes.extend_from_slice(&encoded.data);
    run.sizes.push(size);
    Ok(())
}
