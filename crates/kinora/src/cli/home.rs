//! The flags that lead to a service's data.

use std::path::PathBuf;

use clap::Args;

/// The location of a service's data; the same for every command.
#[derive(Clone, Debug, Default, Args)]
pub(crate) struct PlaceArgs {
    /// Folder for tasks, results and secrets [default: ./kinora-data]
    #[arg(long, value_name = "DIR")]
    pub(crate) data: Option<PathBuf>,
    /// Configuration file (see `kinora config`); also as KINORA_CONFIG
    #[arg(long, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,
}
