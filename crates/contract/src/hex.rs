//! Bytes as lower-case hexadecimal digits, using a table: every request writes signatures and a
//! request id.

const DIGITS: &[u8; 16] = b"0123456789abcdef";

/// The two digits of `byte`.
pub const fn pair(byte: u8) -> [u8; 2] {
    [DIGITS[(byte >> 4) as usize], DIGITS[(byte & 15) as usize]]
}

/// Adds the digits of `bytes` to `text`.
pub fn push(text: &mut String, bytes: &[u8]) {
    text.reserve(2 * bytes.len());
    for byte in bytes {
        let [high, low] = pair(*byte);
        text.push(char::from(high));
        text.push(char::from(low));
    }
}

/// `bytes` as text.
pub fn text(bytes: &[u8]) -> String {
    let mut text = String::new();
    push(&mut text, bytes);
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_byte_is_written_as_format_does() {
        for byte in 0..=u8::MAX {
            assert_eq!(text(&[byte]), format!("{byte:02x}"));
        }
        assert_eq!(text(&[0, 255, 16]), "00ff10");
        assert_eq!(text(&[]), "");
    }
}
