//! Durable submits and polls per second, each beside a handler of the same framework that does
//! nothing, in turn and in the same run, so that the ratio holds on a noisy machine.
//!
//! `cargo run --release -p kinora-bench [submit|poll|finished|health [CONNECTIONS]]`
//!
//! `postgres`: one and two API processes over PostgreSQL beside one over SQLite.
//!
//! `serve SECONDS` serves one finished task, for another client such as `wrk`, and says where.
//!
//! And what takes long, in front of the binary that `KINORA_E2E_BINARY` names (see `./soak`):
//! `idle CLIENTS SECONDS`, `short TASKS`, `streams [STREAMS]`, 10,000 by default, and `metered` (see `./bench`): submits
//! and polls with metrics and without.

#![forbid(unsafe_code)]
#![allow(
    clippy::disallowed_methods,
    reason = "measurements are made in real time"
)]

mod finish;
mod load;
mod outcome;
mod postgres;
mod rows;
mod servers;
mod soak;
mod stats;

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use load::{Load, measure};
use outcome::Outcome;
use rows::{CONNECTIONS, POLLED_TASKS, ROUNDS, WINDOW, pairs, say};
use servers::Servers;
use stats::{Window, summary};

/// As in the binary; both sides of a comparison have it.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Event streams that are open at the same time.
const STREAMS: usize = 10_000;

fn main() -> Outcome<()> {
    let clients = tokio::runtime::Builder::new_multi_thread()
        .thread_name("clients")
        .worker_threads(1)
        .enable_all()
        .build()?;
    let words: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    match words[..] {
        ["idle", number, seconds] => {
            let time = Duration::from_secs(seconds.parse()?);
            clients.block_on(soak::idle(number.parse()?, time))
        }
        ["serve", seconds] => {
            let time = Duration::from_secs(seconds.parse()?);
            clients.block_on(serve(&Servers::start()?, time))
        }
        ["metered"] => clients.block_on(soak::metered()),
        ["postgres"] => clients.block_on(postgres::compare(&Servers::start()?)),
        ["streams"] => clients.block_on(soak::streams(STREAMS)),
        ["streams", number] => clients.block_on(soak::streams(number.parse()?)),
        ["short", tasks] => clients.block_on(soak::short(tasks.parse()?)),
        _ => clients.block_on(run(&Servers::start()?, &words)),
    }
}

async fn run(servers: &Servers, words: &[&str]) -> Outcome<()> {
    say(
        "| what | connections | requests/s | no-op/s | ratio | p50 ms | p99 ms | no-op p50 | no-op p99 |",
    );
    say("|---|---|---|---|---|---|---|---|---|");
    let wanted = &|what: &str| words.first().is_none_or(|only| *only == what);
    let numbers: Vec<usize> = match words.get(1) {
        Some(number) => vec![number.parse()?],
        None => CONNECTIONS.to_vec(),
    };
    let numbers = |what: &'static str| numbers.iter().copied().filter(move |_| wanted(what));
    let submit = Arc::new(servers.submit_request());
    let noop_post = Arc::new(servers.noop_post_request());
    for connections in numbers("submit") {
        let sides = Sides {
            ours: &submit,
            theirs: &noop_post,
            fixed: None,
        };
        compare("durable submit", connections, servers, &sides).await?;
    }
    let polled = servers.kinora().await?;
    let ids = load::submit_some(polled.address, &submit, POLLED_TASKS).await?;
    let polls = Arc::new(servers.poll_requests(&ids));
    let noop_get =
        Arc::new(servers.noop_get_request(load::answer_bytes(polled.address, &polls).await?));
    for connections in numbers("poll") {
        let sides = Sides {
            ours: &polls,
            theirs: &noop_get,
            fixed: Some(polled.address),
        };
        compare("poll, queued", connections, servers, &sides).await?;
    }
    finish::finish_all(&polled.work).await?;
    let noop_get =
        Arc::new(servers.noop_get_request(load::answer_bytes(polled.address, &polls).await?));
    for connections in numbers("finished") {
        let sides = Sides {
            ours: &polls,
            theirs: &noop_get,
            fixed: Some(polled.address),
        };
        compare("poll, finished", connections, servers, &sides).await?;
    }
    let health = Arc::new(servers.health_request());
    for connections in numbers("health") {
        let address = &[polled.address][..];
        let (ours, theirs) = ((address, &polls), (address, &health));
        let row = pairs(connections, ours, theirs).await?;
        say(&format!(
            "| poll, finished, beside `/healthz` | {connections} | {row} |"
        ));
    }
    Ok(())
}

/// Serves a finished task and the handler that does nothing for `time`.
async fn serve(servers: &Servers, time: Duration) -> Outcome<()> {
    let kinora = servers.kinora().await?;
    let submit = Arc::new(servers.submit_request());
    let ids = load::submit_some(kinora.address, &submit, 1).await?;
    finish::finish_all(&kinora.work).await?;
    let polls = servers.poll_requests(&ids);
    let bytes = load::answer_bytes(kinora.address, &polls).await?;
    say(&servers.authorization());
    for id in ids {
        say(&format!("http://{}/v1/videos/{id}", kinora.address));
    }
    say(&format!("http://{}/healthz", kinora.address));
    say(&format!("http://{}/noop/{bytes}", servers.noop));
    tokio::time::sleep(time).await;
    Ok(())
}

/// What is sent to each side.
struct Sides<'a> {
    ours: &'a Arc<Load>,
    theirs: &'a Arc<Load>,
    /// A running Kinora to ask; `None` starts one for each window.
    fixed: Option<SocketAddr>,
}

/// Measures both sides in turn and prints a row.
async fn compare(
    what: &str,
    connections: usize,
    servers: &Servers,
    sides: &Sides<'_>,
) -> Outcome<()> {
    let mut kinora: Vec<Window> = Vec::new();
    let mut noop: Vec<Window> = Vec::new();
    // The first pair warms up and is not counted.
    for round in 0..=ROUNDS {
        let ours = match sides.fixed {
            Some(address) => measure(&[address], sides.ours, connections, WINDOW).await?,
            None => {
                let kinora = servers.kinora().await?;
                measure(&[kinora.address], sides.ours, connections, WINDOW).await?
            }
        };
        let theirs = measure(&[servers.noop], sides.theirs, connections, WINDOW).await?;
        if round > 0 {
            kinora.push(ours);
            noop.push(theirs);
        }
    }
    let row = summary(&kinora, &noop);
    say(&format!("| {what} | {connections} | {row} |"));
    Ok(())
}
