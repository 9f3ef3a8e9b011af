//! Checks everything around the data: the clock, the address, the models, and whether their engines
//! can make a frame.

use std::io::ErrorKind;
use std::net::TcpListener;
use std::path::Path;
use std::time::{Duration, UNIX_EPOCH};

use kinora_contract::{Clock, FrameSize, Inputs, Seconds, Size, VideoSpec};
use kinora_engine::{
    Control, Engine as Opened, EngineError, FilmEngine, FrameKind, Job, Materials, Output,
    ServerReport, Sink,
};
use kinora_worker::Maker;

use super::finding::Finding;
use crate::config::{self, Config, Engine, ListenAddress};
use crate::system::{self, SystemClock};
use crate::{catalog, compose, serve};

/// Files further ahead than this were written with another clock.
const AHEAD_MS_MAX: u64 = 5 * 60 * 1000;

pub(super) fn clock(data: &Path) -> Finding {
    let now_ms = SystemClock.now_ms();
    if let Some(warning) = system::clock_warning() {
        return Finding::Bad(warning.to_owned());
    }
    let written = std::fs::metadata(data.join("kinora.db-wal"))
        .or_else(|_| std::fs::metadata(data.join("kinora.db")))
        .and_then(|found| found.modified());
    let written_ms = written
        .ok()
        .and_then(|time| time.duration_since(UNIX_EPOCH).ok())
        .map_or(0, |since| {
            u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
        });
    if written_ms > now_ms + AHEAD_MS_MAX {
        let minutes = (written_ms - now_ms) / 60_000;
        return Finding::Note(format!(
            "{minutes} min behind the last change of the data: expiry is delayed by that much"
        ));
    }
    Finding::Good("plausible".to_owned())
}

pub(super) fn listen(wanted: &ListenAddress) -> Finding {
    let address = match wanted.resolve() {
        Ok(address) => address,
        Err(failure) => return Finding::Bad(failure.to_string()),
    };
    match TcpListener::bind(address) {
        Ok(_) => Finding::Good(format!("{address} is free")),
        Err(error) if error.kind() == ErrorKind::AddrInUse => Finding::Note(format!(
            "{address} is in use: the service is already running, or another program listens there"
        )),
        Err(error) => Finding::Bad(format!(
            "cannot listen on {address}: {error}; name another address with --listen"
        )),
    }
}

pub(super) fn base_url(config: &Config) -> Finding {
    if let Err(failure) = config::check_base_url(&config.base_url) {
        return Finding::Bad(failure.to_string());
    }
    let Ok(address) = config.listen.resolve() else {
        return Finding::Note("unknown, like the listen address".to_owned());
    };
    let base_url = serve::base_url(config, address);
    if !config.base_url.is_empty() {
        return Finding::Good(format!("begin with {base_url}"));
    }
    let reach = if config.listen.is_unspecified() {
        "which other machines cannot reach"
    } else {
        "which only this machine may reach"
    };
    Finding::Note(format!(
        "begin with {base_url}, {reach}; set --base-url or base_url to the URL that clients use"
    ))
}

/// Problems with the networks that references may come from.
pub(super) fn references(config: &Config) -> Option<Finding> {
    let allowed = compose::allow_networks(config).err();
    let failure = allowed.or_else(|| compose::deny_networks(config).err())?;
    Some(Finding::Bad(failure.to_string()))
}

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
        Err(failure) => Finding::Bad(failure.to_string()),
    }
}

/// Makes one frame with every engine that opens, checks its files, or asks its servers. The check
/// of the models reports engines that do not open.
pub(super) fn engines(config: &Config) -> Vec<(&'static str, Finding)> {
    let engines = config.serving_engines();
    let findings = engines.flat_map(|engine| engine_of(&engine, &config.data));
    findings.map(|finding| ("engine", finding)).collect()
}

fn engine_of(engine: &Engine, data: &Path) -> Vec<Finding> {
    if let Output::Frames(frames) = engine.settings.output()
        && let Some(found) = weights(&engine.name, frames)
    {
        return vec![found];
    }
    match catalog::maker(engine, data) {
        Ok(Maker::Frames(opened)) => vec![first_frame(&engine.name, &*opened)],
        Ok(Maker::Film(films)) => upstreams(&engine.name, &*films),
        Err(_) => Vec::new(),
    }
}

/// Asks each server of an engine whether it would serve us.
fn upstreams(name: &str, engine: &dyn FilmEngine) -> Vec<Finding> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build();
    let asked = match runtime {
        Ok(runtime) => runtime.block_on(engine.ask_servers()),
        Err(error) => return vec![Finding::Bad(error.to_string())],
    };
    let told = asked
        .into_iter()
        .map(|ServerReport { server, refusal }| match refusal {
            None => Finding::Good(format!("{name}: {server} answers")),
            Some(error) => Finding::Bad(format!("{name}: {server} does not serve us: {error}")),
        });
    told.collect()
}

/// Checks an engine's files, if it has any; `kinora models check` loads them.
fn weights(name: &str, frames: &dyn FrameKind) -> Option<Finding> {
    if let Some(why) = frames.not_built_in() {
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
    let spec = trial(name);
    let materials = Materials::default();
    let begun = system::stopwatch();
    let mut sink = OneFrame::default();
    let made = engine.plan(&spec, &materials).and_then(|clip| {
        let job = Job {
            spec: &spec,
            materials: &materials,
            clip,
        };
        let control = Control::default();
        sink.control = Some(control.clone());
        engine.generate(&job, &mut sink, &control)
    });
    match (sink.frames, made) {
        (0, Err(error)) => Finding::Bad(format!("{name} makes no frame: {error}")),
        (0, Ok(())) => Finding::Bad(format!("{name} makes no frame")),
        _ => Finding::Good(format!(
            "{name} made a frame after {} ms",
            millis(begun.elapsed())
        )),
    }
}

fn millis(time: Duration) -> u128 {
    time.as_millis()
}

/// The smallest possible clip.
fn trial(model: &str) -> VideoSpec {
    VideoSpec {
        version: kinora_contract::SPEC_VERSION,
        model: model.to_owned(),
        prompt: "A lighthouse".to_owned(),
        negative_prompt: None,
        seconds: Seconds::Fixed(2),
        frame: FrameSize::Fixed(Size::new(480, 480)),
        seed: 1,
        generate_audio: false,
        inputs: Inputs::Text,
        draft: false,
        final_of: None,
        edit: None,
    }
}

/// Accepts one frame, then stops.
#[derive(Default)]
struct OneFrame {
    frames: u32,
    control: Option<Control>,
}

impl Sink for OneFrame {
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
