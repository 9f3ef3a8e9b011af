//! The binary's commands that end by themselves.

use std::path::Path;
use std::process::Command;

use rustix::process::Signal;

use crate::binary::kinora_binary;
use crate::data::DataFolder;
use crate::process::{Finished, Process};

/// `kinora`, without the test run's own variables.
pub fn kinora() -> Command {
    program_under(&[], kinora_binary())
}

/// The same of `program`, started by another one: `outer` with its arguments.
pub(crate) fn program_under(outer: &[String], program: &Path) -> Command {
    let mut command = match outer {
        [] => Command::new(program),
        [first, arguments @ ..] => {
            let mut command = Command::new(first);
            command.args(arguments).arg(program);
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

/// `program`, without the test run's own variables.
pub fn program(program: &Path) -> Command {
    program_under(&[], program)
}

/// Runs a command to its end.
pub fn run(command: Command) -> Finished {
    Process::start(command, None).finished()
}

/// A command that is running; killed when dropped.
#[derive(Debug)]
pub struct Running(Process);

impl Running {
    /// Starts it.
    pub fn start(command: Command) -> Self {
        Self(Process::start(command, None))
    }

    /// What Ctrl-C sends: `SIGINT`.
    pub fn interrupt(&self) {
        self.0.signal(Signal::INT);
    }

    /// Waits for a line of its standard error that holds `part`.
    pub fn wait_for_word(&self, part: &str) {
        let found = self
            .0
            .stderr
            .wait_for(|line| line.contains(part).then_some(()));
        assert!(
            found.is_some(),
            "never said: {part}\n{}",
            self.0.stderr.text()
        );
    }

    /// Waits for a line of its output that holds `part`, and returns it.
    pub fn wait_for_output(&self, part: &str) -> String {
        let found = self
            .0
            .stdout
            .wait_for(|line| line.contains(part).then(|| line.to_owned()));
        found.unwrap_or_else(|| panic!("never printed: {part}\n{}", self.0.stdout.text()))
    }

    /// Waits for its end.
    pub fn finished(mut self) -> Finished {
        self.0.finished()
    }
}

/// Runs `kinora keys` on a data folder.
pub fn keys(data: &DataFolder, arguments: &[&str]) -> Finished {
    beside("keys", data, arguments)
}

/// Runs `kinora webhooks` on a data folder.
pub fn webhooks(data: &DataFolder, arguments: &[&str]) -> Finished {
    beside("webhooks", data, arguments)
}

fn beside(name: &str, data: &DataFolder, arguments: &[&str]) -> Finished {
    let mut command = kinora();
    command
        .arg(name)
        .args(arguments)
        .arg("--data")
        .arg(data.path())
        .envs(data.store_variables());
    run(command)
}
