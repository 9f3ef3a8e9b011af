//! Why a command failed, in words for the person at the terminal, and the exit code for programs.

use std::fmt;
use std::process::ExitCode;

/// A sentence that names the problem and, where it helps, the remedy.
#[derive(Debug)]
pub(crate) struct Failure {
    text: String,
    exit: Exit,
}

/// Exit codes; `docs/cli.md` lists them. 2 is also clap's code for a command line that it cannot read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Exit {
    /// The command or the task failed.
    #[default]
    Failed = 1,
    /// The command line or the environment is wrong.
    Usage = 2,
    /// The server cannot be reached, or does not work.
    Unreachable = 3,
    /// The server refused the request.
    Refused = 4,
    /// Ctrl-C.
    Interrupted = 130,
}

impl Failure {
    pub(crate) fn new(text: impl Into<String>) -> Self {
        Self {
            text: text.into(),
            exit: Exit::default(),
        }
    }

    /// `what` could not be done because of `cause`.
    pub(crate) fn because(what: impl fmt::Display, cause: impl fmt::Display) -> Self {
        Self::new(format!("{what}: {cause}"))
    }

    /// The same with another exit code.
    #[must_use]
    pub(crate) fn exit(self, exit: Exit) -> Self {
        Self { exit, ..self }
    }

    /// The same with words before it.
    #[must_use]
    pub(crate) fn before(self, words: &str) -> Self {
        Self {
            text: format!("{words}{}", self.text),
            ..self
        }
    }

    /// The same with words behind it.
    #[must_use]
    pub(crate) fn and(self, words: &str) -> Self {
        Self {
            text: format!("{}{words}", self.text),
            ..self
        }
    }

    /// The code with which the process ends.
    pub(crate) fn code(&self) -> ExitCode {
        ExitCode::from(self.exit as u8)
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}
