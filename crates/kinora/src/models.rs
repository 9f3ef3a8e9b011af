//! `kinora models`: the weights of configured models, from their publishers to the disk.

mod advice;
mod board;
mod check;
mod list;
mod memory;
mod pull;
mod remove;
mod size;

use crate::cli::{ModelsArgs, ModelsCommand};
use crate::failure::Failure;

/// Runs a command about models.
pub(crate) fn run(args: &ModelsArgs) -> Result<(), Failure> {
    match &args.command {
        ModelsCommand::Pull(args) => pull::run(args),
        ModelsCommand::List { json, home } => list::run(home, *json),
        ModelsCommand::Remove(args) => remove::run(args),
        ModelsCommand::Check { home, no_load } => check::run(home, !no_load),
    }
}
