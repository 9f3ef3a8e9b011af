//! Encodes the picture track on several threads: each takes whole closed runs of pictures, and
//! finished runs are spooled in order. Run lengths and quantisers depend only on the clip, so any
//! number of threads gives the same bytes.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Receiver, Sender};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};

use kinora_media_h264::{EncoderConfig, H264Encoder, ParameterSets};

use crate::frames::{FramePool, IN_FLIGHT_BYTES_MAX, PooledFrame, i420_bytes};
use crate::spool::{SampleSpool, SpooledTrack};
use crate::{ClipFormat, MediaError, RecorderOptions};

/// The encoded picture track.
pub(crate) struct VideoTrack {
    pub spooled: SpooledTrack,
    pub parameter_sets: ParameterSets,
    /// Frame indices at which decoding can start.
    pub sync_frames: Vec<u32>,
}

/// Takes pictures in order and encodes them on its threads.
pub(crate) struct VideoEncoder {
    shared: Arc<EncoderState>,
    threads: Vec<JoinHandle<()>>,
    runs: Option<Sender<PendingRun>>,
    current: Option<Sender<PooledFrame>>,
    plan: RunPlan,
    next_run: u32,
    left_in_run: u32,
}

/// A closed run of pictures on its way to a thread.
struct PendingRun {
    index: u32,
    length: u32,
    frames: Receiver<PooledFrame>,
}

/// State shared by the threads.
struct EncoderState {
    pool: Arc<FramePool>,
    stopped: AtomicBool,
    config: RunConfig,
    output: Mutex<TrackOutput>,
}

struct TrackOutput {
    /// `None` once the track is finished.
    spool: Option<SampleSpool>,
    next_run: u32,
    waiting: BTreeMap<u32, EncodedRun>,
    parameter_sets: Option<ParameterSets>,
    error: Option<MediaError>,
}

/// How to cut a clip into closed runs: about equally long, at most two seconds, and short enough
/// that two runs of large pictures fit in memory together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct RunPlan {
    frames: u32,
    runs: u32,
}

impl RunPlan {
    fn new(format: &ClipFormat) -> Self {
        // A run's pictures are held uncompressed only until they are encoded, but while one
        // thread works on a run the caller fills the next.
        let by_memory = IN_FLIGHT_BYTES_MAX / 2 / i420_bytes(format.width, format.height);
        let by_memory = u32::try_from(by_memory).unwrap_or(u32::MAX);
        // At least 2: neighbouring IDR pictures of separate encoders would carry the same
        // `idr_pic_id`, which Rec. ITU-T H.264, 7.4.3 forbids.
        let longest = (2 * format.fps).min(by_memory).max(2);
        Self {
            frames: format.frames,
            runs: format.frames.div_ceil(longest),
        }
    }

    /// Number of pictures in run `index`; the longer runs come first.
    fn run_length(self, index: u32) -> u32 {
        self.frames / self.runs + u32::from(index < self.frames % self.runs)
    }

    /// The first frame of run `index`.
    fn run_start(self, index: u32) -> u32 {
        index * (self.frames / self.runs) + index.min(self.frames % self.runs)
    }
}

impl VideoEncoder {
    pub(crate) fn start(
        format: &ClipFormat,
        options: &RecorderOptions,
        spool: SampleSpool,
    ) -> Result<Self, MediaError> {
        let plan = RunPlan::new(format);
        let shared = Arc::new(EncoderState {
            pool: FramePool::new(format.width, format.height),
            stopped: AtomicBool::new(false),
            config: RunConfig::new(format, options),
            output: Mutex::new(TrackOutput {
                spool: Some(spool),
                next_run: 0,
                waiting: BTreeMap::new(),
                parameter_sets: None,
                error: None,
            }),
        });
        let (runs, queue) = mpsc::channel();
        let queue = Arc::new(Mutex::new(queue));
        let mut encoder = Self {
            shared: Arc::clone(&shared),
            threads: Vec::new(),
            runs: Some(runs),
            current: None,
            plan,
            next_run: 0,
            left_in_run: 0,
        };
        let threads = options.encoder_threads.clamp(1, 16).min(plan.runs as usize);
        for _ in 0..threads {
            let (shared, queue) = (Arc::clone(&shared), Arc::clone(&queue));
            let thread = thread::Builder::new()
                .name("kinora-media-h264".into())
                .spawn(move || shared.run_worker(&queue))?;
            encoder.threads.push(thread);
        }
        Ok(encoder)
    }

    /// A buffer for the next picture; blocks while the encoders are behind.
    pub(crate) fn next_frame(&self) -> Result<PooledFrame, MediaError> {
        self.shared
            .pool
            .acquire()
            .ok_or_else(|| self.shared.take_error())
    }

    /// Passes on the next picture. The caller must check that the clip is not complete yet.
    pub(crate) fn push(&mut self, frame: PooledFrame) -> Result<(), MediaError> {
        if self.left_in_run == 0 {
            let length = self.plan.run_length(self.next_run);
            let (sender, frames) = mpsc::channel();
            let run = PendingRun {
                index: self.next_run,
                length,
                frames,
            };
            // A thread gets the run before its frames exist and encodes them as they arrive.
            let runs = self.runs.as_ref().ok_or(MediaError::WorkerLost)?;
            runs.send(run).map_err(|_| self.shared.take_error())?;
            self.current = Some(sender);
            self.next_run += 1;
            self.left_in_run = length;
        }
        let current = self.current.as_ref().ok_or(MediaError::WorkerLost)?;
        current.send(frame).map_err(|_| self.shared.take_error())?;
        self.left_in_run -= 1;
        Ok(())
    }

    /// Waits for the threads and returns the track.
    pub(crate) fn finish(mut self) -> Result<VideoTrack, MediaError> {
        self.join();
        let mut output = self.shared.lock();
        if let Some(error) = output.error.take() {
            return Err(error);
        }
        let spool = output.spool.take().ok_or(MediaError::WorkerLost)?;
        if output.next_run != self.plan.runs || spool.len() != self.plan.frames as usize {
            return Err(MediaError::WorkerLost);
        }
        Ok(VideoTrack {
            spooled: spool.finish()?,
            parameter_sets: output.parameter_sets.take().ok_or(MediaError::WorkerLost)?,
            sync_frames: (0..self.plan.runs)
                .map(|run| self.plan.run_start(run))
                .collect(),
        })
    }

    fn join(&mut self) {
        // Closing both channels ends the threads: first the current run's frames, then the queue
        // of runs.
        self.current = None;
        self.runs = None;
        for thread in self.threads.drain(..) {
            if thread.join().is_err() {
                self.shared.fail(MediaError::WorkerLost);
            }
        }
    }
}

impl Drop for VideoEncoder {
    fn drop(&mut self) {
        self.shared.stopped.store(true, Ordering::Relaxed);
        self.join();
    }
}

impl EncoderState {
    /// A thread's main loop: encodes one run after another until there are none left.
    fn run_worker(&self, queue: &Mutex<Receiver<PendingRun>>) {
        loop {
            // Holds the lock while waiting: runs are assigned in order, and one waiter is enough.
            let next = queue.lock().unwrap_or_else(PoisonError::into_inner).recv();
            let Ok(run) = next else { return };
            if self.stopped.load(Ordering::Relaxed) {
                return;
            }
            let outcome = encode_run(&self.config, run.length, &run.frames, &self.stopped);
            let stored = match outcome {
                Ok(Some(encoded)) => self.store(run.index, encoded),
                Ok(None) => return,
                Err(error) => Err(error),
            };
            if let Err(error) = stored {
                self.fail(error);
                return;
            }
        }
    }

    /// Spools a finished run and the later ones that waited for it.
    fn store(&self, index: u32, run: EncodedRun) -> Result<(), MediaError> {
        let mut output = self.lock();
        let output = &mut *output;
        if output
            .parameter_sets
            .get_or_insert_with(|| run.parameter_sets.clone())
            != &run.parameter_sets
        {
            return Err(MediaError::Mux(
                "runs differ in their parameter sets".into(),
            ));
        }
        // Runs finish in any order but are spooled in the clip's order, so a later one waits in
        // memory, compressed.
        output.waiting.insert(index, run);
        while let Some(run) = output.waiting.remove(&output.next_run) {
            if let Some(spool) = &mut output.spool {
                spool.append(&run.bytes, &run.sizes)?;
            }
            output.next_run += 1;
        }
        Ok(())
    }

    /// Stores the first error and wakes the caller.
    fn fail(&self, error: MediaError) {
        // The first error is the cause; later ones are usually its consequences.
        self.lock().error.get_or_insert(error);
        self.stopped.store(true, Ordering::Relaxed);
        self.pool.close();
    }

    fn take_error(&self) -> MediaError {
        self.lock().error.take().unwrap_or(MediaError::WorkerLost)
    }

    fn lock(&self) -> MutexGuard<'_, TrackOutput> {
        self.output.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Number of pictures encoded before the quantiser is settled; they stay in memory until then.
const TRIAL_FRAMES: u32 = 6;
/// How far a run's quantiser may rise above the requested one.
const QP_RAISE_MAX: u8 = 16;
/// Finer differences are not worth another trial.
const QP_STEP: u8 = 1;

/// Settings shared by all runs of a clip.
struct RunConfig {
    encoder: EncoderConfig,
    qp_max: u8,
    /// Maximum mean size of a picture in bytes.
    frame_bytes_max: u64,
    /// Number of pictures over which to spread an IDR's cost.
    idr_interval: u64,
}

/// A run's coded samples in sequence.
struct EncodedRun {
    bytes: Vec<u8>,
    sizes: Vec<u32>,
    parameter_sets: ParameterSets,
}

impl RunConfig {
    fn new(format: &ClipFormat, options: &RecorderOptions) -> Self {
        let pixels = u64::from(format.width) * u64::from(format.height);
        Self {
            encoder: EncoderConfig {
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
fn encode_run(
    config: &RunConfig,
    length: u32,
    frames: &Receiver<PooledFrame>,
    stopped: &AtomicBool,
) -> Result<Option<EncodedRun>, MediaError> {
    let mut trial = Vec::new();
    // The first pictures are kept, so that they can be encoded again with another quantiser.
    while (trial.len() as u32) < TRIAL_FRAMES.min(length) {
        let Ok(frame) = frames.recv() else {
            return Ok(None);
        };
        trial.push(frame);
    }
    let Some((mut encoder, mut run)) = choose_quantiser(config, &trial, stopped)? else {
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
fn choose_quantiser(
    config: &RunConfig,
    trial: &[PooledFrame],
    stopped: &AtomicBool,
) -> Result<Option<(H264Encoder, EncodedRun)>, MediaError> {
    let asked = config.encoder.qp;
    let first = encode_trial(config, asked, trial)?;
    if config.fits(&first.1) {
        return Ok(Some(first));
    }
    let (mut too_low, mut enough) = (asked, config.qp_max);
    let mut best = None;
    // At most four trials for a range of 16. The choice depends only on this run's pictures, so
    // it is the same on every machine and with any number of threads.
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
    frames: &[PooledFrame],
) -> Result<(H264Encoder, EncodedRun), MediaError> {
    let mut encoder = H264Encoder::new(&EncoderConfig {
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
    encoder: &mut H264Encoder,
    frame: &PooledFrame,
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

#[cfg(test)]
mod tests {
    use super::RunPlan;
    use crate::ClipFormat;

    fn plan(width: u32, height: u32, fps: u32, frames: u32) -> Vec<u32> {
        let plan = RunPlan::new(&ClipFormat {
            width,
            height,
            fps,
            frames,
            audio: None,
        });
        let lengths: Vec<_> = (0..plan.runs).map(|run| plan.run_length(run)).collect();
        for run in 0..plan.runs {
            let before: u32 = lengths[..run as usize].iter().sum();
            assert_eq!(plan.run_start(run), before);
        }
        lengths
    }

    #[test]
    fn runs_cover_the_clip_within_two_seconds_each() {
        assert_eq!(plan(1280, 720, 24, 120), [40, 40, 40]);
        assert_eq!(plan(1280, 720, 24, 1), [1]);
        assert_eq!(plan(1280, 720, 1, 5), [2, 2, 1]);
        assert_eq!(plan(4096, 2304, 24, 20), [7, 7, 6]);
        assert_eq!(plan(854, 480, 30, 450).len(), 8);
    }
}
