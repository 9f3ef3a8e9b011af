//! Metrics for Prometheus, on a separate listener: `[metrics] listen`. Tasks, requests and commits
//! are counted where they happen; current values are read at each scrape.

mod devices;
mod present;

use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::extract::State;
use axum::http::header;
use axum::response::IntoResponse;
use axum::routing::get;
use kinora_api::Stop;
use kinora_store::Stores;
use metrics_exporter_prometheus::{Matcher, PrometheusBuilder, PrometheusHandle};
use tokio::net::TcpListener;

use crate::config::{ListenAddress, OptionalAddress};
use crate::failure::Failure;
use crate::monitors;

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
pub(crate) struct Metrics {
    handle: PrometheusHandle,
    listener: TcpListener,
}

impl Metrics {
    /// Starts to record if there is an address to listen on.
    pub(crate) async fn start(listen: &OptionalAddress) -> Result<Option<Self>, Failure> {
        let Some(address) = &listen.0 else {
            return Ok(None);
        };
        let listener = monitors::bind(address).await?;
        let handle = PrometheusBuilder::new()
            .set_buckets_for_metric(Matcher::Suffix("_seconds".to_owned()), BUCKETS)
            .and_then(PrometheusBuilder::install_recorder)
            .map_err(|error| Failure::because("Metrics cannot be recorded", error))?;
        present::describe();
        tracing::info!(address = %address_of(&listener, address), "metrics served");
        Ok(Some(Self { handle, listener }))
    }

    /// Answers scrapes until `stop` is done.
    pub(crate) fn spawn(self, stores: Stores, stop: &Stop) -> Result<(), Failure> {
        let upkeep = self.handle.clone();
        tokio::spawn(async move {
            loop {
                tokio::time::sleep(UPKEEP).await;
                upkeep.run_upkeep();
            }
        });
        devices::follow();
        let read = Arc::new(Read {
            handle: self.handle,
            stores,
            shown: present::Shown::default(),
        });
        let router = Router::new()
            .route("/metrics", get(scrape))
            .with_state(read);
        let stop = Stop {
            begun: stop.begun.clone(),
            done: stop.done.clone(),
        };
        let answering = kinora_api::serve(self.listener, router, monitors::settings()?, stop);
        tokio::spawn(answering);
        Ok(())
    }
}

fn address_of(listener: &TcpListener, configured: &ListenAddress) -> String {
    listener
        .local_addr()
        .map_or_else(|_| configured.to_string(), |address| address.to_string())
}

struct Read {
    handle: PrometheusHandle,
    stores: Stores,
    shown: present::Shown,
}

async fn scrape(State(read): State<Arc<Read>>) -> impl IntoResponse {
    present::read(&read.stores, &read.shown).await;
    ([(header::CONTENT_TYPE, CONTENT_TYPE)], read.handle.render())
}
