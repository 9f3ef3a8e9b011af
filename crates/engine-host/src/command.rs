//! Runs an operator's command once, to its end: it reads a text from its standard input, and is killed with all that it
//! started at a time limit, or when the caller no longer needs it. Its standard output is discarded.

use std::io::{self, Read, Write};
use std::process::Command;
use std::sync::Arc;
use std::time::Duration;

use kinora_contract::{Clock, Stopwatch};

use crate::process::{ChildProcess, Received};
use crate::wire::{MessageBounds, WireMessage};

/// How often to ask the caller, and to see whether the command has exited.
const POLL_INTERVAL: Duration = Duration::from_millis(20);

/// Why a command did not do its work.
#[derive(Debug, thiserror::Error)]
pub enum CommandError {
    /// The system could not start it.
    #[error("it could not be started: {0}")]
    Start(#[from] io::Error),
    /// It exited with another status than 0; the last lines of its standard error.
    #[error("{status}: {stderr}")]
    Exit {
        /// How it ended.
        status: String,
        /// The last lines, joined by bars.
        stderr: String,
    },
    /// It took too long.
    #[error("it took longer than {} s: {stderr}", .limit.as_secs())]
    TimedOut {
        /// The limit.
        limit: Duration,
        /// The last lines, joined by bars.
        stderr: String,
    },
    /// The caller no longer needed it.
    #[error("it was stopped")]
    Stopped,
}

/// Runs `command` with `input`, for at most `limit`; the log uses `name`. Stops as soon as `go_on` returns false.
///
/// # Errors
/// [`CommandError`], unless it exits with status 0.
pub fn run_command(
    name: &str,
    command: Command,
    input: String,
    limit: Duration,
    clock: &Arc<dyn Clock>,
    go_on: &mut dyn FnMut() -> bool,
) -> Result<(), CommandError> {
    let start = Stopwatch::start(clock);
    // Dropping this kills the command.
    let mut process =
        ChildProcess::<Input, Output>::start(name, command, None, MessageBounds::default())?;
    process.send(Input(input));
    process.close_input();
    while process.is_alive() {
        if !go_on() {
            return Err(CommandError::Stopped);
        }
        if start.elapsed() > limit {
            let stderr = process.last_lines();
            return Err(CommandError::TimedOut { limit, stderr });
        }
        // Its output may end long before its work does.
        if matches!(process.receive(POLL_INTERVAL), Received::Closed) {
            std::thread::sleep(POLL_INTERVAL);
        }
    }
    match process.last_status() {
        Some(status) if status.success() => Ok(()),
        status => Err(CommandError::Exit {
            status: status.map_or_else(|| "no status".to_owned(), |status| status.to_string()),
            stderr: process.last_lines(),
        }),
    }
}

/// All that the command reads.
struct Input(String);

impl WireMessage for Input {
    fn body_bytes_max(_: u8, _: &MessageBounds) -> u32 {
        0
    }

    fn pack(self) -> io::Result<(u8, Vec<u8>)> {
        Ok((0, self.0.into_bytes()))
    }

    fn unpack(_: u8, _: Vec<u8>) -> io::Result<Option<Self>> {
        Ok(None)
    }

    /// As it is, since the command knows nothing of our messages.
    fn write(self, to: &mut impl Write) -> io::Result<()> {
        to.write_all(self.0.as_bytes())
    }
}

/// What the command prints, which nobody reads.
struct Output;

impl WireMessage for Output {
    fn body_bytes_max(_: u8, _: &MessageBounds) -> u32 {
        0
    }

    fn pack(self) -> io::Result<(u8, Vec<u8>)> {
        Ok((0, Vec::new()))
    }

    fn unpack(_: u8, _: Vec<u8>) -> io::Result<Option<Self>> {
        Ok(None)
    }

    fn read(from: &mut impl Read, _: &MessageBounds) -> io::Result<Option<Self>> {
        io::copy(from, &mut io::sink())?;
        Ok(None)
    }
}
