//! The flags of the commands that copy a service's data: `kinora backup`, `restore`, `export` and
//! `import`.

use std::path::PathBuf;

use clap::{Args, ValueEnum};

use super::service::HomeArgs;
use crate::home_path::path;

/// Flags of `kinora backup`.
#[derive(Debug, Args)]
#[command(
    after_help = "Pass the same --data and --config as to `kinora serve`. For example, once a night:\n  \
                  kinora backup /backups/kinora-$(date +%F) --data /var/lib/kinora"
)]
pub(crate) struct BackupArgs {
    /// New folder for the backup; the folder that it is in must exist
    #[arg(value_name = "DEST", value_parser = path())]
    pub(crate) dest: PathBuf,
    /// How to back up results
    #[arg(long, value_name = "HOW", default_value = "link")]
    pub(crate) results: ResultsMode,
    /// Read every result and compare its SHA-256, linked files too
    #[arg(long)]
    pub(crate) verify: bool,
    /// Print JSON, with times in Unix seconds
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) home: HomeArgs,
}

/// Ways to back up results.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum ResultsMode {
    /// Use hard links if the file system allows, otherwise copies
    Link,
    /// Use copies
    Copy,
    /// Leave the results in place; the backup records their location
    Reference,
}

impl ResultsMode {
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Link => "link",
            Self::Copy => "copy",
            Self::Reference => "reference",
        }
    }
}

/// Flags of `kinora restore`.
#[derive(Debug, Args)]
#[command(
    after_help = "For example:\n  kinora restore /backups/kinora-2026-11-22 --data /var/lib/kinora-restored"
)]
pub(crate) struct RestoreArgs {
    /// Folder created by `kinora backup`
    #[arg(value_name = "SOURCE", value_parser = path())]
    pub(crate) source: PathBuf,
    /// Data folder to restore into; it must be empty or absent
    #[arg(long, value_name = "DIR", value_parser = path())]
    pub(crate) data: PathBuf,
}

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
