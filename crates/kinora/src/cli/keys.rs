//! The flags of the commands about clients' access: `kinora keys` and `kinora webhooks`. The
//! commands check their values.

use clap::{Args, Subcommand};
use kinora_contract::Amount;

use super::service::HomeArgs;

/// The commands of `kinora keys`.
#[derive(Debug, Subcommand)]
pub(crate) enum KeysCommand {
    /// Create a key and print only the key on standard output. It cannot be shown again.
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
    /// Replace a key by a new one with the same name, project and limits, and print the new key.
    #[command(
        after_help = "For example, when a client needs a day to take over the new key:\n  \
                      kinora keys rotate web --grace 24\n\n\
                      A key that expires is replaced by one that lives as long."
    )]
    Rotate(RotateArgs),
    /// Show who created, rotated and revoked which keys, newest first.
    #[command(
        after_help = "Times are in UTC. For example:\n  kinora keys log --project shop\n  \
                      kinora keys log --json | jq '.[] | select(.action == \"revoked\")'"
    )]
    Log(LogArgs),
    /// Revoke a key; a running service refuses it, and ends its event streams, within a second.
    #[command(
        after_help = "Result addresses that the key's clients hold open without it, until their tasks expire. For \
                      example, to revoke a key that has leaked, and all result addresses of all projects with it:\n  \
                      kinora keys revoke key_abcdefghijkl --expire-addresses"
    )]
    Revoke {
        /// The key's id, as `kinora keys list` shows it, or its name
        #[arg(value_name = "ID|NAME")]
        key: String,
        /// Also replace the key that signs result addresses: those that were handed out, of all
        /// projects, open nothing any more; tasks show new ones
        #[arg(long)]
        expire_addresses: bool,
        #[command(flatten)]
        home: HomeArgs,
    },
}

/// Flags of `kinora keys list`.
#[derive(Debug, Args)]
pub(crate) struct ListArgs {
    /// Print JSON, with times in Unix seconds
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) home: HomeArgs,
}

/// Flags of `kinora keys log`.
#[derive(Debug, Args)]
pub(crate) struct LogArgs {
    /// Only keys of this project
    #[arg(long)]
    pub(crate) project: Option<String>,
    /// Print JSON, with times in Unix seconds
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) home: HomeArgs,
}

/// Flags of `kinora keys rotate`.
#[derive(Debug, Args)]
pub(crate) struct RotateArgs {
    /// The key's id, as `kinora keys list` shows it, or its name
    #[arg(value_name = "ID|NAME")]
    pub(crate) key: String,
    /// Hours during which the old key still works; 0 revokes it at once
    #[arg(long, value_name = "HOURS", default_value_t = 0)]
    pub(crate) grace: u32,
    #[command(flatten)]
    pub(crate) home: HomeArgs,
}

/// Flags of `kinora keys create`.
#[derive(Debug, Args)]
pub(crate) struct CreateArgs {
    /// Name, for people; no other usable key may have it
    #[arg(long)]
    pub(crate) name: String,
    /// Project whose tasks the key can access; all keys of a project share them
    #[arg(long, default_value = "default")]
    pub(crate) project: String,
    /// Scopes: videos:write, videos:read [default: both]
    #[arg(long, value_name = "SCOPE", value_delimiter = ',')]
    pub(crate) scopes: Vec<String>,
    /// Let the key see the whole service: queue, workers and running tasks of all projects
    #[arg(long)]
    pub(crate) operator: bool,
    /// Let the key also pause and resume models; includes --operator
    #[arg(long)]
    pub(crate) operator_write: bool,
    /// Models that the key may use, as configured [default: all]
    #[arg(long, value_name = "MODEL", value_delimiter = ',')]
    pub(crate) models: Vec<String>,
    /// Days until the key expires [default: never]
    #[arg(long, value_name = "DAYS")]
    pub(crate) expires_in_days: Option<u32>,
    /// Maximum requests per minute; 0 for no limit [default: as configured]
    #[arg(long, value_name = "REQUESTS")]
    pub(crate) requests_per_minute: Option<u32>,
    /// Maximum unfinished tasks of the project [default: as configured]
    #[arg(long, value_name = "TASKS")]
    pub(crate) unfinished_max: Option<u32>,
    /// What tasks of the key may cost per day (UTC), in the configured currency [default: no bound]
    #[arg(long, value_name = "AMOUNT")]
    pub(crate) budget_per_day: Option<Amount>,
    /// What tasks of the key may cost per month (UTC) [default: no bound]
    #[arg(long, value_name = "AMOUNT")]
    pub(crate) budget_per_month: Option<Amount>,
    #[command(flatten)]
    pub(crate) home: HomeArgs,
}

/// The commands of `kinora webhooks`.
#[derive(Debug, Subcommand)]
pub(crate) enum WebhooksCommand {
    /// Add a webhook and print only its secret on standard output. It cannot be shown again.
    #[command(
        after_help = "Without --url, the secret signs what goes to the callback_url of requests; a project has one such \
                      webhook. For example:\n  \
                      kinora webhooks add --url https://shop.example.com/videos --project shop\n  \
                      kinora webhooks add --project shop"
    )]
    Add(AddArgs),
    /// List all webhooks, without their secrets.
    #[command(after_help = "Times are in UTC. For example:\n  kinora webhooks list --json")]
    List {
        /// Print JSON, with times in Unix seconds
        #[arg(long)]
        json: bool,
        #[command(flatten)]
        home: HomeArgs,
    },
    /// Remove a webhook and its deliveries.
    #[command(after_help = "For example:\n  kinora webhooks remove wh_abcdefghijkl")]
    Remove(WebhookArgs),
    /// Replace a webhook's secret and print the new one; for 24 hours, both secrets sign
    /// deliveries.
    #[command(
        after_help = "Give the new secret to the receiver within that time. For example:\n  \
                      kinora webhooks rotate wh_abcdefghijkl"
    )]
    Rotate(WebhookArgs),
    /// Make the running service deliver a test event, and wait for the answer.
    #[command(
        after_help = "For a webhook with an address. For example:\n  kinora webhooks test wh_abcdefghijkl"
    )]
    Test(WebhookArgs),
    /// List the newest deliveries to a webhook.
    #[command(after_help = "Times are in UTC. For example:\n  \
                      kinora webhooks deliveries wh_abcdefghijkl --count 100")]
    Deliveries(DeliveriesArgs),
    /// Repeat a delivery that arrived or was given up.
    #[command(after_help = "For example:\n  kinora webhooks redeliver 4711")]
    Redeliver {
        /// The delivery's number, as `kinora webhooks deliveries` shows it
        #[arg(value_name = "NUMBER")]
        number: u64,
        #[command(flatten)]
        home: HomeArgs,
    },
}

/// Flags of `kinora webhooks add`.
#[derive(Debug, Args)]
pub(crate) struct AddArgs {
    /// URL to post events to [default: the callback_url of requests]
    #[arg(long)]
    pub(crate) url: Option<String>,
    /// Project whose events to deliver
    #[arg(long, default_value = "default")]
    pub(crate) project: String,
    #[command(flatten)]
    pub(crate) home: HomeArgs,
}

/// A webhook.
#[derive(Debug, Args)]
pub(crate) struct WebhookArgs {
    /// The webhook's id, as `kinora webhooks list` shows it
    #[arg(value_name = "ID")]
    pub(crate) id: String,
    #[command(flatten)]
    pub(crate) home: HomeArgs,
}

/// Flags of `kinora webhooks deliveries`.
#[derive(Debug, Args)]
pub(crate) struct DeliveriesArgs {
    /// The webhook's id, as `kinora webhooks list` shows it
    #[arg(value_name = "ID")]
    pub(crate) id: String,
    /// Maximum number of deliveries
    #[arg(long, default_value_t = 20)]
    pub(crate) count: u32,
    /// Print JSON, with times in Unix seconds
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) home: HomeArgs,
}
