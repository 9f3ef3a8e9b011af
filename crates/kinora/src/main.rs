//! The binary: command line, configuration, composition. It holds no logic of its own; read
//! `compose.rs` to see how the crates are put together.

#![forbid(unsafe_code)]

mod backup;
mod catalog;
mod cli;
mod compose;
mod config;
mod count;
mod damage;
mod date;
mod descriptors;
mod doctor;
mod engine_host;
mod failure;
#[cfg(feature = "test-faults")]
mod faults;
mod folder;
mod hint;
mod keys;
mod kinds;
mod logging;
mod memory;
mod migrate;
mod models;
mod moving;
mod orphans;
mod output;
mod overlay;
#[cfg(feature = "test-faults")]
mod paced;
mod restore;
mod serve;
mod signing;
mod stop;
mod system;
mod table;
mod welcome;
mod worker;
mod workers;

use std::process::ExitCode;

use clap::Parser;
use cli::{Cli, Command};
use failure::Failure;
use output::print;

/// Written by a test of the style rules, from the packages that the binary is built from.
const LICENCES: &str = include_str!("../licences.txt");

/// Requests are many small allocations on many threads; frames are few large ones. Both are
/// cheaper here than with the system's allocator.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    folder::make_private_files();
    let cli = Cli::parse();
    let done = match cli.command {
        Command::Serve(args) => serve::run(&args),
        Command::Worker(args) => worker::run(&args),
        Command::Workers(args) => workers::run(&args),
        Command::Migrate(args) => migrate::run(&args),
        Command::Keys(args) => keys::run(&args),
        Command::Models(args) => models::run(&args),
        Command::Doctor(args) => doctor::run(&args),
        Command::Backup(args) => backup::run(&args),
        Command::Restore(args) => restore::run(&args),
        Command::Export(args) => moving::export::run(&args),
        Command::Import(args) => moving::import::run(&args),
        Command::Orphans(args) => orphans::run(&args),
        Command::Config => {
            print(config::DEFAULT_FILE);
            Ok(())
        }
        Command::Openapi => serve::print_openapi(),
        Command::Licences => {
            print(LICENCES);
            Ok(())
        }
        Command::EngineHost => engine_host::run(),
        Command::FilmHost => engine_host::run_film(),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            complain(&failure);
            ExitCode::FAILURE
        }
    }
}

#[expect(
    clippy::print_stderr,
    reason = "the process ends; there may be no log yet"
)]
fn complain(failure: &Failure) {
    eprintln!("kinora: {failure}");
}
