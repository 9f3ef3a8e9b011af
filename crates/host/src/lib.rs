//! Engines in processes of their own. Native code that breaks, leaks or hangs there costs one attempt
//! of one task, and never the service. [`HostedEngine`] is the service's end: an engine like any
//! other, which starts the process, keeps it, watches it, and kills it; [`serve`] is the other end.
//! They talk over the process's standard input and output, in messages with a length before them.
//! What an engine is, or what a task is, is not known here.

mod backoff;
mod footage;
mod host;
mod hosted;
mod materials;
mod memory;
mod message;
mod process;
mod run;
mod seats;
mod tail;

pub use host::serve;
pub use hosted::{HostOptions, HostedEngine};
