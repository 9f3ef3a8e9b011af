//! The flags of `kinora webhooks`.

use clap::{Args, Subcommand};

use super::home::HomeArgs;

/// Flags of `kinora webhooks`.
#[derive(Debug, Args)]
#[command(
    after_help = "Name the store as you name it to `kinora serve`. A usual life of a webhook:\n  \
                  kinora webhooks add --url https://shop.example.com/videos --project shop\n  \
                  kinora webhooks list\n  \
                  kinora webhooks test wh_abcdefghijkl\n  \
                  kinora webhooks deliveries wh_abcdefghijkl"
)]
pub(crate) struct WebhooksArgs {
    #[command(subcommand)]
    pub(crate) command: WebhooksCommand,
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
