//! Selects a blob store by its URL. A new implementation is a variant of [`BlobTarget`]; the compiler then
//! asks for its arms. URLs may contain secrets: errors name only the scheme, and people see [`display_location`].

use std::path::PathBuf;
use std::sync::Arc;

use crate::s3::BucketAddress;
use crate::{BlobError, BlobStore, LocalBlobs, S3Blobs, S3Options};

/// The target of a store's URL.
enum BlobTarget {
    Folder(PathBuf),
    Bucket(BucketAddress),
}

/// Opens the store at `url`: `s3://BUCKET/PREFIX`, with further settings in `s3`; `file:` with a
/// path (`file:results`, `file:///var/lib/results`); or a plain path. Blocks on disk access, but
/// opens no connection: call it before serving.
///
/// # Errors
/// [`BlobError::UnknownScheme`], [`BlobError::Misconfigured`], or the error of opening the store.
pub fn open(url: &str, s3: &S3Options) -> Result<Arc<dyn BlobStore>, BlobError> {
    Ok(match parse_target(url)? {
        BlobTarget::Folder(root) => Arc::new(LocalBlobs::open(root)?),
        BlobTarget::Bucket(address) => Arc::new(S3Blobs::new(address, s3, false)?),
    })
}

/// Opens the store at `url` to read, list and delete: creates nothing and refuses puts. For
/// commands that run beside a service.
///
/// # Errors
/// [`BlobError::UnknownScheme`] or [`BlobError::Misconfigured`].
pub fn open_beside(url: &str, s3: &S3Options) -> Result<Arc<dyn BlobStore>, BlobError> {
    Ok(match parse_target(url)? {
        BlobTarget::Folder(root) => Arc::new(LocalBlobs::beside(root)),
        BlobTarget::Bucket(address) => Arc::new(S3Blobs::new(address, s3, true)?),
    })
}

/// The folder of the store at `url`, without opening or creating it; `None` for a store elsewhere.
///
/// # Errors
/// [`BlobError::UnknownScheme`] or [`BlobError::Misconfigured`].
pub fn local_root(url: &str) -> Result<Option<PathBuf>, BlobError> {
    Ok(match parse_target(url)? {
        BlobTarget::Folder(root) => Some(root),
        BlobTarget::Bucket(_) => None,
    })
}

fn parse_target(url: &str) -> Result<BlobTarget, BlobError> {
    match url.split_once(':') {
        Some(("file", path)) => {
            let path = path.strip_prefix("//").unwrap_or(path);
            Ok(BlobTarget::Folder(path.into()))
        }
        Some(("s3", rest)) => Ok(BlobTarget::Bucket(BucketAddress::parse(rest)?)),
        // After the known schemes: anything that looks like a URL is an error, so a mistyped
        // `s3:` does not become a folder of that name.
        Some((scheme, _)) if is_scheme(scheme) => Err(BlobError::UnknownScheme(scheme.to_owned())),
        _ => Ok(BlobTarget::Folder(url.into())),
    }
}

/// The location of the store at `url`, for people and logs: the absolute path of a folder, or
/// scheme, host and path of a URL. Omits credentials and parameters.
pub fn display_location(url: &str) -> String {
    match local_root(url) {
        Ok(Some(folder)) => {
            let folder = std::path::absolute(&folder).unwrap_or(folder);
            folder.display().to_string()
        }
        Ok(None) | Err(_) => address_shown(url),
    }
}

fn address_shown(url: &str) -> String {
    let (scheme, rest) = url.split_once(':').unwrap_or((url, ""));
    let rest = rest.split(['?', '#']).next().unwrap_or_default();
    let Some(rest) = rest.strip_prefix("//") else {
        // An unusual form: a secret could be anywhere in it.
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
    if path.contains('@') {
        // A password with an unescaped slash extends into the path.
        return format!("{scheme}://...");
    }
    format!("{scheme}://{host}{path}")
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
            assert!(open(&good, &S3Options::default()).is_ok(), "{good}");
            assert!(local_root(&good).unwrap().is_some(), "{good}");
        }
        for wrong in ["S3://bucket", "http://host/", "fil:x"] {
            let opened = open(wrong, &S3Options::default());
            assert!(
                matches!(opened, Err(BlobError::UnknownScheme(_))),
                "{wrong}"
            );
        }
        assert_eq!(local_root("s3://bucket/prefix").unwrap(), None);
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
            assert_eq!(display_location(url), wanted);
            let s3 = S3Options::default();
            for opened in [
                open(url, &s3).err(),
                open_beside(url, &s3).err(),
                local_root(url).err(),
            ] {
                let told = opened.map(|error| format!("{error} {error:?}"));
                assert!(!told.unwrap_or_default().contains("sec"), "{url}");
            }
        }
        assert!(display_location("results").starts_with('/'));
    }
}
