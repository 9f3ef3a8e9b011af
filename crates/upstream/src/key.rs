//! The bearer key for an upstream, from a file or a variable. It is never logged or shown by
//! `Debug`, and reloaded when the upstream rejects it.

use std::fmt;
use std::io;
use std::path::PathBuf;
use std::sync::{PoisonError, RwLock};

use hyper::header::HeaderValue;

/// Larger files are not keys.
const KEY_BYTES_MAX: u64 = 8 * 1024;

/// The location of a key.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum KeySource {
    /// The upstream needs no key.
    #[default]
    None,
    /// The first line of this file.
    File(PathBuf),
    /// This environment variable.
    Variable(String),
}

/// Why a key is unusable.
#[derive(Debug, thiserror::Error)]
pub enum KeyError {
    /// The file cannot be read.
    #[error("the key file {path} cannot be read")]
    File {
        /// The file.
        path: PathBuf,
        /// The cause.
        #[source]
        source: io::Error,
    },
    /// The variable is not set.
    #[error("the environment variable {0} is not set")]
    Variable(String),
    /// Empty, too long, or with characters that a header cannot contain.
    #[error("the key is empty, longer than 8 KiB, or not plain ASCII")]
    Form,
}

/// A loaded key.
pub struct Key {
    source: KeySource,
    /// `Bearer …`, marked as sensitive.
    header: RwLock<Option<HeaderValue>>,
}

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Key({:?})", self.source)
    }
}

impl Key {
    /// Loads the key. Blocks while reading a small file.
    ///
    /// # Errors
    /// [`KeyError`] if there is none, or it fits into no header.
    pub fn open(source: KeySource) -> Result<Self, KeyError> {
        let header = RwLock::new(read(&source)?);
        Ok(Self { source, header })
    }

    /// The value of `Authorization`; `None` if the upstream needs none.
    pub fn header(&self) -> Option<HeaderValue> {
        self.header
            .read()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }

    /// Reloads the key; returns whether it changed. Blocks while reading a small file.
    pub fn reload(&self) -> bool {
        let Ok(fresh) = read(&self.source) else {
            return false;
        };
        let mut header = self.header.write().unwrap_or_else(PoisonError::into_inner);
        let changed = *header != fresh;
        *header = fresh;
        changed
    }
}

fn read(source: &KeySource) -> Result<Option<HeaderValue>, KeyError> {
    let text = match source {
        KeySource::None => return Ok(None),
        KeySource::Variable(name) => {
            std::env::var(name).map_err(|_| KeyError::Variable(name.clone()))?
        }
        KeySource::File(path) => {
            let unreadable = |source| KeyError::File {
                path: path.clone(),
                source,
            };
            if std::fs::metadata(path).map_err(unreadable)?.len() > KEY_BYTES_MAX {
                return Err(KeyError::Form);
            }
            std::fs::read_to_string(path).map_err(unreadable)?
        }
    };
    let key = text.lines().next().unwrap_or_default().trim();
    if key.is_empty() || !key.bytes().all(|byte| byte.is_ascii_graphic()) {
        return Err(KeyError::Form);
    }
    let header = HeaderValue::try_from(format!("Bearer {key}"));
    let mut header = header.map_err(|_| KeyError::Form)?;
    header.set_sensitive(true);
    Ok(Some(header))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_file_is_read_again_when_asked_and_never_shown() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("key");
        std::fs::write(&path, "marked-secret-1\nsecond line\n").unwrap();
        let key = Key::open(KeySource::File(path.clone())).unwrap();
        assert_eq!(key.header().unwrap(), "Bearer marked-secret-1");
        assert!(!key.reload());
        std::fs::write(&path, "marked-secret-2").unwrap();
        assert!(key.reload());
        assert_eq!(key.header().unwrap(), "Bearer marked-secret-2");
        std::fs::remove_file(&path).unwrap();
        assert!(!key.reload(), "a key that went away is kept");
        assert!(!format!("{key:?} {:?}", key.header()).contains("marked-secret"));
    }

    #[test]
    fn what_is_no_key_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("key");
        for wrong in ["", "\n", "two words", "gr\u{fc}n", &"x".repeat(9_000)] {
            std::fs::write(&path, wrong).unwrap();
            let opened = Key::open(KeySource::File(path.clone()));
            assert!(matches!(opened, Err(KeyError::Form)), "{wrong:.20}");
        }
        let unset = KeySource::Variable("KINORA_TEST_NO_SUCH_VARIABLE".to_owned());
        assert!(matches!(Key::open(unset), Err(KeyError::Variable(_))));
        assert!(Key::open(KeySource::None).unwrap().header().is_none());
    }
}
