//! Many clients that follow their tasks by event streams: what the streams cost, and how soon each hears of its
//! task's end.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::{Duration, Instant};

use kinora_test_e2e::{Server, Setup, keys};
use tokio::sync::{Barrier, oneshot};
use tokio::task::JoinSet;

use super::footprint::Footprint;
use super::{request, submit};
use crate::load::Connection;
use crate::stats::Window;
use crate::{Outcome, say};

/// Streams of one API key, and of one address: fewer than either may have.
const STREAMS_OF_A_KEY: usize = 500;
/// Connections that cancel the tasks, all at the same time.
const CANCELLERS: usize = 8;
/// Bounds that are promised.
const P99_MAX: Duration = Duration::from_secs(1);
const MEMORY_MAX_KIB: u64 = 300 * 1000 * 1000 / 1024;

/// Opens `count` streams, each of a task of its own, and ends all tasks at once.
///
/// # Errors
/// When an answer is not a 200, or a promised bound does not hold.
pub(crate) async fn streams(count: usize) -> Outcome<()> {
    let connections = count.max(2 * STREAMS_OF_A_KEY) + 2 * CANCELLERS;
    let server = Setup::default()
        .without_worker()
        .set("KINORA_HTTP_CONNECTIONS_MAX", connections)
        .set("KINORA_QUEUE_WAITING_MAX", 2 * count)
        .set("KINORA_QUEUE_PROJECT_UNFINISHED_MAX", 2 * count)
        .start();
    let tasks = submit_all(&server, count).await?;
    let before = Footprint::of(server.process_id(), &server.data().path())?;
    let opened = Arc::new(Barrier::new(count + 1));
    let mut readers = JoinSet::new();
    let mut told = Vec::with_capacity(count);
    for (number, task) in tasks.iter().enumerate() {
        let (cancelled, when) = oneshot::channel();
        told.push(cancelled);
        let from = Ipv4Addr::new(127, 0, 1, (number / STREAMS_OF_A_KEY) as u8 + 1);
        readers.spawn(follow(
            from,
            server.address(),
            task.events(),
            opened.clone(),
            when,
        ));
        if number % 100 == 99 {
            // As they come, and not faster than a backlog takes them.
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    }
    opened.wait().await;
    let open = Footprint::of(server.process_id(), &server.data().path())?;
    let begun = Instant::now();
    cancel_all(server.address(), tasks, told).await?;
    let mut latencies = Vec::with_capacity(count);
    while let Some(read) = readers.join_next().await {
        latencies.push(read??);
    }
    let slowest = latencies.iter().max().copied().unwrap_or_default();
    let window = Window::of(latencies, begun.elapsed());
    let peak = Footprint::of(server.process_id(), &server.data().path())?;
    let megabytes = |kib: u64| kib * 1024 / 1_000_000;
    say(&format!(
        "{count} streams: {} MB before, {} MB open ({} KB each), {} MB at the highest; told of the end after p50 \
         {:.2?}, p99 {:.2?}, slowest {slowest:.2?}; {:.0} ends per second",
        megabytes(before.memory_kib),
        megabytes(open.memory_kib),
        open.memory_kib.saturating_sub(before.memory_kib) / count.max(1) as u64,
        megabytes(peak.memory_peak_kib),
        window.p50,
        window.p99,
        window.per_second,
    ));
    if window.p99 > P99_MAX || peak.memory_peak_kib > MEMORY_MAX_KIB {
        return Err("told later than after 1 s, or more than 300 MB".into());
    }
    Ok(())
}

/// A task that waits, and whose it is.
struct Task {
    id: String,
    key: Arc<str>,
}

impl Task {
    fn events(&self) -> Vec<u8> {
        request("GET", &format!("/v1/videos/{}/events", self.id), &self.key)
    }

    fn cancel(&self) -> Vec<u8> {
        request("POST", &format!("/v1/videos/{}/cancel", self.id), &self.key)
    }
}

async fn submit_all(server: &Server, count: usize) -> Outcome<Vec<Task>> {
    let mut connection = Connection::open(server.address()).await?;
    let mut tasks = Vec::with_capacity(count);
    let mut key: Arc<str> = "".into();
    for number in 0..count {
        if number % STREAMS_OF_A_KEY == 0 {
            let name = format!("streams-{number}");
            let create = ["create", "--name", &name, "--project", &name];
            key = keys(server.data(), &create).ok().trim().into();
        }
        let answer = connection.ask(&submit(number, None, &key)).await?;
        let task: serde_json::Value = serde_json::from_slice(&answer)?;
        let id = task["id"].as_str().ok_or("no id")?.to_owned();
        tasks.push(Task {
            id,
            key: key.clone(),
        });
    }
    Ok(tasks)
}

/// Reads one stream; returns the time from the cancel of its task to its last event.
async fn follow(
    from: Ipv4Addr,
    address: SocketAddr,
    ask: Vec<u8>,
    opened: Arc<Barrier>,
    cancelled: oneshot::Receiver<Instant>,
) -> Outcome<Duration> {
    let begun = begin(from, address, &ask).await;
    // Also one that failed: the others wait for it.
    opened.wait().await;
    let mut connection = begun?;
    connection.wait_for(br#""status":"failed""#).await?;
    let heard = Instant::now();
    Ok(heard.saturating_duration_since(cancelled.await?))
}

/// A stream that has told where its task stands.
async fn begin(from: Ipv4Addr, address: SocketAddr, ask: &[u8]) -> Outcome<Connection> {
    let mut connection = Connection::open_from(from, address).await?;
    connection.send(ask).await?;
    connection.wait_for(br#""status":"queued""#).await?;
    Ok(connection)
}

/// Cancels every task, and says when each cancel was sent.
async fn cancel_all(
    address: SocketAddr,
    tasks: Vec<Task>,
    told: Vec<oneshot::Sender<Instant>>,
) -> Outcome<()> {
    let mut parts: Vec<Vec<_>> = (0..CANCELLERS).map(|_| Vec::new()).collect();
    for (number, one) in tasks.into_iter().zip(told).enumerate() {
        parts[number % CANCELLERS].push(one);
    }
    let mut cancelling = JoinSet::new();
    for part in parts {
        cancelling.spawn(async move {
            let mut connection = Connection::open(address).await?;
            for (task, told) in part {
                // A reader that has failed says so itself.
                let _ = told.send(Instant::now());
                connection.ask(&task.cancel()).await?;
            }
            Outcome::Ok(())
        });
    }
    while let Some(done) = cancelling.join_next().await {
        done??;
    }
    Ok(())
}
