//! `kinora workers`: lists the live workers of a service, beside its processes. Places in trouble
//! follow below them.

use std::sync::Arc;

use kinora_store::{LivingWorker, ServedModel, WorkerPlaceState};
use serde_json::{Value, json};

use crate::cli::WorkersArgs;
use crate::failure::Failure;
use crate::output::{print, printable, table};
use crate::system::SystemClock;
use crate::{shell_hint, store_access};

const HEADS: [&str; 9] = [
    "ID", "HOST", "STATE", "VERSION", "MODELS", "ENGINES", "DEVICES", "RUNNING", "SEEN",
];

/// Lists the live workers.
pub(crate) fn run(args: &WorkersArgs) -> Result<(), Failure> {
    let config = store_access::config(&args.home)?;
    let runtime = store_access::runtime()?;
    let url = config.store_url();
    let living = runtime.block_on(kinora_store::living_workers(&url, Arc::new(SystemClock)));
    let living = living.map_err(|error| shell_hint::open_failure(error, "workers", &args.home))?;
    print(&if args.json {
        as_json(&living)
    } else {
        as_table(&living)
    });
    Ok(())
}

/// One line per worker, sorted by id.
fn as_table(living: &[LivingWorker]) -> String {
    if living.is_empty() {
        return "There are no live workers: accepted tasks wait. Start one with `kinora serve` or `kinora worker`.\n".to_owned();
    }
    let places = place_table(living).map(|places| format!("\n{places}"));
    table(HEADS, living.iter().map(row)) + &places.unwrap_or_default()
}

/// The paused and quarantined places of the workers, if there are any.
pub(crate) fn place_table(living: &[LivingWorker]) -> Option<String> {
    let heads = [
        "PLACE",
        "ENGINE",
        "WORKER",
        "STATE",
        "RUNS",
        "FAILURES",
        "LAST ERROR",
    ];
    let mut rows = Vec::new();
    for worker in living.iter().map(|one| &one.worker) {
        let places = worker.places.iter();
        let troubled = places.filter(|place| place.state != WorkerPlaceState::Available);
        rows.extend(troubled.map(|place| {
            [
                printable(&place.name),
                printable(&place.engine),
                printable(&worker.id),
                place.state.name().to_owned(),
                place.attempts.to_string(),
                place.failures.to_string(),
                printable(place.last_error.as_deref().unwrap_or("-")),
            ]
        }));
    }
    (!rows.is_empty()).then(|| table(heads, rows))
}

/// One part of each served model, such as its engine, without repetitions.
pub(crate) fn served_parts(models: &[ServedModel], part: fn(&ServedModel) -> &str) -> String {
    let mut parts: Vec<&str> = models.iter().map(part).collect();
    parts.dedup();
    printable(&parts.join(","))
}

fn row(living: &LivingWorker) -> [String; HEADS.len()] {
    let worker = &living.worker;
    [
        printable(&worker.id),
        printable(&worker.host),
        worker.state.name().to_owned(),
        printable(&worker.version),
        served_parts(&worker.models, |served| &served.model),
        served_parts(&worker.models, |served| &served.engine),
        served_parts(&worker.models, |served| {
            served.device.as_deref().unwrap_or("auto")
        }),
        format!("{}/{}", living.running, worker.slots),
        format!("{} s ago", living.seen_ms_ago / 1000),
    ]
}

fn served_json(served: &ServedModel) -> Value {
    json!({
        "model": served.model,
        "engine": served.engine,
        "device": served.device,
        "available": served.is_available,
    })
}

/// A JSON array with one object per worker, sorted by id.
fn as_json(living: &[LivingWorker]) -> String {
    let all: Value = living
        .iter()
        .map(|one| {
            let worker = &one.worker;
            json!({
                "id": worker.id,
                "host": worker.host,
                "pid": worker.pid,
                "state": worker.state.name(),
                "version": worker.version,
                "models": worker.models.iter().map(served_json).collect::<Vec<_>>(),
                "slots": worker.slots,
                "running": one.running,
                "started_at": worker.started_at_ms / 1000,
                "seen_seconds_ago": one.seen_ms_ago / 1000,
                "devices": worker.devices,
                "places": worker.places,
            })
        })
        .collect();
    format!("{all:#}\n")
}

#[cfg(test)]
mod tests {
    use kinora_store::{WorkerAnnouncement, WorkerState};

    use super::*;

    fn living() -> LivingWorker {
        let served = |model: &str, device: Option<&str>| ServedModel {
            model: model.to_owned(),
            engine: "storyboard/7".to_owned(),
            device: device.map(str::to_owned),
            is_available: true,
        };
        LivingWorker {
            worker: WorkerAnnouncement {
                id: "gpu-1-4711-0a".to_owned(),
                host: "gpu\u{1b}[2J-1".to_owned(),
                pid: 4711,
                version: "0.1.0".to_owned(),
                models: vec![served("a", Some("cuda0")), served("b", None)],
                slots: 2,
                started_at_ms: 1_700_000_000_000,
                state: WorkerState::Draining,
                devices: Vec::new(),
                places: Vec::new(),
            },
            seen_ms_ago: 2_900,
            running: 1,
        }
    }

    #[test]
    fn a_worker_is_a_line_that_cannot_write_to_the_terminal() {
        let text = as_table(&[living()]);
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines.len(), 2, "{text}");
        for (head, cell) in [
            ("ID", "gpu-1-4711-0a"),
            ("STATE", "draining"),
            ("MODELS", "a,b "),
            ("ENGINES", "storyboard/7 "),
            ("DEVICES", "cuda0,auto"),
            ("RUNNING", "1/2"),
            ("SEEN", "2 s ago"),
        ] {
            let at = lines[0].find(head).unwrap();
            assert!(lines[1][at..].starts_with(cell), "{head}: {text}");
        }
        assert!(!text.contains('\u{1b}'), "{text:?}");
        assert!(as_table(&[]).contains("tasks wait"));
    }

    #[test]
    fn json_has_all_of_it_for_programs() {
        let value: Value = serde_json::from_str(&as_json(&[living()])).unwrap();
        let one = &value[0];
        assert_eq!((&one["slots"], &one["running"]), (&2.into(), &1.into()));
        assert_eq!(
            one["models"][1],
            json!({"model": "b", "engine": "storyboard/7", "device": null, "available": true})
        );
        assert_eq!(one["started_at"], 1_700_000_000);
        assert_eq!(one["seen_seconds_ago"], 2);
    }
}
