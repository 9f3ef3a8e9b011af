//! The syntax of blob keys. Invalid keys are refused before a path is built from them, so no key
//! escapes the store's folder on any file system.

use std::fmt;

use crate::BlobError;

/// Maximum length of a key, in bytes.
pub const KEY_BYTES_MAX: usize = 240;

/// A valid key: segments of `a` to `z`, `0` to `9`, `_`, `-` and `.`, joined by `/`; no segment is
/// empty or begins with a dot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BlobKey<'a>(&'a str);

impl<'a> BlobKey<'a> {
    /// Validates a key.
    ///
    /// # Errors
    /// [`BlobError::InvalidKey`].
    pub fn parse(key: &'a str) -> Result<Self, BlobError> {
        if key.len() <= KEY_BYTES_MAX && key.split('/').all(is_segment) {
            return Ok(Self(key));
        }
        // The text may be hostile and long; its beginning is enough to find it.
        Err(BlobError::InvalidKey(key.chars().take(80).collect()))
    }

    /// The key as text.
    pub const fn as_str(self) -> &'a str {
        self.0
    }
}

/// The characters of a segment; a leading dot is for temporary files.
fn is_segment(segment: &str) -> bool {
    !segment.is_empty()
        && !segment.starts_with('.')
        && segment
            .bytes()
            .all(|c| matches!(c, b'a'..=b'z' | b'0'..=b'9' | b'_' | b'-' | b'.'))
}

impl fmt::Display for BlobKey<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0)
    }
}

#[cfg(test)]
mod tests {
    use std::path::{Component, Path};

    use proptest::prelude::*;

    use super::*;

    #[test]
    fn near_misses_are_refused() {
        let long = "a".repeat(KEY_BYTES_MAX + 1);
        for wrong in [
            "", "/", "/a", "a/", "a//b", ".", "..", "a/..", "../a", "a/../b", ".a", "a/.b", "A",
            "a b", "a\\b", "a\0b", "a:b", "é", "a%2e", &long,
        ] {
            assert!(BlobKey::parse(wrong).is_err(), "{wrong:?}");
        }
        for right in [
            "a",
            "a.b",
            "a-b_c",
            "videos/video_01/7/video.mp4",
            &long[1..],
        ] {
            assert!(BlobKey::parse(right).is_ok(), "{right:?}");
        }
    }

    proptest! {
        #[test]
        fn an_accepted_key_never_leaves_the_folder(key in "[a./_\\-\\\\A~:\0 ]{0,12}") {
            if BlobKey::parse(&key).is_ok() {
                let normal = |part: Component<'_>| matches!(part, Component::Normal(_));
                prop_assert!(Path::new(&key).components().all(normal), "{key:?}");
                prop_assert!(!key.contains('\\') && !key.contains('\0'));
            }
        }
    }
}
