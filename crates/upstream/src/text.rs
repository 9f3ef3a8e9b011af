//! Makes an upstream's text fit for the log: bounded, on one line. It never reaches a client.

use std::error::Error;

const SHOWN_CHARS_MAX: usize = 500;

/// The first characters of `bytes`, without control characters.
pub fn shown(bytes: &[u8]) -> String {
    // A character has at most four bytes.
    let head = &bytes[..bytes.len().min(4 * SHOWN_CHARS_MAX)];
    String::from_utf8_lossy(head)
        .chars()
        .take(SHOWN_CHARS_MAX)
        .map(|one| if one.is_control() { ' ' } else { one })
        .collect()
}

/// The error with all its causes.
pub fn chain(error: &dyn Error) -> String {
    shown(kinora_http::error_chain(error).as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_bounded_and_on_one_line() {
        assert_eq!(shown(b"a\r\nb\x1b[0m"), "a  b [0m");
        assert_eq!(
            shown("\u{1F3AC}".repeat(9_000).as_bytes()).chars().count(),
            500
        );
        let error = crate::Cause::Connect(std::io::Error::other("refused\n").into());
        assert_eq!(chain(&error), "connecting failed: refused ");
        assert_eq!(shown(b"\xff"), "\u{FFFD}");
    }
}
