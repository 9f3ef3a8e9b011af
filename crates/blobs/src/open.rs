//! Finds a blob store by its address. A new implementation is one arm here.

use std::path::PathBuf;
use std::sync::Arc;

use crate::{BlobError, BlobStore, LocalBlobs};

/// Opens the store at `url`: `file:` with a path (`file:results`, `file:///var/lib/results`), or
/// a plain path. Reads and creates folders: call it before serving.
///
/// # Errors
/// [`BlobError::UnknownScheme`], or why the store cannot be opened.
pub fn open(url: &str) -> Result<Arc<dyn BlobStore>, BlobError> {
    Ok(Arc::new(LocalBlobs::open(root(url)?)?))
}

/// Opens the store at `url` beside a process that may be using it: what that one has staged stays, and
/// nothing is made. For commands that look at what is stored, or remove some of it.
///
/// # Errors
/// [`BlobError::UnknownScheme`].
pub fn open_beside(url: &str) -> Result<Arc<dyn BlobStore>, BlobError> {
    Ok(Arc::new(LocalBlobs::beside(root(url)?)))
}

/// The folder of the store at `url`, which is neither opened nor made.
///
/// # Errors
/// [`BlobError::UnknownScheme`] for a store that is no folder of this machine.
pub fn root(url: &str) -> Result<PathBuf, BlobError> {
    match url.split_once(':') {
        Some(("file", path)) => Ok(path.strip_prefix("//").unwrap_or(path).into()),
        Some((scheme, _)) if is_scheme(scheme) => Err(BlobError::UnknownScheme(url.to_owned())),
        _ => Ok(url.into()),
    }
}

/// A single letter is a drive, not a scheme.
fn is_scheme(text: &str) -> bool {
    text.len() > 1
        && text
            .bytes()
            .all(|c| c.is_ascii_alphanumeric() || b"+-.".contains(&c))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_known_addresses_are_opened() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().to_str().unwrap();
        for good in [
            format!("file:{path}/a"),
            format!("file://{path}/b"),
            format!("{path}/c"),
        ] {
            assert!(open(&good).is_ok(), "{good}");
        }
        for wrong in ["s3://bucket/prefix", "http://host/", "fil:x"] {
            assert!(
                matches!(open(wrong), Err(BlobError::UnknownScheme(_))),
                "{wrong}"
            );
        }
    }
}
