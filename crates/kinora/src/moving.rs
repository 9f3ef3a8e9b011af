//! `kinora export` and `kinora import`: move a service to a task store and result store of any
//! kind, through a folder. Both can be interrupted and repeated, and both verify everything they
//! write.

mod crowd;
pub(crate) mod export;
pub(crate) mod import;
mod manifest;
mod parts;
mod taking;
mod verify;

use tokio::runtime::Runtime;

use crate::failure::Failure;

/// The runtime of one command.
fn runtime() -> Result<Runtime, Failure> {
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| Failure::because("The command could not start", error))
}
