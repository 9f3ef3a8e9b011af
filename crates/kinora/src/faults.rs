//! What a test wants of the program, in test builds only: stores that fail, other limits, and cheap
//! or slow clips.

use std::sync::Arc;
use std::thread;
use std::time::Duration;

use kinora_blobs::BlobStore;
use kinora_blobs::faulty::{self as blobs, FaultyBlobs};
use kinora_contract::{VideoSpec, Warning};
use kinora_engine::places::Places;
use kinora_engine::{
    ClipPlan, ClipPlanner, ClipSink, Engine, EngineDescription, EngineError, FrameJob, JobControl,
    JobMaterials,
};
use kinora_store::StoreHandles;
use kinora_store::faulty::{self as store, FaultyStore};
use kinora_worker::AnyEngine;

type WrappedStores = (StoreHandles, Arc<dyn BlobStore>);

/// Fixed limits for which tests cannot wait, by the variables that change them.
const LIMITS: [&str; 9] = [
    "CONNECTION_FIRST_BYTE_SECONDS",
    "CONNECTION_HEADER_SECONDS",
    "CONNECTION_IDLE_SECONDS",
    "CONNECTION_WRITE_SECONDS",
    "REFERENCE_HOST_CONNECTIONS_MAX",
    "SETTLED_AFTER_SECONDS",
    "START_PAUSE_SECONDS_MAX",
    "SWEEP_SECONDS",
    "UPLOAD_SECONDS",
];

/// Options of tests, from variables without the prefix of settings.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct TestOptions {
    /// `FAULT_PPM`: calls per million of both stores that fail before they take effect, and as many after it; as many
    /// again are delayed.
    fault_ppm: Option<u32>,
    /// The changed [`LIMITS`], with their values.
    limits: Vec<(&'static str, u64)>,
    /// `FAULT_SEED`: selects which calls.
    fault_seed: u64,
    /// `CLOCK_SETTLE_MS`: time for which the clocks must agree before anything expires.
    pub(crate) clock_settle_ms: Option<u64>,
    /// `LONG_CLIP_FRAME_MS`: pause after each frame of a clip of ten seconds or more, in which
    /// tests have the machine to themselves.
    long_clip_frame_ms: u64,
    /// `PLAIN_CLIPS`: clips are coloured bars, for tests that do not look at what the storyboard paints.
    has_plain_clips: bool,
    /// `FILMS_IN_PROCESS`: read films in this process, whose executable may be a test and not the
    /// program.
    pub(crate) reads_films_in_process: bool,
}

impl TestOptions {
    /// Reads the options from these variables; the last one of a name counts.
    pub(crate) fn from_variables(variables: &[(String, String)]) -> Self {
        let text = |name: &str| {
            let mut named = variables.iter().rev();
            named.find_map(|(own, text)| (own == name).then_some(text.as_str()))
        };
        let number = |name| text(name)?.parse::<u64>().ok();
        Self {
            fault_ppm: number("FAULT_PPM").and_then(|ppm| ppm.try_into().ok()),
            limits: LIMITS
                .into_iter()
                .filter_map(|name| Some((name, number(name)?)))
                .collect(),
            fault_seed: number("FAULT_SEED").unwrap_or(1),
            clock_settle_ms: number("CLOCK_SETTLE_MS"),
            long_clip_frame_ms: number("LONG_CLIP_FRAME_MS").unwrap_or(0),
            has_plain_clips: text("PLAIN_CLIPS").is_some(),
            reads_films_in_process: text("FILMS_IN_PROCESS").is_some(),
        }
    }

    /// The changed value of a limit, if the test changes it.
    pub(crate) fn limit(&self, name: &str) -> Option<u64> {
        let changed = self.limits.iter().find(|(own, _)| *own == name);
        changed.map(|(_, value)| *value)
    }
}

/// Wraps both stores with faults if a test wants them.
pub(crate) fn wrap_stores(
    options: &TestOptions,
    stores: StoreHandles,
    blobs: Arc<dyn BlobStore>,
) -> WrappedStores {
    let Some(ppm) = options.fault_ppm else {
        return (stores, blobs);
    };
    let seed = options.fault_seed;
    let of_tasks = store::Plan::seeded(seed);
    of_tasks.set(store::Rates::each(ppm));
    // A client that repeats a cancel or delete which took effect after all gets 409 or 404:
    // correct, but not what a test that cancels once expects. A fetch or chore whose lease was
    // granted, with the answer lost, waits for the lease to end: correct, but longer than tests
    // wait.
    for method in [
        store::StoreMethod::Cancel,
        store::StoreMethod::Delete,
        store::StoreMethod::LeaseFetches,
        store::StoreMethod::LeaseChores,
    ] {
        let rates = store::Rates {
            after_ppm: 0,
            ..store::Rates::each(ppm)
        };
        of_tasks.set_of(method, Some(rates));
    }
    let of_blobs = blobs::Plan::seeded(seed + 1);
    of_blobs.set(blobs::Rates::each(ppm));
    tracing::warn!(ppm, seed, "stores fail on purpose");
    (
        FaultyStore::wrap(stores, Arc::new(of_tasks)),
        Arc::new(FaultyBlobs::new(blobs, Arc::new(of_blobs))),
    )
}

const LONG_SECONDS: u32 = 10;

/// The same engine, paced and plain as a test wants. An engine in a separate process is never
/// plain: its process would have nothing to do.
pub(crate) fn wrap_engine(options: &TestOptions, maker: AnyEngine, is_hosted: bool) -> AnyEngine {
    let AnyEngine::Frames(engine) = maker else {
        return maker;
    };
    AnyEngine::Frames(Arc::new(PacedEngine {
        engine,
        pause: Duration::from_millis(options.long_clip_frame_ms),
        is_plain: options.has_plain_clips && !is_hosted,
    }))
}

struct PacedEngine {
    engine: Arc<dyn Engine>,
    pause: Duration,
    is_plain: bool,
}

impl ClipPlanner for PacedEngine {
    fn describe(&self) -> &EngineDescription {
        self.engine.describe()
    }

    fn plan(&self, spec: &VideoSpec, materials: &JobMaterials) -> Result<ClipPlan, EngineError> {
        self.engine.plan(spec, materials)
    }

    fn decides_length(&self, spec: &VideoSpec) -> bool {
        self.engine.decides_length(spec)
    }

    fn warnings(&self, spec: &VideoSpec, materials: &JobMaterials) -> Vec<Warning> {
        self.engine.warnings(spec, materials)
    }
}

impl Engine for PacedEngine {
    fn generate(
        &self,
        job: &FrameJob<'_>,
        sink: &mut dyn ClipSink,
        control: &JobControl,
    ) -> Result<(), EngineError> {
        // Only long clips are slow: tests use them where something has to happen during a run, and
        // all other clips should be quick.
        let is_long = job.clip.frames >= LONG_SECONDS * job.clip.fps;
        let pause = if is_long { self.pause } else { Duration::ZERO };
        let sink = &mut PausingSink { sink, pause };
        if self.is_plain {
            kinora_testkit::engine::generate(job, sink, control)
        } else {
            self.engine.generate(job, sink, control)
        }
    }

    fn places(&self) -> Option<&Arc<Places>> {
        self.engine.places()
    }

    fn warm_up(&self, control: &JobControl) {
        self.engine.warm_up(control);
    }

    fn unload(&self) {
        self.engine.unload();
    }
}

struct PausingSink<'s> {
    sink: &'s mut dyn ClipSink,
    pause: Duration,
}

impl ClipSink for PausingSink<'_> {
    fn decide(&mut self, frames: u32) -> Result<(), EngineError> {
        self.sink.decide(frames)
    }

    fn frame(&mut self, rgb: &[u8]) -> Result<(), EngineError> {
        self.sink.frame(rgb)?;
        thread::sleep(self.pause);
        Ok(())
    }

    fn audio(&mut self, pcm: &[f32]) -> Result<(), EngineError> {
        self.sink.audio(pcm)
    }
}
