//! The command line. Help texts are the manual that people read first.

mod comfy;
mod engine;
mod home;
mod keys;
mod make;
mod models;
mod moves;
mod operations;
mod tasks;
mod webhooks;

use std::ffi::OsString;
use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};

use crate::config::ListenAddress;
use crate::tilde::path;
pub(crate) use comfy::{ComfyArgs, ComfyCommand, ComfyImportArgs};
pub(crate) use engine::{EngineArgs, EngineCheckArgs, EngineCommand};
pub(crate) use home::HomeArgs;
pub(crate) use keys::{CreateArgs, KeysArgs, KeysCommand, ListArgs, LogArgs, RotateArgs};
pub(crate) use make::{EditArgs, FinalArgs, GenerateArgs, OutputArgs, PreviewMode};
pub(crate) use models::{ModelsArgs, ModelsCommand, NamedArgs};
pub(crate) use moves::{ExportArgs, ImportArgs, MovedResults};
pub(crate) use operations::{TopArgs, UsageArgs};
pub(crate) use tasks::{CompletionsArgs, IdsArgs, ManArgs, TasksArgs, TasksCommand};
pub(crate) use webhooks::{AddArgs, DeliveriesArgs, WebhookArgs, WebhooksArgs, WebhooksCommand};

/// Self-hosted video generation: post a task, poll it, get an MP4.
#[derive(Debug, Parser)]
#[command(
    name = "kinora",
    version,
    propagate_version = true,
    after_help = "Start here:\n  kinora serve\nOn its first start it creates an API key, and prints it or the path of its \
                  file. Then, in another terminal:\n  kinora generate \"A red balloon drifts over the sea\" -o balloon.mp4"
)]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) command: Command,
}

/// The commands.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Serve the API and make videos, in one process; with --no-worker, the API alone.
    Serve(ServeArgs),
    /// Make videos for `kinora serve` processes that share this one's store; serve no clients.
    Worker(WorkerArgs),
    /// List the live workers, with their machines, models and load.
    Workers(WorkersArgs),
    /// Watch the queue, running and ended tasks, and the workers; press q to quit.
    Top(TopArgs),
    /// Show the amount of video made and the engines' working time, by day, project and model.
    Usage(UsageArgs),
    /// Update the schema of a PostgreSQL store, before the processes of a new version start.
    #[command(
        after_help = "Forward only; a second run changes nothing. Tables change in one transaction; indexes of large tables \
                      are built after it, while other processes work. `kinora serve` itself updates an embedded store. For \
                      example:\n  \
                      kinora migrate --config /etc/kinora/kinora.toml\n\n\
                      The store can also be given as a variable:\n  \
                      KINORA_STORE_URL=postgres://kinora@db.example.com/kinora kinora migrate"
    )]
    Migrate(MigrateArgs),
    /// Make a video at a server and save it; Ctrl-C cancels it.
    Generate(GenerateArgs),
    /// Render a draft in full and save it.
    Final(FinalArgs),
    /// Make an edit of a video and save it.
    Edit(EditArgs),
    /// List, show, watch, download, cancel and delete tasks at a server.
    Tasks(TasksArgs),
    /// Create, list, rotate and revoke API keys; works while the service runs.
    Keys(KeysArgs),
    /// Add, list, remove, rotate and test webhooks, and see their deliveries; works while the service runs.
    Webhooks(WebhooksArgs),
    /// Download, list, check and remove the weights of configured models.
    Models(ModelsArgs),
    /// Check a command that speaks the engine protocol.
    Engine(EngineArgs),
    /// Make engines of ComfyUI workflows.
    Comfy(ComfyArgs),
    /// Check disk, clock, stored data, backups, configuration and engines, and explain how to fix
    /// problems.
    #[command(
        after_help = "Pass the same flags as to `kinora serve`; it checks the same \
                      configuration and changes nothing:\n  \
                      kinora doctor --data /var/lib/kinora --listen 0.0.0.0:8080"
    )]
    Doctor(ServeArgs),
    /// Back up database, signing key and results into a new folder, while the service runs or not.
    Backup(BackupArgs),
    /// Restore a backup into an empty data folder.
    Restore(RestoreArgs),
    /// Export tasks, keys and results into a folder; `kinora import` loads it into a store of any
    /// kind.
    Export(ExportArgs),
    /// Import an export into an empty store: from SQLite to PostgreSQL or back, from a folder to S3
    /// or back.
    Import(ImportArgs),
    /// Count the result files that no task refers to; remove them with --remove.
    #[command(
        after_help = "Works while the service runs. For example, after an older database was restored for \
                      good:\n  kinora orphans --data /var/lib/kinora\n  \
                      kinora orphans --remove --data /var/lib/kinora"
    )]
    Orphans(OrphansArgs),
    /// Print the configuration file with all defaults and explanations.
    #[command(
        after_help = "Keep only the lines that you change; every key is optional:\n  \
                      kinora config > kinora.toml\n  kinora serve --config kinora.toml"
    )]
    Config,
    /// Print the OpenAPI document.
    #[command(after_help = "For example:\n  kinora openapi > openapi.json")]
    Openapi,
    /// Print the licences of everything that this binary contains.
    #[command(after_help = "For example:\n  kinora licences | less")]
    Licences,
    /// Print completions for a shell.
    Completions(CompletionsArgs),
    /// Write manual pages.
    Man(ManArgs),
    /// Run an engine for the service that started this process; not for direct use.
    #[command(hide = true)]
    EngineHost,
    /// Read a film for the service that started this process; not for direct use.
    #[command(hide = true)]
    FilmHost,
    /// Become an engine's command for the service that started this process; not for direct use.
    #[command(hide = true)]
    #[command(name = "command-host")]
    ProgramHost(CommandHostArgs),
}

/// Arguments of `kinora command-host`.
#[derive(Debug, Args)]
pub(crate) struct CommandHostArgs {
    /// What the command may access, as JSON; `null`: everything.
    pub(crate) confinement: String,
    /// The program and its arguments.
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, required = true)]
    pub(crate) command: Vec<OsString>,
}

impl Command {
    /// Whether a service starts it for an engine or a film. Such a process gets no secrets.
    pub(crate) const fn is_child(&self) -> bool {
        matches!(
            self,
            Self::EngineHost | Self::FilmHost | Self::ProgramHost(_)
        )
    }

    /// Whether other users may read the files that the command writes. A service's files are
    /// private to its user.
    pub(crate) const fn makes_open_files(&self) -> bool {
        match self {
            Self::Generate(_) | Self::Final(_) | Self::Edit(_) | Self::Tasks(_) | Self::Man(_) => {
                true
            }
            // The service's user may be another one.
            Self::Models(args) => matches!(args.command, ModelsCommand::Pull(_)),
            _ => false,
        }
    }
}

/// Flags of `kinora serve`.
#[derive(Debug, Args)]
#[command(after_help = "For example, behind a proxy that speaks TLS:\n  \
                  kinora serve --data /var/lib/kinora --base-url https://video.example.com\n\n\
                  Every setting outside of [[tables]] can also be given as a variable:\n  \
                  KINORA_LISTEN=0.0.0.0:8080 KINORA_WORKER_SLOTS=4 kinora serve")]
pub(crate) struct ServeArgs {
    #[command(flatten)]
    pub(crate) home: HomeArgs,
    /// Where to listen: an IP address or a host's name, and a port [default: 127.0.0.1:8080]
    #[arg(long, value_name = "HOST:PORT")]
    pub(crate) listen: Option<ListenAddress>,
    /// Start of result URLs, as clients reach the service [default: http://HOST:PORT]
    #[arg(long, value_name = "URL")]
    pub(crate) base_url: Option<String>,
    /// Serve the API alone: tasks wait for a `kinora worker` that shares the store
    #[arg(long)]
    pub(crate) no_worker: bool,
    /// Log format on standard error
    #[arg(long, value_name = "FORM")]
    pub(crate) log_format: Option<LogFormat>,
    /// Start although acknowledged tasks, results or keys are missing or damaged, and serve the
    /// rest. Use it for one start only. Also as KINORA_ACCEPT_LOSS=1
    #[arg(long)]
    pub(crate) accept_loss: bool,
}

/// Flags of `kinora worker`.
#[derive(Debug, Args)]
#[command(
    after_help = "All processes of a service share a PostgreSQL database (store.url) and the results (results.url); \
                  engines and models are this process's own. For example, on a machine with a GPU:\n  \
                  kinora worker --config gpu.toml --health-listen 127.0.0.1:8081\n\n\
                  SIGTERM lets running tasks finish; a second one returns them to the queue at once."
)]
pub(crate) struct WorkerArgs {
    #[command(flatten)]
    pub(crate) home: HomeArgs,
    /// Where to answer /healthz and /readyz, and nothing else [default: nowhere]
    #[arg(long, value_name = "HOST:PORT")]
    pub(crate) health_listen: Option<ListenAddress>,
    /// Log format on standard error
    #[arg(long, value_name = "FORM")]
    pub(crate) log_format: Option<LogFormat>,
}

/// Flags of `kinora workers`.
#[derive(Debug, Args)]
#[command(
    after_help = "Pass the same --data or --config as to `kinora serve`. For example:\n  \
                  kinora workers --data /var/lib/kinora\n  \
                  kinora workers --json | jq '.[] | select(.state == \"serving\") | .models[].model'"
)]
pub(crate) struct WorkersArgs {
    /// Print JSON, with times in Unix seconds
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) home: HomeArgs,
}

/// Flags of `kinora migrate`.
#[derive(Debug, Args)]
pub(crate) struct MigrateArgs {
    #[command(flatten)]
    pub(crate) home: HomeArgs,
}

/// Flags of `kinora orphans`.
#[derive(Debug, Args)]
pub(crate) struct OrphansArgs {
    /// Remove them
    #[arg(long)]
    pub(crate) remove: bool,
    /// Print JSON, with times in Unix seconds
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) home: HomeArgs,
}

/// Log formats.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum LogFormat {
    /// Text on a terminal, JSON elsewhere.
    Auto,
    /// For people.
    Text,
    /// One JSON object per line.
    Json,
}

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

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    fn without_example(command: &clap::Command, path: &str, found: &mut Vec<String>) {
        let path = format!("{path}{}", command.get_name());
        let help = command.get_after_help().map(ToString::to_string);
        let example = format!("\n  {path}");
        if !command.is_hide_set() && !help.unwrap_or_default().contains(&example) {
            found.push(path.clone());
        }
        for inner in command.get_subcommands() {
            without_example(inner, &format!("{path} "), found);
        }
    }

    #[test]
    fn the_help_of_every_command_has_an_example_of_it() {
        Cli::command().debug_assert();
        let mut found = Vec::new();
        without_example(&Cli::command(), "", &mut found);
        assert_eq!(found, Vec::<String>::new());
    }
}
