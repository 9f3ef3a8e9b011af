//! Questions to the person at the terminal.

use std::io::{self, Write};

/// Asks on standard error; whether the answer on standard input is yes.
pub(crate) fn is_confirmed(question: &str) -> bool {
    let mut answer = String::new();
    let asked = write!(io::stderr().lock(), "{question} [y/N] ");
    let read = asked.and_then(|()| io::stdin().read_line(&mut answer));
    read.is_ok() && matches!(answer.trim(), "y" | "Y" | "yes")
}
