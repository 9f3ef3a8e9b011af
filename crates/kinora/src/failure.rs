//! Why a command failed: a message for the person at the terminal, and an exit code for programs.
//! Commands return failures; only the program's `main` prints them.

use std::fmt;
use std::path::Path;
use std::process::ExitCode;

/// A sentence that names the problem and, if it helps, the remedy.
#[derive(Debug)]
pub(crate) struct Failure {
    text: String,
    exit: ExitKind,
}

/// Exit codes, listed in `docs/cli.md`. clap also uses 2, for a command line that it cannot parse.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum ExitKind {
    /// The command or the task failed.
    #[default]
    Failed = 1,
    /// The command line or the environment is wrong.
    Usage = 2,
    /// The server cannot be reached, or does not work properly.
    Unreachable = 3,
    /// The server refused the request.
    Refused = 4,
    /// Nothing failed, but a check could not test what it should.
    Untested = 5,
    /// The video is made, and could not be written here.
    Unsaved = 6,
    /// Ctrl-C.
    Interrupted = 130,
}

impl Failure {
    pub(crate) fn new(text: impl Into<String>) -> Self {
        Self {
            text: text.into(),
            exit: ExitKind::default(),
        }
    }

    /// A failure of `what` because of `cause`.
    pub(crate) fn because(what: impl fmt::Display, cause: impl fmt::Display) -> Self {
        Self::new(format!("{what}: {cause}"))
    }

    /// A failure at `path`; `what` is such as "cannot be read".
    pub(crate) fn at(path: &Path, what: &str, cause: impl fmt::Display) -> Self {
        Self::because(format!("{} {what}", path.display()), cause)
    }

    /// Sets the exit code.
    #[must_use]
    pub(crate) fn exit(self, exit: ExitKind) -> Self {
        Self { exit, ..self }
    }

    /// Prepends `words` to the message.
    #[must_use]
    pub(crate) fn with_prefix(self, words: &str) -> Self {
        Self {
            text: format!("{words}{}", self.text),
            ..self
        }
    }

    /// Appends `words` to the message.
    #[must_use]
    pub(crate) fn with_suffix(self, words: &str) -> Self {
        Self {
            text: format!("{}{words}", self.text),
            ..self
        }
    }

    /// The kind of failure, for another one that sums it up.
    pub(crate) const fn exit_kind(&self) -> ExitKind {
        self.exit
    }

    /// The exit code of the process.
    pub(crate) fn code(&self) -> ExitCode {
        ExitCode::from(self.exit as u8)
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}
