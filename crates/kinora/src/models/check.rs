//! `kinora models check`: checks that engines can load their weights, that their devices are large
//! enough by arithmetic, and that servers would make films, before a task needs them.

use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::Duration;

use kinora_engine::{EngineOutput, FilmKind, FrameKind, ServerReport};
use kinora_engine_catalogue::{GpuInfo, MemoryNeeds, WeightPlacement, nvidia_gpus, select_gpus};

use crate::cli::HomeArgs;
use crate::config::{Config, EngineSettings, HostSettings};
use crate::failure::Failure;
use crate::output::print;
use crate::progress::StatusLine;
use crate::{catalog, engine_host, store_access, system, weights};

/// Time between two looks at the line that counts seconds.
const TICK: Duration = Duration::from_millis(200);

/// Checks the files of every engine that has some, and loads those that pass. Checks the servers of
/// the other engines.
pub(super) fn run(home: &HomeArgs, load: bool) -> Result<(), Failure> {
    let config = Config::load(home)?;
    let mut outcomes = Vec::new();
    for engine in &config.engines {
        outcomes.extend(check_engine(&config, engine, load)?);
    }
    if let Some(missing) = weights::missing_files(&config) {
        print(&format!("{}\n", missing.advice(home)));
    }
    let wrong = outcomes.iter().filter(|is_well| !**is_well).count();
    match (wrong, outcomes.len()) {
        (_, 0) => {
            print(
                "No engine of this configuration loads weights or has servers: there is nothing to check.\n",
            );
            Ok(())
        }
        (0, _) => Ok(()),
        (_, 1) => Err(Failure::new("the engine cannot be used, see above")),
        (wrong, all) => Err(Failure::new(format!(
            "{wrong} of {all} engines cannot be used, see above"
        ))),
    }
}

/// Whether an engine can be used; `None` if it has neither files nor servers.
pub(super) fn check_engine(
    config: &Config,
    engine: &EngineSettings,
    load: bool,
) -> Result<Option<bool>, Failure> {
    match (engine.settings.output(), engine.host) {
        (EngineOutput::Films(films), _) => check_servers(config, engine, films).map(Some),
        (EngineOutput::Frames(frames), Some(host)) => {
            let Some(found) = frames.check_files() else {
                return Ok(None);
            };
            print(&format!("{}\n{}", engine.name, indented(&found.text)));
            let (fits, text) = compare_memory(engine).unwrap_or((true, String::new()));
            print(&indented(&text));
            let is_well = found.is_good && (!load || try_load(engine, frames, host, config));
            if !found.is_good {
                print("  not loaded: files are missing or wrong\n");
            }
            Ok(Some(is_well && fits))
        }
        // The built-in engine reads no files and has no servers.
        (EngineOutput::Frames(_), None) => Ok(None),
    }
}

/// Checks every server of an engine, and prints the results. One usable server is enough.
fn check_servers(
    config: &Config,
    engine: &EngineSettings,
    films: &dyn FilmKind,
) -> Result<bool, Failure> {
    let connected = films.engine(&engine.name, engine_host::clock());
    let connected = connected.map_err(|error| engine.kind_failure(&error))?;
    let runtime = store_access::runtime()?;
    print(&format!("{}\n", engine.name));
    if let Some(summary) = connected.summary() {
        let lines = std::iter::once(&summary.offers).chain(&summary.advice);
        lines.for_each(|line| print(&format!("  {line}\n")));
    }
    let problems = runtime.block_on(catalog::unsendable(config, &engine.name, &*connected));
    let mut is_served = false;
    for problem in &problems {
        print(&format!("  {problem}\n"));
    }
    for ServerReport { server, refusal } in runtime.block_on(connected.ask_servers()) {
        match refusal {
            None => {
                is_served = true;
                print(&format!("  {server} would make films\n"));
            }
            Some(why) => print(&format!(
                "  {server} would not:\n{}",
                indented(&indented(&why))
            )),
        }
    }
    Ok(is_served && problems.is_empty())
}

/// Loads an engine in a separate process, if this machine can, and prints the result.
fn try_load(
    engine: &EngineSettings,
    frames: &dyn FrameKind,
    host: HostSettings,
    config: &Config,
) -> bool {
    if let Some(why) = frames.unavailable() {
        print(&format!("  not loaded: {why}\n"));
        return true;
    }
    let start = system::stopwatch();
    let loaded = engine_host::hosted(engine, frames, host, config).and_then(|hosted| {
        let opened = with_seconds(&format!("loading {} ...", engine.name), || {
            hosted.try_open()
        });
        opened.map_err(|error| Failure::new(error.to_string()))
    });
    match loaded {
        Ok(()) => {
            let seconds = start.elapsed().as_secs_f64();
            print(&format!("  loaded in {seconds:.1} s\n"));
            true
        }
        Err(failure) => {
            print(&format!("  cannot be loaded: {failure}\n"));
            false
        }
    }
}

fn indented(text: &str) -> String {
    text.lines().map(|line| format!("  {line}\n")).collect()
}

/// Does `work` beside a line on the terminal that counts its seconds.
fn with_seconds<T>(text: &str, work: impl FnOnce() -> T) -> T {
    let (line, start) = (StatusLine::new(), system::stopwatch());
    let (stop, stopped) = mpsc::channel::<()>();
    thread::scope(|scope| {
        scope.spawn(move || {
            while stopped.recv_timeout(TICK) == Err(RecvTimeoutError::Timeout) {
                line.show(&format!("{text} {} s", start.elapsed().as_secs()));
            }
            line.clear();
        });
        let done = work();
        drop(stop);
        done
    })
}

/// The devices that a process of CUDA sees.
const VISIBLE_DEVICES: &str = "CUDA_VISIBLE_DEVICES";

/// Whether the engine's devices are large enough, as far as that is known, with a text for the
/// operator; `None` if its configuration does not say what it needs.
fn compare_memory(engine: &EngineSettings) -> Option<(bool, String)> {
    let memory = engine.memory.as_ref()?;
    let placement = WeightPlacement::from_engine(&engine.definition.table);
    Some(comparison(
        memory,
        placement,
        &devices(engine),
        nvidia_gpus(),
    ))
}

/// The devices of an engine; empty if it finds them itself and sees all.
fn devices(engine: &EngineSettings) -> Vec<String> {
    let program = match engine.settings.output() {
        EngineOutput::Frames(frames) => frames.program(),
        EngineOutput::Films(_) => None,
    };
    let (named, mut environment) =
        program.map_or_else(Default::default, |one| (one.devices, one.environment));
    if !named.is_empty() {
        return named;
    }
    let own = environment.remove(VISIBLE_DEVICES);
    let visible = own.or_else(|| std::env::var(VISIBLE_DEVICES).ok());
    Vec::from_iter(visible.filter(|text| !text.is_empty()))
}

fn comparison(
    memory: &MemoryNeeds,
    placement: WeightPlacement,
    devices: &[String],
    gpus: Result<Vec<GpuInfo>, String>,
) -> (bool, String) {
    let needs = memory.required_gigabytes(placement);
    let needed = format!(
        "memory: at least {needs:.1} GB by arithmetic with {}",
        placement.settings()
    );
    let gpu = match smallest(gpus, devices) {
        Ok(gpu) => gpu,
        Err(why) => {
            let chosen = memory.device_gigabytes;
            let text = format!("{needed}, chosen for a GPU with {chosen} GB; not compared: {why}");
            return (true, text);
        }
    };
    let gigabytes = gpu.gigabytes();
    let compared = format!(
        "{needed}; device {} ({}) has {gigabytes:.1} GB",
        gpu.index, gpu.name
    );
    if memory.fits(placement, gigabytes) {
        return (true, compared);
    }
    let advice = match memory.proposal(placement, gigabytes) {
        Some(proposal) => format!(
            "set {}, which needs {:.1} GB",
            proposal.settings(),
            memory.required_gigabytes(proposal)
        ),
        None => "no offload makes it fit; use quantised weights or another device".to_owned(),
    };
    (false, format!("{compared}, which is too little: {advice}"))
}

/// The smallest of the devices: each process of the engine uses one alone.
fn smallest(gpus: Result<Vec<GpuInfo>, String>, devices: &[String]) -> Result<GpuInfo, String> {
    let gpus = gpus?;
    let used = select_gpus(&gpus, devices)
        .map_err(|device| format!("nvidia-smi lists no device {device}"))?;
    let smallest = used.into_iter().min_by_key(|gpu| gpu.memory_bytes);
    smallest
        .cloned()
        .ok_or_else(|| "nvidia-smi lists no device".to_owned())
}

#[cfg(test)]
mod tests {
    use kinora_engine_catalogue::GpuApi;

    use super::*;

    fn compare(
        settings: &str,
        devices: &[&str],
        gpus: Result<Vec<GpuInfo>, String>,
    ) -> (bool, String) {
        let memory: MemoryNeeds = toml::from_str(
            "device_gigabytes = 24\nparts_gigabytes = { transformer = 10.0, text_encoder = 11.4, vae = 2.8 }\n\
             layer_gigabytes = 2.1\ndecode_gigabytes = 1.8\ntiled_decode_gigabytes = 1.3",
        )
        .unwrap();
        let table = toml::from_str(&format!("settings = {{ {settings} }}")).unwrap();
        let devices: Vec<String> = devices.iter().map(ToString::to_string).collect();
        let placement = WeightPlacement::from_engine(&table);
        comparison(&memory, placement, &devices, gpus)
    }

    fn listed() -> Result<Vec<GpuInfo>, String> {
        let gpu = |index: &str, uuid: &str, name: &str, mebibytes: u64| GpuInfo {
            index: index.to_owned(),
            uuid: uuid.to_owned(),
            name: name.to_owned(),
            memory_bytes: mebibytes << 20,
            free_bytes: None,
            api: GpuApi::Vulkan,
        };
        Ok(vec![
            gpu("0", "GPU-8932f937-d72c", "NVIDIA GeForce RTX 4090", 24_564),
            gpu("1", "GPU-11111111-d72c", "NVIDIA GeForce RTX 3060", 8192),
        ])
    }

    #[test]
    fn a_device_that_is_too_small_gets_settings_that_fit() {
        let (fits, text) = compare("", &[], listed());
        assert!(!fits);
        for part in [
            "at least 26.0 GB by arithmetic with offload = \"none\", vae_tiling = false",
            "device 0 (NVIDIA GeForce RTX 4090) has 25.8 GB, which is too little",
            "set offload = \"model\", vae_tiling = false, which needs 11.4 GB",
        ] {
            assert!(text.contains(part), "{text}");
        }
        let (fits, text) = compare("offload = \"model\"", &["0"], listed());
        assert!(fits && text.ends_with("has 25.8 GB"), "{text}");
    }

    #[test]
    fn the_smallest_of_the_engine_s_devices_counts_by_number_or_uuid() {
        for devices in [&["0", "1"][..], &["0,1"], &["GPU-8932f937", "GPU-11111111"]] {
            let (fits, text) = compare("offload = \"model\"", devices, listed());
            assert!(
                !fits && text.contains("device 1 (NVIDIA GeForce RTX 3060)"),
                "{text}"
            );
            assert!(text.contains("offload_type = \"leaf_level\""), "{text}");
        }
    }

    #[test]
    fn what_was_not_compared_is_said() {
        for (devices, gpus, why) in [
            (
                &["0"][..],
                Err("nvidia-smi could not be started".to_owned()),
                "could not be started",
            ),
            (&["7"], listed(), "nvidia-smi lists no device 7"),
            (&["MIG-1"], listed(), "nvidia-smi lists no device MIG-1"),
            (&[], Ok(Vec::new()), "nvidia-smi lists no device"),
        ] {
            let (fits, text) = compare("", devices, gpus);
            assert!(fits && text.contains("not compared"), "{text}");
            assert!(
                text.contains(why) && text.contains("for a GPU with 24 GB"),
                "{text}"
            );
        }
    }
}
