//! Servers outlive a worker: what one of them still has loaded on a shared device leaves before another engine loads.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use kinora_contract::{Clock, TaskPhase};
use kinora_engine::{EngineDescription, EngineError, Features, FilmEngine, FilmJob};
use kinora_store::DeviceEngineState;
use kinora_worker::{
    AnyEngine, DevicePatience, EngineDevice, EngineLineup, ServedEngine, SharingEngine,
};
use tokio::sync::Semaphore;

use crate::bench::{Bench, Running, until};
use crate::engines::{Act, Puppet};

const FRAMES: &str = "frames";
const SERVER: &str = "server";

/// A server that frees its memory when the test lets it.
struct Upstream {
    description: EngineDescription,
    asked: AtomicUsize,
    frees: Semaphore,
}

#[async_trait]
impl FilmEngine for Upstream {
    fn describe(&self) -> &EngineDescription {
        &self.description
    }

    fn has_sound_switch(&self) -> bool {
        false
    }

    async fn film(&self, _: &FilmJob<'_>) -> Result<(), EngineError> {
        Err(EngineError::Cancelled)
    }

    async fn call_off(&self, _: &str) -> Result<(), EngineError> {
        Ok(())
    }

    async fn unload(&self) {
        self.asked.fetch_add(1, Ordering::SeqCst);
        self.frees.acquire().await.unwrap().forget();
    }
}

fn upstream() -> Arc<Upstream> {
    Arc::new(Upstream {
        description: EngineDescription {
            is_trained: true,
            final_from_video: false,
            name: SERVER.to_owned(),
            version: "1".to_owned(),
            features: Features::default(),
        },
        asked: AtomicUsize::new(0),
        frees: Semaphore::new(0),
    })
}

/// The server and an engine of frames, of which one fits.
fn sharing(bench: &Bench, server: &Arc<Upstream>, frames: &Arc<Puppet>) -> EngineLineup {
    let engines = [
        (SERVER, AnyEngine::Film(server.clone())),
        (FRAMES, AnyEngine::Frames(frames.clone())),
    ];
    let tenants = engines.clone().map(|(name, engine)| SharingEngine {
        name: name.to_owned(),
        engine,
        megabytes: 60,
        models: vec![name.to_owned()],
    });
    let patience = DevicePatience {
        idle_max: None,
        age_max: Duration::from_secs(120),
    };
    let now = bench.clock.steady();
    let device = EngineDevice::new("gpu0".to_owned(), 100, patience, tenants.into(), now);
    let served = |(name, engine): (&str, AnyEngine)| {
        let served = ServedEngine {
            engine,
            progress_timeout: Duration::from_secs(1_000_000),
            seats: None,
            device: None,
            preset: None,
        };
        (name.to_owned(), served)
    };
    EngineLineup::new(engines.map(served)).sharing([device])
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_is_told_to_free_its_memory_before_another_engine_loads() {
    let bench = Bench::new();
    let (server, frames) = (upstream(), Arc::new(Puppet::new(Act::Good)));
    let id = bench.submit_to(FRAMES).await;
    let mut worker = bench.worker(&frames);
    worker.lineup = sharing(&bench, &server, &frames);
    let running = Running::start(worker);
    until("the server is told", async || {
        server.asked.load(Ordering::SeqCst) == 1
    })
    .await;
    until("operators see it leave", async || {
        let living = bench.store.workers.living().await.unwrap();
        let shown = living.first().map(|one| one.worker.devices[0].clone());
        shown.is_some_and(|device| device.engines[0].state == DeviceEngineState::Leaving)
    })
    .await;
    assert_eq!(bench.phase(id).await, TaskPhase::Waiting);
    assert_eq!(frames.started(), 0);
    server.frees.add_permits(1);
    bench.completes(id).await;
    let living = bench.store.workers.living().await.unwrap();
    assert_eq!(living[0].worker.devices[0].swaps, 0, "nobody was replaced");
    running.drained().await;
}
