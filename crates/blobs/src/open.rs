//! Finds a blob store by its address. A new implementation is one arm here. Addresses may contain secrets:
//! errors name the scheme alone, and people are shown [`shown`].

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

/// Opens the store at `url` to read, list and delete: nothing is made, and puts are refused. For commands
/// that work beside a service.
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
        Some((scheme, _)) if is_scheme(scheme) => Err(BlobError::UnknownScheme(scheme.to_owned())),
        _ => Ok(url.into()),
    }
}

/// Where the store at `url` is, for people and logs: the absolute path of a folder, or scheme, host and path of
/// an address. Credentials and parameters are left out.
pub fn shown(url: &str) -> String {
    match root(url) {
        Ok(folder) => {
            let folder = std::path::absolute(&folder).unwrap_or(folder);
            folder.display().to_string()
        }
        Err(_) => address_shown(url),
    }
}

fn address_shown(url: &str) -> String {
    let (scheme, rest) = url.split_once(':').unwrap_or((url, ""));
    let rest = rest.split(['?', '#']).next().unwrap_or_default();
    let Some(rest) = rest.strip_prefix("//") else {
        // Not of the usual form: nobody knows where a secret would stand.
        return format!("{scheme}:...");
    };
    let (authority, path) = match rest.split_once('/') {
        Some((authority, path)) => (authority, format!("/{path}")),
        None => (rest, String::new()),
    };
    // A password may contain the separator.
    let host = authority
        .rsplit_once('@')
        .map_or(authority, |(_, host)| host);
    match path.contains('@') {
        // A password with an unescaped slash reaches into the path.
        true => format!("{scheme}://..."),
        false => format!("{scheme}://{host}{path}"),
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

    #[test]
    fn p14_no_secret_of_an_address_is_shown() {
        for (url, wanted) in [
            ("s3://bucket/prefix", "s3://bucket/prefix"),
            ("s3://id:secret@host:9000/bucket", "s3://host:9000/bucket"),
            ("s3://id:sec@secret@host", "s3://host"),
            ("s3://id:sec/secret@host/bucket", "s3://..."),
            ("s3://bucket/p?key=secret#secret", "s3://bucket/p"),
            ("s3:id:secret", "s3:..."),
            ("file:///srv/results", "/srv/results"),
            ("/srv/results", "/srv/results"),
        ] {
            assert_eq!(shown(url), wanted);
            for opened in [open(url).err(), open_beside(url).err(), root(url).err()] {
                let told = opened.map(|error| format!("{error} {error:?}"));
                assert!(!told.unwrap_or_default().contains("sec"), "{url}");
            }
        }
        assert!(shown("results").starts_with('/'));
    }
}
