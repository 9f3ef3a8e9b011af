//! The flags of `kinora top` and `kinora usage`.

use clap::Args;

use super::home::HomeArgs;
use crate::date::parse_day;

/// Flags of `kinora top`.
#[derive(Debug, Args)]
#[command(
    after_help = "Give it the --data or --config that you give `kinora serve`. It is read again each second; where standard \
                  output is no terminal, once. For example:\n  \
                  kinora top --data /var/lib/kinora\n  \
                  kinora top --json | jq .queue"
)]
pub(crate) struct TopArgs {
    /// Print one reading and exit
    #[arg(long)]
    pub(crate) once: bool,
    /// Print one reading as JSON and exit
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) home: HomeArgs,
}

/// Flags of `kinora usage`.
#[derive(Debug, Args)]
#[command(
    after_help = "Days are those of UTC on which tasks ended. What was made stays counted when tasks expire or are deleted. \
                  For example:\n  \
                  kinora usage --since 2026-11-01 --until 2026-11-30 --data /var/lib/kinora\n  \
                  kinora usage --project shop --csv > usage.csv"
)]
pub(crate) struct UsageArgs {
    /// First day, as in 2026-11-01 [default: the first one recorded]
    #[arg(long, value_name = "DAY", value_parser = parse_day)]
    pub(crate) since: Option<u64>,
    /// Last day, inclusive [default: today]
    #[arg(long, value_name = "DAY", value_parser = parse_day)]
    pub(crate) until: Option<u64>,
    /// Only this project
    #[arg(long)]
    pub(crate) project: Option<String>,
    /// Only the model with this identifier
    #[arg(long)]
    pub(crate) model: Option<String>,
    /// Print comma-separated values, with a header line
    #[arg(long, conflicts_with = "json")]
    pub(crate) csv: bool,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) home: HomeArgs,
}
