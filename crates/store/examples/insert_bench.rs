//! Measures a store: durable inserts, polls, claims. Prints a table. Usage:
//! `cargo run --release -p kinora-store --example insert_bench [FOLDER | POSTGRES-ADDRESS...]`: SQLite in a folder on this
//! machine's disk, or three empty PostgreSQL databases.
#![allow(
    clippy::disallowed_methods,
    reason = "measurements are made in real time"
)]
#![allow(clippy::print_stdout, reason = "it prints a table")]

use std::collections::BTreeMap;
use std::error::Error;
use std::sync::Arc;
use std::time::{Duration, Instant};

use kinora_contract::spec::SPEC_VERSION;
use kinora_contract::{FrameSize, Inputs, ManualClock, Seconds, Size, TaskId, VideoSpec};
use kinora_store::{
    ClaimRequest, NewTask, OpenOptions, PostgresOptions, QueueBounds, Stores, migrate, open,
};

const NOW_MS: u64 = 1_760_000_000_000;
const LENGTH: Duration = Duration::from_secs(4);

type Failure = Box<dyn Error + Send + Sync>;

#[tokio::main]
async fn main() -> Result<(), Failure> {
    let parent = std::env::args().nth(1).unwrap_or_else(|| ".".to_owned());
    println!("| operation | at once | per second | p50 ms | p99 ms |\n|---|---|---|---|---|");
    for (number, submitters) in [1, 64, 256].into_iter().enumerate() {
        let folder = tempfile::tempdir_in(if parent.contains("://") { "." } else { &parent })?;
        let path = folder.path().join("bench.db");
        let url = match std::env::args().nth(1 + number) {
            Some(url) if url.contains("://") => url,
            _ => format!("sqlite:{}", path.display()),
        };
        migrate(&url, &PostgresOptions::default()).await?;
        let options = OpenOptions::new(Arc::new(ManualClock::at(NOW_MS)));
        let stores = open(&url, &options).await?;
        inserts(&stores, submitters).await?;
        if submitters == 256 {
            polls(&stores).await?;
            claims(&stores, 64).await?;
        }
    }
    Ok(())
}

fn task(lane: u64, number: u64) -> NewTask {
    let mut random = [0; 10];
    random[2..].copy_from_slice(&(lane << 40 | number).to_be_bytes());
    NewTask {
        id: TaskId::from_parts(NOW_MS + number, random),
        project: format!("project-{}", lane % 7),
        spec: VideoSpec {
            version: SPEC_VERSION,
            model: "kinora-a1".to_owned(),
            prompt: "a fishing boat leaves the harbour at dawn, gulls, soft mist ".repeat(4),
            negative_prompt: None,
            seconds: Seconds::Fixed(5),
            frame: FrameSize::Fixed(Size::new(1280, 720)),
            seed: 7,
            generate_audio: true,
            inputs: Inputs::Text,
            draft: false,
            final_of: None,
            edit: None,
        },
        metadata: BTreeMap::new(),
        idempotency: None,
        bounds: QueueBounds::NONE,
    }
}

async fn inserts(stores: &Stores, submitters: u64) -> Result<(), Failure> {
    let lanes = (0..submitters).map(|lane| {
        let tasks = stores.tasks.clone();
        tokio::spawn(async move {
            let (begun, mut waits) = (Instant::now(), Vec::new());
            while begun.elapsed() < LENGTH {
                let sent = Instant::now();
                tasks.insert(task(lane, waits.len() as u64)).await?;
                waits.push(sent.elapsed());
            }
            Ok::<_, Failure>(waits)
        })
    });
    let mut waits = Vec::new();
    for lane in lanes.collect::<Vec<_>>() {
        waits.extend(lane.await??);
    }
    report("insert", submitters, waits.len(), LENGTH, &mut waits);
    Ok(())
}

async fn claims(stores: &Stores, workers: u64) -> Result<(), Failure> {
    let lanes = (0..workers).map(|_| {
        let work = stores.work.clone();
        tokio::spawn(async move {
            let (begun, mut waits) = (Instant::now(), Vec::new());
            while begun.elapsed() < LENGTH {
                let sent = Instant::now();
                let request = ClaimRequest {
                    worker: "bench".to_owned(),
                    models: vec!["kinora-a1".to_owned()],
                    count: 1,
                    slots: usize::MAX,
                    project_slots_max: 0,
                    attempts_max: 3,
                    lease_ms: 30_000,
                };
                if work.claim(request).await?.is_empty() {
                    break;
                }
                waits.push(sent.elapsed());
            }
            Ok::<_, Failure>(waits)
        })
    });
    let (begun, mut waits) = (Instant::now(), Vec::new());
    for lane in lanes.collect::<Vec<_>>() {
        waits.extend(lane.await??);
    }
    report(
        "claim of one",
        workers,
        waits.len(),
        begun.elapsed(),
        &mut waits,
    );
    Ok(())
}

/// Polls of waiting tasks in one thread: the position in a long queue included.
async fn polls(stores: &Stores) -> Result<(), Failure> {
    let ids: Vec<NewTask> = (0..256).map(|lane| task(lane, 3)).collect();
    let (begun, mut count) = (Instant::now(), 0);
    while begun.elapsed() < Duration::from_secs(1) {
        for new in &ids {
            let found = stores.tasks.get(&new.project, new.id).await?;
            let positions = stores.tasks.positions(&[new.id]).await?;
            count += usize::from(found.is_some() && positions != [None]);
        }
    }
    report(
        "poll",
        1,
        count,
        begun.elapsed(),
        &mut [begun.elapsed() / u32::try_from(count)?],
    );
    Ok(())
}

fn report(name: &str, at_once: u64, count: usize, length: Duration, waits: &mut [Duration]) {
    waits.sort_unstable();
    let ms = |part: usize| {
        let at = (waits.len() * part / 100).min(waits.len().saturating_sub(1));
        waits.get(at).map_or(0.0, |wait| wait.as_secs_f64() * 1e3)
    };
    let rate = count as f64 / length.as_secs_f64();
    println!(
        "| {name} | {at_once} | {rate:.0} | {:.4} | {:.4} |",
        ms(50),
        ms(99)
    );
}
