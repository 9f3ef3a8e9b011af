//! The commands that use a service's API: `kinora generate`, `final`, `edit`, `tasks`, `files` and `mcp`. Standard
//! output carries only results; messages go to standard error, animations only to a terminal.

mod bar;
mod deliver;
mod files;
mod make;
mod mcp;
mod service;
mod tasks;
mod upload;

use crate::cli::{EditArgs, FilesArgs, FinalArgs, GenerateArgs, TasksArgs};
use crate::failure::Failure;
use crate::store_access;

/// Makes a video.
pub(crate) fn generate(args: &GenerateArgs) -> Result<(), Failure> {
    run(make::generate(args))
}

/// Renders a draft in full.
pub(crate) fn render_final(args: &FinalArgs) -> Result<(), Failure> {
    run(make::render_final(args))
}

/// Edits a video.
pub(crate) fn edit(args: &EditArgs) -> Result<(), Failure> {
    run(make::edit(args))
}

/// Lists, shows, follows, saves, cancels or deletes tasks.
pub(crate) fn tasks(args: &TasksArgs) -> Result<(), Failure> {
    run(tasks::run(&args.command))
}

/// Lists or deletes uploaded files.
pub(crate) fn files(args: &FilesArgs) -> Result<(), Failure> {
    run(files::run(&args.command))
}

/// Offers the service's videos as tools of the Model Context Protocol.
pub(crate) fn mcp() -> Result<(), Failure> {
    run(mcp::serve())
}

fn run(command: impl Future<Output = Result<(), Failure>>) -> Result<(), Failure> {
    let runtime = store_access::runtime()?;
    let done = runtime.block_on(command);
    // A name lookup that hangs must not keep the process alive.
    runtime.shutdown_background();
    done
}
