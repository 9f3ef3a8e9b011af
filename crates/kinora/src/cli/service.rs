//! The flags of the commands that run and watch a service, and of the internal ones that it starts.
//! They override the configuration and its variables.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::Args;

use crate::address::ListenAddress;
use crate::home_path::path;
use crate::logging::LogFormat;
use crate::output::parse_day;

/// Flags of `kinora serve`.
#[derive(Debug, Args)]
#[command(after_help = "For example, behind a proxy that speaks TLS:\n  \
                  kinora serve --data /var/lib/kinora --base-url https://video.example.com\n\n\
                  On a terminal it prints a link that signs one browser in to Studio, within ten minutes; --open opens it:\n  \
                  kinora serve --open\n\n\
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
    /// Open Studio in a browser, signed in
    #[arg(long)]
    pub(crate) open: bool,
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

/// Flags of `kinora pause`.
#[derive(Debug, Args)]
#[command(
    after_help = "Works while the service runs, and before it starts. Running tasks end; new ones are accepted and wait, \
                  also through restarts. While paused, no task fails because it waits. For example, for new weights:\n  \
                  kinora pause kinora-a1 --reason \"new weights\"\n  \
                  kinora resume kinora-a1\n\n\
                  Before maintenance of all machines:\n  \
                  kinora pause --reason \"back at 14:00 UTC\" --data /var/lib/kinora"
)]
pub(crate) struct PauseArgs {
    /// The model, as configured: its identifier or an alias [default: all models]
    pub(crate) model: Option<String>,
    /// The reason, which clients and operators see
    #[arg(long, value_name = "TEXT")]
    pub(crate) reason: Option<String>,
    #[command(flatten)]
    pub(crate) home: HomeArgs,
}

/// Flags of `kinora resume`.
#[derive(Debug, Args)]
#[command(
    after_help = "Models that were paused one by one stay paused until each is resumed. For example:\n  \
                  kinora resume kinora-a1\n  \
                  kinora resume --data /var/lib/kinora"
)]
pub(crate) struct ResumeArgs {
    /// The model, as it was paused [default: ends the pause of all models]
    pub(crate) model: Option<String>,
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

/// Arguments of `kinora command-host`.
#[derive(Debug, Args)]
pub(crate) struct CommandHostArgs {
    /// What the command may access, as JSON; `null`: everything.
    pub(crate) confinement: String,
    /// The program and its arguments.
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, required = true)]
    pub(crate) command: Vec<OsString>,
}

/// Where the service is at home; the same for every command.
#[derive(Clone, Debug, Default, Args)]
pub(crate) struct HomeArgs {
    /// Folder for tasks, results and secrets [default: ./kinora-data]
    #[arg(long, value_name = "DIR", value_parser = path())]
    pub(crate) data: Option<PathBuf>,
    /// Configuration file (see `kinora config`); also as KINORA_CONFIG
    #[arg(long, value_name = "FILE", value_parser = path())]
    pub(crate) config: Option<PathBuf>,
}

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
