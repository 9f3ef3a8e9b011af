//! Devices and servers that a running service has put in quarantine.

use std::sync::Arc;

use kinora_store::{LivingWorker, WorkerPlaceState};

use super::finding::Finding;
use crate::config::Config;
use crate::system::SystemClock;
use crate::table::printable;

/// One finding for each place in quarantine of a live worker; none if no service runs.
pub(super) fn quarantined(config: &Config) -> Vec<(&'static str, Finding)> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build();
    let Ok(runtime) = runtime else {
        return Vec::new();
    };
    let url = config.store_url();
    // A store that cannot be read is a finding of its own.
    let living = runtime.block_on(kinora_store::living_workers(&url, Arc::new(SystemClock)));
    findings(&living.unwrap_or_default())
}

fn findings(living: &[LivingWorker]) -> Vec<(&'static str, Finding)> {
    let mut findings = Vec::new();
    for worker in living.iter().map(|one| &one.worker) {
        let places = worker.places.iter();
        let quarantined = places.filter(|place| place.state == WorkerPlaceState::Quarantined);
        findings.extend(quarantined.map(|place| {
            let error = place.last_error.as_deref().unwrap_or("unknown");
            let text = format!(
                "{} of engine {} on {} is in quarantine after {} failures; the last one: {error}. \
                 Its work goes elsewhere, and one task at a time tries it; mend or remove it",
                place.name, place.engine, worker.host, place.failures
            );
            ("device or server", Finding::Bad(printable(&text)))
        }));
    }
    findings
}

#[cfg(test)]
mod tests {
    use kinora_store::{Announcement, WorkerPlace, WorkerState};

    use super::*;

    fn place(name: &str, state: WorkerPlaceState) -> WorkerPlace {
        WorkerPlace {
            engine: "wan".to_owned(),
            name: name.to_owned(),
            state,
            running: 0,
            attempts: 9,
            failures: 4,
            quarantined_seconds: 12,
            last_error: Some("CUDA error: \u{1b}[31mXid 31".to_owned()),
        }
    }

    #[test]
    fn a_quarantined_place_is_named_with_its_last_error() {
        let places = vec![
            place("device 0", WorkerPlaceState::Available),
            place("device 1", WorkerPlaceState::Paused),
            place("device 2", WorkerPlaceState::Quarantined),
        ];
        let worker = Announcement {
            id: "gpu1-7".to_owned(),
            host: "gpu1".to_owned(),
            pid: 7,
            version: String::new(),
            models: Vec::new(),
            slots: 3,
            started_at_ms: 0,
            state: WorkerState::Serving,
            devices: Vec::new(),
            places,
        };
        let found = findings(&[LivingWorker {
            worker,
            seen_ms_ago: 0,
            running: 0,
        }]);
        let [(_, Finding::Bad(text))] = &found[..] else {
            panic!("{found:?}");
        };
        assert!(text.contains("device 2 of engine wan on gpu1"), "{text}");
        assert!(
            text.contains("Xid 31") && !text.contains('\u{1b}'),
            "{text}"
        );
    }
}
