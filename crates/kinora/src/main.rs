//! The binary: command line, configuration, composition. It holds no logic of its own; read
//! `compose.rs` to see how the crates are put together.

#![forbid(unsafe_code)]

mod backup;
mod beside;
mod catalog;
mod cli;
mod client;
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
mod manifest_file;
mod manual;
mod memory;
mod metrics;
mod migrate;
mod models;
mod monitors;
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
mod top;
mod traces;
mod usage;
mod webhooks;
mod welcome;
mod worker;
mod workers;

use std::process::ExitCode;

use clap::Parser;
use cli::{Cli, Command};
use output::{print, say};

/// Written by a test of the style rules, from the packages that the binary is built from.
const LICENCES: &str = include_str!("../licences.txt");

/// Requests are many small allocations on many threads; frames are few large ones. Both are
/// cheaper here than with the system's allocator.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    let cli = Cli::parse();
    if !cli.command.makes_open_files() {
        folder::make_private_files();
    }
    let done = match cli.command {
        Command::Serve(args) => serve::run(&args),
        Command::Worker(args) => worker::run(&args),
        Command::Workers(args) => workers::run(&args),
        Command::Top(args) => top::run(&args),
        Command::Usage(args) => usage::run(&args),
        Command::Migrate(args) => migrate::run(&args),
        Command::Generate(args) => client::generate(&args),
        Command::Final(args) => client::render_final(&args),
        Command::Edit(args) => client::edit(&args),
        Command::Tasks(args) => client::tasks(&args),
        Command::Keys(args) => keys::run(&args),
        Command::Webhooks(args) => webhooks::run(&args),
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
        Command::Completions(args) => manual::completions(&args),
        Command::Man(args) => manual::man(&args),
        Command::EngineHost => engine_host::run(),
        Command::FilmHost => engine_host::run_film(),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            // Not by the log: there may be none yet.
            say(&failure.to_string());
            failure.code()
        }
    }
}
