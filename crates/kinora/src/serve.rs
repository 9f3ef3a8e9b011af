//! `kinora serve`: API and worker in one process, or only the API, until a signal. During a stop it
//! answers everything but submits until running tasks have ended.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use kinora_api::{ListenOptions, ListenSettings, ListenerStop, ServerTls};
use kinora_contract::{ModelCatalog, built_in_cards, limits};
use kinora_worker::{Shutdown, Worker};
use tokio::net::TcpListener;
use tokio::signal::unix::{Signal, SignalKind};
use tokio_util::sync::CancellationToken;

use crate::cli::{HomeArgs, ServeArgs};
use crate::compose::{self, ServiceParts};
use crate::config::Config;
use crate::failure::Failure;
use crate::metrics::MetricsServer;
use crate::output::print;
use crate::resources::{self, DescriptorLimit};
use crate::sign_in::{self, RedirectFile, StudioLink};
use crate::stop::{self, StopSignals};
use crate::system::{self, SystemClock};
use crate::traces::TraceExport;
use crate::{folder, logging, signing, weights, welcome};

/// Serves API and worker until a signal.
pub(crate) fn run(args: &ServeArgs) -> Result<(), Failure> {
    let mut config = Config::for_serving(args)?;
    // Dropped last, so that the last lines are written.
    let _log = logging::start(config.log.format, &config.log.level)?;
    let descriptors = resources::raise_descriptors(config.slots());
    config.http.connections_max = connections_max(&config, descriptors)?;
    let serving = serve_until_signal(&config, &args.home, descriptors);
    compose::run_to_end(&config, serving)
}

/// The configured number of connections, or fewer if the descriptors require it.
fn connections_max(config: &Config, descriptors: DescriptorLimit) -> Result<u32, Failure> {
    let configured = config.http.connections_max;
    let effective = descriptors.connections_max(configured)?;
    if effective < configured {
        tracing::warn!(
            descriptors = descriptors.limit,
            configured,
            effective,
            "http.connections_max lowered: the limit of open files is too low; raise it"
        );
    }
    Ok(effective)
}

/// Prints the OpenAPI document.
pub(crate) fn print_openapi() -> Result<(), Failure> {
    let catalog = ModelCatalog::new(built_in_cards())
        .map_err(|error| Failure::because("The models cannot be served", error))?;
    print(&format!("{}\n", kinora_api::document(&catalog)));
    Ok(())
}

async fn serve_until_signal(
    config: &Config,
    home: &HomeArgs,
    descriptors: DescriptorLimit,
) -> Result<(), Failure> {
    let signals = StopSignals::from_process()?;
    // Even without TLS: an unhandled SIGHUP would end the process without a drain.
    let hangup = stop::signal_stream(SignalKind::hangup())?;
    let open = open(config, home, descriptors).await?;
    let _served = folder::mark_served(&config.data);
    tokio::spawn(reload_on_hangup(hangup, open.guards.tls.clone()));
    tokio::spawn(resources::give_back_memory());
    open.serve(config, signals).await
}

/// A service that listens, with all its parts, and does not answer yet.
pub(crate) struct OpenService {
    pub(crate) service: ServiceParts,
    pub(crate) listener: TcpListener,
    guards: ListenOptions,
    metrics: Option<MetricsServer>,
    traces: TraceExport,
    /// Read by the browser that `--open` has started.
    _redirect: Option<RedirectFile>,
}

/// Opens the service, and hands over its first key and the link to Studio.
pub(crate) async fn open(
    config: &Config,
    home: &HomeArgs,
    descriptors: DescriptorLimit,
) -> Result<OpenService, Failure> {
    let mut guards = compose::guards(config)?;
    let address = config.listen.resolve()?;
    // Bound early: an address in use ends the start before the store is opened and engines are
    // made. Connections wait in the system's backlog until the service answers.
    let listener = TcpListener::bind(address)
        .await
        .map_err(|error| Failure::because(format!("Cannot listen on {}", config.listen), error))?;
    let address = listener.local_addr().unwrap_or(address);
    let base_url = base_url(config, address);
    warn_of_localhost(config, &base_url);
    warn_of_engines_set_aside(config);
    config.log_ignored();
    config.log_seat_advice();
    weights::log_missing(config, home);
    // First of all, so that every count has a recorder.
    let metrics = MetricsServer::start(&config.metrics.listen).await?;
    let traces = TraceExport::start(config)?;
    let mut service = compose::service(config, base_url.clone(), traces.tracer.clone()).await?;
    let stores = &service.stores;
    // Processes on one PostgreSQL store share these: a key may send so many requests to all of them
    // together.
    guards.allowances = stores.allowances.clone();
    if let Some(warning) = system::clock_warning() {
        tracing::warn!("{warning}: nothing expires, and times of tasks are wrong, until it is set");
    }
    announce_worker(&service.worker, config).await;
    let studio = StudioLink::new(config, &base_url)?;
    service.api.sign_in = studio.as_ref().map(|studio| studio.link.clone());
    let is_linked = studio.as_ref().is_some_and(StudioLink::print);
    welcome::hand_over_first_key(&*stores.keys, config, &base_url, home, is_linked).await?;
    tracing::info!(
        %address,
        base_url,
        data = %config.data.display(),
        worker = config.worker.enabled,
        slots = config.slots(),
        descriptors = descriptors.limit,
        descriptors_reserved = descriptors.reserve,
        connections_max = config.http.connections_max,
        video_encoder = kinora_media::video_encoder_variant(),
        version = env!("CARGO_PKG_VERSION"),
        "serving"
    );
    let redirect = config
        .opens_browser
        .then(|| sign_in::open_browser(config, &base_url, studio.as_ref()));
    Ok(OpenService {
        service,
        listener,
        guards,
        metrics,
        traces,
        _redirect: redirect.flatten(),
    })
}

impl OpenService {
    /// Answers and works until a signal, and to the end of the stop.
    pub(crate) async fn serve(self, config: &Config, signals: StopSignals) -> Result<(), Failure> {
        let ServiceParts {
            stores,
            api,
            worker,
            deliverer,
            signing_key,
        } = self.service;
        // A stop has two moments. `begun` refuses new submits at once; `done` closes the listener
        // once running tasks have ended. In between, clients poll, download and wait as before, so
        // a restart costs them nothing but a delay.
        let (shutdown, done) = (Shutdown::default(), CancellationToken::new());
        let end = ListenerStop {
            begun: api.stopping.clone(),
            done: done.clone(),
        };
        let settings = listen_settings(config)?;
        let drain_limit = worker.settings.drain_limit;
        let obeying =
            stop::stop_on_signals(signals, end.begun.clone(), shutdown.clone(), drain_limit);
        tokio::spawn(obeying);
        // Until `done`, and not only until the stop begins: the events of tasks that end during the
        // stop are delivered too.
        tokio::spawn(deliverer.deliver(done.clone()));
        if config.results.signing_key_file.as_os_str().is_empty() {
            let secrets = stores.secrets.clone();
            tokio::spawn(signing::follow_key(api.clone(), signing_key, secrets));
        }
        let mut router = kinora_api::router(api);
        if let Some(metrics) = self.metrics {
            router = kinora_api::with_metrics(router, Arc::new(SystemClock));
            metrics.spawn(stores, &end)?;
        }
        let (listener, guards) = (self.listener, self.guards);
        let answering = kinora_api::serve_with_options(listener, router, settings, guards, end);
        let linger = Duration::from_secs(config.http.linger_seconds.into());
        let working = work(worker, config.worker.enabled, shutdown.clone());
        // Joined, and not raced: `stop::drain` cancels `done` at its end, which lets the listener
        // send its last answers.
        tokio::join!(answering, stop::drain(working, shutdown, linger, done));
        self.traces.finish().await;
        tracing::info!("stopped");
        Ok(())
    }
}

fn listen_settings(config: &Config) -> Result<ListenSettings, Failure> {
    Ok(ListenSettings {
        connections_max: config.http.connections_max as usize,
        header_timeout: config.limit_seconds(
            "CONNECTION_HEADER_SECONDS",
            limits::CONNECTION_HEADER_SECONDS,
        ),
        drain_limit: Duration::from_secs(config.http.drain_seconds.into()),
        request_id_prefix: system::random()?,
        clock: Arc::new(SystemClock),
    })
}

/// Runs tasks until the stop, or only tidies up. Returns whether clients may be waiting for the end
/// of a task: of one that still ran when the stop began, or of one on another machine.
async fn work(worker: Worker, enabled: bool, shutdown: Shutdown) -> bool {
    if enabled {
        return worker.work(shutdown).await > 0;
    }
    worker.tend(shutdown).await;
    true
}

/// Announces the worker before the first request, so that a client which submits immediately gets
/// no warning that no worker serves its model.
async fn announce_worker(worker: &Worker, config: &Config) {
    if config.worker.enabled {
        if let Err(error) = worker.announce().await {
            tracing::warn!(%error, "worker not announced yet; retrying");
        }
        return;
    }
    if !kinora_store::is_shared(&config.store_url()) {
        tracing::warn!(
            "no worker here, and none can share a SQLite database: accepted tasks wait until `kinora serve` runs on \
             it; set store.url to a PostgreSQL database to run workers elsewhere"
        );
    }
}

fn warn_of_localhost(config: &Config, base_url: &str) {
    if config.base_url.is_empty() && config.listen.is_unspecified() {
        tracing::warn!(
            base_url,
            "result addresses say localhost, which other machines cannot reach: set --base-url, or \
             base_url in the configuration, to what clients use"
        );
    }
}

fn warn_of_engines_set_aside(config: &Config) {
    for engine in &config.engines_set_aside {
        tracing::warn!(
            reason = engine.reason,
            "engine ignored: this process opens none"
        );
    }
}

/// Reloads certificate and key at each SIGHUP, if TLS is on.
async fn reload_on_hangup(mut hangup: Signal, tls: Option<ServerTls>) {
    // A certificate that cannot be read must not end a service that works: the old one stays, and
    // the log says so.
    while hangup.recv().await.is_some() {
        match tls.as_ref().map(ServerTls::reload) {
            None => tracing::info!("SIGHUP ignored: there is no certificate to reload without TLS"),
            Some(Ok(())) => tracing::info!("reloaded TLS certificate and key"),
            Some(Err(error)) => {
                let error = Failure::because("The previous certificate stays in use", error);
                tracing::error!(%error, "TLS certificate and key not reloaded");
            }
        }
    }
}

/// The base of result URLs.
pub(crate) fn base_url(config: &Config, address: SocketAddr) -> String {
    if !config.base_url.is_empty() {
        return config.base_url.trim_end_matches('/').to_owned();
    }
    let scheme = if config.http.is_tls() {
        "https"
    } else {
        "http"
    };
    format!("{scheme}://{}", config.listen.authority(address))
}
