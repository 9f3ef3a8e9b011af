//! Composition: turns the configuration into stores, engines, API and worker. Everything with a URL
//! or a name is opened here, by the `open` function beside its implementations.

use std::error::Error;
use std::str::FromStr;
use std::sync::Arc;
use std::time::Duration;

use kinora_api::{
    Api, CorsPolicy, HealthState, ListenOptions, ModelAvailability, PolicyGate, ServerTls,
    TrustedProxies, WebhookDeliverer,
};
use kinora_blobs::{BlobStore, DiskReserve};
use kinora_contract::reference_url::AllowedPorts;
use kinora_contract::{Clock, WorkerReadiness, limits};
use kinora_http_fetch::{AllowedNetwork, Network, ReferenceFetcher};
use kinora_media::{FilmOpener, RecorderOptions};
use kinora_policy::PolicyService;
use kinora_store::{
    DirectAddress, OpenOptions, PostgresOptions, SecretKey, SqliteOptions, StoreHandles,
};
use kinora_system::scratch::ScratchFolder;
use kinora_traces::TaskTracer;
use kinora_worker::{
    EngineLineup, FaultBackoff, ReferenceGatherer, WatermarkImage, WatermarkPainter, Worker,
    WorkerOrigin, WorkerPools,
};
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;

use crate::config::{Config, EngineSettings};
use crate::failure::Failure;
use crate::system::{self, SystemClock, SystemEntropy};
use crate::{catalog, damage, engine_host, film_signer, folder, signing};

const HOUR_MS: u64 = 60 * 60 * 1000;
const DAY_MS: u64 = 24 * HOUR_MS;
/// Interval of searches for tasks of dead workers and for expired tasks: short beside a lease, and
/// cheap enough for many processes on one database.
const SWEEP_SECONDS: u64 = 5;
/// Longest pause before the first claim after crashes in a row: long enough that a crash loop does
/// not use up the machine, and short beside the restart itself.
const START_PAUSE_SECONDS_MAX: u64 = 10;
/// Lifetime after which a process is in no crash loop. Until then it makes no last run of a task that
/// was running when a worker died, since another death would fail that task.
const SETTLED_AFTER_SECONDS: u64 = 60;
/// Threads for blocking work that limits itself and has no share of its own, such as a list's.
const OTHER_THREADS: usize = 32;

/// The parts of a process that serves clients.
pub(crate) struct ServiceParts {
    pub(crate) stores: StoreHandles,
    pub(crate) api: Api,
    /// Runs tasks, or only tidies up if the process has no worker.
    pub(crate) worker: Worker,
    /// Delivers events to webhooks.
    pub(crate) deliverer: WebhookDeliverer,
    /// The store's signing key, as the signer knows it.
    pub(crate) signing_key: SecretKey,
}

/// Opens everything for a process that serves clients.
pub(crate) async fn service(
    config: &Config,
    base_url: String,
    tracer: TaskTracer,
) -> Result<ServiceParts, Failure> {
    let opened = open(config, tracer).await?;
    let (catalog, lineup) = if config.worker.enabled {
        catalog::models(config)?
    } else {
        (catalog::described_models(config)?, EngineLineup::default())
    };
    let stores = opened.stores.clone();
    let (signer, signing_key) = signing::signer(config, &*stores.secrets, &stores.holds).await?;
    let api = Api {
        tasks: stores.tasks.clone(),
        files: stores.files.clone(),
        keys: stores.keys.clone(),
        webhooks: stores.webhooks.clone(),
        operations: stores.operations.clone(),
        pauses: stores.pauses.clone(),
        blobs: opened.blobs.clone(),
        availability: ModelAvailability::new(
            stores.workers.clone(),
            stores.pauses.clone(),
            Arc::new(SystemClock),
        ),
        catalog: Arc::new(catalog),
        signer: Arc::new(signer),
        clock: Arc::new(SystemClock),
        entropy: Arc::new(SystemEntropy::default()),
        settings: Arc::new(api_settings(config, base_url, opened.reserve.clone())?),
        gate: opened.policy.clone().map(PolicyGate::new),
        tracer: opened.tracer.clone(),
        uploads: kinora_api::Uploads::new(opened.scratch.clone(), opened.decoding.clone()),
        turns: kinora_api::RequestTurns::default(),
        rendered: kinora_api::ObjectCache::default(),
        watch: kinora_api::TaskWatch::default(),
        readiness: opened.readiness.clone(),
        sign_in: None,
        lost: kinora_api::LostFiles::default(),
        stopping: CancellationToken::new(),
    };
    let deliverer = WebhookDeliverer::new(api.clone(), fetcher(config)?);
    let worker = worker(config, opened, lineup)?;
    Ok(ServiceParts {
        stores,
        api,
        worker,
        deliverer,
        signing_key,
    })
}

/// Opens everything for a process that only runs tasks.
pub(crate) async fn worker_parts(
    config: &Config,
    tracer: TaskTracer,
) -> Result<(Worker, HealthState, StoreHandles), Failure> {
    // Engines first: a wrong setting of theirs ends the start before the database knows of this
    // worker.
    let (_, lineup) = catalog::models(config)?;
    let opened = open(config, tracer).await?;
    let health = HealthState {
        tasks: opened.stores.tasks.clone(),
        pauses: opened.stores.pauses.clone(),
        reserve: opened.reserve.clone(),
        readiness: opened.readiness.clone(),
        stopping: CancellationToken::new(),
    };
    let stores = opened.stores.clone();
    Ok((worker(config, opened, lineup)?, health, stores))
}

/// The parts that every process of a service opens.
struct SharedParts {
    stores: StoreHandles,
    blobs: Arc<dyn BlobStore>,
    reserve: DiskReserve,
    readiness: WorkerReadiness,
    policy: Option<PolicyService>,
    tracer: TaskTracer,
    /// This process's folder of unfinished files.
    scratch: Arc<ScratchFolder>,
    /// The process decodes one untrusted file at a time, since a large picture takes 150 MB for a moment.
    decoding: Arc<Semaphore>,
}

async fn open(config: &Config, tracer: TaskTracer) -> Result<SharedParts, Failure> {
    folder::prepare(&config.data)?;
    let token_stride = token_stride()?;
    let options = OpenOptions {
        sqlite: SqliteOptions {
            attempts_max: config.worker.attempts_max,
            token_stride,
            accepts_loss: config.accept_loss,
            ..SqliteOptions::default()
        },
        postgres: PostgresOptions {
            token_stride,
            listen_at: Some(&config.store.listen_url)
                .filter(|url| !url.is_empty())
                .map(|url| DirectAddress(url.clone())),
            ..PostgresOptions::default()
        },
        ..OpenOptions::new(Arc::new(SystemClock))
    };
    let stores = kinora_store::open(&config.store_url(), &options)
        .await
        .map_err(damage::open_failure)?;
    let blobs = kinora_blobs::open(&config.results_url(), &config.s3())
        .map_err(|error| Failure::because("The result store cannot be opened", error))?;
    // After the store is open, since its mark and the keys of its results say what the result store
    // must contain; and before anything is accepted.
    damage::check_results(config, &stores, &*blobs).await?;
    #[cfg(feature = "test-faults")]
    let (stores, blobs) = crate::faults::wrap_stores(&config.test, stores, blobs);
    let blobs = kinora_blobs::metered(blobs, Arc::new(SystemClock));
    Ok(SharedParts {
        stores,
        blobs,
        reserve: reserve(config),
        readiness: WorkerReadiness::default(),
        policy: config.policy()?,
        tracer,
        scratch: scratch(config)?,
        decoding: Arc::new(Semaphore::new(1)),
    })
}

/// How far to advance the fencing tokens past all earlier ones at this opening, from 1 to 2^40.
fn token_stride() -> Result<u64, Failure> {
    // A worker proves by its fencing token that its lease is the newest one. If a database is
    // restored from a backup while workers of the original still run, both would hand out the same
    // next token. A random stride of up to 2^40 makes that unlikely, and leaves room for at least
    // 2^24 openings in 64 bits.
    Ok((u64::from_le_bytes(system::random()?) >> 24) + 1)
}

fn api_settings(
    config: &Config,
    base_url: String,
    reserve: DiskReserve,
) -> Result<kinora_api::ApiSettings, Failure> {
    // A reference may use another port than 80 or 443 only where the operator has allowed a network
    // with that port.
    let ports = allow_networks(config)?
        .iter()
        .filter_map(AllowedNetwork::port)
        .collect();
    Ok(kinora_api::ApiSettings {
        base_url,
        waiting_max: config.queue.waiting_max.into(),
        project_unfinished_max: config.queue.project_unfinished_max.into(),
        project_tasks_max: config.quota.project_tasks_max.into(),
        project_bytes_max: zero_as_unlimited(config.project_bytes_max()),
        bytes_max: zero_as_unlimited(config.quota.bytes_max),
        budgets: config.money.budgets(),
        reserve,
        reference_ports: AllowedPorts::with_extra(ports),
        failed_retention_ms: failed_retention_ms(config),
        redirects: config.redirects_to_s3(),
        form_uploads: config.files.form_uploads,
        studio: config.studio.enabled,
    })
}

/// Retention of failed tasks. They have only texts, and must not fill the disk for as long as
/// results are kept.
fn failed_retention_ms(config: &Config) -> u64 {
    let results = &config.results;
    let hours = results.failed_retention_hours.min(results.retention_hours);
    u64::from(hours) * HOUR_MS
}

/// Time for which the clocks must agree before anything expires. End-to-end tests cannot wait ten
/// minutes.
#[cfg_attr(not(feature = "test-faults"), expect(unused_variables))]
fn clock_settle_ms(config: &Config) -> u64 {
    #[cfg(feature = "test-faults")]
    if let Some(ms) = config.test.clock_settle_ms {
        return ms;
    }
    limits::CLOCK_SETTLE_SECONDS * 1000
}

/// A limit, where 0 means none.
const fn zero_as_unlimited(value: u64) -> u64 {
    if value == 0 { u64::MAX } else { value }
}

/// The reserve on the disks of the data folder, of unfinished files and of the results, if those
/// are in a local folder.
fn reserve(config: &Config) -> DiskReserve {
    let mut folders = vec![config.data.clone(), config.scratch_folder()];
    folders.extend(
        kinora_blobs::local_root(&config.results_url())
            .ok()
            .flatten(),
    );
    DiskReserve::new(folders, config.quota.free_bytes_min, Arc::new(SystemClock))
}

/// This process's folder of unfinished files.
fn scratch(config: &Config) -> Result<Arc<ScratchFolder>, Failure> {
    let folder = config.scratch_folder();
    let made = ScratchFolder::create(&folder).map_err(|error| {
        let folder = folder.display();
        Failure::because(
            format!("The folder of unfinished files {folder} cannot be created"),
            error,
        )
    })?;
    Ok(Arc::new(made))
}

fn worker(config: &Config, opened: SharedParts, lineup: EngineLineup) -> Result<Worker, Failure> {
    let recorder = RecorderOptions {
        qp: config.media.qp,
        ..RecorderOptions::default()
    };
    let now_ms = SystemClock.now_ms();
    let makes_videos = config.worker.enabled;
    let film_signer = makes_videos.then(|| film_signer::open(config));
    let film_signer = film_signer.transpose()?.flatten();
    let scratch = opened.scratch;
    let origin = WorkerOrigin {
        host: system::host_name(),
        pid: std::process::id(),
        started_at_ms: now_ms,
    };
    let references = ReferenceGatherer::new(fetcher(config)?, scratch.clone());
    let references = references.with_decoding(opened.decoding);
    // Before anybody asks; the worker takes it back.
    let waits_for_engines = makes_videos && config.worker.ready_when_warm && lineup.warms_up();
    opened.readiness.set_warming_up(waits_for_engines);
    Ok(Worker {
        work: opened.stores.work,
        chores: opened.stores.chores,
        workers: opened.stores.workers,
        pauses: opened.stores.pauses,
        blobs: opened.blobs,
        lineup,
        references: Arc::new(references.with_reserve(opened.reserve)),
        backoff: FaultBackoff::new(opened.readiness, Arc::new(SystemClock)),
        scratch,
        pools: WorkerPools::new(config.slots() as usize),
        films: films(config),
        policy: opened.policy,
        tracer: opened.tracer,
        clock: Arc::new(SystemClock),
        patience: Arc::new(SystemClock),
        settings: kinora_worker::WorkerOptions {
            name: worker_name(&origin)?,
            origin,
            slots: config.slots() as usize,
            project_slots_max: config.worker.project_slots_max as usize,
            short_slot_memory: seconds(config.worker.short_slot_seconds),
            lease_ms: u64::from(config.worker.lease_seconds) * 1000,
            sweep_every: config.limit_seconds("SWEEP_SECONDS", SWEEP_SECONDS),
            heartbeat_every: Duration::from_millis(250),
            drain_limit: seconds(config.worker.drain_seconds),
            retention_ms: u64::from(config.results.retention_hours) * HOUR_MS,
            failed_retention_ms: failed_retention_ms(config),
            waiting_ms_max: Some(u64::from(config.queue.waiting_hours_max) * HOUR_MS)
                .filter(|max| *max > 0),
            tombstone_ms: limits::TOMBSTONE_DAYS * DAY_MS,
            clock_settle_ms: clock_settle_ms(config),
            attempts_max: config.worker.attempts_max,
            start_pause_max: config
                .limit_seconds("START_PAUSE_SECONDS_MAX", START_PAUSE_SECONDS_MAX),
            settled_after: config.limit_seconds("SETTLED_AFTER_SECONDS", SETTLED_AFTER_SECONDS),
            recorder,
            marker: marker(&config.media.mark),
            film_signer,
        },
    })
}

/// Reads each film in a separate process.
#[cfg_attr(not(feature = "test-faults"), expect(unused_variables))]
fn films(config: &Config) -> Arc<dyn FilmOpener> {
    #[cfg(feature = "test-faults")]
    if config.test.reads_films_in_process {
        return Arc::new(kinora_media::InProcessFilms);
    }
    Arc::new(engine_host::films())
}

/// Draws the operator's mark, if there is one.
fn marker(text: &str) -> Option<WatermarkPainter> {
    let text = Some(text.trim().to_owned()).filter(|text| !text.is_empty())?;
    Some(WatermarkPainter::new(move |size| {
        let drawn = kinora_engine_storyboard::watermark(&text, size)?;
        Some(WatermarkImage {
            left: drawn.left,
            top: drawn.top,
            width: drawn.width,
            pixels: drawn.pixels,
        })
    }))
}

/// Unique: neither another container with the same process id nor a later process has it.
fn worker_name(origin: &WorkerOrigin) -> Result<String, Failure> {
    let own = u32::from_le_bytes(system::random()?);
    Ok(format!("{}-{}-{own:08x}", origin.host, origin.pid))
}

/// A fetcher with all checks, for references or webhooks.
pub(crate) fn fetcher(config: &Config) -> Result<ReferenceFetcher, Failure> {
    let references = &config.references;
    let per_hour = references.project_bytes_per_hour;
    let options = kinora_http_fetch::FetchOptions {
        allow_networks: allow_networks(config)?,
        deny_networks: deny_networks(config)?,
        host_connections_max: config.limit(
            "REFERENCE_HOST_CONNECTIONS_MAX",
            limits::REFERENCE_HOST_CONNECTIONS_MAX,
        ) as usize,
        project_bytes_per_hour: (per_hour > 0).then_some(per_hour),
        ..kinora_http_fetch::FetchOptions::default()
    };
    ReferenceFetcher::new(options, Arc::new(SystemClock))
        .map_err(|error| Failure::because("References cannot be fetched", error))
}

/// Networks that references may come from although they are not public.
pub(crate) fn allow_networks(config: &Config) -> Result<Vec<AllowedNetwork>, Failure> {
    let texts = &config.references.allow_networks;
    networks("references.allow_networks", texts)
}

/// Networks that references may not come from although they are public.
pub(crate) fn deny_networks(config: &Config) -> Result<Vec<Network>, Failure> {
    let texts = &config.references.deny_networks;
    networks("references.deny_networks", texts)
}

/// Parses the networks in the setting `name`.
fn networks<T>(name: &str, texts: &[String]) -> Result<Vec<T>, Failure>
where
    T: FromStr,
    T::Err: Error,
{
    texts
        .iter()
        .map(|text| {
            text.parse().map_err(|error| {
                Failure::because(format!("'{text}' in {name} is not a network"), error)
            })
        })
        .collect()
}

/// Number of runtime threads for blocking work of all kinds: the sum of their shares, so that no
/// kind waits for another's.
pub(crate) fn blocking_threads(config: &Config) -> usize {
    // The runtime has one pool for all blocking work, and a call that finds no thread waits in one
    // queue. With fewer threads than the sum of all shares, a slow result disk could hold every
    // thread, and commits of the task store would wait behind it.
    kinora_blobs::THREADS
        + kinora_store::sqlite::THREADS
        + kinora_http_fetch::DISK_THREADS
        + config
            .engines
            .iter()
            .map(EngineSettings::blocking_threads)
            .sum::<usize>()
        + WorkerPools::threads(config.slots() as usize)
        + OTHER_THREADS
}

/// Runs a service or a worker to its end.
pub(crate) fn run_to_end(
    config: &Config,
    working: impl Future<Output = Result<(), Failure>>,
) -> Result<(), Failure> {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .max_blocking_threads(blocking_threads(config))
        .build()
        .map_err(|error| Failure::because("The process could not start", error))?;
    let done = runtime.block_on(working);
    // An engine that does not come back must not keep the process.
    runtime.shutdown_timeout(Duration::from_secs(1));
    done
}

/// The limits of the listener.
pub(crate) fn guards(config: &Config) -> Result<ListenOptions, Failure> {
    let http = &config.http;
    let proxies: Vec<Network> = networks("http.trusted_proxies", &http.trusted_proxies)?;
    let cors = CorsPolicy::new(http.cors_origins.iter().map(String::as_str))
        .map_err(|error| Failure::because("The setting http.cors_origins is invalid", error))?;
    let tls = http
        .is_tls()
        .then(|| ServerTls::from_files(&http.tls_certificate, &http.tls_key))
        .transpose()
        .map_err(|error| Failure::because("HTTPS cannot be served", error))?;
    Ok(ListenOptions {
        first_byte_timeout: config.limit_seconds(
            "CONNECTION_FIRST_BYTE_SECONDS",
            limits::CONNECTION_FIRST_BYTE_SECONDS,
        ),
        idle_timeout: config
            .limit_seconds("CONNECTION_IDLE_SECONDS", limits::CONNECTION_IDLE_SECONDS),
        request_timeout: seconds(http.request_timeout_seconds),
        upload_timeout: config.limit_seconds("UPLOAD_SECONDS", limits::UPLOAD_SECONDS),
        form_uploads: config.files.form_uploads,
        write_timeout: config
            .limit_seconds("CONNECTION_WRITE_SECONDS", limits::CONNECTION_WRITE_SECONDS),
        connections_per_address_max: http.connections_per_address_max as usize,
        buffered_bytes_max: u64::from(http.buffered_megabytes_max) << 20,
        requests_per_minute: http.requests_per_minute,
        // Set once the store is open (`serve::open`).
        allowances: None,
        trusted_proxies: TrustedProxies::those(move |address| {
            proxies.iter().any(|network| network.contains(address))
        }),
        cors,
        tls,
    })
}

fn seconds(seconds: u32) -> Duration {
    Duration::from_secs(seconds.into())
}
