//! The flags of the commands about models and engines: `kinora models`, `engine` and `comfy`. The
//! commands check their values.

use std::path::PathBuf;

use clap::{Args, Subcommand};
use kinora_contract::Size;

use super::client::{Reference, reference};
use super::service::HomeArgs;
use crate::home_path::path;

/// Flags of `kinora models`.
#[derive(Debug, Args)]
#[command(
    after_help = "Pass the same --config as to `kinora serve`. For example:\n  \
                  kinora models pull wan2.1-t2v-1.3b --config models/wan2.1-t2v-1.3b.toml\n  \
                  kinora models check --config models/wan2.1-t2v-1.3b.toml"
)]
pub(crate) struct ModelsArgs {
    #[command(subcommand)]
    pub(crate) command: ModelsCommand,
}

/// The commands of `kinora models`.
#[derive(Debug, Subcommand)]
pub(crate) enum ModelsCommand {
    /// Download the missing files of models from their publishers, and check them.
    #[command(
        after_help = "The configuration says where files come from ([[engines.files]]), and has the mirror and the token \
                      ([weights]). A download that was interrupted goes on where it stopped. For example:\n  \
                      kinora models pull wan2.1-t2v-1.3b --config models/wan2.1-t2v-1.3b.toml\n\n\
                      From a mirror with the publishers' paths:\n  \
                      KINORA_WEIGHTS_MIRROR=https://mirror.example.com kinora models pull wan2.1-t2v-1.3b"
    )]
    Pull(NamedArgs),
    /// List the configured models with their engines, and which of their files are present.
    #[command(
        after_help = "It looks at lengths and does not read the files; `kinora models check` does. For example:\n  \
                      kinora models list --config models/wan2.1-t2v-1.3b.toml\n  \
                      kinora models list --json | jq '.[] | select(.state == \"missing\") | .model'"
    )]
    List {
        /// Print JSON
        #[arg(long)]
        json: bool,
        #[command(flatten)]
        home: HomeArgs,
    },
    /// Remove the downloaded files of models that no other configured model uses.
    #[command(
        after_help = "Files without a source in the configuration stay. For example:\n  \
                      kinora models remove wan2.1-t2v-1.3b --config models/wan2.1-t2v-1.3b.toml"
    )]
    Remove(NamedArgs),
    /// Report which files of each engine are missing, truncated or for another model, and load the
    /// rest; ask the servers of other engines whether they would make films.
    #[command(
        after_help = "For example:\n  kinora models check --config models/wan2.1-t2v-1.3b.toml\n  \
                      kinora models check --no-load"
    )]
    Check {
        /// Check only the files: quick, and needs no memory
        #[arg(long)]
        no_load: bool,
        #[command(flatten)]
        home: HomeArgs,
    },
}

/// Flags of commands that work on the files of named models.
#[derive(Debug, Args)]
pub(crate) struct NamedArgs {
    /// Models, by id or alias
    #[arg(value_name = "NAME", required = true)]
    pub(crate) names: Vec<String>,
    #[command(flatten)]
    pub(crate) home: HomeArgs,
}

/// Arguments of `kinora engine`.
#[derive(Debug, Args)]
#[command(
    subcommand_required = true,
    after_help = "For example:\n  kinora engine check -- python -m kinora_engine fade.py:Fade\n  \
                  kinora engine try seedance-lite \"A red balloon drifts over the sea\" --config kinora.toml"
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
    /// Make one video at the servers of a model's engine and show each request and answer, without
    /// a service and a store.
    #[command(
        after_help = "For engines of the kind \"remote\". It shows no keys, asks before it spends money, and says whether the video \
                      fits the model's card. For example:\n  \
                      kinora engine try seedance-lite \"A red balloon drifts over the sea\" --config kinora.toml\n  \
                      kinora engine try seedance-lite \"It turns its head\" --first-frame fox.jpg --config kinora.toml\n\n\
                      Ctrl-C cancels the job at its server. Exit codes: 0 the service would serve this video, 1 it would not, \
                      130 interrupted."
    )]
    Try(Box<EngineTryArgs>),
}

/// Arguments of `kinora engine try`.
#[derive(Debug, Args)]
pub(crate) struct EngineTryArgs {
    /// The model, by id or alias
    #[arg(value_name = "MODEL")]
    pub(crate) model: String,
    /// Description of the video
    pub(crate) prompt: String,
    /// Picture that the video starts with: a file or a URL
    #[arg(long, value_name = "FILE|URL", value_parser = reference)]
    pub(crate) first_frame: Option<Reference>,
    /// Picture that the video ends with
    #[arg(long, value_name = "FILE|URL", value_parser = reference, requires = "first_frame")]
    pub(crate) last_frame: Option<Reference>,
    /// Picture to show; repeat for more
    #[arg(long, value_name = "FILE|URL", value_parser = reference)]
    pub(crate) image: Vec<Reference>,
    /// Sound to hear; repeat for more
    #[arg(long, value_name = "FILE|URL", value_parser = reference)]
    pub(crate) audio: Vec<Reference>,
    /// One of the model's sizes, such as 1280x720 [default: the model's]
    #[arg(long, value_name = "WxH")]
    pub(crate) size: Option<String>,
    /// Length in seconds [default: the model's]
    #[arg(long)]
    pub(crate) seconds: Option<u32>,
    /// Seed [default: a random one]
    #[arg(long)]
    pub(crate) seed: Option<u32>,
    /// Things to avoid
    #[arg(long, value_name = "TEXT")]
    pub(crate) negative_prompt: Option<String>,
    /// Without a sound track
    #[arg(long)]
    pub(crate) no_sound: bool,
    /// File for the video, which must not exist [default: try-ID.mp4 in this folder]
    #[arg(short, long, value_name = "FILE", value_parser = path())]
    pub(crate) output: Option<PathBuf>,
    /// Do not ask before money is spent
    #[arg(short, long)]
    pub(crate) yes: bool,
    #[command(flatten)]
    pub(crate) home: HomeArgs,
}

/// Arguments of `kinora engine check`.
#[derive(Debug, Args)]
pub(crate) struct EngineCheckArgs {
    /// A JSON file with the engine's settings
    #[arg(long, value_name = "FILE", value_parser = path())]
    pub(crate) settings: Option<PathBuf>,
    /// Also check a preset, the `settings` of a model, which changes the clip: JSON, or a file with it
    #[arg(long, value_name = "JSON|FILE")]
    pub(crate) preset: Option<String>,
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
