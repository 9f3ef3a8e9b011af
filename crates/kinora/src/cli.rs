//! The command line. Help texts are the manual that people read first.

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};

/// Self-hosted video generation: post a task, poll it, get an MP4.
#[derive(Debug, Parser)]
#[command(
    name = "kinora",
    version,
    propagate_version = true,
    after_help = "Start here:  kinora serve\nIt makes an API key on its first start and prints a curl line to try."
)]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) command: Command,
}

/// What to do.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Serve the API and make videos, in one process.
    Serve(ServeArgs),
    /// Create, list and revoke API keys; works while the service runs.
    Keys(KeysArgs),
    /// Look into the weights of configured engines, and load them, before a first task does.
    Models(ModelsArgs),
    /// Look at disk, clock, configuration and engines, and say what to do about what is wrong.
    Doctor(PlaceArgs),
    /// Print the configuration file with all defaults and what they mean.
    Config,
    /// Print the OpenAPI document.
    Openapi,
    /// Run an engine for the service that starts this; not for people.
    #[command(hide = true)]
    EngineHost,
    /// Read a film for the service that starts this; not for people.
    #[command(hide = true)]
    FilmHost,
}

/// Where things are; the same for every command.
#[derive(Debug, Args)]
pub(crate) struct PlaceArgs {
    /// Folder for tasks, results and secrets [default: ./kinora-data]
    #[arg(long, value_name = "DIR")]
    pub(crate) data: Option<PathBuf>,
    /// Configuration file (see `kinora config`); also as KINORA_CONFIG
    #[arg(long, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,
}

/// How to serve.
#[derive(Debug, Args)]
#[command(
    after_help = "Every setting of the configuration file can also be given as a variable:\n  KINORA_LISTEN=0.0.0.0:8080 KINORA_WORKER_SLOTS=4 kinora serve"
)]
pub(crate) struct ServeArgs {
    #[command(flatten)]
    pub(crate) place: PlaceArgs,
    /// Address to listen on [default: 127.0.0.1:8080]
    #[arg(long, value_name = "ADDRESS:PORT")]
    pub(crate) listen: Option<SocketAddr>,
    /// What result addresses begin with, as clients reach it [default: http://ADDRESS:PORT]
    #[arg(long, value_name = "URL")]
    pub(crate) base_url: Option<String>,
    /// Form of the log on standard error
    #[arg(long, value_name = "FORM")]
    pub(crate) log_format: Option<LogFormat>,
}

/// Forms of the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum LogFormat {
    /// Text on a terminal, JSON elsewhere.
    Auto,
    /// For people.
    Text,
    /// One JSON object a line.
    Json,
}

/// What to do with keys.
#[derive(Debug, Args)]
pub(crate) struct KeysArgs {
    #[command(subcommand)]
    pub(crate) command: KeysCommand,
}

/// What to do with keys.
#[derive(Debug, Subcommand)]
pub(crate) enum KeysCommand {
    /// Create a key and print it, alone, on standard output. It cannot be shown again.
    Create(CreateArgs),
    /// List all keys, without their secrets.
    List(PlaceArgs),
    /// Revoke a key by the id that `keys list` shows.
    Revoke {
        /// The key's id, for example key_3FsW9yQ2bX7d
        id: String,
        #[command(flatten)]
        place: PlaceArgs,
    },
}

/// What to do with models.
#[derive(Debug, Args)]
pub(crate) struct ModelsArgs {
    #[command(subcommand)]
    pub(crate) command: ModelsCommand,
}

/// What to do with models.
#[derive(Debug, Subcommand)]
pub(crate) enum ModelsCommand {
    /// Say which files of each engine are missing, cut short or of another model, and load the rest.
    Check {
        /// Look at the files alone: quick, and needs no memory
        #[arg(long)]
        no_load: bool,
        #[command(flatten)]
        place: PlaceArgs,
    },
}

/// A key to be made.
#[derive(Debug, Args)]
pub(crate) struct CreateArgs {
    /// What people call it
    #[arg(long)]
    pub(crate) name: String,
    /// Whose tasks it sees; keys of one project share them, so that a key can be rotated
    #[arg(long, default_value = "default")]
    pub(crate) project: String,
    /// What it may do: videos:write, videos:read [default: both]
    #[arg(long, value_name = "SCOPE", value_delimiter = ',')]
    pub(crate) scopes: Vec<String>,
    /// The models that it may use [default: all]
    #[arg(long, value_name = "MODEL", value_delimiter = ',')]
    pub(crate) models: Vec<String>,
    /// Days until it expires [default: never]
    #[arg(long, value_name = "DAYS")]
    pub(crate) expires_in_days: Option<u32>,
    /// Requests per minute at most; 0 for no limit [default: as configured]
    #[arg(long, value_name = "REQUESTS")]
    pub(crate) requests_per_minute: Option<u32>,
    /// Unfinished tasks of its project at most [default: as configured]
    #[arg(long, value_name = "TASKS")]
    pub(crate) unfinished_max: Option<u32>,
    #[command(flatten)]
    pub(crate) place: PlaceArgs,
}
