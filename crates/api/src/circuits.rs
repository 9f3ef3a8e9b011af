//! A circuit breaker for each receiver of webhooks, by project and host. A host that keeps failing
//! gets one probe after each pause, instead of all attempts of all events: a client that names it in
//! `callback_url` cannot make the service post to it without end.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use kinora_contract::limits::WEBHOOK_SECONDS;
use kinora_contract::webhook::pause_ms;
use kinora_contract::{Clock, Stopwatch};
use url::Url;

/// Number of failures in a row that open a circuit.
const FAILURES_MAX: u32 = 5;
/// Longest pause before a probe.
const PAUSE_MAX: Duration = Duration::from_secs(120);
/// Maximum number of failing hosts that are remembered; beyond it, others always pass.
const HOSTS_MAX: usize = 10_000;
/// When an open circuit may be forgotten to make room.
const FORGET_AFTER: Duration = Duration::from_secs(3_600);

/// The receivers that failed last time. Clones share them.
#[derive(Clone, Debug)]
pub(crate) struct Circuits {
    hosts: Arc<Mutex<HashMap<HostKey, FailingHost>>>,
    clock: Arc<dyn Clock>,
}

/// A project and a host, with its port.
type HostKey = (String, String);

#[derive(Debug)]
struct FailingHost {
    /// Failures in a row.
    failures: u32,
    /// Since the last one.
    since: Stopwatch,
    is_probed: bool,
}

/// The right to one attempt. Dropping it without an outcome leaves the circuit as it is.
#[derive(Debug)]
pub(crate) struct Pass {
    circuits: Circuits,
    key: HostKey,
    is_probe: bool,
}

impl FailingHost {
    /// The pause after the last failure; `None` while the circuit is closed.
    fn pause(&self) -> Option<Duration> {
        let probes = (self.failures + 1).saturating_sub(FAILURES_MAX);
        let pause = pause_ms(probes).map_or(PAUSE_MAX, Duration::from_millis);
        (probes > 0).then_some(pause.min(PAUSE_MAX))
    }
}

impl Circuits {
    pub(crate) fn new(clock: Arc<dyn Clock>) -> Self {
        Self {
            hosts: Arc::default(),
            clock,
        }
    }

    /// The right to an attempt at this URL, or how long to wait before asking again.
    pub(crate) fn enter(&self, project: &str, url: &str) -> Result<Pass, Duration> {
        let mut pass = self.pass(project, url);
        let mut hosts = self.lock();
        if let Some(host) = hosts.get_mut(&pass.key)
            && let Some(pause) = host.pause()
        {
            let left = pause.saturating_sub(host.since.elapsed());
            if !left.is_zero() {
                return Err(left);
            }
            if host.is_probed {
                return Err(Duration::from_secs(WEBHOOK_SECONDS));
            }
            host.is_probed = true;
            pass.is_probe = true;
        }
        drop(hosts);
        Ok(pass)
    }

    /// The right to an attempt at this URL, whatever happened before.
    pub(crate) fn pass(&self, project: &str, url: &str) -> Pass {
        Pass {
            circuits: self.clone(),
            key: (project.to_owned(), host_of(url)),
            is_probe: false,
        }
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<HostKey, FailingHost>> {
        self.hosts.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Pass {
    /// The receiver took the event, or said that it is gone: the circuit closes.
    pub(crate) fn succeed(self) {
        self.circuits.lock().remove(&self.key);
    }

    /// The receiver did not take the event.
    pub(crate) fn fail(self) {
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

impl Drop for Pass {
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
mod tests {
    use kinora_contract::ManualClock;

    use super::*;

    const URL: &str = "https://example.org/a";

    struct World {
        clock: Arc<ManualClock>,
        circuits: Circuits,
    }

    impl World {
        /// With an open circuit at [`URL`], for the project `one`.
        fn broken() -> Self {
            let clock = Arc::new(ManualClock::default());
            let circuits = Circuits::new(clock.clone());
            for _ in 0..FAILURES_MAX {
                circuits.enter("one", URL).unwrap().fail();
            }
            Self { clock, circuits }
        }

        fn wait(&self) -> Duration {
            self.circuits.enter("one", URL).unwrap_err()
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
            let probe = world.circuits.enter("one", URL).unwrap();
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
                world.circuits.enter(project, url).is_ok(),
                "{project} {url}"
            );
        }
        let same = world.circuits.enter("one", "https://EXAMPLE.org.:443/b");
        assert!(same.is_err());
    }

    #[test]
    fn a_success_closes_the_circuit_and_a_probe_without_outcome_leaves_it() {
        let world = World::broken();
        world.pass(world.wait());
        drop(world.circuits.enter("one", URL).unwrap());
        world.circuits.enter("one", URL).unwrap().fail();
        world.circuits.pass("one", URL).fail();
        assert!(world.circuits.enter("one", URL).is_err(), "still open");
        world.circuits.pass("one", URL).succeed();
        let all = || world.circuits.enter("one", URL).unwrap();
        let passes: Vec<Pass> = (0..10).map(|_| all()).collect();
        assert!(world.circuits.lock().is_empty(), "nothing is remembered");
        // All began before the circuit opens again: one pause.
        passes.into_iter().for_each(Pass::fail);
        assert_eq!(world.wait().as_secs(), 5);
    }

    #[test]
    fn p08_the_number_of_remembered_hosts_is_bounded_and_open_circuits_stay() {
        let World { circuits, .. } = World::broken();
        for number in 0..2 * HOSTS_MAX {
            let url = format!("https://{number}.example.org/");
            circuits.enter("two", &url).unwrap().fail();
            assert!(circuits.lock().len() <= HOSTS_MAX);
        }
        assert!(circuits.enter("one", URL).is_err());
    }
}
