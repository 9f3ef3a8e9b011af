//! `kinora completions` and `kinora man`, generated from the definitions of the command line.
//! Hidden commands are left out.

use std::path::Path;

use clap::{Command, CommandFactory};
use clap_complete::Shell;

use crate::cli::Cli;
use crate::failure::Failure;
use crate::output::print;

/// Prints a shell's completions.
pub(crate) fn completions(shell: Shell) -> Result<(), Failure> {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut shown(), "kinora", &mut script);
    print(&String::from_utf8_lossy(&script));
    Ok(())
}

/// The commands for people: the generators would complete hidden ones too.
fn shown() -> Command {
    let all = Cli::command();
    let shown = all.get_subcommands().filter(|one| !one.is_hide_set());
    Command::new("kinora")
        .version(env!("CARGO_PKG_VERSION"))
        .subcommands(shown.cloned())
}

/// Writes a page for each command, and prints the folder.
pub(crate) fn man(folder: &Path) -> Result<(), Failure> {
    std::fs::create_dir_all(folder)
        .and_then(|()| clap_mangen::generate_to(Cli::command(), folder))
        .map_err(|error| Failure::at(folder, "cannot be written to", error))?;
    print(&format!("{}\n", folder.display()));
    Ok(())
}
