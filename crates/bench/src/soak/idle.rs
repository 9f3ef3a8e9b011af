//! Many clients that wait for their tasks: each keeps one connection and polls now and then.

use std::net::Ipv4Addr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use kinora_test_e2e::{Server, Setup};
use tokio::task::JoinSet;

use super::footprint::Footprint;
use super::{request, submit};
use crate::load::Connection;
use crate::stats::Window;
use crate::{Outcome, say};

/// Tasks that are waited for.
const TASKS: usize = 50;
/// Time between two polls of a client.
const EVERY: Duration = Duration::from_secs(5);
/// Clients of one address: fewer than one address may have.
const CLIENTS_OF_AN_ADDRESS: usize = 500;
/// Bounds that are promised.
const P99_MAX: Duration = Duration::from_millis(100);
const MEMORY_MAX_KIB: u64 = 400 * 1000 * 1000 / 1024;

/// Polls with `clients` connections for `time`.
///
/// # Errors
/// When an answer is not a 200, or a promised bound does not hold.
pub(crate) async fn idle(clients: usize, time: Duration) -> Outcome<()> {
    // One place is for the client that submits; no address may have more than half of them.
    let places = clients.max(2 * CLIENTS_OF_AN_ADDRESS) + 1;
    let server = Setup::default()
        .set("KINORA_HTTP_CONNECTIONS_MAX", places)
        .start();
    let ids = finished_tasks(&server).await?;
    let mut polling = JoinSet::new();
    let start = Instant::now();
    for number in 0..clients {
        let poll = request(
            "GET",
            &format!("/v1/videos/{}", ids[number % ids.len()]),
            server.client().key(),
        );
        let from = Ipv4Addr::new(127, 0, 1, (number / CLIENTS_OF_AN_ADDRESS) as u8 + 1);
        let address = server.address();
        // Their polls are spread over the interval, as those of strangers are.
        let first = EVERY.mul_f64(number as f64 / clients as f64);
        polling.spawn(async move {
            tokio::time::sleep(first).await;
            let mut connection = Connection::open_from(from, address).await?;
            let mut latencies = Vec::new();
            while start.elapsed() < time {
                let sent = Instant::now();
                connection.ask(&poll).await?;
                latencies.push(sent.elapsed());
                tokio::time::sleep(EVERY.saturating_sub(sent.elapsed())).await;
            }
            Outcome::Ok(latencies)
        });
    }
    let mut latencies = Vec::new();
    while let Some(polled) = polling.join_next().await {
        latencies.extend(polled??);
    }
    let (polls, slowest) = (latencies.len(), latencies.iter().max().copied());
    let window = Window::of(latencies, start.elapsed());
    let footprint = Footprint::of(server.process_id(), &server.data().path())?;
    say(&format!(
        "{clients} clients, {:.0} s: {polls} polls, p50 {:.2?}, p99 {:.2?}, slowest {:.2?}; \
         memory at its highest {} MB, {} descriptors",
        time.as_secs_f64(),
        window.p50,
        window.p99,
        slowest.unwrap_or_default(),
        footprint.memory_peak_kib * 1024 / 1_000_000,
        footprint.descriptors,
    ));
    if window.p99 > P99_MAX || footprint.memory_peak_kib > MEMORY_MAX_KIB {
        return Err("slower than 100 ms, or more than 400 MB".into());
    }
    Ok(())
}

/// Tasks that have been made: their objects are the longest.
async fn finished_tasks(server: &Server) -> Outcome<Arc<[String]>> {
    let client = server.client();
    let mut connection = Connection::open(server.address()).await?;
    let mut ids = Vec::new();
    for seed in 0..TASKS {
        let answer = connection.ask(&submit(seed, None, client.key())).await?;
        let task: serde_json::Value = serde_json::from_slice(&answer)?;
        ids.push(task["id"].as_str().ok_or("no id")?.to_owned());
    }
    for id in &ids {
        client.wait_completed(id);
    }
    Ok(ids.into())
}
