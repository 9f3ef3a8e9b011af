//! The state of a run: what its steps store on the way, the places at which its task has failed
//! before, and the reasons to stop it early: the lease is lost, the engine makes no progress for
//! longer than its model allows, or the process must stop immediately. The steps of a run are in
//! [`crate::run`].

use std::sync::Arc;
use std::time::Duration;

use kinora_contract::{Clock, Stopwatch, VideoSpec, Warning};
use kinora_engine::places::Places;
use kinora_engine::{JobControl, JobProgress, PreviewSlot, RgbPicture};
use kinora_store::{ClaimedTask, LeaseRenewal, StoreError};
use kinora_system::pool::BlockingPool;
use kinora_traces::TaskSpan;
use serde::{Deserialize, Serialize};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;
use tracing::Instrument;

use crate::error::StopReason;
use crate::lease_keeper::{LeaseEnd, LeaseHandle, percent};
use crate::lineup::ServedEngine;
use crate::retry::retry_unavailable;
use crate::shutdown::Shutdown;
use crate::stage_metrics::{RunStage, StageTimer};
use crate::worker::Worker;

/// One attempt at a claimed task, from its claim to its outcome. All steps share this state.
pub(crate) struct TaskRun<'a> {
    pub(crate) worker: &'a Worker,
    pub(crate) claim: &'a ClaimedTask,
    /// The engine that makes the task's model.
    pub(crate) served: &'a ServedEngine,
    pub(crate) engine_name: String,
    /// Renewed until the run is dropped.
    pub(crate) lease: LeaseHandle,
    pub(crate) control: JobControl,
    pub(crate) shutdown: &'a Shutdown,
    pub(crate) span: TaskSpan,
}

impl TaskRun<'_> {
    /// Begins a stage of the run.
    pub(crate) fn begin(&self, stage: RunStage) -> StageTimer {
        StageTimer::begin(&self.worker.clock, &self.span.trail(), stage)
    }

    /// Makes the engine avoid the places at which the task has failed.
    pub(crate) fn avoid_failed_places(&self) {
        if let Some(places) = self.served.engine.places() {
            let names = self.failed_runs().names(places, &self.owner());
            self.control.place.set_avoided(names);
        }
    }

    /// Earlier runs of the task that failed at their places.
    pub(crate) fn failed_runs(&self) -> FailedRuns {
        let ticket = self.claim.ticket.as_deref();
        ticket.and_then(FailedRuns::from_ticket).unwrap_or_default()
    }

    /// The engine's ticket of an earlier attempt, which leads back to a job in progress. A list of
    /// failed runs in its place is ours and means nothing to the engine.
    pub(crate) fn engine_ticket(&self) -> Option<String> {
        let ticket = self.claim.ticket.clone();
        ticket.filter(|ticket| FailedRuns::from_ticket(ticket).is_none())
    }

    /// The machine and the engine, which own devices of the same name.
    pub(crate) fn owner(&self) -> String {
        let engine = &self.served.engine.describe().name;
        format!("{}/{engine}", self.worker.settings.origin.host)
    }

    /// The output of `work`, unless there is a reason to stop before it is done: then `work` is
    /// dropped. An engine that works may be silent for `silence_max`.
    pub(crate) async fn unless_stopped<T>(
        &self,
        silence_max: Option<Duration>,
        work: impl Future<Output = T>,
    ) -> Result<T, StopReason> {
        tokio::select! {
            // Finished work counts even if there is a reason to stop by then.
            biased;
            done = work => Ok(done),
            stop = self.until_stop(silence_max) => Err(stop),
        }
    }

    /// Watches until there is a reason to stop, and returns it. A working engine may be silent for
    /// `silence_max`; once it is done, silence is normal.
    pub(crate) async fn until_stop(&self, silence_max: Option<Duration>) -> StopReason {
        let gone = self.lease.gone();
        tokio::pin!(gone);
        let settings = &self.worker.settings;
        let mut tick = tokio::time::interval(settings.heartbeat_every);
        // After a stall one check is enough; the missed ones would follow in a burst.
        tick.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        let (progress, patience) = (&self.control.progress, &self.worker.patience);
        let third = Duration::from_millis(settings.lease_ms / 3);
        let mut life = SilenceTimer::new(progress, third, patience.steady());
        let mut previews = RunPreviews::new(self.worker.pools.previews.clone(), patience.clone());
        loop {
            tokio::select! {
                biased;
                gone = &mut gone => return match gone {
                    LeaseEnd::Lost(how) => StopReason::Lost(how),
                    LeaseEnd::RanOut => StopReason::RanOut,
                },
                () = self.shutdown.at_once() => return StopReason::Shutdown,
                _ = tick.tick() => {}
            }
            let Some(max) = silence_max else { continue };
            if life.silence(progress, patience.steady()) > max {
                return StopReason::Stalled;
            }
            // A slow store delays the next check here, but no renewal: the keeper has a thread of
            // its own.
            if let Some(preview) = previews.next(&self.control.preview)
                && let Err(error) = self
                    .worker
                    .work
                    .put_preview(&self.claim.lease, preview)
                    .await
            {
                tracing::debug!(%error, "preview not stored");
            }
        }
    }

    /// Stores the engine's name before it starts: a later edit of this video needs to know which
    /// engine made it, and a short run ends before the keeper's first renewal.
    pub(crate) async fn store_engine(&self) {
        if let Err(error) = self.renew(self.renewal()).await {
            tracing::warn!(%error, "engine of the task not stored");
        }
    }

    /// Stores the values that the engine or a reference determined, so that clients see them.
    pub(crate) async fn store_spec(&self, spec: VideoSpec) {
        // Dropped when the run is stopped.
        let never = CancellationToken::new();
        let stored = retry_unavailable(&never, || {
            self.renew(LeaseRenewal {
                decided: Some(Box::new(spec.clone())),
                ..self.renewal()
            })
        });
        if let Err(error) = stored.await {
            tracing::warn!(%error, "decided spec not stored");
        }
    }

    /// Stores the parts of the request that the engine will not or cannot satisfy, so that clients
    /// see them.
    pub(crate) async fn store_warnings(&self, warnings: &[Warning]) {
        // Dropped when the run is stopped.
        let never = CancellationToken::new();
        let stored = retry_unavailable(&never, || {
            self.renew(LeaseRenewal {
                warnings: Some(warnings.to_vec()),
                ..self.renewal()
            })
        });
        if let Err(error) = stored.await {
            tracing::warn!(%error, "warnings of the engine not stored");
        }
    }

    /// Stores a ticket for a later attempt; it is durable when this returns.
    pub(crate) async fn store_ticket(&self, ticket: &str) -> Result<(), StoreError> {
        self.renew(LeaseRenewal {
            ticket: Some(ticket.to_owned()),
            ..self.renewal()
        })
        .await
    }

    async fn renew(&self, renewal: LeaseRenewal) -> Result<(), StoreError> {
        let lease_ms = self.worker.settings.lease_ms;
        self.worker
            .work
            .renew(&self.claim.lease, lease_ms, renewal)
            .await
    }

    fn renewal(&self) -> LeaseRenewal {
        LeaseRenewal {
            progress: percent(&self.control.progress),
            engine: Some(self.engine_name.clone()),
            ..LeaseRenewal::default()
        }
    }
}

/// The failed runs of a task that went back to the queue. Stored as JSON in place of its engine's
/// ticket; unknown fields are refused, so that a ticket of an engine is never taken for one.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct FailedRuns {
    /// Names of the places, each once. A device's name includes its machine and engine.
    failed_at: Vec<String>,
    pub(crate) runs: u32,
}

impl FailedRuns {
    /// The failed runs in `ticket`, unless it is an engine's own.
    pub(crate) fn from_ticket(ticket: &str) -> Option<Self> {
        serde_json::from_str(ticket).ok()
    }

    pub(crate) fn to_ticket(&self) -> String {
        serde_json::json!({"failed_at": self.failed_at, "runs": self.runs}).to_string()
    }

    /// The listed places that this worker's engine has, by its own names. Servers are shared between
    /// machines and keep their names; devices lose the prefix of machine and engine.
    fn names(&self, places: &Places, owner: &str) -> Vec<String> {
        let mut names = self.failed_at.clone();
        if !places.are_shared() {
            names = names
                .iter()
                .filter_map(|place| place.strip_prefix(owner)?.strip_prefix('/'))
                .map(str::to_owned)
                .collect();
        }
        names
    }

    /// Whether the task has failed at a place other than `here`.
    pub(crate) fn includes_other(&self, here: &str) -> bool {
        self.failed_at.iter().any(|place| place != here)
    }

    /// The list after one more failed run, at `here`.
    pub(crate) fn with(&self, here: String) -> Self {
        let mut next = self.clone();
        next.runs = next.runs.saturating_add(1);
        if !next.failed_at.contains(&here) {
            next.failed_at.push(here);
        }
        next
    }
}

/// How long the engine has been silent.
struct SilenceTimer {
    reports: u64,
    /// Time of the last check, by a steady clock.
    checked: Duration,
    silent: Duration,
    /// A longer gap between two checks is a stall of the whole process, not of the engine.
    gap_max: Duration,
}

impl SilenceTimer {
    fn new(progress: &JobProgress, gap_max: Duration, now: Duration) -> Self {
        Self {
            reports: progress.reports(),
            checked: now,
            silent: Duration::ZERO,
            gap_max,
        }
    }

    fn silence(&mut self, progress: &JobProgress, now: Duration) -> Duration {
        let passed = now.saturating_sub(self.checked);
        self.checked = now;
        let reports = progress.reports();
        if reports == self.reports {
            // Example: checks every 2 s, a lease of 30 s. If the laptop sleeps for an hour, the
            // engine has been silent for 10 s more, and not for an hour: it stood still as well.
            self.silent = self.silent.saturating_add(passed.min(self.gap_max));
        } else {
            self.reports = reports;
            self.silent = Duration::ZERO;
        }
        self.silent
    }
}

/// A shorter interval would not be visible, and each preview costs a write.
const EVERY: Duration = Duration::from_secs(1);

/// The previews of one run, a second apart.
#[derive(Debug)]
struct RunPreviews {
    threads: BlockingPool,
    clock: Arc<dyn Clock>,
    /// Time since the last one.
    last: Option<Stopwatch>,
    /// The preview being encoded; dropped with this value.
    encoding: JoinSet<Option<Arc<[u8]>>>,
}

impl RunPreviews {
    /// Previews encoded by `threads`, a second apart by `clock`.
    pub(crate) fn new(threads: BlockingPool, clock: Arc<dyn Clock>) -> Self {
        Self {
            threads,
            clock,
            last: None,
            encoding: JoinSet::new(),
        }
    }

    /// The next encoded preview as WebP, if it is ready. Starts an encoding if one is due. Never
    /// waits: the lease is renewed with or without a preview, however busy the threads are.
    pub(crate) fn next(&mut self, preview: &PreviewSlot) -> Option<Arc<[u8]>> {
        if !self.encoding.is_empty() {
            let encoded = self.encoding.try_join_next()?;
            return encoded.ok().flatten();
        }
        if self
            .last
            .as_ref()
            .is_none_or(|last| last.elapsed() >= EVERY)
            && let Some(picture) = preview.take()
        {
            self.last = Some(Stopwatch::start(&self.clock));
            self.encode(picture);
        }
        None
    }

    fn encode(&mut self, picture: RgbPicture) {
        let threads = self.threads.clone();
        let encoding = async move {
            let encoded = threads
                .run(move || {
                    let size = picture.size;
                    kinora_media::preview(size.width, size.height, &picture.rgb)
                })
                .await;
            let webp =
                encoded.inspect_err(|error| tracing::debug!(%error, "encoding a preview stopped"));
            let webp = webp.ok()?;
            let webp =
                webp.inspect_err(|error| tracing::debug!(%error, "a preview could not be encoded"));
            Some(webp.ok()?.into())
        };
        self.encoding.spawn(encoding.in_current_span());
    }
}

#[cfg(test)]
mod tests {
    use kinora_engine::WorkStage;

    use super::*;

    const GAP: Duration = Duration::from_secs(10);

    #[test]
    fn failed_runs_are_read_back_and_an_engine_s_ticket_is_none() {
        let once = FailedRuns::default().with("host/wan/device 0".to_owned());
        let again = once.with("host/wan/device 0".to_owned());
        assert_eq!((again.runs, again.failed_at.len()), (2, 1));
        assert_eq!(
            FailedRuns::from_ticket(&again.to_ticket()),
            Some(again.clone())
        );
        assert!(!again.includes_other("host/wan/device 0"));
        assert!(again.includes_other("host/wan/device 1"));
        for ticket in [
            r#"{"upstream": "http://a/v1", "id": "video_1"}"#,
            r#"{"comfyui": "http://a", "prompt_id": "1"}"#,
            "half a frame",
        ] {
            assert_eq!(FailedRuns::from_ticket(ticket), None, "{ticket}");
        }
    }

    #[test]
    fn an_engine_is_silent_since_its_last_report() {
        let (control, begun) = (JobControl::default(), Duration::from_secs(1));
        let mut life = SilenceTimer::new(&control.progress, GAP, begun);
        let mut at =
            |seconds| life.silence(&control.progress, begun + Duration::from_secs(seconds));
        assert_eq!(at(4), Duration::from_secs(4));
        assert_eq!(at(13), Duration::from_secs(13));
        control.report(WorkStage::Generating, 0.5).unwrap();
        assert_eq!(at(14), Duration::ZERO);
        assert_eq!(at(20), Duration::from_secs(6));
    }

    #[test]
    fn a_stall_of_the_whole_process_is_not_the_engine_s() {
        let (progress, begun) = (JobProgress::default(), Duration::from_secs(1));
        let mut life = SilenceTimer::new(&progress, GAP, begun);
        let woken = begun + Duration::from_hours(1);
        assert_eq!(life.silence(&progress, woken), GAP);
        // An engine that gives no sign after it either is silent.
        let later = woken + Duration::from_secs(5);
        assert_eq!(life.silence(&progress, later), GAP + Duration::from_secs(5));
    }
}
