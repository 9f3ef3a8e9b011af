//! Delivers events to webhooks: takes due deliveries from the store, posts them through the guarded
//! fetcher, and stores the outcomes. Any number of processes may deliver: a delivery is leased, and
//! another process repeats it if the first one dies. A receiver that keeps failing gets one probe
//! after each pause instead of every attempt of every event.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use futures_util::future::{join, join_all};
use kinora_contract::limits::{
    WEBHOOK_DELIVERIES_EACH_MAX, WEBHOOK_DELIVERIES_MAX, WEBHOOK_SECONDS,
};
use kinora_contract::webhook::{
    EventEnvelope, ID_HEADER, SIGNATURE_HEADER, TEST_EVENT, TIMESTAMP_HEADER, event_type, pause_ms,
    signatures,
};
use kinora_contract::{Clock, Stopwatch, TaskId, TaskState, TraceContext};
use kinora_http_fetch::{FetchError, ReferenceFetcher, WebhookPost};
use kinora_store::{
    DeliveryDone, DeliveryNext, DeliveryRequest, DueDelivery, OutageLog, ReceiverAnswer, StoreError,
};
use kinora_traces::{SpanRole, TaskSpan};
use metrics::counter;
use serde::Serialize;
use serde_json::json;
use tokio::sync::watch;
use tokio::sync::watch::error::RecvError;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;
use url::Url;

use crate::listen::ServeFuture;
use crate::state::Api;

/// Pause between two looks for due deliveries while no task and no delivery ends. Retries, and
/// deliveries requested by commands beside the service, wait half of it on average.
const CHECK_EVERY: Duration = Duration::from_secs(3);
/// Pause after the end of a task before a look, so that one look covers several ends in quick
/// succession.
const HINT_PAUSE: Duration = Duration::from_millis(50);
/// Pause after a look that found only deliveries to receivers that keep failing.
const POSTPONED_PAUSE: Duration = Duration::from_millis(100);
/// Pause between two removals of deliveries beyond the limits.
const TRIM_EVERY: Duration = Duration::from_secs(10);
/// Longer than an attempt and its settlement take. When it ends, another process may take the
/// delivery.
const LEASE_MS: u64 = 60_000;
/// Pause before the next look at a task whose end this process does not see yet.
const SOON_MS: u64 = 1_000;
/// Pause before the next look at a task that this process cannot read: another version, or its repair, may be on its way.
const UNREADABLE_MS: u64 = 60_000;

/// Makes the webhook deliveries of a process.
#[derive(Debug)]
pub struct WebhookDeliverer {
    api: Api,
    fetcher: ReferenceFetcher,
    circuits: CircuitBreakers,
}

/// The body of an event, with the trace of its task.
type WebhookMessage = (Bytes, Option<TraceContext>);

/// Why an event cannot be sent.
enum UnsentCause {
    /// It never can be.
    Gone(&'static str),
    /// It can be, after this many milliseconds.
    NotYet(u64, String),
}

impl WebhookDeliverer {
    /// Creates a deliverer. `api` renders the task objects; `fetcher` connects only to addresses from
    /// which references may be fetched.
    pub fn new(api: Api, fetcher: ReferenceFetcher) -> Self {
        Self {
            circuits: CircuitBreakers::new(api.clock.clone()),
            api,
            fetcher,
        }
    }

    /// Delivers until `stop`, then drops deliveries in progress; they are repeated when their
    /// leases end.
    pub fn deliver(self, stop: CancellationToken) -> ServeFuture {
        Box::pin(self.deliver_until(stop))
    }

    async fn deliver_until(self, stop: CancellationToken) {
        let outage = OutageLog::new("looks for webhook deliveries", &self.api.clock);
        let own = Arc::new(self);
        let mut hints = own.api.webhooks.delivery_hints();
        let mut under_way = JoinSet::new();
        let mut done: Vec<DeliveryDone> = Vec::new();
        let mut since_trim = Stopwatch::start(&own.api.clock);
        loop {
            done.extend(std::iter::from_fn(|| under_way.try_join_next()).flatten());
            // Only postponed ones: nothing was sent. Looking again at once would lease the next ones of
            // the same backlog, without end.
            let mut nexts = done.iter().map(|one| one.next);
            let is_idle =
                !done.is_empty() && nexts.all(|next| matches!(next, DeliveryNext::Later { .. }));
            // Outcomes first: they free places of their webhooks.
            let settled = join_all(done.drain(..).map(|one| own.record_outcome(one)));
            let request = DeliveryRequest {
                count: WEBHOOK_DELIVERIES_MAX.saturating_sub(under_way.len()),
                each: WEBHOOK_DELIVERIES_EACH_MAX,
                lease_ms: LEASE_MS,
            };
            // Both at once, so that one commit of the store's writer takes the outcomes and leases
            // the next deliveries: a receiver gets its backlog at its own speed, not at that of the
            // looks.
            let (_, taken) = join(settled, own.api.webhooks.lease_deliveries(request)).await;
            match taken {
                Ok(due) => {
                    outage.record_success();
                    for one in due {
                        under_way.spawn(own.clone().deliver_one(one));
                    }
                }
                Err(error) => outage.record_failure(&error),
            }
            if since_trim.elapsed() >= TRIM_EVERY {
                since_trim.restart();
                own.trim().await;
            }
            let pace = if is_idle {
                POSTPONED_PAUSE
            } else {
                Duration::ZERO
            };
            tokio::select! {
                biased;
                () = stop.cancelled() => {
                    let last = std::iter::from_fn(|| under_way.try_join_next()).flatten();
                    join_all(last.map(|one| own.record_outcome(one))).await;
                    return;
                }
                ended = wait(&mut hints, &mut under_way, pace) => done.extend(ended),
            }
        }
    }

    /// Makes one attempt, unless its receiver keeps failing.
    async fn deliver_one(self: Arc<Self>, due: DueDelivery) -> DeliveryDone {
        let pass = match due.task {
            Some(_) => self.circuits.acquire(&due.project, &due.url),
            // An operator's test always passes.
            None => Ok(self.circuits.permit(&due.project, &due.url)),
        };
        let (answer, next) = match pass {
            Ok(pass) => match self.message(&due).await {
                Ok(message) => self.attempt(&due, message, pass).await,
                Err(UnsentCause::Gone(why)) => (Err(why.to_owned()), DeliveryNext::Failed),
                Err(UnsentCause::NotYet(after_ms, why)) => {
                    (Err(why), DeliveryNext::Again { after_ms })
                }
            },
            Err(wait) => (Err("the receiver keeps failing".to_owned()), later(wait)),
        };
        DeliveryDone {
            number: due.number,
            token: due.token,
            answer,
            next,
        }
    }

    async fn record_outcome(&self, done: DeliveryDone) {
        let outcome = match done.next {
            DeliveryNext::Delivered => "delivered",
            DeliveryNext::Again { .. } => "retried",
            DeliveryNext::Later { .. } => "postponed",
            DeliveryNext::Failed => "failed",
            DeliveryNext::Gone => "gone",
        };
        counter!("kinora_webhook_deliveries_total", "outcome" => outcome).increment(1);
        let (number, answer) = (done.number, &done.answer);
        // Omits the URL: its path may be a secret.
        match done.next {
            DeliveryNext::Failed | DeliveryNext::Gone => {
                tracing::warn!(number, ?answer, outcome, "webhook delivery given up");
            }
            _ => tracing::debug!(number, ?answer, outcome, "webhook delivery attempted"),
        }
        if let Err(error) = self.api.webhooks.complete_delivery(done).await {
            tracing::warn!(%error, number, "webhook delivery outcome not stored; delivery will be repeated");
        }
    }

    /// Removes deliveries beyond the limits of their webhooks.
    async fn trim(&self) {
        match self.api.webhooks.trim_deliveries().await {
            Ok(0) => {}
            Ok(dropped) => {
                counter!("kinora_webhook_deliveries_total", "outcome" => "dropped")
                    .increment(dropped);
                tracing::warn!(
                    dropped,
                    "webhook deliveries dropped: too many pending; see `kinora webhooks list`"
                );
            }
            Err(error) => tracing::debug!(%error, "webhook deliveries not trimmed"),
        }
    }

    /// Sends the event once, signed at this time.
    async fn attempt(
        &self,
        due: &DueDelivery,
        (body, trace): WebhookMessage,
        pass: AttemptPermit,
    ) -> (ReceiverAnswer, DeliveryNext) {
        let mut span = self.api.tracer.trail(trace).span("webhook");
        span.set("kinora.attempt", due.attempts);
        let now_s = self.api.clock.now_ms() / 1000;
        let signature = signatures(&due.secrets, &due.event, now_s, &body);
        let timestamp = now_s.to_string();
        let post = WebhookPost {
            project: &due.project,
            url: &due.url,
            headers: &[
                ("content-type", "application/json"),
                (ID_HEADER, &due.event),
                (TIMESTAMP_HEADER, &timestamp),
                (SIGNATURE_HEADER, &signature),
            ],
            body,
            limit: Duration::from_secs(WEBHOOK_SECONDS),
        };
        kinora_system::crash::point("api.before_delivery");
        let sent = self.fetcher.post(post).await;
        kinora_system::crash::point("api.delivered");
        record_in_span(span.with_role(SpanRole::Client), &sent);
        // Without an answer from the receiver, because a limit of this service came first: the
        // attempt was none, and says nothing about the receiver.
        let retry_after = match &sent {
            Err(error) if !error.is_of_reference() => error.retry_after(),
            _ => None,
        };
        let answer = sent.map_err(|error| error.failure().message);
        let next = match (&answer, retry_after) {
            (_, Some(wait)) => return (answer, later(wait)),
            (Ok(200..=299), _) => DeliveryNext::Delivered,
            (Ok(410), _) => DeliveryNext::Gone,
            _ => pause_ms(due.attempts).map_or(DeliveryNext::Failed, |after_ms| {
                DeliveryNext::Again { after_ms }
            }),
        };
        match next {
            DeliveryNext::Delivered | DeliveryNext::Gone => pass.succeed(),
            _ => pass.fail(),
        }
        (answer, next)
    }

    async fn message(&self, due: &DueDelivery) -> Result<WebhookMessage, UnsentCause> {
        match due.task {
            Some(task) => self.ending(&due.event, task).await,
            None => {
                let data = json!({"id": due.event, "object": "video"});
                let body = write_event(&due.event, self.api.clock.now_ms(), TEST_EVENT, data)?;
                Ok((body, None))
            }
        }
    }

    /// The event for the end of a task, with the current task object.
    async fn ending(&self, event: &str, task: TaskId) -> Result<WebhookMessage, UnsentCause> {
        let found = self.api.tasks.task(task).await.map_err(|error| {
            let after_ms = match error {
                StoreError::Corrupt(_) => UNREADABLE_MS,
                _ => SOON_MS,
            };
            UnsentCause::NotYet(after_ms, error.to_string())
        })?;
        let task = found.ok_or(UnsentCause::Gone("the task was deleted"))?;
        let Some(kind) = event_type(&task.state) else {
            return Err(match task.state {
                TaskState::Expired => UnsentCause::Gone("the task has expired"),
                // Another process ended it a moment ago; this one still has the earlier state in
                // its cache.
                _ => UnsentCause::NotYet(
                    SOON_MS,
                    "this process does not see the end of the task yet".to_owned(),
                ),
            });
        };
        let object = self.api.object_at(&task, None);
        let object = object.map_err(|_| UnsentCause::Gone("the task has expired"))?;
        let ended_ms = task.finished_at_ms.unwrap_or(task.created_at_ms);
        Ok((write_event(event, ended_ms, kind, object)?, task.trace))
    }
}

/// Records the outcome in the span, without the URL or its host: the receiver is the project's
/// private business.
fn record_in_span(mut span: TaskSpan, sent: &Result<u16, FetchError>) {
    span.set("http.request.method", "POST");
    match sent {
        Ok(status) => {
            span.set("http.response.status_code", u32::from(*status));
            if !(200..300).contains(status) {
                span.fail(status.to_string());
            }
        }
        Err(error) => span.fail(error.failure().code),
    }
}

/// Due again after `wait`, without an attempt.
fn later(wait: Duration) -> DeliveryNext {
    let after_ms = u64::try_from(wait.as_millis()).unwrap_or(u64::MAX);
    DeliveryNext::Later { after_ms }
}

/// Waits until a delivery may be due, and at least for `pace`; returns a delivery that has ended.
async fn wait(
    hints: &mut watch::Receiver<u64>,
    under_way: &mut JoinSet<DeliveryDone>,
    pace: Duration,
) -> Option<DeliveryDone> {
    tokio::time::sleep(pace).await;
    tokio::select! {
        biased;
        // A place of its webhook is free. If the delivery panicked, the panic is in the log and the
        // lease will end.
        Some(ended) = under_way.join_next() => ended.ok(),
        // Without hints, rely on the regular looks.
        Ok(()) = hinted(hints) => None,
        () = tokio::time::sleep(CHECK_EVERY) => None,
    }
}

async fn hinted(hints: &mut watch::Receiver<u64>) -> Result<(), RecvError> {
    hints.changed().await?;
    tokio::time::sleep(HINT_PAUSE).await;
    Ok(())
}

fn write_event(
    id: &str,
    at_ms: u64,
    kind: &str,
    data: impl Serialize,
) -> Result<Bytes, UnsentCause> {
    let event = EventEnvelope {
        id,
        object: "event",
        created_at: at_ms / 1000,
        kind,
        data,
    };
    let body = serde_json::to_vec(&event);
    body.map(Bytes::from)
        .map_err(|_| UnsentCause::Gone("the event cannot be written"))
}

#[cfg(test)]
#[expect(
    clippy::disallowed_methods,
    reason = "the test measures in paused time"
)]
mod tests {
    use tokio::time::Instant;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn the_end_of_a_task_shortens_the_wait_for_the_next_look() {
        let (ended, mut hints) = watch::channel(0);
        let mut under_way = JoinSet::new();
        let mut waited = async |under_way: &mut JoinSet<DeliveryDone>| {
            let begun = Instant::now();
            wait(&mut hints, under_way, Duration::ZERO).await;
            begun.elapsed()
        };
        assert_eq!(waited(&mut under_way).await, CHECK_EVERY);
        ended.send_modify(|count| *count += 1);
        assert_eq!(waited(&mut under_way).await, HINT_PAUSE);
        assert_eq!(waited(&mut under_way).await, CHECK_EVERY, "heard once");
        under_way.spawn(async {
            DeliveryDone {
                number: 1,
                token: 1,
                answer: Ok(200),
                next: DeliveryNext::Delivered,
            }
        });
        assert_eq!(waited(&mut under_way).await, Duration::ZERO);
        drop(ended);
        assert_eq!(waited(&mut under_way).await, CHECK_EVERY);
    }
}

/// Number of failures in a row that open a circuit.
const FAILURES_MAX: u32 = 5;
/// Longest pause before a probe.
const PAUSE_MAX: Duration = Duration::from_secs(120);
/// Maximum number of failing hosts that are remembered; beyond it, others always pass.
const HOSTS_MAX: usize = 10_000;
/// When an open circuit may be forgotten to make room.
const FORGET_AFTER: Duration = Duration::from_secs(3_600);

/// The receivers whose last delivery failed. Clones share them.
#[derive(Clone, Debug)]
struct CircuitBreakers {
    hosts: Arc<Mutex<HashMap<HostKey, FailingHost>>>,
    clock: Arc<dyn Clock>,
}

/// A project and a host, with its port.
type HostKey = (String, String);

#[derive(Debug)]
struct FailingHost {
    /// Failures in a row.
    failures: u32,
    /// Time since the last one.
    since: Stopwatch,
    is_probed: bool,
}

/// The right to one attempt. Dropping it without an outcome leaves the circuit as it is.
#[derive(Debug)]
struct AttemptPermit {
    circuits: CircuitBreakers,
    key: HostKey,
    is_probe: bool,
}

impl FailingHost {
    /// The pause after the last failure; `None` while the circuit is closed.
    fn pause(&self) -> Option<Duration> {
        // Example: after the fifth failure in a row the first pause begins, and each failed probe
        // lengthens the next one, up to two minutes. A thousand events for that host then cost one
        // attempt every two minutes, and not a thousand each.
        let probes = (self.failures + 1).saturating_sub(FAILURES_MAX);
        let pause = pause_ms(probes).map_or(PAUSE_MAX, Duration::from_millis);
        (probes > 0).then_some(pause.min(PAUSE_MAX))
    }
}

impl CircuitBreakers {
    fn new(clock: Arc<dyn Clock>) -> Self {
        Self {
            hosts: Arc::default(),
            clock,
        }
    }

    /// The right to an attempt at this URL, or how long to wait before asking again.
    fn acquire(&self, project: &str, url: &str) -> Result<AttemptPermit, Duration> {
        let mut pass = self.permit(project, url);
        let mut hosts = self.lock();
        if let Some(host) = hosts.get_mut(&pass.key)
            && let Some(pause) = host.pause()
        {
            let left = pause.saturating_sub(host.since.elapsed());
            if !left.is_zero() {
                return Err(left);
            }
            // Another attempt is testing the host. It takes this long at most.
            if host.is_probed {
                return Err(Duration::from_secs(WEBHOOK_SECONDS));
            }
            host.is_probed = true;
            pass.is_probe = true;
        }
        drop(hosts);
        Ok(pass)
    }

    /// The right to an attempt at this URL, even if its circuit is open.
    fn permit(&self, project: &str, url: &str) -> AttemptPermit {
        AttemptPermit {
            circuits: self.clone(),
            key: (project.to_owned(), host_of(url)),
            is_probe: false,
        }
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<HostKey, FailingHost>> {
        self.hosts.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl AttemptPermit {
    /// Records that the receiver accepted the event, or reported that it is gone: the circuit closes.
    fn succeed(self) {
        self.circuits.lock().remove(&self.key);
    }

    /// Records that the receiver did not accept the event.
    fn fail(self) {
        let mut hosts = self.circuits.lock();
        if hosts.len() >= HOSTS_MAX && !hosts.contains_key(&self.key) {
            // Open circuits are what matters, until nothing has been sent there for long.
            hosts.retain(|_, host| host.pause().is_some() && host.since.elapsed() < FORGET_AFTER);
            if hosts.len() >= HOSTS_MAX {
                return;
            }
        }
        let host = hosts
            .entry(self.key.clone())
            .or_insert_with(|| FailingHost {
                failures: 0,
                since: Stopwatch::start(&self.circuits.clock),
                is_probed: false,
            });
        // Attempts that began before the circuit opened are not probes.
        if self.is_probe || host.pause().is_none() {
            host.failures += 1;
            host.since.restart();
        }
    }
}

impl Drop for AttemptPermit {
    fn drop(&mut self) {
        if self.is_probe
            && let Some(host) = self.circuits.lock().get_mut(&self.key)
        {
            host.is_probed = false;
        }
    }
}

/// Host and port; the text itself if it is no URL.
fn host_of(url: &str) -> String {
    let parsed = Url::parse(url).ok();
    let host = parsed.and_then(|url| {
        let port = url.port_or_known_default()?;
        Some(format!("{}:{port}", url.host_str()?.trim_end_matches('.')))
    });
    host.unwrap_or_else(|| url.to_owned())
}

#[cfg(test)]
mod circuits_tests {
    use kinora_contract::ManualClock;

    use super::*;

    const URL: &str = "https://example.org/a";

    struct World {
        clock: Arc<ManualClock>,
        circuits: CircuitBreakers,
    }

    impl World {
        /// With an open circuit at [`URL`], for the project `one`.
        fn broken() -> Self {
            let clock = Arc::new(ManualClock::default());
            let circuits = CircuitBreakers::new(clock.clone());
            for _ in 0..FAILURES_MAX {
                circuits.acquire("one", URL).unwrap().fail();
            }
            Self { clock, circuits }
        }

        fn wait(&self) -> Duration {
            self.circuits.acquire("one", URL).unwrap_err()
        }

        fn pass(&self, time: Duration) {
            self.clock.advance(time.as_millis() as u64);
        }
    }

    #[test]
    fn p08_a_host_that_keeps_failing_gets_one_probe_after_each_pause() {
        let world = World::broken();
        let mut pauses = Vec::new();
        for _ in 0..8 {
            let pause = world.wait();
            world.pass(pause);
            let probe = world.circuits.acquire("one", URL).unwrap();
            let meanwhile = world.wait();
            assert_eq!(meanwhile, Duration::from_secs(WEBHOOK_SECONDS), "one probe");
            probe.fail();
            pauses.push(pause.as_secs());
        }
        assert_eq!(pauses, [5, 30, 120, 120, 120, 120, 120, 120]);
    }

    #[test]
    fn other_projects_hosts_and_ports_are_not_concerned() {
        let world = World::broken();
        for (project, url) in [
            ("two", URL),
            ("one", "https://example.com/a"),
            ("one", "https://example.org:8443/a"),
        ] {
            assert!(
                world.circuits.acquire(project, url).is_ok(),
                "{project} {url}"
            );
        }
        let same = world.circuits.acquire("one", "https://EXAMPLE.org.:443/b");
        assert!(same.is_err());
    }

    #[test]
    fn a_success_closes_the_circuit_and_a_probe_without_outcome_leaves_it() {
        let world = World::broken();
        world.pass(world.wait());
        drop(world.circuits.acquire("one", URL).unwrap());
        world.circuits.acquire("one", URL).unwrap().fail();
        world.circuits.permit("one", URL).fail();
        assert!(world.circuits.acquire("one", URL).is_err(), "still open");
        world.circuits.permit("one", URL).succeed();
        let all = || world.circuits.acquire("one", URL).unwrap();
        let passes: Vec<AttemptPermit> = (0..10).map(|_| all()).collect();
        assert!(world.circuits.lock().is_empty(), "nothing is remembered");
        // All began before the circuit opens again: one pause.
        passes.into_iter().for_each(AttemptPermit::fail);
        assert_eq!(world.wait().as_secs(), 5);
    }

    #[test]
    fn p08_the_number_of_remembered_hosts_is_bounded_and_open_circuits_stay() {
        let World { circuits, .. } = World::broken();
        for number in 0..2 * HOSTS_MAX {
            let url = format!("https://{number}.example.org/");
            circuits.acquire("two", &url).unwrap().fail();
            assert!(circuits.lock().len() <= HOSTS_MAX);
        }
        assert!(circuits.acquire("one", URL).is_err());
    }
}
