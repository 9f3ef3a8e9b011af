//! The commands that use a service's API: `kinora generate`, `final`, `edit`, `tasks`, `files` and `mcp`. Standard
//! output carries only results; messages go to standard error, animations only to a terminal.

mod bar;
mod deliver;
pub(crate) mod files;
pub(crate) mod make;
pub(crate) mod mcp;
mod service;
pub(crate) mod tasks;
mod upload;

use crate::failure::Failure;
use crate::store_access;

/// Runs a command to its end.
pub(crate) fn run(command: impl Future<Output = Result<(), Failure>>) -> Result<(), Failure> {
    let runtime = store_access::runtime()?;
    let done = runtime.block_on(command);
    // A name lookup that hangs must not keep the process alive.
    runtime.shutdown_background();
    done
}
