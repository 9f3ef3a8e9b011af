//! `kinora models`: whether the engines that load weights can, before a first task finds out.

use std::io::{IsTerminal, Write};
use std::path::Path;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::Duration;

use crate::cli::{ModelsArgs, ModelsCommand, PlaceArgs};
use crate::config::{Config, Diffusion, Engine};
use crate::engine_host;
use crate::failure::Failure;
use crate::{print, system};

/// Runs a command about models.
pub(crate) fn run(args: &ModelsArgs) -> Result<(), Failure> {
    let ModelsCommand::Check { place, no_load } = &args.command;
    check(place, !no_load)
}

/// Looks into the files of every engine that has some, and loads those that look well.
fn check(place: &PlaceArgs, load: bool) -> Result<(), Failure> {
    let config = Config::load(place)?;
    let engines: Vec<&Diffusion> = config
        .engines
        .iter()
        .filter_map(|engine| match engine {
            Engine::Diffusion(diffusion) => Some(&**diffusion),
            Engine::Remote(_) | Engine::Storyboard(_) => None,
        })
        .collect();
    if engines.is_empty() {
        print("No engine of this configuration loads weights: there is nothing to check.\n");
        return Ok(());
    }
    let wrong = engines
        .iter()
        .filter(|engine| !is_well(engine, &config.data, load))
        .count();
    match (wrong, engines.len()) {
        (0, _) => Ok(()),
        (_, 1) => Err(Failure::new("the engine cannot be used, see above")),
        (wrong, all) => Err(Failure::new(format!(
            "{wrong} of {all} engines cannot be used, see above"
        ))),
    }
}

/// Looks into one, prints what was found, and tells whether it can be used.
fn is_well(settings: &Diffusion, data: &Path, load: bool) -> bool {
    let report = kinora_diffusion::check(&settings.model);
    print(&format!(
        "{}\n{}",
        settings.name,
        indented(&report.to_string())
    ));
    if !report.is_good() {
        print("  not loaded, since files are missing or wrong\n");
        return false;
    }
    if !load {
        return true;
    }
    if !cfg!(feature = "diffusion") {
        print(&format!("  not loaded: {}\n", engine_host::NOT_BUILT_IN));
        return true;
    }
    let start = system::stopwatch();
    let loaded = engine_host::diffusion(settings, data).and_then(|engine| {
        let _shown = Waiting::show(&settings.name);
        engine
            .try_open()
            .map_err(|error| Failure::new(error.to_string()))
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

/// A line on the terminal that counts the seconds, until it is dropped.
struct Waiting {
    stop: Option<mpsc::Sender<()>>,
    thread: Option<thread::JoinHandle<()>>,
}

impl Waiting {
    fn show(name: &str) -> Option<Self> {
        if !std::io::stderr().is_terminal() {
            return None;
        }
        let (stop, stopped) = mpsc::channel();
        let name = name.to_owned();
        let thread = thread::spawn(move || {
            let start = system::stopwatch();
            while stopped.recv_timeout(Duration::from_millis(200)) == Err(RecvTimeoutError::Timeout)
            {
                let seconds = start.elapsed().as_secs();
                let mut line = std::io::stderr().lock();
                let _ = write!(line, "\r  loading {name} ... {seconds} s ");
            }
            let _ = write!(std::io::stderr().lock(), "\r\x1b[K");
        });
        Some(Self {
            stop: Some(stop),
            thread: Some(thread),
        })
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        self.stop = None;
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}
