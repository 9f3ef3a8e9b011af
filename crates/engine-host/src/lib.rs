//! Runs engines in separate processes. Native code that crashes, leaks or hangs costs one attempt
//! of one task, never the service. [`HostedEngine`] is the service's side: an engine like any
//! other, which starts, reuses, watches and kills the process; [`serve`] is the other side. They
//! exchange length-prefixed messages over the process's standard input and output, the engine protocol of
//! `docs/engine-protocol.md`, which any command may speak. Films are read
//! in such processes too: [`HostedFilms`] and [`serve_film`]. Every process confines itself before
//! it works; see [`Confinement`]. This crate knows no concrete engine and no tasks.

#![forbid(unsafe_code)]

mod capabilities;
mod command;
mod family;
mod film_host;
mod film_message;
mod film_reader;
mod host;
mod hosted;
mod materials;
mod message;
mod process;
mod process_kind;
mod protocol;
mod run;
mod sandbox;
mod seats;
mod wire;

pub use command::{CommandError, run_command};
pub use family::adopt_orphans;
pub use film_host::serve_film;
pub use film_reader::{FilmOptions, HostedFilms};
pub use host::serve;
pub use hosted::{HostOptions, HostedEngine};
pub use process::make_scratch;
pub use process_kind::{ProcessKind, PromisedPlanner, finds_program};
pub use protocol::{EngineIntroduction, OpenRequest, ProtocolVersion};
pub use run::ProcessMisconduct;
pub use sandbox::{Confinement, SandboxRole, confine_command, rehearse, restrict_environment};
