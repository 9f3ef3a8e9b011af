//! Standard output, for the results of commands; standard error, for all that is said beside them.

use std::io::Write;

/// Prints a command's output. A reader that closes the pipe (`| head`) is no fault.
pub(crate) fn print(text: &str) {
    let mut out = std::io::stdout().lock();
    let _ = out.write_all(text.as_bytes()).and_then(|()| out.flush());
}

/// Says something to the person at the terminal.
pub(crate) fn say(text: &str) {
    // There is nowhere to complain of a standard error that is closed.
    let _ = writeln!(std::io::stderr().lock(), "kinora: {text}");
}
