//! The flags of the commands about models and engines: `kinora models`, `engine` and `comfy`. The
//! commands check their values.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};
use kinora_contract::Size;

use super::client::{Reference, reference};
use super::service::HomeArgs;
use crate::home_path::path;

/// The commands of `kinora models`.
#[derive(Debug, Subcommand)]
pub(crate) enum ModelsCommand {
    /// Add a model of the catalogue by its name: choose how this machine can run it, install its
    /// engine, download and check its weights, and serve it from the next start on.
    #[command(
        after_help = "Run it as the user of the service. It needs the driver of a GPU, and for diffusers python3. Every step can be \
                      repeated: after an interruption the same command goes on where it stopped. For example:\n  \
                      kinora models list --available\n  \
                      kinora models add wan2.2-ti2v-5b --dry-run\n  \
                      kinora models add wan2.2-ti2v-5b\n\n\
                      Quantised, by stable-diffusion.cpp, on the second GPU:\n  \
                      kinora models add wan2.2-ti2v-5b --engine sdcpp --variant Q4_K_M --device 1"
    )]
    Add(AddModelArgs),
    /// Look for newer files and programs of added models; download, check and then switch to them.
    #[command(
        after_help = "Run it also after an update of Kinora, for the newest programs of engines. For example:\n  \
                      kinora models update\n  kinora models update wan2.2-ti2v-5b"
    )]
    Update(UpdateArgs),
    /// Download the missing files of models from their publishers, and check them.
    #[command(
        after_help = "The configuration says where files come from ([[engines.files]]), and has the mirror and the token \
                      ([weights]). A download that was interrupted goes on where it stopped. For example:\n  \
                      kinora models pull wan2.1-t2v-1.3b --config models/wan2.1-t2v-1.3b.toml\n\n\
                      From a mirror with the publishers' paths:\n  \
                      KINORA_WEIGHTS_MIRROR=https://mirror.example.com kinora models pull wan2.1-t2v-1.3b"
    )]
    Pull(NamedArgs),
    /// List the configured models with their engines, and which of their files are present; or the
    /// models of the catalogue.
    #[command(
        after_help = "It looks at lengths and does not read the files; `kinora models check` does. For example:\n  \
                      kinora models list --available\n  \
                      kinora models list --config models/wan2.1-t2v-1.3b.toml\n  \
                      kinora models list --json | jq '.[] | select(.state == \"missing\") | .model'"
    )]
    List {
        /// List the models that `kinora models add` knows instead, and how this machine can run each
        #[arg(long)]
        available: bool,
        /// Print JSON
        #[arg(long)]
        json: bool,
        #[command(flatten)]
        home: HomeArgs,
    },
    /// Remove models that `kinora models add` added, and the downloaded files of models that no
    /// other configured model uses.
    #[command(
        after_help = "Files without a source in the configuration stay. For example:\n  \
                      kinora models remove wan2.2-ti2v-5b\n  \
                      kinora models remove wan2.1-t2v-1.3b --config models/wan2.1-t2v-1.3b.toml"
    )]
    Remove(RemoveArgs),
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

/// Arguments of `kinora models add`.
#[derive(Debug, Args)]
pub(crate) struct AddModelArgs {
    /// A model of `kinora models list --available`
    #[arg(value_name = "NAME")]
    pub(crate) name: String,
    #[command(flatten)]
    pub(crate) wishes: WishArgs,
    /// Print what it would do, and do nothing
    #[arg(long)]
    pub(crate) dry_run: bool,
    #[command(flatten)]
    pub(crate) install: InstallArgs,
}

/// How to run a model, where that is not left to the catalogue. Its JSON is kept beside the model.
#[derive(Clone, Debug, Default, PartialEq, Eq, Args, serde::Serialize, serde::Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct WishArgs {
    /// GPU: a number as nvidia-smi has it, a UUID, vulkan0 for one of another maker, or cpu
    /// [default: the best one]
    #[arg(long)]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) device: Option<String>,
    /// Program that runs the model [default: the first of the catalogue that fits]
    #[arg(long)]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) engine: Option<EngineName>,
    /// Quantisation of the weights, such as Q4_K_M [default: the best that fits]
    #[arg(long)]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) variant: Option<String>,
    /// The `sd-server` of a stable-diffusion.cpp of yours, instead of a downloaded one
    #[arg(long, value_name = "PATH", value_parser = path())]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) sd_server: Option<PathBuf>,
}

/// A program that runs models of the catalogue.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum EngineName {
    /// Pipelines of diffusers, in 16 bits, on NVIDIA's GPUs
    Diffusers,
    /// stable-diffusion.cpp, with quantised weights, on the GPUs of all makers
    Sdcpp,
}

/// Arguments of `kinora models update`.
#[derive(Debug, Args)]
pub(crate) struct UpdateArgs {
    /// Added models [default: all]
    #[arg(value_name = "NAME")]
    pub(crate) names: Vec<String>,
    #[command(flatten)]
    pub(crate) install: InstallArgs,
}

/// Flags of commands that install models.
#[derive(Debug, Args)]
pub(crate) struct InstallArgs {
    /// Do not load the model to check it
    #[arg(long)]
    pub(crate) no_check: bool,
    /// Do not ask before a download
    #[arg(short, long)]
    pub(crate) yes: bool,
    #[command(flatten)]
    pub(crate) home: HomeArgs,
}

/// Arguments of `kinora models remove`.
#[derive(Debug, Args)]
pub(crate) struct RemoveArgs {
    /// Remove only the models, and keep their files
    #[arg(long)]
    pub(crate) keep_files: bool,
    #[command(flatten)]
    pub(crate) models: NamedArgs,
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
