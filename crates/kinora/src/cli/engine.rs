//! The flags of `kinora engine`.

use std::path::PathBuf;

use clap::{Args, Subcommand};
use kinora_contract::Size;

use crate::tilde::path;

/// Arguments of `kinora engine`.
#[derive(Debug, Args)]
#[command(
    subcommand_required = true,
    after_help = "For example:\n  kinora engine check -- python -m kinora_engine fade.py:Fade"
)]
pub(crate) struct EngineArgs {
    #[command(subcommand)]
    pub(crate) command: EngineCommand,
}

/// The commands of `kinora engine`.
#[derive(Debug, Subcommand)]
pub(crate) enum EngineCommand {
    /// Check that a command keeps to the engine protocol, and say what it breaks.
    #[command(
        after_help = "It makes several small clips, so start it with small settings:\n  \
                      kinora engine check -- python -m kinora_engine fade.py:Fade\n  \
                      kinora engine check --settings wan.json --device 0 --size 480x272 -- \\\n    \
                      /srv/venvs/wan/bin/python -m kinora_engine kinora_engine.diffusers:Pipeline"
    )]
    Check(EngineCheckArgs),
}

/// Arguments of `kinora engine check`.
#[derive(Debug, Args)]
pub(crate) struct EngineCheckArgs {
    /// A JSON file with the engine's settings
    #[arg(long, value_name = "FILE", value_parser = path())]
    pub(crate) settings: Option<PathBuf>,
    /// The device for the command, as CUDA_VISIBLE_DEVICES: a number as nvidia-smi has it, or a UUID
    #[arg(long)]
    pub(crate) device: Option<String>,
    /// The size of the clips, rounded up to the engine's grid
    #[arg(long, value_name = "WIDTHxHEIGHT", default_value = "256x256")]
    pub(crate) size: Size,
    /// The length of the clips in seconds
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=15))]
    pub(crate) seconds: u32,
    /// How long the engine may take to open, in seconds
    #[arg(long, default_value_t = 600, value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) open_seconds: u32,
    /// How long a job may make no progress, in seconds, as `host.silence_seconds` of the service
    #[arg(long, default_value_t = 600, value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) silence_seconds: u32,
    /// The command and its arguments
    #[arg(last = true, required = true, value_name = "COMMAND")]
    pub(crate) command: Vec<String>,
}
