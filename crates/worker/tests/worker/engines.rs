//! Engines that do one thing each, on a clip of four 64 x 64 frames with sound, and a
//! [`Puppet`]'s strings: what a test sees of its engine and how it lets it go on.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex};
use std::time::{Duration, Instant};

use kinora_contract::{FailureCode, Size, VideoSpec, Warning, WarningCode};
use kinora_engine::{
    CHANNELS, ClipPlan, ClipPlanner, ClipSink, Engine, EngineDescription, EngineError, Features,
    FrameJob, JobControl, JobMaterials, RgbPicture, SAMPLE_RATE_HZ, WorkStage,
};

use crate::bench::{DEADLINE, until};

/// What no client may ever read.
pub(crate) const PRIVATE: &str = "weights at /secret/path: CUDA error 700";
/// Name and version as clients see them.
pub(crate) const ENGINE: &str = "puppet/1.2";

const CLIP: ClipPlan = ClipPlan {
    size: Size::new(64, 64),
    fps: 8,
    frames: 4,
    audio: true,
};
/// The code that a client sees for a crash when there is no other attempt.
pub(crate) const CRASHED: FailureCode = FailureCode::OutOfMemory;
const FRAME_BYTES: usize = 64 * 64 * 3;

/// What an engine does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Act {
    /// Makes the clip.
    Good,
    /// Makes the clip once it is released; a cancel does not interest it, and it says nothing.
    Held,
    /// Shows a preview of 640 x 320, and makes the clip once it is released.
    Shows,
    /// Reports one half, then waits for a cancel and obeys it.
    Obedient,
    /// Says nothing and waits for a cancel.
    Silent,
    Panics,
    PanicsInPlan,
    Fails,
    RefusesInPlan,
    RunsOutOfMemory,
    /// Its process ends once it is released.
    Crashes,
    /// Says that it was cancelled, which nobody asked for.
    ClaimsCancel,
    OneFrameTooFew,
    OneFrameTooMany,
    ShortFrame,
    /// Makes a clip of so many frames, a length that is its own to decide.
    Decides(u32),
    DecidesTwice,
    /// Makes the clip without a word on its length, which is its own to decide.
    DecidesNothing,
    /// Decides a length that is given.
    DecidesUnasked,
}

/// An engine with one act, and what is seen of it.
pub(crate) struct Puppet {
    act: Act,
    clip: ClipPlan,
    warnings: Vec<Warning>,
    description: EngineDescription,
    started: AtomicUsize,
    at_work: AtomicUsize,
    at_work_max: AtomicUsize,
    told: Mutex<Option<Instant>>,
    sources: Mutex<Vec<Option<u32>>>,
    scripts: Mutex<Vec<Vec<Arc<VideoSpec>>>>,
    releases: (Mutex<usize>, Condvar),
    /// Whether a hold is only for the first clip.
    once: AtomicBool,
}

impl Puppet {
    pub(crate) fn new(act: Act) -> Self {
        let (name, version) = ENGINE.split_once('/').expect("a name and a version");
        Self {
            act,
            clip: CLIP,
            warnings: Vec::new(),
            description: EngineDescription {
                is_trained: true,
                final_from_video: false,
                name: name.to_owned(),
                version: version.to_owned(),
                features: Features::default(),
            },
            started: AtomicUsize::new(0),
            at_work: AtomicUsize::new(0),
            at_work_max: AtomicUsize::new(0),
            told: Mutex::new(None),
            sources: Mutex::default(),
            scripts: Mutex::default(),
            releases: (Mutex::new(0), Condvar::new()),
            once: AtomicBool::new(false),
        }
    }

    /// An engine whose first clip alone misbehaves.
    pub(crate) fn at_first(act: Act) -> Self {
        let puppet = Self::new(act);
        puppet.once.store(true, Ordering::SeqCst);
        puppet
    }

    /// The same with clips of so many frames.
    pub(crate) fn with_frames(mut self, frames: u32) -> Self {
        self.clip.frames = frames;
        self
    }

    /// The same in another version.
    pub(crate) fn of_version(mut self, version: &str) -> Self {
        version.clone_into(&mut self.description.version);
        self
    }

    /// The same, which warns so many times.
    pub(crate) fn warning(mut self, times: usize) -> Self {
        self.warnings = vec![WarningCode::SeedIgnored.into(); times];
        self
    }

    /// The same, which makes finals from their drafts' videos.
    pub(crate) fn making_finals_from_videos(mut self) -> Self {
        self.description.final_from_video = true;
        self
    }

    /// Clips begun so far.
    pub(crate) fn started(&self) -> usize {
        self.started.load(Ordering::SeqCst)
    }

    /// Clips in work now.
    pub(crate) fn at_work(&self) -> usize {
        self.at_work.load(Ordering::SeqCst)
    }

    /// The most clips that were in work at a time.
    pub(crate) fn at_work_max(&self) -> usize {
        self.at_work_max.load(Ordering::SeqCst)
    }

    /// When it saw a cancel.
    pub(crate) fn told(&self) -> Option<Instant> {
        *self.told.lock().unwrap()
    }

    /// Frames of the source that each clip was given, if it was given one.
    pub(crate) fn sources(&self) -> Vec<Option<u32>> {
        self.sources.lock().unwrap().clone()
    }

    /// What the source of each clip was made from, as far as it was told.
    pub(crate) fn scripts(&self) -> Vec<Vec<Arc<VideoSpec>>> {
        self.scripts.lock().unwrap().clone()
    }

    /// Lets every held clip go on, now and later.
    pub(crate) fn release(&self) {
        *self.releases.0.lock().unwrap() = usize::MAX;
        self.releases.1.notify_all();
    }

    /// Lets one held clip go on.
    pub(crate) fn release_one(&self) {
        *self.releases.0.lock().unwrap() += 1;
        self.releases.1.notify_one();
    }

    fn wait_for_release(&self) {
        let releases = self.releases.0.lock().unwrap();
        let none = |releases: &mut usize| *releases == 0;
        let wait = self.releases.1.wait_timeout_while(releases, DEADLINE, none);
        let (mut releases, waited) = wait.unwrap();
        assert!(!waited.timed_out(), "nobody released the engine");
        *releases -= 1;
    }

    fn wait_for_cancel(&self, control: &JobControl) -> EngineError {
        let began = Instant::now();
        while !control.cancel.is_cancelled() {
            assert!(began.elapsed() < DEADLINE, "nobody cancelled the engine");
            std::thread::sleep(Duration::from_millis(1));
        }
        *self.told.lock().unwrap() = Some(Instant::now());
        EngineError::Cancelled
    }

    fn play(
        &self,
        act: Act,
        sink: &mut dyn ClipSink,
        control: &JobControl,
    ) -> Result<(), EngineError> {
        match act {
            Act::Good | Act::PanicsInPlan | Act::RefusesInPlan => {
                frames(self.clip.frames, sink, control)
            }
            Act::Held => {
                self.wait_for_release();
                frames(self.clip.frames, sink, &JobControl::default())
            }
            Act::Shows => {
                let size = Size::new(640, 320);
                let rgb = vec![90; size.pixels() as usize * 3];
                control.preview.show(RgbPicture { size, rgb });
                self.wait_for_release();
                frames(self.clip.frames, sink, control)
            }
            Act::Obedient => {
                control.report(WorkStage::Generating, 0.5)?;
                Err(self.wait_for_cancel(control))
            }
            Act::Silent => Err(self.wait_for_cancel(control)),
            Act::Panics => panic!("{PRIVATE}"),
            Act::Fails => Err(EngineError::Failed(PRIVATE.to_owned())),
            Act::RunsOutOfMemory => Err(EngineError::OutOfMemory(PRIVATE.to_owned())),
            Act::Crashes => {
                self.wait_for_release();
                Err(EngineError::Crashed {
                    code: CRASHED,
                    cause: PRIVATE.to_owned(),
                })
            }
            Act::ClaimsCancel => Err(EngineError::Cancelled),
            Act::OneFrameTooFew => frames(self.clip.frames - 1, sink, control),
            Act::OneFrameTooMany => frames(self.clip.frames + 1, sink, control),
            Act::Decides(count) => {
                sink.decide(count)?;
                frames(count, sink, control)
            }
            Act::DecidesTwice => {
                sink.decide(2)?;
                sink.decide(2)?;
                frames(2, sink, control)
            }
            Act::DecidesNothing => frames(self.clip.frames, sink, control),
            Act::DecidesUnasked => {
                sink.decide(self.clip.frames)?;
                frames(self.clip.frames, sink, control)
            }
            Act::ShortFrame => sink.frame(&[0; FRAME_BYTES - 3]),
        }
    }
}

impl ClipPlanner for Puppet {
    fn describe(&self) -> &EngineDescription {
        &self.description
    }

    fn plan(&self, _: &VideoSpec, _: &JobMaterials) -> Result<ClipPlan, EngineError> {
        match self.act {
            Act::PanicsInPlan => panic!("{PRIVATE}"),
            Act::RefusesInPlan => Err(EngineError::Unsupported(PRIVATE.to_owned())),
            _ => Ok(self.clip),
        }
    }

    fn decides_length(&self, _: &VideoSpec) -> bool {
        matches!(
            self.act,
            Act::Decides(_) | Act::DecidesTwice | Act::DecidesNothing
        )
    }

    fn warnings(&self, _: &VideoSpec, _: &JobMaterials) -> Vec<Warning> {
        self.warnings.clone()
    }
}

impl Engine for Puppet {
    fn generate(
        &self,
        job: &FrameJob<'_>,
        sink: &mut dyn ClipSink,
        control: &JobControl,
    ) -> Result<(), EngineError> {
        let source = job.materials.source.as_ref();
        let frames = source.map(|footage| footage.frames());
        self.sources.lock().unwrap().push(frames);
        let script = job.materials.script.clone();
        self.scripts.lock().unwrap().push(script);
        let first = self.started.fetch_add(1, Ordering::SeqCst) == 0;
        let act = if first || !self.once.load(Ordering::SeqCst) {
            self.act
        } else {
            Act::Good
        };
        let at_work = self.at_work.fetch_add(1, Ordering::SeqCst) + 1;
        self.at_work_max.fetch_max(at_work, Ordering::SeqCst);
        let _leave = Leave(&self.at_work);
        self.play(act, sink, control)
    }
}

/// Waits until no worker has the engine and no thread of it is left: nothing more is written.
pub(crate) async fn is_left(engine: &Arc<Puppet>) {
    let left = async || Arc::strong_count(engine) == 1;
    until("the engine's threads have ended", left).await;
}

/// Counts an engine out, also when it panics.
struct Leave<'a>(&'a AtomicUsize);

impl Drop for Leave<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}

/// The level of frame `index`.
pub(crate) fn grey_of(index: u32) -> u8 {
    (index * 40) as u8
}

/// So many frames that differ, and as much silence.
fn frames(count: u32, sink: &mut dyn ClipSink, control: &JobControl) -> Result<(), EngineError> {
    let samples = (count * SAMPLE_RATE_HZ / CLIP.fps) as usize * usize::from(CHANNELS);
    sink.audio(&vec![0.0; samples])?;
    for frame in 0..count {
        sink.frame(&vec![grey_of(frame); FRAME_BYTES])?;
        control.report(
            WorkStage::Generating,
            f64::from(frame + 1) / f64::from(count),
        )?;
    }
    Ok(())
}
