//! The binary's commands that end by themselves.

use std::process::Command;

use crate::binary::kinora_binary;
use crate::data::DataFolder;
use crate::process::{Finished, Process};

/// `kinora`, without the test run's own variables.
pub fn kinora() -> Command {
    kinora_under(&[])
}

/// The same, started by another program: `outer` with its arguments.
pub(crate) fn kinora_under(outer: &[String]) -> Command {
    let mut command = match outer {
        [] => Command::new(kinora_binary()),
        [program, arguments @ ..] => {
            let mut command = Command::new(program);
            command.args(arguments).arg(kinora_binary());
            command
        }
    };
    for (name, _) in std::env::vars_os() {
        if name.to_string_lossy().starts_with("KINORA_") {
            command.env_remove(name);
        }
    }
    command
}

/// Runs a command to its end.
pub fn run(command: Command) -> Finished {
    Process::start(command, None).finished()
}

/// Runs `kinora keys` on a data folder.
pub fn keys(data: &DataFolder, arguments: &[&str]) -> Finished {
    let mut command = kinora();
    command
        .arg("keys")
        .args(arguments)
        .arg("--data")
        .arg(data.path());
    run(command)
}
