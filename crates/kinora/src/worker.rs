//! `kinora worker`: runs tasks for the processes that serve clients, until a signal. It shares
//! store and results with them, serves no client, and opens the engines of its own configuration.

use std::time::Duration;

use kinora_api::{HealthState, ListenerStop, health_router};
use kinora_engine::EngineOutput;
use kinora_store::StoreHandles;
use kinora_worker::{Shutdown, Worker};
use tokio::net::TcpListener;
use tokio::signal::unix::SignalKind;
use tokio_util::sync::CancellationToken;

use crate::cli::WorkerArgs;
use crate::config::Config;
use crate::failure::Failure;
use crate::metrics::{self, MetricsServer};
use crate::stop::{self, StopSignals};
use crate::traces::TraceExport;
use crate::{compose, folder, logging, resources, system, weights};

/// Runs tasks until a signal.
pub(crate) fn run(args: &WorkerArgs) -> Result<(), Failure> {
    let mut config = Config::for_working(args)?;
    refuse_unshared(&config)?;
    // Dropped last, so that the last lines are written.
    let _log = logging::start(config.log.format, &config.log.level)?;
    remove_unavailable_models(&mut config)?;
    config.log_ignored();
    config.log_seat_advice();
    weights::log_missing(&config, &args.home);
    resources::raise_descriptors(config.slots());
    compose::run_to_end(&config, run_worker(&config))
}

/// Refuses a SQLite database: one process at a time can use it, so a worker would get no tasks.
fn refuse_unshared(config: &Config) -> Result<(), Failure> {
    let url = config.store_url();
    if kinora_store::is_shared(&url) {
        return Ok(());
    }
    Err(Failure::new(format!(
        "`kinora worker` shares its database with the processes that serve clients, and {url} serves one process at \
         a time. Set store.url to a PostgreSQL database (postgres://...) for all of them; or run `kinora serve`, \
         which makes videos itself."
    )))
}

/// Removes the models whose engines this machine cannot run: another worker may serve them.
fn remove_unavailable_models(config: &mut Config) -> Result<(), Failure> {
    let mut unavailable = Vec::new();
    for model in &config.models {
        let engine = config.engine(&model.engine)?;
        if let EngineOutput::Frames(frames) = engine.settings.output()
            && let Some(reason) = frames.unavailable()
        {
            tracing::warn!(
                model = model.id,
                engine = engine.name,
                reason,
                "model not served here"
            );
            unavailable.push(model.id.clone());
        }
    }
    config
        .models
        .retain(|model| !unavailable.contains(&model.id));
    if config.models.is_empty() {
        return Err(Failure::new(
            "This machine cannot run the engine of any configured model; `kinora models check` explains why.",
        ));
    }
    Ok(())
}

async fn run_worker(config: &Config) -> Result<(), Failure> {
    let signals = StopSignals::from_process()?;
    // Otherwise SIGHUP would end the process without a drain.
    let _hangup = stop::signal_stream(SignalKind::hangup())?;
    let listener = match &config.worker.health_listen.0 {
        Some(address) => Some(metrics::bind_monitor(address).await?),
        None => None,
    };
    // First of all, so that every count has a recorder.
    let metrics = MetricsServer::start(&config.metrics.listen).await?;
    let traces = TraceExport::start(config)?;
    let (worker, health, stores) = compose::worker_parts(config, traces.tracer.clone()).await?;
    let _served = folder::mark_served(&config.data);
    if let Some(warning) = system::clock_warning() {
        tracing::warn!("{warning}: times of tasks are wrong until it is set");
    }
    let address = listener.as_ref().and_then(|one| one.local_addr().ok());
    tracing::info!(
        worker = worker.settings.name,
        slots = config.slots(),
        models = config.models.len(),
        health = address.map(tracing::field::display),
        video_encoder = kinora_media::video_encoder_variant(),
        version = env!("CARGO_PKG_VERSION"),
        "working"
    );
    tokio::spawn(resources::give_back_memory());
    // The recorder was installed first, but a scrape reads the store: the listener starts once the
    // store is open.
    let scraped = metrics.map(|metrics| (metrics, stores));
    run_until_stopped(worker, health, listener, scraped, signals).await?;
    traces.finish().await;
    tracing::info!("stopped");
    Ok(())
}

async fn run_until_stopped(
    worker: Worker,
    health: HealthState,
    listener: Option<TcpListener>,
    scraped: Option<(MetricsServer, StoreHandles)>,
    signals: StopSignals,
) -> Result<(), Failure> {
    let (shutdown, done) = (Shutdown::default(), CancellationToken::new());
    let end = ListenerStop {
        begun: health.stopping.clone(),
        done: done.clone(),
    };
    let settings = metrics::monitor_settings()?;
    if let Some((metrics, stores)) = scraped {
        metrics.spawn(stores, &end)?;
    }
    let drain_limit = worker.settings.drain_limit;
    tokio::spawn(stop::stop_on_signals(
        signals,
        end.begun.clone(),
        shutdown.clone(),
        drain_limit,
    ));
    let answering = async {
        if let Some(listener) = listener {
            kinora_api::serve(listener, health_router(health), settings, end).await;
        }
    };
    let drained = worker.work(shutdown.clone());
    let working = async { drained.await > 0 };
    tokio::join!(
        answering,
        stop::drain(working, shutdown, Duration::ZERO, done)
    );
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sqlite_database_is_refused_with_the_way_on() {
        let mut config = Config::defaults();
        let refused = refuse_unshared(&config).unwrap_err().to_string();
        for part in ["store.url", "PostgreSQL", "kinora serve", "kinora.db"] {
            assert!(refused.contains(part), "{refused}");
        }
        config.store.url = "postgres://kinora@db/kinora".to_owned();
        refuse_unshared(&config).unwrap();
    }

    #[test]
    fn models_whose_engine_is_not_installed_are_left_to_other_workers() {
        let text = include_str!("../../../models/wan2.1-t2v-1.3b.toml");
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("kinora.toml");
        let text = text.replace("\"sd-server\"", "\"/no/such/sd-server\"");
        std::fs::write(&path, text).unwrap();
        let mut config = Config::read(Some(&path), &[]).unwrap();
        let before = config.models.len();
        let left_out = remove_unavailable_models(&mut config);
        assert!(left_out.is_err() || config.models.len() < before);
        assert!(
            config
                .models
                .iter()
                .all(|model| model.engine == "storyboard")
        );
    }
}
