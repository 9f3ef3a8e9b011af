//! `kinora export` and `kinora import`: a service from one store and result store to others of any kind, by way of a
//! folder. Both can be interrupted and repeated, and both verify what they have written.

mod crowd;
pub(crate) mod export;
pub(crate) mod import;
mod manifest;
mod parts;
mod taking;
mod verify;

use tokio::runtime::Runtime;

use crate::failure::Failure;

/// For one command.
fn runtime() -> Result<Runtime, Failure> {
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| Failure::because("The command could not start", error))
}
