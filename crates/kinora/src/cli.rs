//! The command line. Help texts are the manual that people read first.

mod moves;
mod place;

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};

use crate::config::ListenAddress;
pub(crate) use moves::{ExportArgs, ImportArgs, MovedResults};
pub(crate) use place::PlaceArgs;

/// Self-hosted video generation: post a task, poll it, get an MP4.
#[derive(Debug, Parser)]
#[command(
    name = "kinora",
    version,
    propagate_version = true,
    after_help = "Start here:\n  kinora serve\nOn its first start it creates an API key, and prints it or the path of its file."
)]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) command: Command,
}

/// What to do.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Serve the API and make videos, in one process; with --no-worker, the API alone.
    Serve(ServeArgs),
    /// Make videos for `kinora serve` processes that share this one's store; serve no clients.
    Worker(WorkerArgs),
    /// List the living workers: where they run, what they serve, and how busy they are.
    Workers(WorkersArgs),
    /// Bring the schema of a PostgreSQL store up to date, before the processes of a new version start.
    #[command(
        after_help = "Forward only, in one transaction; run twice, it changes nothing. An embedded store is brought up to \
                      date by `kinora serve` itself. For example:\n  \
                      kinora migrate --config /etc/kinora/kinora.toml\n\n\
                      The store can also be given as a variable:\n  \
                      KINORA_STORE_URL=postgres://kinora@db.example.com/kinora kinora migrate"
    )]
    Migrate(MigrateArgs),
    /// Create, list, rotate and revoke API keys; works while the service runs.
    Keys(KeysArgs),
    /// Check the weights of configured engines before a first task needs them.
    Models(ModelsArgs),
    /// Check disk, clock, stored data, backups, configuration and engines, and say how to fix what is wrong.
    #[command(
        after_help = "Give it the flags that you give `kinora serve`; it judges the same \
                      configuration and changes nothing:\n  \
                      kinora doctor --data /var/lib/kinora --listen 0.0.0.0:8080"
    )]
    Doctor(ServeArgs),
    /// Back up database, signing key and results into a new folder, while the service runs or not.
    Backup(BackupArgs),
    /// Restore a backup into an empty data folder.
    Restore(RestoreArgs),
    /// Write tasks, keys and results into a folder that `kinora import` brings into a store of any kind.
    Export(ExportArgs),
    /// Bring an export into an empty store: from SQLite to PostgreSQL or back, from a folder to S3 or back.
    Import(ImportArgs),
    /// Count the result files that no task names; remove them with --remove.
    #[command(
        after_help = "Works while the service runs. For example, after an older database was put back for \
                      good:\n  kinora orphans --data /var/lib/kinora\n  \
                      kinora orphans --remove --data /var/lib/kinora"
    )]
    Orphans(OrphansArgs),
    /// Print the configuration file with all defaults and what they mean.
    #[command(
        after_help = "Keep the lines that you change; every key may be left out:\n  \
                      kinora config > kinora.toml\n  kinora serve --config kinora.toml"
    )]
    Config,
    /// Print the OpenAPI document.
    #[command(after_help = "For example:\n  kinora openapi > openapi.json")]
    Openapi,
    /// Print the licences of everything that this binary contains.
    #[command(after_help = "For example:\n  kinora licences | less")]
    Licences,
    /// Run an engine for the service that starts this; not for people.
    #[command(hide = true)]
    EngineHost,
    /// Read a film for the service that starts this; not for people.
    #[command(hide = true)]
    FilmHost,
}

/// How to serve.
#[derive(Debug, Args)]
#[command(after_help = "For example, behind a proxy that speaks TLS:\n  \
                  kinora serve --data /var/lib/kinora --base-url https://video.example.com\n\n\
                  Every setting of the configuration file can also be given as a variable:\n  \
                  KINORA_LISTEN=0.0.0.0:8080 KINORA_WORKER_SLOTS=4 kinora serve")]
pub(crate) struct ServeArgs {
    #[command(flatten)]
    pub(crate) place: PlaceArgs,
    /// Where to listen: an IP address or a host's name, and a port [default: 127.0.0.1:8080]
    #[arg(long, value_name = "HOST:PORT")]
    pub(crate) listen: Option<ListenAddress>,
    /// What result addresses begin with, as clients reach it [default: http://HOST:PORT]
    #[arg(long, value_name = "URL")]
    pub(crate) base_url: Option<String>,
    /// Serve the API alone: tasks wait for a `kinora worker` that shares the store
    #[arg(long)]
    pub(crate) no_worker: bool,
    /// Form of the log on standard error
    #[arg(long, value_name = "FORM")]
    pub(crate) log_format: Option<LogFormat>,
    /// Start although acknowledged tasks, results or keys are missing or damaged, and serve what is
    /// left; use it for one start only. Also as KINORA_ACCEPT_LOSS=1
    #[arg(long)]
    pub(crate) accept_loss: bool,
}

/// How to make videos for other processes.
#[derive(Debug, Args)]
#[command(
    after_help = "All processes of a service share a PostgreSQL database (store.url) and the results (results.url); \
                  engines and models are this process's own. For example, on a machine with a GPU:\n  \
                  kinora worker --config gpu.toml --health-listen 127.0.0.1:8081\n\n\
                  SIGTERM lets running tasks finish; a second one gives them back to the queue at once."
)]
pub(crate) struct WorkerArgs {
    #[command(flatten)]
    pub(crate) place: PlaceArgs,
    /// Where to answer /healthz and /readyz, and nothing else [default: nowhere]
    #[arg(long, value_name = "HOST:PORT")]
    pub(crate) health_listen: Option<ListenAddress>,
    /// Form of the log on standard error
    #[arg(long, value_name = "FORM")]
    pub(crate) log_format: Option<LogFormat>,
}

/// How to list workers.
#[derive(Debug, Args)]
#[command(
    after_help = "Give it the --data or --config that you give `kinora serve`. For example:\n  \
                  kinora workers --data /var/lib/kinora\n  \
                  kinora workers --json | jq '.[] | select(.state == \"serving\") | .models[].model'"
)]
pub(crate) struct WorkersArgs {
    /// Print JSON, with times in Unix seconds
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) place: PlaceArgs,
}

/// Which store to bring up to date.
#[derive(Debug, Args)]
pub(crate) struct MigrateArgs {
    #[command(flatten)]
    pub(crate) place: PlaceArgs,
}

/// What to do with files that no task names.
#[derive(Debug, Args)]
pub(crate) struct OrphansArgs {
    /// Remove them
    #[arg(long)]
    pub(crate) remove: bool,
    /// Print JSON, with times in Unix seconds
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) place: PlaceArgs,
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
#[command(
    after_help = "Name the store as you name it to `kinora serve`. A usual life of a key:\n  \
                  kinora keys create --name web --data /var/lib/kinora\n  \
                  kinora keys rotate web --grace 24 --data /var/lib/kinora\n  \
                  kinora keys list --data /var/lib/kinora"
)]
pub(crate) struct KeysArgs {
    #[command(subcommand)]
    pub(crate) command: KeysCommand,
}

/// What to do with keys.
#[derive(Debug, Subcommand)]
pub(crate) enum KeysCommand {
    /// Create a key and print it, alone, on standard output. It cannot be shown again.
    #[command(
        after_help = "For example, a key of a project of its own that expires:\n  \
                      kinora keys create --name web --project shop --expires-in-days 90"
    )]
    Create(CreateArgs),
    /// List all keys, without their secrets.
    #[command(
        after_help = "Times are in UTC; the last use is kept to about a minute. For example:\n  \
                      kinora keys list\n  kinora keys list --json | jq '.[] | select(.state == \"usable\")'"
    )]
    List(ListArgs),
    /// Replace a key by a new one with the same name, project and limits, and print that.
    #[command(
        after_help = "For example, when a client needs a day to take over the new key:\n  \
                      kinora keys rotate web --grace 24\n\n\
                      A key that expires is replaced by one that lives as long."
    )]
    Rotate(RotateArgs),
    /// Revoke a key; a running service refuses it within a second.
    #[command(after_help = "For example:\n  kinora keys revoke key_abcdefghijkl")]
    Revoke {
        /// The key's id, as `kinora keys list` shows it, or its name
        #[arg(value_name = "ID|NAME")]
        key: String,
        #[command(flatten)]
        place: PlaceArgs,
    },
}

/// How to list keys.
#[derive(Debug, Args)]
pub(crate) struct ListArgs {
    /// Print JSON, with times in Unix seconds
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) place: PlaceArgs,
}

/// A key to be replaced.
#[derive(Debug, Args)]
pub(crate) struct RotateArgs {
    /// The key's id, as `kinora keys list` shows it, or its name
    #[arg(value_name = "ID|NAME")]
    pub(crate) key: String,
    /// Hours for which the old key still works; 0 revokes it at once
    #[arg(long, value_name = "HOURS", default_value_t = 0)]
    pub(crate) grace: u32,
    #[command(flatten)]
    pub(crate) place: PlaceArgs,
}

/// What to back up, and where.
#[derive(Debug, Args)]
#[command(
    after_help = "Give it the --data and --config that you give `kinora serve`. For example, once a night:\n  \
                  kinora backup /backups/kinora-$(date +%F) --data /var/lib/kinora"
)]
pub(crate) struct BackupArgs {
    /// New folder for the backup; the folder that it is in must exist
    #[arg(value_name = "DEST")]
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
    pub(crate) place: PlaceArgs,
}

/// How to back up results.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum ResultsMode {
    /// By hard links where the file system allows, otherwise by copies.
    Link,
    /// By copies.
    Copy,
    /// They stay where they are; the backup notes where that is.
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

/// What to restore, and where.
#[derive(Debug, Args)]
#[command(
    after_help = "For example:\n  kinora restore /backups/kinora-2026-11-22 --data /var/lib/kinora-restored"
)]
pub(crate) struct RestoreArgs {
    /// Folder that `kinora backup` has made
    #[arg(value_name = "SOURCE")]
    pub(crate) source: PathBuf,
    /// Data folder to restore into; it must be empty or absent
    #[arg(long, value_name = "DIR")]
    pub(crate) data: PathBuf,
}

/// What to do with models.
#[derive(Debug, Args)]
#[command(after_help = "For example:\n  kinora models check --config models/wan2.1-t2v-1.3b.toml")]
pub(crate) struct ModelsArgs {
    #[command(subcommand)]
    pub(crate) command: ModelsCommand,
}

/// What to do with models.
#[derive(Debug, Subcommand)]
pub(crate) enum ModelsCommand {
    /// Say which files of each engine are missing, cut short or of another model, and load the rest.
    #[command(
        after_help = "For example:\n  kinora models check --config models/wan2.1-t2v-1.3b.toml\n  \
                      kinora models check --no-load"
    )]
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
    /// Its name, for people; no other usable key may have it
    #[arg(long)]
    pub(crate) name: String,
    /// Project whose tasks it sees; all keys of a project share them
    #[arg(long, default_value = "default")]
    pub(crate) project: String,
    /// Its scopes: videos:write, videos:read [default: both]
    #[arg(long, value_name = "SCOPE", value_delimiter = ',')]
    pub(crate) scopes: Vec<String>,
    /// Models that it may use, as configured [default: all]
    #[arg(long, value_name = "MODEL", value_delimiter = ',')]
    pub(crate) models: Vec<String>,
    /// Days until it expires [default: never]
    #[arg(long, value_name = "DAYS")]
    pub(crate) expires_in_days: Option<u32>,
    /// Maximum requests per minute; 0 for no limit [default: as configured]
    #[arg(long, value_name = "REQUESTS")]
    pub(crate) requests_per_minute: Option<u32>,
    /// Maximum unfinished tasks of its project [default: as configured]
    #[arg(long, value_name = "TASKS")]
    pub(crate) unfinished_max: Option<u32>,
    #[command(flatten)]
    pub(crate) place: PlaceArgs,
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
