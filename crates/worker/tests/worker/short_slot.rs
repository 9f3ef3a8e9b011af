//! Long tasks leave one slot to short ones, once there have been any.

use std::sync::Arc;
use std::time::{Duration, Instant};

use kinora_contract::{Size, TaskPhase, VideoLength, VideoSpec};
use kinora_engine::{
    ClipPlan, ClipPlanner, ClipSink, Engine, EngineDescription, EngineError, Features, FrameJob,
    JobControl, JobMaterials,
};
use kinora_worker::{AnyEngine, EngineLineup, ServedEngine, Worker};

use crate::bench::{Bench, DEADLINE, MODEL, Running, spec, until};
use crate::engines::{Act, Puppet};

const SHORT: &str = "short";
const OTHER: &str = "other";

/// Two slots; tasks of [`MODEL`] run until they are released, those of [`SHORT`] end at once.
fn worker(bench: &Bench, held: &Arc<Puppet>) -> Worker {
    let good = Arc::new(Puppet::new(Act::Good));
    let mut worker = bench.worker_of([(MODEL, held), (SHORT, &good)]);
    worker.settings.slots = 2;
    worker.settings.short_slot_memory = Duration::from_secs(600);
    worker
}

fn lasting(model: &str, seconds: u32) -> VideoSpec {
    VideoSpec {
        seconds: VideoLength::Fixed(seconds),
        ..spec(model)
    }
}

/// Submits a short task of a project of its own, and waits until it is completed.
async fn newcomer_completes(bench: &Bench) {
    let id = bench.submit_as(OTHER, SHORT).await;
    until("the newcomer's task is completed", async || {
        let found = bench.store.tasks.get(OTHER, id).await.unwrap();
        found.is_some_and(|task| task.state.phase() == TaskPhase::Completed)
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn p15_a_short_task_of_another_project_does_not_wait_for_long_ones() {
    let bench = Bench::new();
    let held = Arc::new(Puppet::new(Act::Held));
    let running = Running::start(worker(&bench, &held));
    newcomer_completes(&bench).await;
    let mut long = Vec::new();
    for _ in 0..6 {
        long.push(bench.submit_spec(lasting(MODEL, 15)).await);
    }
    until("a long task runs", async || held.at_work() == 1).await;
    // None of the long ones has been released, nor is before the last of these.
    for _ in 0..3 {
        newcomer_completes(&bench).await;
    }
    let short = bench.submit_spec(lasting(MODEL, 5)).await;
    for id in &long[1..] {
        assert_eq!(bench.phase(*id).await, TaskPhase::Waiting);
    }
    for _ in 0..5 {
        held.release_one();
    }
    // The last long one and the short one behind it use both slots.
    until("both are at work", async || held.at_work() == 2).await;
    held.release();
    for id in long.into_iter().chain([short]) {
        bench.completes(id).await;
    }
    running.drained().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_project_alone_with_equal_tasks_uses_all_slots() {
    let bench = Bench::new();
    let held = Arc::new(Puppet::new(Act::Held));
    let running = Running::start(worker(&bench, &held));
    let mut equal = Vec::new();
    for _ in 0..6 {
        equal.push(bench.submit_spec(lasting(MODEL, 15)).await);
    }
    for released in 0..5 {
        until("both slots work", async || {
            held.started() == released + 2 && held.at_work() == 2
        })
        .await;
        held.release_one();
    }
    held.release();
    for id in equal {
        bench.completes(id).await;
    }
    running.drained().await;
}

/// Takes 50 ms for each second of a clip, and no processor: as if each slot had a device of its own.
struct Sleeper(EngineDescription);

impl ClipPlanner for Sleeper {
    fn describe(&self) -> &EngineDescription {
        &self.0
    }

    fn plan(&self, _: &VideoSpec, _: &JobMaterials) -> Result<ClipPlan, EngineError> {
        Ok(ClipPlan {
            size: Size::new(64, 64),
            fps: 8,
            frames: 2,
            audio: false,
        })
    }
}

impl Engine for Sleeper {
    fn generate(
        &self,
        job: &FrameJob<'_>,
        sink: &mut dyn ClipSink,
        _: &JobControl,
    ) -> Result<(), EngineError> {
        let VideoLength::Fixed(seconds) = job.spec.seconds else {
            return Err(EngineError::Failed("no length".to_owned()));
        };
        std::thread::sleep(Duration::from_millis(50) * seconds);
        for _ in 0..job.clip.frames {
            sink.frame(&[90; 64 * 64 * 3])?;
        }
        Ok(())
    }
}

fn sleeping(bench: &Bench, slots: usize, memory: Duration) -> Running {
    let engine = Sleeper(EngineDescription {
        is_trained: false,
        final_from_video: false,
        name: "sleeper".to_owned(),
        version: "1".to_owned(),
        features: Features::default(),
    });
    let served = ServedEngine {
        seats: None,
        device: None,
        engine: AnyEngine::Frames(Arc::new(engine)),
        progress_timeout: DEADLINE,
        preset: None,
    };
    let mut worker = bench.worker(&Arc::new(Puppet::new(Act::Good)));
    worker.settings.slots = slots;
    worker.settings.short_slot_memory = memory;
    worker.lineup = EngineLineup::new([(MODEL.to_owned(), served)]);
    Running::start(worker)
}

/// Completes a short task of another project; returns how long that took.
async fn newcomer(bench: &Bench) -> Duration {
    let begun = Instant::now();
    let mut short = lasting(MODEL, 2);
    short.generate_audio = false;
    let id = bench.submit_spec_as(OTHER, short).await;
    until("the newcomer's task is completed", async || {
        let found = bench.store.tasks.get(OTHER, id).await.unwrap();
        found.is_some_and(|task| task.state.phase() == TaskPhase::Completed)
    })
    .await;
    begun.elapsed()
}

/// Completes tasks of these lengths of one project; returns how long that took.
async fn complete_all(bench: &Bench, lengths: impl IntoIterator<Item = u32>) -> Duration {
    let begun = Instant::now();
    let mut ids = Vec::new();
    for seconds in lengths {
        let mut one = lasting(MODEL, seconds);
        one.generate_audio = false;
        ids.push(bench.submit_spec(one).await);
    }
    for id in ids {
        bench.completes(id).await;
    }
    begun.elapsed()
}

/// The table of docs/benchmarks.md: `cargo test -p kinora-worker --test worker short_slot -- --ignored --nocapture`.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "measures, and asserts nothing"]
async fn what_a_slot_for_short_tasks_costs() {
    // Lengths in no order, each as often as the others.
    let mixed =
        |slots: usize| (0..16 * slots).map(|number| [2, 15, 5, 10][(number * 7 + number / 4) % 4]);
    for slots in [2, 4, 8] {
        for seconds in [0, 600] {
            let memory = Duration::from_secs(seconds);
            let bench = Bench::new();
            let running = sleeping(&bench, slots, memory);
            let alone = complete_all(&bench, mixed(slots)).await;
            running.drained().await;
            let bench = Bench::new();
            let running = sleeping(&bench, slots, memory);
            let equal = complete_all(&bench, vec![10; 8 * slots]).await;
            running.drained().await;
            let bench = Bench::new();
            let running = sleeping(&bench, slots, memory);
            newcomer(&bench).await;
            let after = complete_all(&bench, vec![10; 8 * slots]).await;
            running.drained().await;
            let bench = Bench::new();
            let running = sleeping(&bench, slots, memory);
            newcomer(&bench).await;
            let (long, waited) = tokio::join!(complete_all(&bench, vec![15; 3 * slots]), async {
                tokio::time::sleep(Duration::from_millis(200)).await;
                newcomer(&bench).await
            });
            running.drained().await;
            println!(
                "slots {slots}, memory {seconds} s: mixed {alone:.2?}, equal {equal:.2?}, long after a short one \
                 {after:.2?}; newcomer {waited:.2?} beside {long:.2?}"
            );
        }
    }
}
