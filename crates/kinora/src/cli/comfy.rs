//! The flags of `kinora comfy`.

use std::path::PathBuf;

use clap::{Args, Subcommand};

use crate::tilde::path;

/// Arguments of `kinora comfy`.
#[derive(Debug, Args)]
#[command(
    subcommand_required = true,
    after_help = "For example:\n  kinora comfy import wan.json > kinora.toml"
)]
pub(crate) struct ComfyArgs {
    #[command(subcommand)]
    pub(crate) command: ComfyCommand,
}

/// The commands of `kinora comfy`.
#[derive(Debug, Subcommand)]
pub(crate) enum ComfyCommand {
    /// Propose the configuration of a workflow that ComfyUI exported with Workflow > Export (API).
    #[command(
        after_help = "Read what it proposes before you use it; `kinora models check` compares it with the server:\n  \
                      kinora comfy import wan.json > kinora.toml\n  \
                      kinora models check --config kinora.toml"
    )]
    Import(ComfyImportArgs),
}

/// Arguments of `kinora comfy import`.
#[derive(Debug, Args)]
pub(crate) struct ComfyImportArgs {
    /// The exported workflow
    #[arg(value_name = "FILE", value_parser = path())]
    pub(crate) workflow: PathBuf,
    /// The URL of the ComfyUI server
    #[arg(long, value_name = "URL", default_value = "http://127.0.0.1:8188")]
    pub(crate) server: String,
}
