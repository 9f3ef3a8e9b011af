//! Measures the SQLite store at a million finished and a hundred thousand queued tasks beside a small one:
//! lists, submits, and submits while a backlog of due tasks expires. Prints a table with ratios. Usage:
//! `cargo run --release -p kinora-store --example scale_bench [FOLDER [FINISHED [QUEUED]]]`
#![allow(
    clippy::disallowed_methods,
    reason = "measurements are made in real time"
)]
#![allow(clippy::print_stdout, reason = "it prints a table")]

use std::collections::BTreeMap;
use std::error::Error;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use kinora_contract::spec::SPEC_VERSION;
use kinora_contract::{
    Artifact, FrameSize, Inputs, ManualClock, Seconds, Size, StoredFile, TaskId, VideoSpec,
};
use kinora_store::{
    Chore, ChoreKind, ChoreRequest, ClaimRequest, NewTask, OpenOptions, Order, PageRequest,
    QueueBounds, Stores, SweepRequest, WaitingFrom, open,
};
use rusqlite::{Connection, params};

const NOW_MS: u64 = 1_790_000_000_000;
const EXPIRY_MS: u64 = NOW_MS + 100_000_000;
const PROJECT: &str = "project";
/// Of the sweeper.
const BATCH: usize = 200;
/// Tasks that are due in the measured backlog.
const DUE: u64 = 100_000;
const SMALL: u64 = 1_000;

type Failure = Box<dyn Error + Send + Sync>;

#[tokio::main]
async fn main() -> Result<(), Failure> {
    let mut arguments = std::env::args().skip(1);
    let parent = arguments.next().unwrap_or_else(|| ".".to_owned());
    let finished: u64 = arguments
        .next()
        .map_or(Ok(1_000_000), |text| text.parse())?;
    let queued: u64 = arguments.next().map_or(Ok(100_000), |text| text.parse())?;
    let folder = tempfile::tempdir_in(&parent)?;
    let small = filled(&folder.path().join("small.db"), SMALL, SMALL / 10).await?;
    let large = filled(&folder.path().join("large.db"), finished, queued).await?;
    println!(
        "| what | {SMALL} finished, ms p50 / p99 | {finished} finished, {queued} queued | ratio of p50 |"
    );
    println!("|---|---|---|---|");
    for (what, limit, random) in [
        ("list, newest 20", 20, false),
        ("list, newest 100", 100, false),
        ("list, 100 after a random id", 100, true),
    ] {
        let few = lists(&small, SMALL, limit, random).await?;
        let many = lists(&large, finished, limit, random).await?;
        compare(what, few, many);
    }
    let (few, many) = (submits(&small, 1).await?, submits(&large, 2).await?);
    compare("durable submit", few, many.clone());
    let (begun, submitting) = (Instant::now(), large.clone());
    let submitting = tokio::spawn(async move { submits(&submitting, 3).await });
    let swept = expire(&large, DUE.min(finished)).await?;
    let took = begun.elapsed();
    compare(
        "submit, alone and while a backlog expires",
        many,
        submitting.await??,
    );
    let rate = swept as f64 / took.as_secs_f64();
    println!("\n{swept} due tasks expired in {took:.1?}: {rate:.0} a second beside a submitter");
    Ok(())
}

/// A store of finished and queued tasks: one of each kind by the interface, the others as its copies.
async fn filled(path: &Path, finished: u64, queued: u64) -> Result<Stores, Failure> {
    let url = format!("sqlite:{}", path.display());
    let options = OpenOptions::new(Arc::new(ManualClock::at(NOW_MS)));
    let stores = open(&url, &options).await?;
    stores.tasks.insert(task(id(0))).await?;
    let request = ClaimRequest {
        worker: "bench".to_owned(),
        models: vec!["kinora-a1".to_owned()],
        count: 1,
        slots: usize::MAX,
        project_slots_max: 0,
        attempts_max: 3,
        lease_ms: 30_000,
    };
    for claim in stores.work.claim(request).await? {
        let done = stores
            .work
            .finish(&claim.lease, Ok(artifact()), EXPIRY_MS - NOW_MS);
        done.await?;
    }
    stores.tasks.insert(task(id(finished))).await?;
    drop(stores);
    let mut raw = Connection::open(path)?;
    let copying = raw.transaction()?;
    copy(
        &copying,
        1,
        (1..finished).map(|number| (number + 10_000_000, number)),
    )?;
    copy(
        &copying,
        2,
        (1..queued).map(|number| (number + 20_000_000, finished + number)),
    )?;
    copying.execute(
        "UPDATE usage SET tasks = (SELECT count(*) FROM tasks), \
         bytes = (SELECT sum(charged_bytes) FROM tasks)",
        [],
    )?;
    copying.commit()?;
    Ok(open(&url, &options).await?)
}

/// Copies of the row at this place, each at a place and with a number of its own.
fn copy(
    conn: &Connection,
    of: i64,
    copies: impl Iterator<Item = (u64, u64)>,
) -> Result<(), Failure> {
    let columns = "project, phase, progress, attempt, engine, created_at_ms, started_at_ms, \
         finished_at_ms, expires_at_ms, lease_token, lease_until_ms, worker, artifact, failure, \
         spec_version, spec, metadata, kept, references_ready, warnings, reference_bytes, charged_bytes";
    let mut query = conn.prepare(&format!(
        "INSERT INTO tasks (seq, id, {columns}) SELECT ?1, ?2, {columns} FROM tasks WHERE seq = ?3"
    ))?;
    for (place, number) in copies {
        query.execute(params![i64::try_from(place)?, id(number).to_string(), of])?;
    }
    Ok(())
}

/// An id whose order is that of its number.
fn id(number: u64) -> TaskId {
    let mut random = [0; 10];
    random[2..].copy_from_slice(&number.wrapping_mul(0x9e37_79b9_7f4a_7c15).to_be_bytes());
    TaskId::from_parts(NOW_MS + number, random)
}

fn task(id: TaskId) -> NewTask {
    NewTask {
        id,
        project: PROJECT.to_owned(),
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

fn artifact() -> Artifact {
    let file = |kind: &str| StoredFile {
        key: format!("videos/video_00000000000000000000000000/1/{kind}"),
        bytes: 1_000_000,
        sha256: "0".repeat(64),
    };
    Artifact {
        video: file("video.mp4"),
        thumbnail: file("thumbnail.webp"),
        spritesheet: file("spritesheet.jpg"),
        duration_seconds: 5.0,
        fps: 24.0,
        frames: 120,
        width: 1280,
        height: 720,
        has_audio: true,
    }
}

async fn lists(
    stores: &Stores,
    finished: u64,
    limit: usize,
    random: bool,
) -> Result<Vec<Duration>, Failure> {
    let (mut waits, mut number) = (Vec::new(), 1_u64);
    for _ in 0..2_000 {
        number = number
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        let request = PageRequest {
            project: PROJECT.to_owned(),
            after: random.then(|| id(200 + (number >> 33) % (finished - 200))),
            limit,
            order: Order::Descending,
        };
        let begun = Instant::now();
        let page = stores.tasks.list(request).await?;
        waits.push(begun.elapsed());
        if page.tasks.len() != limit {
            return Err(format!("{} tasks in a page of {limit}", page.tasks.len()).into());
        }
    }
    Ok(waits)
}

async fn submits(stores: &Stores, lane: u64) -> Result<Vec<Duration>, Failure> {
    let (mut waits, until) = (Vec::new(), Instant::now() + Duration::from_secs(5));
    while Instant::now() < until {
        let number = lane * 100_000_000 + waits.len() as u64;
        let begun = Instant::now();
        stores.tasks.insert(task(id(number))).await?;
        waits.push(begun.elapsed());
    }
    Ok(waits)
}

/// Expires tasks as the sweeper does: a batch, then a pause as long, until so many are expired.
async fn expire(stores: &Stores, due: u64) -> Result<u64, Failure> {
    let (mut expired, mut place) = (0, 0);
    while expired < due {
        let begun = Instant::now();
        let swept = stores.chores.sweep(sweep()).await?;
        remove_files(stores).await?;
        expired += swept.expired;
        place += 1;
        if swept.expired == 0 {
            return Err(format!("nothing is due after {place} sweeps").into());
        }
        tokio::time::sleep(begun.elapsed()).await;
    }
    Ok(expired)
}

/// Takes and settles the chores of removing files, as a worker does.
async fn remove_files(stores: &Stores) -> Result<(), Failure> {
    loop {
        let request = ChoreRequest {
            kind: ChoreKind::RemoveFile,
            count: 3 * BATCH,
            lease_ms: 60_000,
        };
        let chores = stores.chores.take_chores(request).await?;
        if chores.is_empty() {
            return Ok(());
        }
        let done = chores.into_iter().map(Chore::done).collect();
        stores.chores.settle_chores(done).await?;
    }
}

const fn sweep() -> SweepRequest {
    SweepRequest {
        due_ms: Some(EXPIRY_MS),
        keys_kept_ms: 0,
        waiting_from: WaitingFrom {
            created_before_ms: 0,
            from_ms: 0,
        },
        attempts_max: 3,
        spares_leases: true,
        waiting_ms_max: None,
        retention_ms: 500,
        tombstone_ms: u64::MAX,
        batch: BATCH,
    }
}

fn compare(what: &str, mut few: Vec<Duration>, mut many: Vec<Duration>) {
    let mut ms = |part: usize| {
        [&mut few, &mut many].map(|waits| {
            waits.sort_unstable();
            let at = (waits.len() * part / 100).min(waits.len().saturating_sub(1));
            waits.get(at).map_or(0.0, |wait| wait.as_secs_f64() * 1e3)
        })
    };
    let ([few50, many50], [few99, many99]) = (ms(50), ms(99));
    println!(
        "| {what} | {few50:.3} / {few99:.3} | {many50:.3} / {many99:.3} | {:.2} |",
        many50 / few50
    );
}
