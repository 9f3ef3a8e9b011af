//! Servers as places: what an engine of other servers knows of each one's health.

use std::sync::Arc;

use kinora_engine::places::{PlaceRules, Places};

use crate::backoff::Backoff;
use crate::timer::Timer;
use crate::upstream::Upstream;

/// The places of `upstreams`, by the same indices. After `failures_max` failures in a row one is
/// quarantined; the pauses after its failures are those of `backoff`.
pub fn places_of(
    upstreams: &[Upstream],
    failures_max: u32,
    backoff: Backoff,
    timer: Arc<dyn Timer>,
) -> Arc<Places> {
    let rules = PlaceRules {
        // A server queues its jobs itself.
        jobs_max: None,
        failures_max,
        pause: Box::new(move |failures| backoff.wait(failures.saturating_sub(1))),
        probes: true,
        are_shared: true,
    };
    let names = upstreams.iter().map(|one| one.name.clone()).collect();
    Places::new(names, rules, move || timer.now())
}
