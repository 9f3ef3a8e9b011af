//! What metrics cost: submits and polls with them and without them, in turn, before two processes of the real binary.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use kinora_e2e::{Server, Setup, keys};

use super::{request, submit};
use crate::load::{Connection, Load, submit_some};
use crate::rows::{POLLED_TASKS, pairs, say};
use crate::{CONNECTIONS, Outcome};

/// More tasks than all windows together submit.
const TASKS_MAX: u32 = 100_000_000;
/// As often as no Prometheus asks.
const BETWEEN_SCRAPES: Duration = Duration::from_secs(1);

/// One process, and what is sent to it.
struct Side {
    server: Server,
    key: String,
}

/// Prints a row for submits and for polls at each load; the metrics are read once a second meanwhile.
///
/// # Errors
/// When an answer is not a 200.
pub(crate) async fn metered() -> Outcome<()> {
    let with = Side::start("127.0.0.1:0");
    let without = Side::start("");
    let scrapes = tokio::spawn(scrape(address_of_metrics(&with.server)?));
    say(
        "| what | connections | with/s | without/s | ratio | p50 ms | p99 ms | without p50 | without p99 |",
    );
    say("|---|---|---|---|---|---|---|---|---|");
    let (polls, other_polls) = (with.polls().await?, without.polls().await?);
    let (submits, other_submits) = (with.submits(), without.submits());
    let addresses = ([with.server.address()], [without.server.address()]);
    for (what, ours, theirs) in [
        ("poll, queued", &polls, &other_polls),
        ("durable submit", &submits, &other_submits),
    ] {
        for connections in CONNECTIONS {
            let row = pairs(connections, (&addresses.0, ours), (&addresses.1, theirs)).await?;
            say(&format!("| {what} | {connections} | {row} |"));
        }
    }
    scrapes.abort();
    Ok(())
}

impl Side {
    /// Starts a process whose metrics are at `listen`, nowhere if that is empty.
    fn start(listen: &str) -> Self {
        let server = Setup::default()
            .without_worker()
            .set("KINORA_METRICS_LISTEN", listen)
            .set("KINORA_QUEUE_WAITING_MAX", TASKS_MAX)
            .set("KINORA_QUEUE_PROJECT_UNFINISHED_MAX", TASKS_MAX)
            .set("KINORA_QUOTA_PROJECT_TASKS_MAX", TASKS_MAX)
            .start();
        let create = ["create", "--name", "metered", "--project", "metered"];
        let key = keys(server.data(), &create).ok().trim().to_owned();
        Self { server, key }
    }

    fn submits(&self) -> Arc<Load> {
        Arc::new(vec![submit(1, None, &self.key)])
    }

    async fn polls(&self) -> Outcome<Arc<Load>> {
        let ids = submit_some(self.server.address(), &self.submits(), POLLED_TASKS).await?;
        let poll = |id: &String| request("GET", &format!("/v1/videos/{id}"), &self.key);
        Ok(Arc::new(ids.iter().map(poll).collect()))
    }
}

/// Where the log says that the metrics are.
fn address_of_metrics(server: &Server) -> Outcome<SocketAddr> {
    let log = server.log();
    let line = log.lines().find(|line| line.contains("metrics served"));
    let event: serde_json::Value = serde_json::from_str(line.ok_or("no metrics")?)?;
    Ok(event["address"].as_str().ok_or("no address")?.parse()?)
}

async fn scrape(address: SocketAddr) -> Outcome<()> {
    let mut connection = Connection::open(address).await?;
    loop {
        connection.ask(&request("GET", "/metrics", "")).await?;
        tokio::time::sleep(BETWEEN_SCRAPES).await;
    }
}
