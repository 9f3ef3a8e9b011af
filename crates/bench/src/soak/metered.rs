//! What metrics cost: submits and polls with them and without them, in turn, before two processes of the real binary.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use kinora_test_e2e::{Server, Setup, keys};

use super::{footprint, request, submit};
use crate::load::{Connection, Load, measure, submit_some};
use crate::rows::{POLLED_TASKS, WINDOW, say};
use crate::stats::{Window, median, quantile, ratios};
use crate::{CONNECTIONS, Outcome};

/// The share of the submits per second that metrics may cost at [`BOUND_AT`] connections.
const COST_MAX: f64 = 0.02;
const BOUND_AT: usize = 64;
/// Pairs of windows. One pair says little: neighbours differ by more than the bound, and their median by less.
const ROUNDS: usize = 21;
/// Submits before a window is measured.
const WARM_UP: usize = 500;
/// More tasks than a window submits.
const TASKS_MAX: u32 = 10_000_000;
/// When in a window the metrics are read: ten times as often as a Prometheus does that asks every 15 s.
const SCRAPE_AFTER: Duration = Duration::from_millis(750);

/// One process, and what is sent to it.
struct Side {
    server: Server,
    key: String,
    /// Where its metrics are, if it has them.
    metrics: Option<SocketAddr>,
}

/// The windows of each side, in their order, and the processor time of a request in each, in microseconds.
#[derive(Default)]
struct Measured {
    with: Vec<Window>,
    without: Vec<Window>,
    work_with: Vec<f64>,
    work_without: Vec<f64>,
}

/// Prints a row for submits and for polls at each load, and whether the cost of submits is within its bound.
///
/// # Errors
/// When an answer is not a 200.
pub(crate) async fn metered() -> Outcome<()> {
    say(
        "| what | connections | with/s | without/s | ratio | its quartiles | p99 ms | without p99 | µs of a processor | without |",
    );
    say("|---|---|---|---|---|---|---|---|---|---|");
    for connections in CONNECTIONS {
        let measured = polls(connections).await?;
        say(&measured.row("poll, queued", connections));
    }
    let mut ratio = None;
    for connections in CONNECTIONS {
        let measured = submits(connections).await?;
        say(&measured.row("durable submit", connections));
        if connections == BOUND_AT {
            ratio = Some(median(measured.ratios()));
        }
    }
    let ratio = ratio.ok_or("the bound is at none of the loads")?;
    let least = 1.0 - COST_MAX;
    let verdict = if ratio >= least { "held" } else { "not held" };
    say(&format!(
        "\nSubmits with metrics, of those without, at {BOUND_AT} connections: {ratio:.3}. Bound: {least:.2}, {verdict}."
    ));
    Ok(())
}

/// Each pair before two new processes: with the tasks of other windows in its store, each would be slower than the one
/// before.
async fn submits(connections: usize) -> Outcome<Measured> {
    let mut measured = Measured::default();
    for round in 0..ROUNDS {
        let (with, without) = both()?;
        let loads = (with.submits(), without.submits());
        submit_some(with.server.address(), &loads.0, WARM_UP).await?;
        submit_some(without.server.address(), &loads.1, WARM_UP).await?;
        let (with, without) = ((&with, &loads.0), (&without, &loads.1));
        measured.add(round, connections, with, without).await?;
    }
    Ok(measured)
}

async fn polls(connections: usize) -> Outcome<Measured> {
    let (with, without) = both()?;
    let loads = (with.polls().await?, without.polls().await?);
    let mut measured = Measured::default();
    for round in 0..ROUNDS {
        let (with, without) = ((&with, &loads.0), (&without, &loads.1));
        measured.add(round, connections, with, without).await?;
    }
    Ok(measured)
}

fn both() -> Outcome<(Side, Side)> {
    Ok((Side::start("127.0.0.1:0")?, Side::start("")?))
}

impl Measured {
    /// Measures a window of each side. They take turns at being the first, so that a machine which slows down slows both.
    async fn add(
        &mut self,
        round: usize,
        connections: usize,
        (with, load): (&Side, &Arc<Load>),
        (without, other_load): (&Side, &Arc<Load>),
    ) -> Outcome<()> {
        if round.is_multiple_of(2) {
            self.add_with(with, load, connections).await?;
        }
        let (window, work) = without.window(other_load, connections).await?;
        self.without.push(window);
        self.work_without.push(work);
        if !round.is_multiple_of(2) {
            self.add_with(with, load, connections).await?;
        }
        Ok(())
    }

    async fn add_with(&mut self, with: &Side, load: &Arc<Load>, connections: usize) -> Outcome<()> {
        let (window, work) = with.window(load, connections).await?;
        self.with.push(window);
        self.work_with.push(work);
        Ok(())
    }

    fn ratios(&self) -> Vec<f64> {
        ratios(&self.with, &self.without)
    }

    fn row(&self, what: &str, connections: usize) -> String {
        let rate = |windows: &[Window]| median(windows.iter().map(|window| window.per_second));
        let p99 =
            |windows: &[Window]| median(windows.iter().map(|one| one.p99.as_secs_f64() * 1e3));
        format!(
            "| {what} | {connections} | {:.0} | {:.0} | {:.3} | {:.3} to {:.3} | {:.2} | {:.2} | {:.1} | {:.1} |",
            rate(&self.with),
            rate(&self.without),
            median(self.ratios()),
            quantile(self.ratios(), 0.25),
            quantile(self.ratios(), 0.75),
            p99(&self.with),
            p99(&self.without),
            median(self.work_with.iter().copied()),
            median(self.work_without.iter().copied()),
        )
    }
}

impl Side {
    /// Starts a process whose metrics are at `listen`, nowhere if that is empty.
    fn start(listen: &str) -> Outcome<Self> {
        let server = Setup::default()
            .without_worker()
            .set("KINORA_METRICS_LISTEN", listen)
            .set("KINORA_QUEUE_WAITING_MAX", TASKS_MAX)
            .set("KINORA_QUEUE_PROJECT_UNFINISHED_MAX", TASKS_MAX)
            .set("KINORA_QUOTA_PROJECT_TASKS_MAX", TASKS_MAX)
            .start();
        let create = ["create", "--name", "metered", "--project", "metered"];
        let key = keys(server.data(), &create).ok().trim().to_owned();
        let metrics = match listen {
            "" => None,
            _ => Some(address_of_metrics(&server)?),
        };
        Ok(Self {
            server,
            key,
            metrics,
        })
    }

    fn submits(&self) -> Arc<Load> {
        Arc::new(vec![submit(1, None, &self.key)])
    }

    async fn polls(&self) -> Outcome<Arc<Load>> {
        let ids = submit_some(self.server.address(), &self.submits(), POLLED_TASKS).await?;
        let poll = |id: &String| request("GET", &format!("/v1/videos/{id}"), &self.key);
        Ok(Arc::new(ids.iter().map(poll).collect()))
    }

    /// A window, in which the metrics are read if there are any, and the processor time of a request in microseconds.
    async fn window(&self, load: &Arc<Load>, connections: usize) -> Outcome<(Window, f64)> {
        let address = [self.server.address()];
        let before = footprint::processor_time(self.server.process_id())?;
        let (window, read) = tokio::join!(
            measure(&address, load, connections, WINDOW),
            scrape(self.metrics)
        );
        read?;
        let window = window?;
        let work = footprint::processor_time(self.server.process_id())?.saturating_sub(before);
        let requests = window.per_second * WINDOW.as_secs_f64();
        Ok((window, work.as_secs_f64() * 1e6 / requests))
    }
}

/// Where the log says that the metrics are.
fn address_of_metrics(server: &Server) -> Outcome<SocketAddr> {
    let log = server.log();
    let line = log.lines().find(|line| line.contains("metrics served"));
    let event: serde_json::Value = serde_json::from_str(line.ok_or("no metrics")?)?;
    Ok(event["address"].as_str().ok_or("no address")?.parse()?)
}

async fn scrape(metrics: Option<SocketAddr>) -> Outcome<()> {
    let Some(address) = metrics else {
        return Ok(());
    };
    tokio::time::sleep(SCRAPE_AFTER).await;
    let mut connection = Connection::open(address).await?;
    connection.ask(&request("GET", "/metrics", "")).await?;
    Ok(())
}
