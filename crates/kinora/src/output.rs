//! Standard output for the results of commands; standard error for everything else.

use std::io::Write;

/// Prints a command's output. A reader that closes the pipe (`| head`) is not an error.
pub(crate) fn print(text: &str) {
    let mut out = std::io::stdout().lock();
    let _ = out.write_all(text.as_bytes()).and_then(|()| out.flush());
}

/// Prints a message for the person at the terminal.
pub(crate) fn say(text: &str) {
    // Nothing can report that standard error is closed.
    let _ = writeln!(std::io::stderr().lock(), "kinora: {text}");
}
