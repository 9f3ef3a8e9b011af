//! `kinora models`: checks that engines can load their weights, before a task needs them.

use std::io::{IsTerminal, Write};
use std::path::Path;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::Duration;

use kinora_engine::{FrameKind, Output};

use crate::cli::{HomeArgs, ModelsArgs, ModelsCommand};
use crate::config::{Config, Engine, Host};
use crate::engine_host;
use crate::failure::Failure;
use crate::output::print;
use crate::system;

/// Runs a command about models.
pub(crate) fn run(args: &ModelsArgs) -> Result<(), Failure> {
    let ModelsCommand::Check { home, no_load } = &args.command;
    check(home, !no_load)
}

/// Looks into the files of every engine that has some, and loads those that look well.
fn check(home: &HomeArgs, load: bool) -> Result<(), Failure> {
    let config = Config::load(home)?;
    let mut outcomes = Vec::new();
    for engine in &config.engines {
        if let (Output::Frames(frames), Some(host)) = (engine.settings.output(), engine.host)
            && let Some(found) = frames.check_files()
        {
            print(&format!("{}\n{}", engine.name, indented(&found.text)));
            let is_well = found.is_good && (!load || loads(engine, frames, host, &config.data));
            if !found.is_good {
                print("  not loaded: files are missing or wrong\n");
            }
            outcomes.push(is_well);
        }
    }
    let wrong = outcomes.iter().filter(|is_well| !**is_well).count();
    match (wrong, outcomes.len()) {
        (_, 0) => {
            print("No engine of this configuration loads weights: there is nothing to check.\n");
            Ok(())
        }
        (0, _) => Ok(()),
        (_, 1) => Err(Failure::new("the engine cannot be used, see above")),
        (wrong, all) => Err(Failure::new(format!(
            "{wrong} of {all} engines cannot be used, see above"
        ))),
    }
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
