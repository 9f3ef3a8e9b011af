//! What operators see of places.

use std::time::Duration;

use super::Places;

/// A place at a moment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlaceReport {
    /// Its name: a device, or the base URL of a server.
    pub name: String,
    /// Whether it takes jobs.
    pub state: PlaceState,
    /// Number of jobs of this process there.
    pub running: usize,
    /// Number of jobs so far.
    pub attempts: u64,
    /// Number of outages and failed jobs so far.
    pub failures: u64,
    /// Time in quarantine so far.
    pub quarantined: Duration,
    /// The error of the last failure.
    pub last_error: Option<String>,
}

/// Whether a place takes jobs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PlaceState {
    /// It does.
    Available,
    /// Not before a pause ends: it failed, or asked for a pause.
    Paused,
    /// It failed too often, and gets one job at a time until one succeeds.
    Quarantined,
}

impl Places {
    /// All places, in the order of their indices.
    pub fn report(&self) -> Vec<PlaceReport> {
        let now = (self.now)();
        let state = self.lock();
        let places = state.iter().zip(&self.names);
        let reports = places.map(|(place, name)| {
            let current = place
                .quarantined_at
                .map_or(Duration::ZERO, |since| now.saturating_sub(since));
            PlaceReport {
                name: name.clone(),
                state: if place.is_quarantined(&self.rules) {
                    PlaceState::Quarantined
                } else if place.held_until() > now {
                    PlaceState::Paused
                } else {
                    PlaceState::Available
                },
                running: place.running,
                attempts: place.attempts,
                failures: place.failures,
                quarantined: place.quarantined + current,
                last_error: place.last_error.clone(),
            }
        });
        reports.collect()
    }
}
