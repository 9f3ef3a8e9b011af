//! `kinora models check`: checks that engines can load their weights, and that servers would make films, before a task
//! needs them.

use std::io::{IsTerminal, Write};
use std::path::Path;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::Duration;

use kinora_engine::{FilmKind, FrameKind, Output, ServerReport};

use crate::cli::HomeArgs;
use crate::config::{Config, Engine, Host};
use crate::engine_host;
use crate::failure::Failure;
use crate::output::print;
use crate::{system, weights};

use super::memory;

/// Looks into the files of every engine that has some, and loads those that look well. Asks the servers of the others.
pub(super) fn run(home: &HomeArgs, load: bool) -> Result<(), Failure> {
    let config = Config::load(home)?;
    let mut outcomes = Vec::new();
    for engine in &config.engines {
        match (engine.settings.output(), engine.host) {
            (Output::Films(films), _) => outcomes.push(serves(engine, films)?),
            (Output::Frames(frames), Some(host)) => {
                let Some(found) = frames.check_files() else {
                    continue;
                };
                print(&format!("{}\n{}", engine.name, indented(&found.text)));
                let compared = memory::compare(engine);
                if let Some(compared) = &compared {
                    print(&indented(&compared.text));
                }
                let fits = compared.is_none_or(|compared| compared.fits);
                let is_well = found.is_good && (!load || loads(engine, frames, host, &config.data));
                if !found.is_good {
                    print("  not loaded: files are missing or wrong\n");
                }
                outcomes.push(is_well && fits);
            }
            (Output::Frames(_), None) => {}
        }
    }
    if let Some(missing) = weights::missing(&config) {
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

/// Asks every server of an engine whether it would make films, and prints the answers. One that would is enough.
fn serves(engine: &Engine, films: &dyn FilmKind) -> Result<bool, Failure> {
    let connected = films.engine(&engine.name, engine_host::clock());
    let connected = connected.map_err(|error| engine.refused(&error))?;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| Failure::new(error.to_string()))?;
    print(&format!("{}\n", engine.name));
    let mut is_served = false;
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
    Ok(is_served)
}

/// Loads an engine in a separate process, if this executable can, and prints the result.
fn loads(engine: &Engine, frames: &dyn FrameKind, host: Host, data: &Path) -> bool {
    if let Some(why) = frames.not_built_in() {
        print(&format!("  not loaded: {why}\n"));
        return true;
    }
    let start = system::stopwatch();
    let loaded = engine_host::hosted(engine, frames, host, data).and_then(|hosted| {
        let _shown = Waiting::show(&engine.name);
        hosted
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

/// A line on the terminal that counts the seconds until it is dropped.
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
