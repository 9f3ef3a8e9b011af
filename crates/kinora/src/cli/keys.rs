//! The flags of `kinora keys`.

use clap::{Args, Subcommand};

use super::place::PlaceArgs;

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
    /// Show who has created, rotated and revoked which keys, newest first.
    #[command(
        after_help = "Times are in UTC. For example:\n  kinora keys log --project shop\n  \
                      kinora keys log --json | jq '.[] | select(.action == \"revoked\")'"
    )]
    Log(LogArgs),
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

/// Which changes of keys to show.
#[derive(Debug, Args)]
pub(crate) struct LogArgs {
    /// Of the keys of one project alone
    #[arg(long)]
    pub(crate) project: Option<String>,
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
    /// Let it see the whole service: queue, workers and running tasks of all projects
    #[arg(long)]
    pub(crate) operator: bool,
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
