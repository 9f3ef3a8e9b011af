//! Checks the models and their engines: whether each can make a frame, whether its processes are
//! sandboxed, whether all its seats get tasks, and which devices or servers are in quarantine.

use std::sync::Arc;

use kinora_contract::Size;
use kinora_engine::{
    ClipSink, Engine as Opened, EngineError, EngineOutput, FilmEngine, FrameJob, FrameKind,
    JobControl, JobMaterials, ServerReport,
};
use kinora_store::{LivingWorker, WorkerPlaceState};
use kinora_worker::AnyEngine;

use super::report::Finding;
use crate::catalog;
use crate::config::{Config, EngineSettings};
use crate::output::printable;
use crate::store_access;
use crate::system::{self, SystemClock};

pub(super) fn models(config: &Config) -> Finding {
    match catalog::models(config) {
        Ok((catalog, _)) => {
            let ids: Vec<&str> = catalog
                .cards()
                .iter()
                .map(|card| card.id.as_str())
                .collect();
            Finding::Good(ids.join(", "))
        }
        Err(failure) => failure.into(),
    }
}

/// Makes one frame with every engine that opens, checks its files, or asks its servers. The check
/// of the models reports engines that do not open.
pub(super) fn engines(config: &Config) -> Vec<(&'static str, Finding)> {
    let engines = config.serving_engines();
    let findings = engines.flat_map(|engine| check_engine(&engine, config));
    findings.map(|finding| ("engine", finding)).collect()
}

fn check_engine(engine: &EngineSettings, config: &Config) -> Vec<Finding> {
    if let EngineOutput::Frames(frames) = engine.settings.output()
        && let Some(found) = check_weights(&engine.name, frames)
    {
        return vec![found];
    }
    match catalog::open_engine(engine, config) {
        Ok(AnyEngine::Frames(opened)) => vec![first_frame(&engine.name, &*opened)],
        Ok(AnyEngine::Film(films)) => match store_access::runtime() {
            Ok(runtime) => runtime.block_on(check_films(engine, config, &*films)),
            Err(failure) => vec![failure.into()],
        },
        Err(_) => Vec::new(),
    }
}

/// What an engine's servers can be asked for, what the models promise beyond that, and what the servers answer.
async fn check_films(
    engine: &EngineSettings,
    config: &Config,
    films: &dyn FilmEngine,
) -> Vec<Finding> {
    let name = &engine.name;
    let mut findings = Vec::new();
    if let Some(summary) = films.summary() {
        findings.push(Finding::Good(format!("{name}: {}", summary.offers)));
        let advice = summary.advice.into_iter();
        findings.extend(advice.map(|text| Finding::Note(format!("{name}: {text}"))));
    }
    for problem in catalog::unsendable(config, name, films).await {
        findings.push(Finding::Bad(format!("{name}: {problem}")));
    }
    findings.extend(check_servers(name, films).await);
    findings
}

/// Checks that each server of an engine would accept our jobs.
async fn check_servers(name: &str, engine: &dyn FilmEngine) -> Vec<Finding> {
    let asked = engine.ask_servers().await.into_iter();
    let told = asked.map(|ServerReport { server, refusal }| match refusal {
        None => Finding::Good(format!("{name}: {server} answers")),
        Some(error) => Finding::Bad(format!("{name}: {server} does not serve us: {error}")),
    });
    told.collect()
}

/// Checks an engine's files, if it has any; `kinora models check` loads them.
fn check_weights(name: &str, frames: &dyn FrameKind) -> Option<Finding> {
    if let Some(why) = frames.unavailable() {
        return Some(Finding::Bad(format!("{name}: {why}")));
    }
    let found = frames.check_files()?;
    Some(if found.is_good {
        Finding::Good(format!("{name}: all files found"))
    } else {
        Finding::Bad(format!(
            "{name}: files are missing or wrong; `kinora models list` names missing ones, `kinora models pull` \
             downloads them, `kinora models check` names wrong ones"
        ))
    })
}

fn first_frame(name: &str, engine: &dyn Opened) -> Finding {
    // The smallest possible clip.
    let spec = catalog::trial_spec(name, Size::new(480, 480), 2);
    let materials = JobMaterials::default();
    let begun = system::stopwatch();
    let mut sink = OneFrame::default();
    let made = engine.plan(&spec, &materials).and_then(|clip| {
        let job = FrameJob {
            spec: &spec,
            materials: &materials,
            clip,
            preset: None,
        };
        let control = JobControl::default();
        sink.control = Some(control.clone());
        engine.generate(&job, &mut sink, &control)
    });
    match (sink.frames, made) {
        // One frame is proof enough. The sink then cancels the job, so an error after it is our own
        // doing.
        (0, Err(error)) => Finding::Bad(format!("{name} makes no frame: {error}")),
        (0, Ok(())) => Finding::Bad(format!("{name} makes no frame")),
        _ => Finding::Good(format!(
            "{name} made a frame after {} ms",
            begun.elapsed().as_millis()
        )),
    }
}

/// Accepts one frame, then stops.
#[derive(Default)]
struct OneFrame {
    frames: u32,
    control: Option<JobControl>,
}

impl ClipSink for OneFrame {
    fn frame(&mut self, _rgb: &[u8]) -> Result<(), EngineError> {
        self.frames += 1;
        if let Some(control) = &self.control {
            control.cancel.cancel();
        }
        Ok(())
    }

    fn audio(&mut self, _pcm: &[f32]) -> Result<(), EngineError> {
        Ok(())
    }
}

/// One finding for each place in quarantine of a live worker; none if no service runs.
pub(super) fn quarantined(config: &Config) -> Vec<(&'static str, Finding)> {
    let Ok(runtime) = store_access::runtime() else {
        return Vec::new();
    };
    let url = config.store_url();
    // A store that cannot be read is a finding of its own.
    let living = runtime.block_on(kinora_store::living_workers(&url, Arc::new(SystemClock)));
    quarantine_findings(&living.unwrap_or_default())
}

fn quarantine_findings(living: &[LivingWorker]) -> Vec<(&'static str, Finding)> {
    let mut findings = Vec::new();
    for worker in living.iter().map(|one| &one.worker) {
        let places = worker.places.iter();
        let quarantined = places.filter(|place| place.state == WorkerPlaceState::Quarantined);
        findings.extend(quarantined.map(|place| {
            let error = place.last_error.as_deref().unwrap_or("unknown");
            let text = format!(
                "{} of engine {} on {} is in quarantine after {} failures; the last one: {error}. \
                 Other devices or servers do its work, and one task at a time tries it; repair or remove it",
                place.name, place.engine, worker.host, place.failures
            );
            ("device or server", Finding::Bad(printable(&text)))
        }));
    }
    findings
}

/// The number of slots, and the engines that have more seats. `None`: this process runs no tasks.
pub(super) fn slots(config: &Config) -> Option<Finding> {
    if !config.worker.enabled {
        return None;
    }
    let advice = config.seat_advice();
    if !advice.is_empty() {
        return Some(Finding::Note(advice.join("; ")));
    }
    let engines = config
        .serving_engines()
        .map(|engine| format!("{} {}", engine.name, engine.seats()));
    let engines: Vec<String> = engines.collect();
    Some(Finding::Good(format!(
        "{}; seats: {}",
        config.slots(),
        engines.join(", ")
    )))
}

/// Tries the sandbox, and looks for engines without one.
pub(super) fn sandbox(config: &Config) -> Finding {
    let is_root = rustix::process::geteuid().is_root();
    sandbox_finding(
        &kinora_engine_host::rehearse(),
        &open_engines(config),
        is_root,
    )
}

/// Engines whose processes are neither sandboxed nor confined.
fn open_engines(config: &Config) -> Vec<&str> {
    let open = config.engines.iter().filter(|engine| {
        let confined = match engine.settings.output() {
            EngineOutput::Frames(frames) => frames.program().and_then(|program| program.confined),
            EngineOutput::Films(_) => None,
        };
        confined.is_none() && engine.host.is_some_and(|host| !host.sandbox)
    });
    open.map(|engine| &*engine.name).collect()
}

fn sandbox_finding(lacking: &[String], open: &[&str], is_root: bool) -> Finding {
    let mut notes = Vec::new();
    if !lacking.is_empty() {
        notes.push(format!(
            "this system lacks {}; the rest is applied (see SECURITY.md)",
            lacking.join("; ")
        ));
    }
    if !open.is_empty() {
        let more = if is_root {
            ", and as root the service's memory and environment too"
        } else {
            ""
        };
        notes.push(format!(
            "switched off for {}: they can read the data folder{more} (see SECURITY.md)",
            open.join(", ")
        ));
    }
    if notes.is_empty() {
        return Finding::Good(
            "child processes are sandboxed (no capabilities, Landlock, seccomp)".to_owned(),
        );
    }
    Finding::Note(notes.join("; "))
}

#[cfg(test)]
mod tests {
    use kinora_store::{WorkerAnnouncement, WorkerPlace, WorkerState};

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
        let worker = WorkerAnnouncement {
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
        let found = quarantine_findings(&[LivingWorker {
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

#[cfg(test)]
mod slots_tests {
    use super::*;

    #[test]
    fn seats_that_never_work_are_noted() {
        let mut config = Config::defaults();
        let good = |found: Option<Finding>| matches!(found, Some(Finding::Good(_)));
        assert!(good(slots(&config)));
        let settings = "name = \"own\"\nkind = \"process\"\ncommand = [\"engine\"]\n\
                        devices = [\"0\", \"1\", \"2\"]\n\
                        describe = { fps = 16, features = { text_to_video = true } }";
        config.engines = vec![toml::from_str(settings).unwrap()];
        config.models[0].engine = "own".to_owned();
        assert!(good(slots(&config)));
        config.worker.slots = 1;
        let Some(Finding::Note(words)) = slots(&config) else {
            panic!("no note");
        };
        assert!(words.contains("own has 3 seats (0, 1, 2)"), "{words}");
        config.worker.enabled = false;
        assert!(slots(&config).is_none());
    }
}

#[cfg(test)]
mod sandbox_tests {
    use super::*;

    #[test]
    fn what_is_lacking_and_what_is_switched_off_is_named() {
        assert!(matches!(sandbox_finding(&[], &[], true), Finding::Good(_)));
        let Finding::Note(words) = sandbox_finding(
            &["Landlock is not enabled at boot".to_owned()],
            &["wan"],
            false,
        ) else {
            panic!("no note");
        };
        assert!(words.contains("Landlock is not enabled at boot"), "{words}");
        assert!(words.contains("switched off for wan"), "{words}");
        assert!(!words.contains("as root"), "{words}");
        let Finding::Note(words) = sandbox_finding(&[], &["wan"], true) else {
            panic!("no note");
        };
        assert!(words.contains("as root the service's memory"), "{words}");
    }

    #[test]
    fn an_engine_that_does_without_is_found() {
        let mut config = Config::defaults();
        let settings = "name = \"boxed\"\nkind = \"storyboard\"\nhost = { sandbox = false }";
        let command =
            "name = \"own\"\nkind = \"process\"\ncommand = [\"cat\"]\ndescribe = { features = {} }";
        let confined = command.replace("own", "confined") + "\nconfine = true";
        config.engines = [settings, command, &confined]
            .map(|settings| toml::from_str(settings).unwrap())
            .into();
        assert_eq!(open_engines(&config), ["boxed", "own"]);
    }
}
