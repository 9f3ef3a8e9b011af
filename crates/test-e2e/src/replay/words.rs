//! The words of a line that `strace` wrote: arguments, quoted bytes, and descriptors with the paths
//! that `-y` adds.

/// The arguments of a call, and what follows the bracket that closes them. `text` begins behind the
/// bracket that opens them.
pub(super) fn arguments(text: &str) -> Option<(Vec<&str>, &str)> {
    let bytes = text.as_bytes();
    let (mut found, mut depth, mut from, mut at) = (Vec::new(), 0_u32, 0, 0);
    while at < bytes.len() {
        match bytes[at] {
            b'"' => at = end_of(bytes, at, b'"')?,
            b'<' => at = end_of(bytes, at, b'>')?,
            b'(' | b'[' | b'{' => depth += 1,
            b')' if depth == 0 => {
                found.push(text[from..at].trim());
                return Some((found, &text[at + 1..]));
            }
            b')' | b']' | b'}' => depth = depth.checked_sub(1)?,
            b',' if depth == 0 => {
                found.push(text[from..at].trim());
                from = at + 1;
            }
            _ => {}
        }
        at += 1;
    }
    None
}

/// Where the quotation that opens at `from` ends.
fn end_of(bytes: &[u8], from: usize, end: u8) -> Option<usize> {
    let mut at = from + 1;
    while *bytes.get(at)? != end {
        at += if bytes[at] == b'\\' { 2 } else { 1 };
    }
    Some(at)
}

/// The bytes of a quoted word; an error where `strace` left some out.
pub(super) fn quoted(word: &str) -> Result<Vec<u8>, String> {
    let (bytes, rest) = first_quoted(word).ok_or_else(|| format!("not quoted: {word:.80}"))?;
    if rest.is_empty() {
        Ok(bytes)
    } else {
        Err(format!("cut off by strace: {word:.80}"))
    }
}

/// The bytes of all parts of a vector (`struct iovec`), also inside of a message header.
pub(super) fn vector(word: &str) -> Result<Vec<u8>, String> {
    const PART: &str = "iov_base=";
    let (mut bytes, mut rest) = (Vec::new(), word);
    while let Some(at) = rest.find(PART) {
        let part = &rest[at + PART.len()..];
        let (more, behind) = first_quoted(part).ok_or_else(|| format!("no bytes: {part:.80}"))?;
        if behind.starts_with("...") {
            return Err(format!("cut off by strace: {part:.80}"));
        }
        bytes.extend(more);
        rest = behind;
    }
    Ok(bytes)
}

/// The bytes of the quotation that `text` begins with, and what follows it.
fn first_quoted(text: &str) -> Option<(Vec<u8>, &str)> {
    let end = text
        .starts_with('"')
        .then(|| end_of(text.as_bytes(), 0, b'"'))??;
    Some((unescaped(&text.as_bytes()[1..end])?, &text[end + 1..]))
}

/// Number and path of a descriptor: `7</a/path>`. `AT_FDCWD` has no number, and a closed one no path.
pub(super) fn descriptor(word: &str) -> (Option<u32>, String) {
    let (number, path) = word.split_once('<').unwrap_or((word, ">"));
    let path = path.rsplit_once('>').map_or(path, |(path, _)| path);
    let path = unescaped(path.as_bytes()).unwrap_or_default();
    let path = String::from_utf8_lossy(&path).into_owned();
    (number.parse().ok(), path)
}

fn unescaped(text: &[u8]) -> Option<Vec<u8>> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.iter().copied().peekable();
    while let Some(byte) = rest.next() {
        if byte != b'\\' {
            bytes.push(byte);
            continue;
        }
        bytes.push(match rest.next()? {
            b'n' => b'\n',
            b't' => b'\t',
            b'r' => b'\r',
            b'v' => 0x0b,
            b'f' => 0x0c,
            digit @ b'0'..=b'7' => {
                // One to three octal digits: three wherever a digit follows.
                let mut value = u32::from(digit - b'0');
                for _ in 0..2 {
                    let Some(next) = rest.next_if(|next| (b'0'..=b'7').contains(next)) else {
                        break;
                    };
                    value = value * 8 + u32::from(next - b'0');
                }
                u8::try_from(value).ok()?
            }
            same @ (b'"' | b'\\') => same,
            _ => return None,
        });
    }
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_end_at_outermost_commas() {
        let text =
            r#"3</a, b>, [{iov_base="x, )", iov_len=4}, {iov_base="\"", iov_len=1}], 2) = 5"#;
        let (found, rest) = arguments(text).unwrap();
        let vector = r#"[{iov_base="x, )", iov_len=4}, {iov_base="\"", iov_len=1}]"#;
        assert_eq!((found, rest), (vec!["3</a, b>", vector, "2"], " = 5"));
        assert_eq!(arguments("3, \"never closed"), None);
        assert_eq!(arguments("3, 4"), None);
    }

    #[test]
    fn bytes_are_those_that_were_written() {
        let text = r#""hello\0\0001\377\n\t\r\v\f\\\"x\1b""#;
        assert_eq!(
            quoted(text).unwrap(),
            b"hello\0\x001\xff\n\t\r\x0b\x0c\\\"x\x01b"
        );
        let parts = r#"{msg_iov=[{iov_base="a", iov_len=1}, {iov_base="iov_base=", iov_len=9}]}"#;
        assert_eq!(vector(parts).unwrap(), b"aiov_base=");
    }

    #[test]
    fn bytes_that_were_left_out_are_an_error() {
        assert!(quoted("\"begin\"...").unwrap_err().contains("cut off"));
        assert!(quoted("NULL").unwrap_err().contains("not quoted"));
        let part = "[{iov_base=\"begin\"..., iov_len=99}]";
        assert!(vector(part).unwrap_err().contains("cut off"));
    }

    #[test]
    fn descriptors_have_numbers_and_paths() {
        let of = |word| {
            let (number, path) = descriptor(word);
            (number, path.leak() as &str)
        };
        assert_eq!(of("7</a/b>"), (Some(7), "/a/b"));
        assert_eq!(of(r"7</a\74b\76>(deleted)"), (Some(7), "/a<b>"));
        assert_eq!(of("AT_FDCWD</tmp>"), (None, "/tmp"));
        assert_eq!(of("5<socket:[12]>"), (Some(5), "socket:[12]"));
        assert_eq!(of("9"), (Some(9), ""));
    }
}
