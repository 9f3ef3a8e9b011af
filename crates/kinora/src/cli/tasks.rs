//! The flags of `kinora tasks`, `kinora completions` and `kinora man`.

use std::path::PathBuf;

use clap::{Args, Subcommand};
use clap_complete::Shell;

use crate::tilde::path;

/// Flags of `kinora tasks`.
#[derive(Debug, Args)]
#[command(
    after_help = "The server is KINORA_URL [default: http://127.0.0.1:8080], the key KINORA_API_KEY. For example:\n  \
                  kinora tasks list"
)]
pub(crate) struct TasksArgs {
    #[command(subcommand)]
    pub(crate) command: TasksCommand,
}

/// The commands of `kinora tasks`.
#[derive(Debug, Subcommand)]
pub(crate) enum TasksCommand {
    /// List the project's tasks, newest first.
    #[command(after_help = "For example:\n  kinora tasks list --limit 100\n  \
                      kinora tasks list --json | jq -r '.[] | select(.status == \"failed\") | .id'")]
    List {
        /// Maximum number of tasks
        #[arg(long, value_name = "TASKS", default_value_t = 20)]
        limit: u32,
        /// Print JSON, as the API returns it
        #[arg(long)]
        json: bool,
    },
    /// Show everything about a task.
    #[command(after_help = "For example:\n  kinora tasks show video_01k3v8r2n8p5c1w9g7d4x6m2ta")]
    Show {
        /// The task
        #[arg(value_name = "ID")]
        id: String,
        /// Print JSON, as the API returns it
        #[arg(long)]
        json: bool,
    },
    /// Follow a task until it ends, and print its final state.
    #[command(
        after_help = "Ctrl-C stops watching; the task goes on. With --json each change is a line. For example:\n  \
                      kinora tasks watch video_01k3v8r2n8p5c1w9g7d4x6m2ta"
    )]
    Watch {
        /// The task
        #[arg(value_name = "ID")]
        id: String,
        /// Print each change as one line of JSON
        #[arg(long)]
        json: bool,
    },
    /// Save the video of a task, once it is completed.
    #[command(
        after_help = "Waits for the task first. A download that broke off goes on where it was. For example:\n  \
                      kinora tasks download video_01k3v8r2n8p5c1w9g7d4x6m2ta -o out.mp4"
    )]
    Download {
        /// The task
        #[arg(value_name = "ID")]
        id: String,
        /// File for the video, replaced if it exists [default: ID.mp4 in this folder]
        #[arg(short, long, value_name = "FILE", value_parser = path())]
        output: Option<PathBuf>,
        /// Print the task as JSON instead of the file's path
        #[arg(long)]
        json: bool,
    },
    /// Cancel unfinished tasks.
    #[command(after_help = "For example:\n  kinora tasks cancel video_01k3v8r2n8p5c1w9g7d4x6m2ta")]
    Cancel(IdsArgs),
    /// Delete tasks and their videos; unfinished ones are cancelled first.
    #[command(after_help = "For example:\n  kinora tasks delete video_01k3v8r2n8p5c1w9g7d4x6m2ta")]
    Delete(IdsArgs),
}

/// One or more tasks.
#[derive(Debug, Args)]
pub(crate) struct IdsArgs {
    /// The tasks
    #[arg(value_name = "ID", required = true)]
    pub(crate) ids: Vec<String>,
    /// Print JSON, one line per task
    #[arg(long)]
    pub(crate) json: bool,
}

/// Flags of `kinora completions`.
#[derive(Debug, Args)]
#[command(
    after_help = "Write it where the shell looks for completions. For example:\n  \
                  kinora completions bash > ~/.local/share/bash-completion/completions/kinora\n  \
                  kinora completions zsh > ~/.zfunc/_kinora\n  \
                  kinora completions fish > ~/.config/fish/completions/kinora.fish"
)]
pub(crate) struct CompletionsArgs {
    /// The shell
    pub(crate) shell: Shell,
}

/// Flags of `kinora man`.
#[derive(Debug, Args)]
#[command(after_help = "For example:\n  kinora man ~/.local/share/man/man1\n  man kinora-generate")]
pub(crate) struct ManArgs {
    /// Folder for the pages, one per command; created if missing
    #[arg(value_name = "DIR", value_parser = path())]
    pub(crate) folder: PathBuf,
}
