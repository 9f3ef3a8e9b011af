//! Stores to be measured, and the tasks in them.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use kinora_contract::spec::SPEC_VERSION;
use kinora_contract::{
    Artifact, Clock, FrameSize, Priority, Size, SteadyMs, StoredFile, TaskId, UnixMs, VideoInputs,
    VideoLength, VideoSpec,
};
use kinora_store::{
    ClaimRequest, NewTask, OpenOptions, Pauses, PostgresOptions, QueueBounds, StoreHandles,
    TimeSource, migrate, open,
};
use kinora_testkit::postgres::{Server, Settings};
use tempfile::TempDir;

use crate::Failure;

pub(crate) const NOW_MS: u64 = 1_790_000_000_000;
pub(crate) const PROJECT: &str = "project";
const MODEL: &str = "kinora-a1";

#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Sqlite,
    Postgres,
}

/// Where stores are kept until the end.
pub(crate) enum Backing {
    Folder(TempDir),
    Server(Server),
}

impl Backing {
    pub(crate) fn new(kind: Kind) -> Result<Self, Failure> {
        Ok(match kind {
            Kind::Sqlite => Self::Folder(tempfile::tempdir_in(".")?),
            Kind::Postgres => Self::Server(Server::start(Settings {
                fsync: true,
                more: vec![
                    "shared_buffers=1GB".to_owned(),
                    "max_wal_size=4GB".to_owned(),
                ],
                ..Settings::default()
            })),
        })
    }

    /// The address of an empty store.
    pub(crate) async fn empty(&self, name: &str) -> Result<String, Failure> {
        let url = match self {
            Self::Folder(folder) => format!("sqlite:{}", folder.path().join(name).display()),
            Self::Server(server) => server.database(),
        };
        migrate(&url).await?;
        Ok(url)
    }
}

pub(crate) async fn opened(url: &str) -> Result<StoreHandles, Failure> {
    let options = OpenOptions {
        postgres: PostgresOptions {
            time: TimeSource::Clock,
            ..PostgresOptions::default()
        },
        ..OpenOptions::new(Arc::new(BenchClock(Instant::now())))
    };
    Ok(open(url, &options).await?)
}

/// The wall clock stands still, so that nothing expires; leases and caches grow old as in earnest.
#[derive(Debug)]
struct BenchClock(Instant);

impl Clock for BenchClock {
    fn now_ms(&self) -> UnixMs {
        NOW_MS
    }

    fn steady_ms(&self) -> SteadyMs {
        u64::try_from(self.0.elapsed().as_millis()).unwrap_or(u64::MAX)
    }
}

/// An id whose order is that of its number.
pub(crate) fn id(number: u64) -> TaskId {
    let mut random = [0; 10];
    random[2..].copy_from_slice(&number.wrapping_mul(0x9e37_79b9_7f4a_7c15).to_be_bytes());
    TaskId::from_parts(NOW_MS + number, random)
}

pub(crate) fn task(id: TaskId, project: &str) -> NewTask {
    NewTask {
        id,
        project: project.to_owned(),
        spec: VideoSpec {
            version: SPEC_VERSION,
            model: MODEL.to_owned(),
            prompt: "a fishing boat leaves the harbour at dawn, gulls, soft mist ".repeat(4),
            negative_prompt: None,
            seconds: VideoLength::Fixed(5),
            frame: FrameSize::Fixed(Size::new(1280, 720)),
            seed: 7,
            generate_audio: true,
            inputs: VideoInputs::Text,
            draft: false,
            final_of: None,
            edit: None,
        },
        metadata: BTreeMap::new(),
        priority: Priority::Normal,
        idempotency: None,
        callback: None,
        files: Vec::new(),
        trace: None,
        bounds: QueueBounds::NONE,
        cost: None,
        budgets: kinora_store::SubmitBudgets::default(),
    }
}

/// One task for the worker with this number.
pub(crate) fn claiming_one(worker: u64) -> ClaimRequest {
    ClaimRequest {
        worker: format!("bench-{worker}"),
        models: vec![MODEL.to_owned()],
        paused: Pauses::default(),
        count: 1,
        slots: usize::MAX,
        project_slots_max: 0,
        long_tasks: None,
        attempts_max: 3,
        is_settled: true,
        lease_ms: 30_000,
    }
}

pub(crate) fn artifact() -> Artifact {
    let file = |kind: &str| StoredFile {
        key: format!("videos/video_00000000000000000000000000/1/{kind}"),
        bytes: 1_000_000,
        sha256: "0".repeat(64),
    };
    Artifact {
        video: file("video.mp4"),
        thumbnail: file("thumbnail.webp"),
        spritesheet: file("spritesheet.jpg"),
        first_frame: Some(file("first_frame.jpg")),
        last_frame: Some(file("last_frame.jpg")),
        duration_seconds: 5.0,
        fps: 24.0,
        frames: 120,
        width: 1280,
        height: 720,
        has_audio: true,
    }
}

/// The 50th and the 99th percentile, in milliseconds.
pub(crate) fn percentiles(waits: &mut [Duration]) -> [f64; 2] {
    waits.sort_unstable();
    [50, 99].map(|part| {
        let at = (waits.len() * part / 100).min(waits.len().saturating_sub(1));
        waits.get(at).map_or(0.0, |wait| wait.as_secs_f64() * 1e3)
    })
}
