//! Standard output, for the results of commands.

use std::io::Write;

/// Prints a command's output. A reader that closes the pipe (`| head`) is no fault.
pub(crate) fn print(text: &str) {
    let mut out = std::io::stdout().lock();
    let _ = out.write_all(text.as_bytes()).and_then(|()| out.flush());
}
