//! The flags of `kinora export` and `kinora import`.

use std::path::PathBuf;

use clap::{Args, ValueEnum};

use super::home::HomeArgs;
use crate::tilde::path;

/// Flags of `kinora export`.
#[derive(Debug, Args)]
#[command(
    after_help = "Stop the service first, so that nothing is accepted that stays behind. Give the command the --data and \
                  --config that you give `kinora serve`. For example, from SQLite to PostgreSQL and S3:\n  \
                  kinora export /backups/kinora-move --data /var/lib/kinora\n  \
                  kinora import /backups/kinora-move --config new.toml\n\n\
                  An export that was interrupted goes on when the command is run again."
)]
pub(crate) struct ExportArgs {
    /// New folder for the export; the folder that it is in must exist
    #[arg(value_name = "DEST", value_parser = path())]
    pub(crate) dest: PathBuf,
    /// How to export results
    #[arg(long, value_name = "HOW", default_value = "copy")]
    pub(crate) results: MovedResults,
    /// Export although tasks or results are missing or damaged, and omit those
    #[arg(long)]
    pub(crate) accept_loss: bool,
    /// Print JSON, with times in Unix seconds
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) home: HomeArgs,
}

/// Ways to export results.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum MovedResults {
    /// Copy the results into the export
    Copy,
    /// Leave the results in place; the new store uses them there
    Reference,
}

/// Flags of `kinora import`.
#[derive(Debug, Args)]
#[command(
    after_help = "The store must be empty; `kinora migrate` makes one in PostgreSQL. For example:\n  \
                  kinora import /backups/kinora-move --config new.toml\n\n\
                  An import that was interrupted goes on when the command is run again; until it has ended, nothing \
                  else opens the store."
)]
pub(crate) struct ImportArgs {
    /// Folder created by `kinora export`
    #[arg(value_name = "SOURCE", value_parser = path())]
    pub(crate) source: PathBuf,
    /// Print JSON, with times in Unix seconds
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) home: HomeArgs,
}
