//! Parses the parameters of a header value, as in `multipart/form-data; boundary="x"` (RFC 9110,
//! 5.6.6). Parsing is lenient: callers validate the result.

use kinora_contract::ErrorCode;

use crate::error::ApiError;

/// Name (in lower case) and value (unquoted) of each parameter, in the order sent.
pub(crate) fn parameters(value: &str) -> Vec<(String, String)> {
    let pieces = split(value).into_iter().skip(1);
    pieces
        .filter_map(|piece| {
            let (name, value) = piece.split_once('=')?;
            Some((name.trim().to_ascii_lowercase(), unquoted(value.trim())))
        })
        .collect()
}

/// Splits at semicolons outside quotes.
fn split(value: &str) -> Vec<&str> {
    let (mut quoted, mut escaped, mut start) = (false, false, 0);
    let mut pieces = Vec::new();
    for (at, byte) in value.bytes().enumerate() {
        match byte {
            _ if escaped => escaped = false,
            b'\\' if quoted => escaped = true,
            b'"' => quoted = !quoted,
            b';' if !quoted => {
                pieces.push(&value[start..at]);
                start = at + 1;
            }
            _ => {}
        }
    }
    pieces.push(&value[start..]);
    pieces
}

fn unquoted(value: &str) -> String {
    let inner = value
        .strip_prefix('"')
        .and_then(|open| open.strip_suffix('"'));
    let Some(inner) = inner else {
        return value.to_owned();
    };
    let mut text = String::with_capacity(inner.len());
    let mut escaped = false;
    for char in inner.chars() {
        escaped = char == '\\' && !escaped;
        if !escaped {
            text.push(char);
        }
    }
    text
}

/// Refuses character sets other than UTF-8 and its subset ASCII; the error names `param`.
pub(crate) fn check_charset(content_type: &str, param: &str) -> Result<(), ApiError> {
    let known = ["utf-8", "utf8", "us-ascii", "ascii"];
    let all = parameters(content_type);
    let mut charsets = all.iter().filter(|(name, _)| name == "charset");
    if charsets.all(|(_, charset)| known.iter().any(|one| charset.eq_ignore_ascii_case(one))) {
        return Ok(());
    }
    let message = "The character set is not supported; send UTF-8.";
    Err(ApiError::of(ErrorCode::UnsupportedEncoding, param, message))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quotes_hide_semicolons_and_names_have_no_case() {
        let pairs = |value| {
            let read = parameters(value).into_iter();
            read.map(|(name, value)| format!("{name}={value}"))
                .collect::<Vec<_>>()
        };
        assert!(pairs("application/json").is_empty());
        assert_eq!(pairs("a/b; Charset=UTF-8"), ["charset=UTF-8"]);
        let named = r#"form-data; name="a; filename=b"; FileName*=UTF-8''c.png"#;
        assert_eq!(
            pairs(named),
            ["name=a; filename=b", "filename*=UTF-8''c.png"]
        );
        assert_eq!(pairs(r#"x; name="a\"; b\\""#), [r#"name=a"; b\"#]);
        assert_eq!(pairs("x;;=; name"), ["="]);
        assert_eq!(pairs("x; é=\"ü"), ["é=\"ü"]);
    }
}
