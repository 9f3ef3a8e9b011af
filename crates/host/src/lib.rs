//! Engines in processes of their own. Native code that breaks, leaks or hangs there costs one attempt
//! of one task, and never the service. [`HostedEngine`] is the service's end: an engine like any
//! other, which starts the process, keeps it, watches it, and kills it; [`serve`] is the other end.
//! They talk over the process's standard input and output, in messages with a length before them.
//! Films are read in such processes too: [`HostedFilms`] and [`serve_film`]. Every process locks itself
//! in before it works; see [`Confinement`]. What an engine is, or what a task is, is not known here.

#![forbid(unsafe_code)]

mod backoff;
mod film_host;
mod film_message;
mod film_reader;
mod footage;
mod host;
mod hosted;
mod materials;
mod memory;
mod message;
mod process;
mod run;
mod sandbox;
mod seats;
mod tail;
mod wire;

pub use film_host::serve_film;
pub use film_reader::{FilmOptions, HostedFilms};
pub use host::serve;
pub use hosted::{HostOptions, HostedEngine};
pub use sandbox::{Confinement, Role, rehearse};
