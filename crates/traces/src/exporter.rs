//! Sends spans from the queue to the collector, in batches. Only the exporter suffers from the
//! collector's faults: the queue keeps accepting spans while it has room.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use bytes::Bytes;
use kinora_contract::Clock;
use kinora_contract::limits::TRACE_SPANS_MAX;
use metrics::counter;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use crate::collector::{Collector, Untaken};
use crate::options::{TraceOptions, TraceOptionsError};
use crate::otlp::OtlpResource;
use crate::span::{SpanQueue, SpanRecord};
use crate::tracer::TaskTracer;

/// Maximum number of spans in one request.
const BATCH_MAX: usize = 512;
/// How long the first span of a batch waits for others.
const GATHER_MAX: Duration = Duration::from_secs(1);
/// The pause before the second try; it doubles, up to the last.
const FIRST_PAUSE: Duration = Duration::from_secs(1);
const LAST_PAUSE: Duration = Duration::from_secs(16);
/// How long a stop waits for the spans in the queue to be exported.
const FLUSH_MAX: Duration = Duration::from_secs(5);

/// Creates a tracer for the collector in these options, and the exporter of its spans. `seed` is
/// random: two processes must not produce the same ids.
///
/// # Errors
/// If the options are unusable.
pub fn start(
    options: &TraceOptions,
    seed: u64,
    clock: Arc<dyn Clock>,
) -> Result<(TaskTracer, SpanExporter), TraceOptionsError> {
    let (queue, spans) = mpsc::channel(TRACE_SPANS_MAX);
    let shared = Arc::new(SpanQueue::new(
        clock.clone(),
        seed,
        options.checked_ratio()?,
        queue,
    ));
    let exporter = SpanExporter {
        shared: shared.clone(),
        spans,
        collector: Collector::new(options, clock)?,
        source: OtlpResource::from_options(options),
        in_flight: 0,
        dropped: None,
    };
    Ok((TaskTracer::new(shared), exporter))
}

/// Exports the spans of a process.
pub struct SpanExporter {
    shared: Arc<SpanQueue>,
    spans: mpsc::Receiver<SpanRecord>,
    collector: Collector,
    source: OtlpResource,
    /// Spans being sent.
    in_flight: usize,
    /// During an outage: number of spans dropped so far.
    dropped: Option<u64>,
}

impl SpanExporter {
    /// Exports until `stop`, and then the rest of the queue for at most five seconds.
    pub fn run(self, stop: CancellationToken) -> Pin<Box<dyn Future<Output = ()> + Send>> {
        // Boxed, so that only this crate compiles it.
        Box::pin(self.export_until(stop))
    }

    async fn export_until(mut self, stop: CancellationToken) {
        let given_up = async {
            stop.cancelled().await;
            tokio::time::sleep(FLUSH_MAX).await;
        };
        tokio::select! {
            biased;
            () = self.export(&stop) => {}
            () = given_up => {}
        }
        let left = (self.in_flight + self.spans.len()) as u64;
        count("dropped", left);
        let dropped =
            self.dropped.unwrap_or(0) + left + self.shared.lost.swap(0, Ordering::Relaxed);
        if dropped > 0 {
            tracing::warn!(dropped, "spans dropped: not exported before the stop");
        }
    }

    /// Exports until `stop`, and then the remaining spans.
    async fn export(&mut self, stop: &CancellationToken) {
        let mut batch = Vec::new();
        loop {
            tokio::select! {
                biased;
                // Closing refuses new spans but leaves those in the queue, which the next turns
                // send.
                () = stop.cancelled(), if !self.spans.is_closed() => {
                    self.spans.close();
                    continue;
                }
                taken = self.spans.recv_many(&mut batch, BATCH_MAX) => if taken == 0 {
                    return;
                }
            }
            // A task's spans end close together: waiting a second sends them in one request, and
            // delays only the reader of the trace.
            if batch.len() < BATCH_MAX {
                tokio::select! {
                    biased;
                    () = stop.cancelled() => {}
                    () = tokio::time::sleep(GATHER_MAX) => {}
                }
                // Only what is in the queue already: `recv_many` would wait for more.
                let further = std::iter::from_fn(|| self.spans.try_recv().ok());
                batch.extend(further.take(BATCH_MAX - batch.len()));
            }
            self.in_flight = batch.len();
            let sent = self.send(&batch, stop).await;
            self.record_batch(batch.len() as u64, &sent);
            self.in_flight = 0;
            batch.clear();
        }
    }

    /// Sends a batch; retries while that may help.
    async fn send(
        &mut self,
        batch: &[SpanRecord],
        stop: &CancellationToken,
    ) -> Result<(), Untaken> {
        let body = Bytes::from(self.source.request(batch));
        let mut pause = FIRST_PAUSE;
        loop {
            let error = match self.collector.post(body.clone()).await {
                Ok(()) => return Ok(()),
                Err(error) => error,
            };
            self.record_failure(&error);
            // 1, 2, 4, 8 and 16 s: about half a minute in all. Meanwhile the queue fills, and
            // its excess is dropped and counted.
            if !error.is_transient() || pause > LAST_PAUSE || stop.is_cancelled() {
                return Err(error);
            }
            tokio::select! {
                biased;
                () = stop.cancelled() => {}
                () = tokio::time::sleep(pause) => {}
            }
            pause *= 2;
        }
    }

    fn record_failure(&mut self, error: &Untaken) {
        if self.dropped.is_none() {
            tracing::warn!(%error, "traces not exported; tasks continue without them");
            self.dropped = Some(0);
        }
    }

    /// Counts a batch, and logs the start and the end of an outage. An outage ends when a batch is
    /// accepted and the queue had room meanwhile.
    fn record_batch(&mut self, spans: u64, sent: &Result<(), Untaken>) {
        let lost = self.shared.lost.swap(0, Ordering::Relaxed);
        let failed = match sent {
            Ok(()) => {
                count("exported", spans);
                0
            }
            Err(_) => {
                count("dropped", spans);
                spans
            }
        };
        match (self.dropped, failed + lost) {
            (None, 0) => {}
            (None, dropped) => {
                tracing::warn!(dropped, "spans dropped: the collector is too slow");
                self.dropped = Some(dropped);
            }
            (Some(dropped), 0) => {
                tracing::info!(dropped, "traces exported again");
                self.dropped = None;
            }
            (Some(before), dropped) => self.dropped = Some(before + dropped),
        }
    }
}

fn count(outcome: &'static str, spans: u64) {
    counter!("kinora_spans_total", "outcome" => outcome).increment(spans);
}

#[cfg(test)]
mod tests {
    use kinora_contract::{ManualClock, TaskId};

    use super::*;
    use crate::collector::POST_MAX;

    #[tokio::test(start_paused = true)]
    #[allow(clippy::disallowed_methods, reason = "virtual time")]
    async fn a_stop_does_not_wait_for_the_answer_of_a_collector_that_hangs() {
        // Nobody accepts: the kernel takes the connection.
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let options = TraceOptions {
            endpoint: format!("http://{}", listener.local_addr().unwrap()),
            headers: String::new(),
            ratio: 1.0,
            service: "kinora".to_owned(),
            instance: "test".to_owned(),
            version: "0",
        };
        let clock = Arc::new(ManualClock::at(1_000));
        let (tracer, exporter) = start(&options, 7, clock).unwrap();
        drop(tracer.begin("x", TaskId::from_parts(1, [1; 10]), None, 1));
        let stop = CancellationToken::new();
        stop.cancel();
        let begun = tokio::time::Instant::now();
        exporter.run(stop).await;
        assert!((FLUSH_MAX..POST_MAX).contains(&begun.elapsed()));
    }
}
