//! The flags that lead to the home of a service: its data and its configuration.

use std::path::PathBuf;

use clap::Args;

use crate::tilde::path;

/// Where the service is at home; the same for every command.
#[derive(Clone, Debug, Default, Args)]
pub(crate) struct HomeArgs {
    /// Folder for tasks, results and secrets [default: ./kinora-data]
    #[arg(long, value_name = "DIR", value_parser = path())]
    pub(crate) data: Option<PathBuf>,
    /// Configuration file (see `kinora config`); also as KINORA_CONFIG
    #[arg(long, value_name = "FILE", value_parser = path())]
    pub(crate) config: Option<PathBuf>,
}
