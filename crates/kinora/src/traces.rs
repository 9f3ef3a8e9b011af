//! The traces of a process: `[traces]`. Spans are exported in the background, the last ones at the
//! end of the process.

use std::sync::Arc;

use kinora_traces::TaskTracer;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use crate::config::Config;
use crate::failure::Failure;
use crate::system::{self, SystemClock};

/// The tracer of a process, with its exporter if there is a collector.
pub(crate) struct TraceExport {
    pub(crate) tracer: TaskTracer,
    exporting: Option<JoinHandle<()>>,
    stop: CancellationToken,
}

impl TraceExport {
    /// Starts to export if there is a collector.
    pub(crate) fn start(config: &Config) -> Result<Self, Failure> {
        let stop = CancellationToken::new();
        let Some(options) = config.traces()? else {
            return Ok(Self {
                tracer: TaskTracer::default(),
                exporting: None,
                stop,
            });
        };
        // Processes that start at the same moment must not choose the same span ids.
        let seed = u64::from_le_bytes(system::random()?);
        let (tracer, exporter) = kinora_traces::start(&options, seed, Arc::new(SystemClock))
            .map_err(|error| Failure::because("Traces cannot be exported", error))?;
        tracing::info!(
            endpoint = options.endpoint,
            service = options.service,
            "traces exported"
        );
        Ok(Self {
            tracer,
            exporting: Some(tokio::spawn(exporter.run(stop.clone()))),
            stop,
        })
    }

    /// Exports the last spans, within the exporter's time limit.
    pub(crate) async fn finish(self) {
        self.stop.cancel();
        if let Some(exporting) = self.exporting {
            // A panic is in the log already.
            let _ = exporting.await;
        }
    }
}
