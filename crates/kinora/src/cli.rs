//! The command line. Help texts are the manual that people read first, so every command has an
//! example there.

mod backup;
mod client;
mod keys;
mod models;
mod service;

use std::path::PathBuf;

use clap::{Parser, Subcommand};
use clap_complete::Shell;

use crate::home_path::path;

pub(crate) use backup::{
    BackupArgs, ExportArgs, ImportArgs, MovedResults, RestoreArgs, ResultsMode,
};
pub(crate) use client::{
    CancelArgs, EditArgs, FilesCommand, FinalArgs, GenerateArgs, IdsArgs, OutputArgs, Reference,
    TasksCommand, reference,
};
pub(crate) use keys::{
    AddArgs, CreateArgs, DeliveriesArgs, KeysCommand, ListArgs, LogArgs, RotateArgs, WebhookArgs,
    WebhooksCommand,
};
pub(crate) use models::{
    AddModelArgs, ComfyCommand, ComfyImportArgs, EngineCheckArgs, EngineCommand, EngineName,
    EngineTryArgs, InstallArgs, ModelsCommand, NamedArgs, RemoveArgs, UpdateArgs, WishArgs,
};
pub(crate) use service::{
    CommandHostArgs, HomeArgs, OrphansArgs, PauseArgs, ResumeArgs, ServeArgs, TopArgs, UsageArgs,
    WorkerArgs, WorkersArgs,
};

/// Self-hosted video generation: post a task, poll it, get an MP4.
#[derive(Debug, Parser)]
#[command(
    name = "kinora",
    version,
    propagate_version = true,
    after_help = "Start here:\n  kinora serve\nOn its first start it creates an API key, and prints it or the path of its \
                  file; on a terminal, each start prints a link to Studio, the web page. Then, in another terminal:\n  kinora generate \"A red balloon drifts over the sea\" -o balloon.mp4"
)]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) command: CliCommand,
}

/// The commands.
#[derive(Debug, Subcommand)]
pub(crate) enum CliCommand {
    /// Serve the API and make videos, in one process; with --no-worker, the API alone.
    Serve(ServeArgs),
    /// Make videos for `kinora serve` processes that share this one's store; serve no clients.
    Worker(WorkerArgs),
    /// List the live workers, with their machines, models and load.
    Workers(WorkersArgs),
    /// Watch the queue, running and ended tasks, and the workers; press q to quit.
    Top(TopArgs),
    /// Pause a model, or all: workers begin none of its tasks until it is resumed.
    Pause(PauseArgs),
    /// Resume a paused model, or all.
    Resume(ResumeArgs),
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
    Migrate(HomeArgs),
    /// Make a video at a server and save it; Ctrl-C cancels it.
    Generate(GenerateArgs),
    /// Render a draft in full and save it.
    Final(FinalArgs),
    /// Make an edit of a video and save it.
    Edit(EditArgs),
    /// List, show, watch, download, cancel and delete tasks at a server.
    #[command(
        subcommand,
        after_help = "The server is KINORA_URL [default: http://127.0.0.1:8080], the key KINORA_KEY or KINORA_API_KEY. For example:\n  \
                      kinora tasks list"
    )]
    Tasks(TasksCommand),
    /// List and delete uploaded files at a server.
    #[command(
        subcommand,
        after_help = "`kinora generate` uploads files by itself. The server is KINORA_URL [default: http://127.0.0.1:8080], the \
                      key KINORA_API_KEY. For example:\n  \
                      kinora files list"
    )]
    Files(FilesCommand),
    /// Offer a server's videos as tools to AI assistants, by the Model Context Protocol.
    #[command(
        after_help = "An assistant (Claude, Cursor, VS Code and others) starts this command and speaks to it on standard input and \
                      output; docs/mcp.md has the configuration of each. The server is KINORA_URL [default: \
                      http://127.0.0.1:8080], the key KINORA_KEY or KINORA_API_KEY: set them in the assistant's configuration. \
                      The command to configure:\n  \
                      kinora mcp\n\n\
                      For example, in Claude Code:\n  \
                      claude mcp add kinora --env KINORA_KEY=kinora_... -- kinora mcp\n\n\
                      The assistant reads pictures and sounds of this machine for references, and writes videos to it, with your \
                      rights."
    )]
    Mcp,
    /// Create, list, rotate and revoke API keys; works while the service runs.
    #[command(
        subcommand,
        after_help = "Name the store as you name it to `kinora serve`. A usual life of a key:\n  \
                      kinora keys create --name web --data /var/lib/kinora\n  \
                      kinora keys rotate web --grace 24 --data /var/lib/kinora\n  \
                      kinora keys list --data /var/lib/kinora"
    )]
    Keys(KeysCommand),
    /// Add, list, remove, rotate and test webhooks, and see their deliveries; works while the service runs.
    #[command(
        subcommand,
        after_help = "Name the store as you name it to `kinora serve`. A usual life of a webhook:\n  \
                      kinora webhooks add --url https://shop.example.com/videos --project shop\n  \
                      kinora webhooks list\n  \
                      kinora webhooks test wh_abcdefghijkl\n  \
                      kinora webhooks deliveries wh_abcdefghijkl"
    )]
    Webhooks(WebhooksCommand),
    /// Add models by name; download, list, check and remove the weights of configured models.
    #[command(
        subcommand,
        after_help = "Pass the same --data or --config as to `kinora serve`. For example:\n  \
                      kinora models list --available\n  \
                      kinora models add wan2.2-ti2v-5b\n  \
                      kinora models remove wan2.2-ti2v-5b\n\n\
                      Models of a configuration of yours have their files by `pull`:\n  \
                      kinora models pull wan2.1-t2v-1.3b --config models/wan2.1-t2v-1.3b.toml"
    )]
    Models(ModelsCommand),
    /// Check a command that speaks the engine protocol, or try a server.
    #[command(
        subcommand,
        after_help = "For example:\n  kinora engine check -- python -m kinora_engine fade.py:Fade\n  \
                      kinora engine try seedance-lite \"A red balloon drifts over the sea\" --config kinora.toml"
    )]
    Engine(EngineCommand),
    /// Make engines of ComfyUI workflows.
    #[command(
        subcommand,
        after_help = "For example:\n  kinora comfy import wan.json > kinora.toml"
    )]
    Comfy(ComfyCommand),
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
    #[command(
        after_help = "Write it where the shell looks for completions. For example:\n  \
                      kinora completions bash > ~/.local/share/bash-completion/completions/kinora\n  \
                      kinora completions zsh > ~/.zfunc/_kinora\n  \
                      kinora completions fish > ~/.config/fish/completions/kinora.fish"
    )]
    Completions {
        /// The shell
        shell: Shell,
    },
    /// Write manual pages.
    #[command(
        after_help = "For example:\n  kinora man ~/.local/share/man/man1\n  man kinora-generate"
    )]
    Man {
        /// Folder for the pages, one per command; created if missing
        #[arg(value_name = "DIR", value_parser = path())]
        folder: PathBuf,
    },
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

impl CliCommand {
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
            Self::Generate(_)
            | Self::Final(_)
            | Self::Edit(_)
            | Self::Tasks(_)
            | Self::Mcp
            | Self::Man { .. } => true,
            // The service's user may be another one.
            Self::Models(ModelsCommand::Pull(_)) | Self::Engine(EngineCommand::Try(_)) => true,
            _ => false,
        }
    }
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
