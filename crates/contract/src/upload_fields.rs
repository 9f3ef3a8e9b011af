//! The request that uploads a file: the text parts of its form, with OpenAI's names. The bytes never
//! come here.

use serde_json::json;
use sha2::{Digest, Sha256};

use crate::error::{ErrorCode, RequestRefusal};
use crate::limits::{
    FILE_HOURS_DEFAULT, FILE_NAME_CHARS_MAX, FILE_PURPOSE_CHARS_MAX, FILE_SECONDS_MAX,
    FILE_SECONDS_MIN,
};

/// Purpose of a file without one.
const PURPOSE_DEFAULT: &str = "user_data";
/// Name of a file without one.
const NAME_DEFAULT: &str = "file";

const PURPOSE: &str = "purpose";
const ANCHOR: &str = "expires_after[anchor]";
const SECONDS: &str = "expires_after[seconds]";

/// Collects the text parts.
#[derive(Debug, Default)]
pub struct UploadFields {
    purpose: Option<String>,
    anchor: Option<String>,
    seconds: Option<String>,
}

/// A valid request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UploadRequest {
    /// The purpose, as sent.
    pub purpose: String,
    /// Lifetime.
    pub seconds: u64,
}

impl Default for UploadRequest {
    fn default() -> Self {
        Self {
            purpose: PURPOSE_DEFAULT.to_owned(),
            seconds: FILE_HOURS_DEFAULT * 60 * 60,
        }
    }
}

impl UploadFields {
    /// Adds one text part.
    ///
    /// # Errors
    /// `unknown_parameter`, or `invalid_value` for a part that was sent before.
    pub fn push(&mut self, name: &str, text: String) -> Result<(), RequestRefusal> {
        let field = match name {
            PURPOSE => &mut self.purpose,
            ANCHOR => &mut self.anchor,
            SECONDS => &mut self.seconds,
            _ => {
                let shown: String = name.chars().take(64).collect();
                let message = format!(
                    "Unknown parameter: '{shown}'. An upload takes file, {PURPOSE}, {ANCHOR}, {SECONDS}."
                );
                let code = ErrorCode::UnknownParameter;
                return Err(RequestRefusal::for_param(code, shown, message));
            }
        };
        match field.replace(text) {
            Some(_) => Err(invalid(name, format!("'{name}' was sent more than once."))),
            None => Ok(()),
        }
    }

    /// The request that consists of these parts.
    ///
    /// # Errors
    /// `missing_required_parameter` or `invalid_value`.
    pub fn into_request(self) -> Result<UploadRequest, RequestRefusal> {
        let default = UploadRequest::default();
        let purpose = self.purpose.unwrap_or(default.purpose);
        let count = purpose.chars().count();
        if !(1..=FILE_PURPOSE_CHARS_MAX).contains(&count) || purpose.contains(char::is_control) {
            let message = format!(
                "'{PURPOSE}' must have 1 to {FILE_PURPOSE_CHARS_MAX} characters, and no control characters."
            );
            return Err(invalid(PURPOSE, message));
        }
        if self
            .anchor
            .as_deref()
            .is_some_and(|anchor| anchor != "created_at")
        {
            return Err(invalid(ANCHOR, format!("'{ANCHOR}' must be 'created_at'.")));
        }
        let seconds = match (self.anchor, self.seconds) {
            (None, None) => default.seconds,
            (Some(_), None) => return Err(missing(SECONDS)),
            (None, Some(_)) => return Err(missing(ANCHOR)),
            (Some(_), Some(text)) => seconds(&text)?,
        };
        Ok(UploadRequest { purpose, seconds })
    }
}

impl UploadRequest {
    /// SHA-256 of the request in a normal form: equal for the same request, whatever the order of its
    /// parts. `sha256` is that of the file's bytes.
    #[must_use]
    pub fn fingerprint(&self, filename: &str, sha256: &str) -> [u8; 32] {
        let normal = json!([filename, self.purpose, self.seconds, sha256]);
        Sha256::digest(normal.to_string()).into()
    }
}

/// The name of a file that a client sent as `sent`: without folders and control characters.
#[must_use]
pub fn file_name(sent: &str) -> String {
    let name = sent.rsplit(['/', '\\']).next().unwrap_or_default();
    let name = name.chars().filter(|char| !char.is_control());
    let name: String = name.take(FILE_NAME_CHARS_MAX).collect();
    if name.trim().is_empty() {
        NAME_DEFAULT.to_owned()
    } else {
        name
    }
}

fn seconds(text: &str) -> Result<u64, RequestRefusal> {
    let is_number = text.bytes().all(|byte| byte.is_ascii_digit());
    let number = is_number.then(|| text.parse().ok()).flatten();
    number
        .filter(|seconds| (FILE_SECONDS_MIN..=FILE_SECONDS_MAX).contains(seconds))
        .ok_or_else(|| {
            let range = format!("from {FILE_SECONDS_MIN} to {FILE_SECONDS_MAX}");
            invalid(SECONDS, format!("'{SECONDS}' must be {range}."))
        })
}

fn invalid(param: &str, message: impl Into<String>) -> RequestRefusal {
    RequestRefusal::for_param(ErrorCode::InvalidValue, param, message)
}

fn missing(param: &str) -> RequestRefusal {
    let message = format!("Missing required parameter: '{param}'.");
    RequestRefusal::for_param(ErrorCode::MissingRequiredParameter, param, message)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(parts: &[(&str, &str)]) -> Result<UploadRequest, (ErrorCode, Option<String>)> {
        let mut fields = UploadFields::default();
        let pushed = parts
            .iter()
            .try_for_each(|(name, text)| fields.push(name, (*text).to_owned()));
        pushed
            .and_then(|()| fields.into_request())
            .map_err(|refusal| (refusal.code, refusal.param))
    }

    #[test]
    fn a_file_lives_a_day_unless_its_upload_says_how_long() {
        assert_eq!(read(&[]), Ok(UploadRequest::default()));
        assert_eq!(read(&[]).unwrap().seconds, 86_400);
        let anchor = (ANCHOR, "created_at");
        for good in ["3600", "2592000"] {
            let read = read(&[("purpose", "vision"), (SECONDS, good), anchor]).unwrap();
            assert_eq!(read.seconds.to_string(), good);
            assert_eq!(read.purpose, "vision");
        }
        for wrong in [
            "3599",
            "2592001",
            "",
            "-1",
            "+3600",
            "1e4",
            "36000.0",
            "99999999999999999999",
        ] {
            let refused = (ErrorCode::InvalidValue, Some(SECONDS.to_owned()));
            assert_eq!(read(&[(SECONDS, wrong), anchor]), Err(refused), "{wrong}");
        }
    }

    #[test]
    fn wrong_parts_are_refused_by_name() {
        let long = "p".repeat(FILE_PURPOSE_CHARS_MAX + 1);
        assert!(read(&[("purpose", &long[1..])]).is_ok());
        for (parts, code, param) in [
            (
                &[("purpose", &*long)][..],
                ErrorCode::InvalidValue,
                "purpose",
            ),
            (&[("purpose", "")], ErrorCode::InvalidValue, "purpose"),
            (&[("purpose", "a\0")], ErrorCode::InvalidValue, "purpose"),
            (
                &[("purpose", "a"), ("purpose", "a")],
                ErrorCode::InvalidValue,
                "purpose",
            ),
            (&[("name", "a")], ErrorCode::UnknownParameter, "name"),
            (
                &[(ANCHOR, "now"), (SECONDS, "3600")],
                ErrorCode::InvalidValue,
                ANCHOR,
            ),
            (
                &[(ANCHOR, "created_at")],
                ErrorCode::MissingRequiredParameter,
                SECONDS,
            ),
            (
                &[(SECONDS, "3600")],
                ErrorCode::MissingRequiredParameter,
                ANCHOR,
            ),
        ] {
            assert_eq!(read(parts), Err((code, Some(param.to_owned()))));
        }
    }

    #[test]
    fn a_name_has_no_folder_and_nothing_that_a_header_or_terminal_obeys() {
        assert_eq!(file_name("C:\\photos\\day 1.jpg"), "day 1.jpg");
        assert_eq!(file_name("../../etc/passwd"), "passwd");
        assert_eq!(file_name("a\r\n\u{1b}b.png"), "ab.png");
        for empty in ["", "/", " ", "a/", "\n"] {
            assert_eq!(file_name(empty), "file", "{empty:?}");
        }
        assert_eq!(
            file_name(&"é".repeat(300)).chars().count(),
            FILE_NAME_CHARS_MAX
        );
    }

    #[test]
    fn the_fingerprint_is_that_of_everything_that_was_sent() {
        let request = UploadRequest::default();
        let first = request.fingerprint("a", "00");
        assert_eq!(first, request.fingerprint("a", "00"));
        let other = UploadRequest {
            purpose: "vision".to_owned(),
            ..request.clone()
        };
        let longer = UploadRequest {
            seconds: 3_600,
            ..request.clone()
        };
        for changed in [
            request.fingerprint("b", "00"),
            request.fingerprint("a", "01"),
            other.fingerprint("a", "00"),
            longer.fingerprint("a", "00"),
        ] {
            assert_ne!(first, changed);
        }
    }
}
