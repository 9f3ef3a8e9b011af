//! The flags of `kinora models`.

use clap::{Args, Subcommand};

use super::home::HomeArgs;

/// Flags of `kinora models`.
#[derive(Debug, Args)]
#[command(
    after_help = "Pass the same --config as to `kinora serve`. For example:\n  \
                  kinora models pull wan2.1-t2v-1.3b --config models/wan2.1-t2v-1.3b.toml\n  \
                  kinora models check --config models/wan2.1-t2v-1.3b.toml"
)]
pub(crate) struct ModelsArgs {
    #[command(subcommand)]
    pub(crate) command: ModelsCommand,
}

/// The commands of `kinora models`.
#[derive(Debug, Subcommand)]
pub(crate) enum ModelsCommand {
    /// Download the missing files of models from their publishers, and check them.
    #[command(
        after_help = "The configuration says where files come from ([[engines.files]]), and has the mirror and the token \
                      ([weights]). A download that was interrupted goes on where it stopped. For example:\n  \
                      kinora models pull wan2.1-t2v-1.3b --config models/wan2.1-t2v-1.3b.toml\n\n\
                      From a mirror with the publishers' paths:\n  \
                      KINORA_WEIGHTS_MIRROR=https://mirror.example.com kinora models pull wan2.1-t2v-1.3b"
    )]
    Pull(NamedArgs),
    /// List the configured models with their engines, and which of their files are present.
    #[command(
        after_help = "It looks at lengths and does not read the files; `kinora models check` does. For example:\n  \
                      kinora models list --config models/wan2.1-t2v-1.3b.toml\n  \
                      kinora models list --json | jq '.[] | select(.state == \"missing\") | .model'"
    )]
    List {
        /// Print JSON
        #[arg(long)]
        json: bool,
        #[command(flatten)]
        home: HomeArgs,
    },
    /// Remove the downloaded files of models that no other configured model uses.
    #[command(
        after_help = "Files without a source in the configuration stay. For example:\n  \
                      kinora models remove wan2.1-t2v-1.3b --config models/wan2.1-t2v-1.3b.toml"
    )]
    Remove(NamedArgs),
    /// Report which files of each engine are missing, truncated or for another model, and load the
    /// rest; ask the servers of other engines whether they would make films.
    #[command(
        after_help = "For example:\n  kinora models check --config models/wan2.1-t2v-1.3b.toml\n  \
                      kinora models check --no-load"
    )]
    Check {
        /// Check only the files: quick, and needs no memory
        #[arg(long)]
        no_load: bool,
        #[command(flatten)]
        home: HomeArgs,
    },
}

/// Flags of commands that work on the files of named models.
#[derive(Debug, Args)]
pub(crate) struct NamedArgs {
    /// Models, by id or alias
    #[arg(value_name = "NAME", required = true)]
    pub(crate) names: Vec<String>,
    #[command(flatten)]
    pub(crate) home: HomeArgs,
}
