//! Metrics for Prometheus (`[metrics] listen`), and the small listeners that serve them and a
//! worker's health. Tasks, requests and commits are counted where they happen; current values are
//! read at each scrape.

mod devices;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use axum::Router;
use axum::extract::State;
use axum::http::header;
use axum::response::IntoResponse;
use axum::routing::get;
use kinora_api::{ListenSettings, ListenerStop};
use kinora_store::{LivingWorker, Pauses, QueueCounts, StoreError, StoreHandles, WorkerPlaceState};
use metrics::{describe_counter, describe_gauge, describe_histogram, gauge};
use metrics_exporter_prometheus::{Matcher, PrometheusBuilder, PrometheusHandle};
use rustix::param::page_size;
use tokio::net::TcpListener;

use crate::address::{ListenAddress, OptionalAddress};
use crate::failure::Failure;
use crate::system::{self, SystemClock};

/// The text format of Prometheus, version 0.0.4.
const CONTENT_TYPE: &str = "text/plain; version=0.0.4; charset=utf-8";
/// Histograms keep each value until a scrape, or until this interval ends.
const UPKEEP: Duration = Duration::from_secs(5);
/// Upper bounds of the buckets of all histograms, in seconds: from a commit to a film.
const BUCKETS: &[f64] = &[
    0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0,
    120.0, 300.0, 600.0, 1800.0, 3600.0,
];

/// The recorder of this process, with the address to read it.
pub(crate) struct MetricsServer {
    handle: PrometheusHandle,
    listener: TcpListener,
}

impl MetricsServer {
    /// Starts to record if there is an address to listen on.
    pub(crate) async fn start(listen: &OptionalAddress) -> Result<Option<Self>, Failure> {
        let Some(address) = &listen.0 else {
            return Ok(None);
        };
        let listener = bind_monitor(address).await?;
        let handle = PrometheusBuilder::new()
            // Without buckets the exporter would make summaries of these, whose quantiles cannot be
            // added up over processes.
            .set_buckets_for_metric(Matcher::Suffix("_seconds".to_owned()), BUCKETS)
            .and_then(PrometheusBuilder::install_recorder)
            .map_err(|error| Failure::because("Metrics cannot be recorded", error))?;
        describe();
        tracing::info!(address = %shown_address(&listener, address), "metrics served");
        Ok(Some(Self { handle, listener }))
    }

    /// Answers scrapes until `stop` is done.
    pub(crate) fn spawn(self, stores: StoreHandles, stop: &ListenerStop) -> Result<(), Failure> {
        let upkeep = self.handle.clone();
        tokio::spawn(async move {
            loop {
                // The exporter keeps single values until a scrape sorts them into buckets. Without
                // a scraper they would pile up for ever.
                tokio::time::sleep(UPKEEP).await;
                upkeep.run_upkeep();
            }
        });
        devices::spawn_poller();
        let read = Arc::new(ScrapeState {
            handle: self.handle,
            stores,
            shown: ShownLabels::default(),
        });
        let router = Router::new()
            .route("/metrics", get(scrape))
            .with_state(read);
        let stop = ListenerStop {
            begun: stop.begun.clone(),
            done: stop.done.clone(),
        };
        let answering = kinora_api::serve(self.listener, router, monitor_settings()?, stop);
        tokio::spawn(answering);
        Ok(())
    }
}

fn shown_address(listener: &TcpListener, configured: &ListenAddress) -> String {
    listener
        .local_addr()
        .map_or_else(|_| configured.to_string(), |address| address.to_string())
}

struct ScrapeState {
    handle: PrometheusHandle,
    stores: StoreHandles,
    shown: ShownLabels,
}

async fn scrape(State(read): State<Arc<ScrapeState>>) -> impl IntoResponse {
    read_gauges(&read.stores, &read.shown).await;
    ([(header::CONTENT_TYPE, CONTENT_TYPE)], read.handle.render())
}

/// The metrics of all crates: kind, name and description. The name of a measured quantity ends with its unit.
const METRICS: &str = "\
counter kinora_tasks_accepted_total Tasks accepted, by model
counter kinora_attempts_total Runs begun, by model
counter kinora_tasks_completed_total Tasks completed, by model
counter kinora_tasks_failed_total Tasks failed, by model and error code
counter kinora_fetches_total Fetches of references, by outcome, and those that failed by error code
counter kinora_blob_failures_total Calls of the result store that failed, by operation
counter kinora_http_requests_total Answers, by route, method and status
counter kinora_policy_answers_total Answers of the policy service, by stage and answer
counter kinora_webhook_deliveries_total Attempts at delivering events to webhooks, by outcome
counter kinora_spans_total Spans of traces, by outcome
counter kinora_device_loads_total Engines loaded on shared devices, by device and engine
counter kinora_device_unloads_total Engines unloaded from shared devices, by device, engine and reason
histogram kinora_task_waiting_seconds From a task's acceptance to its first run
histogram kinora_task_running_seconds From the start of a completed task's last run to its end
histogram kinora_stage_seconds Completed stages of tasks, by stage
histogram kinora_store_commit_seconds Commits of the task database
histogram kinora_store_read_seconds Reads of the task database that memory could not answer
histogram kinora_blob_seconds Calls of the result store that were answered, by operation
histogram kinora_http_request_seconds Requests, until their answers begin, by route
histogram kinora_policy_seconds Questions to the policy service, by stage
gauge kinora_device_memory_bytes Memory of this machine's NVIDIA devices, used and total
gauge kinora_device_room_bytes Memory of a shared device that its engines may use, and that of those that are there
gauge kinora_device_engine_loaded Whether an engine is on the device that it shares
gauge kinora_place_quarantined 1 if the device or server of an engine is in quarantine
gauge kinora_place_attempts Runs at the device or server since its worker started
gauge kinora_place_failures Failures of the device or server since its worker started
gauge kinora_place_quarantined_seconds Time of the device or server in quarantine since its worker started
gauge kinora_tasks Unfinished tasks of the service, by model and state
gauge kinora_tasks_waiting Waiting tasks of the service, by model and reason
gauge kinora_oldest_waiting_seconds Age of the oldest waiting task, by model
gauge kinora_workers Living workers of the service, by state
gauge kinora_worker_slots Slots of the serving workers
gauge kinora_model_served Whether a living worker serves the model
gauge kinora_model_paused Whether the model is paused
gauge kinora_store_readable Whether the last scrape could read the task database
gauge kinora_store_writable Whether the last change of the task database was stored
gauge kinora_info The version of this process
gauge process_resident_memory_bytes Memory of this process
gauge process_open_fds Open file descriptors of this process";

/// Describes the metrics.
fn describe() {
    for line in METRICS.lines() {
        let (kind, rest) = line.split_once(' ').unwrap_or_default();
        let (name, text) = rest.split_once(' ').unwrap_or_default();
        match kind {
            "counter" => describe_counter!(name, text),
            "histogram" => describe_histogram!(name, text),
            _ => describe_gauge!(name, text),
        }
    }
}

/// Models and places of the scrapes so far. Gauges keep their last value, so a model without workers
/// and tasks is set to 0 like the others.
#[derive(Default)]
struct ShownLabels {
    models: Mutex<BTreeSet<String>>,
    /// Host, engine and name of places, likewise.
    places: Mutex<BTreeSet<[String; 3]>>,
}

/// Sets the gauges.
async fn read_gauges(stores: &StoreHandles, shown: &ShownLabels) {
    // A scrape is answered also while the store is away: that is when the values of the process
    // itself are wanted most, and `kinora_store_readable` says why the others stand still.
    let is_readable = match read_store(stores, shown).await {
        Ok(()) => true,
        Err(error) => {
            tracing::debug!(%error, "task database not read for metrics");
            false
        }
    };
    gauge!("kinora_store_readable").set(flag_value(is_readable));
    gauge!("kinora_store_writable").set(flag_value(stores.tasks.is_writable()));
    gauge!("kinora_info", "version" => env!("CARGO_PKG_VERSION")).set(1.0);
    if let Some(bytes) = resident_bytes() {
        gauge!("process_resident_memory_bytes").set(bytes);
    }
    if let Ok(entries) = fs::read_dir("/proc/self/fd") {
        gauge!("process_open_fds").set(entries.count() as f64);
    }
}

async fn read_store(stores: &StoreHandles, shown: &ShownLabels) -> Result<(), StoreError> {
    let counts = stores.tasks.counts().await?;
    let living = stores.workers.living().await?;
    let pauses = stores.pauses.pauses().await?;
    set_queue(&counts, &living, &pauses, shown);
    set_workers(&living);
    set_places(&living, shown);
    Ok(())
}

/// Sets the gauges of every model that has, or had, a worker, a waiting task or a pause.
fn set_queue(counts: &QueueCounts, living: &[LivingWorker], pauses: &Pauses, shown: &ShownLabels) {
    let served = living.iter().flat_map(|one| &one.worker.models);
    let served = served.filter(|one| one.is_available);
    let served: BTreeSet<&str> = served.map(|one| one.model.as_str()).collect();
    let waited_for = counts.models.keys().cloned();
    let now = served.iter().map(|model| (*model).to_owned());
    let mut models = shown.models.lock().unwrap_or_else(PoisonError::into_inner);
    models.extend(now.chain(waited_for));
    models.extend(pauses.iter().filter_map(|one| one.model.clone()));
    for model in &*models {
        let count = counts.models.get(model).copied().unwrap_or_default();
        for (state, tasks) in [("waiting", count.waiting), ("running", count.running)] {
            gauge!("kinora_tasks", "model" => model.to_owned(), "state" => state).set(tasks as f64);
        }
        // A waiting task is at one of three stages: its references are to be fetched, are being
        // fetched, or are there and it waits for a slot.
        let for_slot = count.waiting - count.unfetched - count.fetching;
        for (stage, tasks) in [
            ("references", count.unfetched),
            ("fetching", count.fetching),
            ("slot", for_slot),
        ] {
            gauge!("kinora_tasks_waiting", "model" => model.to_owned(), "stage" => stage)
                .set(tasks as f64);
        }
        let is_served = served.contains(model.as_str());
        gauge!("kinora_model_served", "model" => model.to_owned()).set(flag_value(is_served));
        let is_paused = pauses.contains(model);
        gauge!("kinora_model_paused", "model" => model.to_owned()).set(flag_value(is_paused));
        let oldest_ms = counts.oldest_waiting_ms.get(model).copied().unwrap_or(0);
        gauge!("kinora_oldest_waiting_seconds", "model" => model.to_owned())
            .set(oldest_ms as f64 / 1e3);
    }
}

fn set_workers(living: &[LivingWorker]) {
    let mut states = BTreeMap::from([("serving", 0_u32), ("draining", 0)]);
    let mut slots = 0;
    for one in living {
        *states.entry(one.worker.state.name()).or_default() += 1;
        if one.worker.state == kinora_store::WorkerState::Serving {
            slots += one.worker.slots;
        }
    }
    for (state, workers) in states {
        gauge!("kinora_workers", "state" => state).set(workers);
    }
    gauge!("kinora_worker_slots").set(slots);
}

/// The places of the living workers. Two workers of one machine may have places of the same name.
fn set_places(living: &[LivingWorker], shown: &ShownLabels) {
    let mut now: BTreeMap<[String; 3], [f64; 4]> = BTreeMap::new();
    for worker in living.iter().map(|one| &one.worker) {
        for place in &worker.places {
            let key = [&worker.host, &place.engine, &place.name].map(Clone::clone);
            let sums = now.entry(key).or_default();
            let is_quarantined = place.state == WorkerPlaceState::Quarantined;
            // Two workers on one host may name their places alike. Their counts add up; quarantine
            // is a flag, and one of them in quarantine sets it.
            sums[0] = f64::max(sums[0], flag_value(is_quarantined));
            sums[1] += place.attempts as f64;
            sums[2] += place.failures as f64;
            sums[3] += place.quarantined_seconds as f64;
        }
    }
    let mut places = shown.places.lock().unwrap_or_else(PoisonError::into_inner);
    places.extend(now.keys().cloned());
    for key in &*places {
        let [host, engine, place] = key.clone();
        let labels = [("host", host), ("engine", engine), ("place", place)];
        let [quarantined, attempts, failures, seconds] = now.get(key).copied().unwrap_or_default();
        gauge!("kinora_place_quarantined", &labels).set(quarantined);
        gauge!("kinora_place_attempts", &labels).set(attempts);
        gauge!("kinora_place_failures", &labels).set(failures);
        gauge!("kinora_place_quarantined_seconds", &labels).set(seconds);
    }
}

const fn flag_value(yes: bool) -> f64 {
    if yes { 1.0 } else { 0.0 }
}

/// The second number of `/proc/self/statm`, in pages (proc_pid_statm(5)).
fn resident_bytes() -> Option<f64> {
    let text = fs::read_to_string("/proc/self/statm").ok()?;
    let pages: u64 = text.split(' ').nth(1)?.parse().ok()?;
    Some(pages as f64 * page_size() as f64)
}

/// Maximum number of connections.
const CONNECTIONS_MAX: usize = 64;
/// Time limit for a request's headers, and for the last answers.
const PATIENCE: Duration = Duration::from_secs(5);

/// The settings of such a listener.
pub(crate) fn monitor_settings() -> Result<ListenSettings, Failure> {
    Ok(ListenSettings {
        connections_max: CONNECTIONS_MAX,
        header_timeout: PATIENCE,
        drain_limit: PATIENCE,
        request_id_prefix: system::random()?,
        clock: Arc::new(SystemClock),
    })
}

/// Binds `address`.
pub(crate) async fn bind_monitor(address: &ListenAddress) -> Result<TcpListener, Failure> {
    let resolved = address.resolve()?;
    // No retries: an address in use is a mistake in the configuration, and the start fails with its
    // name.
    let bound = TcpListener::bind(resolved).await;
    bound.map_err(|error| Failure::because(format!("Cannot listen on {address}"), error))
}
