//! The key for a server, from a file or a variable. It is never logged or shown by `Debug`, and reloaded when the server
//! rejects it.

use std::path::{Path, PathBuf};
use std::sync::{Arc, PoisonError, RwLock};
use std::{fmt, fs, io};

use hyper::header::{HeaderName, HeaderValue};
use kinora_contract::Clock;
use kinora_engine::KindError;

use super::auth::AuthScheme;

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

/// A loaded key.
pub(crate) struct ServerKey {
    source: KeySource,
    scheme: AuthScheme,
    clock: Arc<dyn Clock>,
    key: RwLock<Option<String>>,
}

impl fmt::Debug for ServerKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Key({:?})", self.source)
    }
}

impl ServerKey {
    /// Loads the key. Blocks while reading a small file.
    ///
    /// # Errors
    /// If there is none, or it fits into no header.
    pub(crate) fn open(
        source: KeySource,
        scheme: AuthScheme,
        clock: Arc<dyn Clock>,
    ) -> Result<Self, KindError> {
        let key = read(&source)?;
        if let Some(key) = &key
            && scheme.header(key, clock.now_ms()).is_none()
        {
            return Err(KindError(
                "the key must be ACCESS:SECRET, the two keys of the provider with a colon between them".to_owned(),
            ));
        }
        Ok(Self {
            source,
            scheme,
            clock,
            key: RwLock::new(key),
        })
    }

    /// The header that carries the key; `None` if the upstream needs none.
    pub(crate) fn header(&self) -> Option<(HeaderName, HeaderValue)> {
        let key = self.key.read().unwrap_or_else(PoisonError::into_inner);
        self.scheme.header(key.as_deref()?, self.clock.now_ms())
    }

    /// Removes the key, and each token made from one, from a text that a server sent back.
    pub(crate) fn conceal(&self, text: &mut String) {
        let key = self.key.read().unwrap_or_else(PoisonError::into_inner);
        // Of a pair, the second is secret; a short one would fit everywhere.
        let parts = key.iter().flat_map(|key| {
            [
                Some(key.as_str()),
                key.split_once(':').map(|(_, secret)| secret),
            ]
        });
        for part in parts.flatten().filter(|part| part.len() >= 8) {
            *text = text.replace(part, "***");
        }
        if text.contains(TOKEN_HEAD) {
            *text = without_tokens(text);
        }
    }

    /// Reloads the key; returns whether it changed. Blocks while reading a small file.
    pub(crate) fn reload(&self) -> bool {
        let Ok(fresh) = read(&self.source) else {
            return false;
        };
        let mut key = self.key.write().unwrap_or_else(PoisonError::into_inner);
        let changed = *key != fresh;
        *key = fresh;
        changed
    }
}

/// How each JSON Web Token begins: `{"` in base64.
const TOKEN_HEAD: &str = "eyJ";

/// `text` without JSON Web Tokens: the one that was sent is not kept, so none is shown.
fn without_tokens(text: &str) -> String {
    let is_part = |one: char| one.is_ascii_alphanumeric() || "-_.".contains(one);
    let words = text.split_inclusive(|one| !is_part(one));
    words
        .map(|word| {
            let token = word.trim_end_matches(|one| !is_part(one));
            match token.starts_with(TOKEN_HEAD) && token.matches('.').count() >= 2 {
                true => word.replace(token, "***"),
                false => word.to_owned(),
            }
        })
        .collect()
}

/// Reads a small file of settings. Blocks.
///
/// # Errors
/// What is wrong with the file, without its path.
pub(crate) fn read_small(path: &Path, bytes_max: u64) -> Result<String, String> {
    let unreadable = |error: io::Error| format!("cannot be read: {error}");
    if fs::metadata(path).map_err(unreadable)?.len() > bytes_max {
        return Err(format!("is larger than {bytes_max} bytes"));
    }
    fs::read_to_string(path).map_err(unreadable)
}

fn unusable() -> KindError {
    KindError("the key is empty or not plain ASCII".to_owned())
}

fn read(source: &KeySource) -> Result<Option<String>, KindError> {
    let text = match source {
        KeySource::None => return Ok(None),
        KeySource::Variable(name) => {
            let unset = |_| KindError(format!("the environment variable {name} is not set"));
            std::env::var(name).map_err(unset)?
        }
        KeySource::File(path) => {
            let unreadable = |error| KindError(format!("the key file {} {error}", path.display()));
            read_small(path, KEY_BYTES_MAX).map_err(unreadable)?
        }
    };
    let key = text.lines().next().unwrap_or_default().trim();
    if key.is_empty() || !key.bytes().all(|byte| byte.is_ascii_graphic()) {
        return Err(unusable());
    }
    Ok(Some(key.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn open(source: KeySource) -> Result<ServerKey, KindError> {
        let clock = kinora_contract::RunningClock::at(0, || std::time::Duration::ZERO);
        ServerKey::open(source, AuthScheme::default(), Arc::new(clock))
    }

    #[test]
    fn a_key_file_is_read_again_when_asked_and_never_shown() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("key");
        std::fs::write(&path, "marked-secret-1\nsecond line\n").unwrap();
        let key = open(KeySource::File(path.clone())).unwrap();
        assert_eq!(key.header().unwrap().1, "Bearer marked-secret-1");
        assert!(!key.reload());
        std::fs::write(&path, "marked-secret-2").unwrap();
        assert!(key.reload());
        assert_eq!(key.header().unwrap().1, "Bearer marked-secret-2");
        std::fs::remove_file(&path).unwrap();
        assert!(!key.reload(), "a key that went away is kept");
        assert!(!format!("{key:?} {:?}", key.header()).contains("marked-secret"));
    }

    #[test]
    fn a_key_and_its_tokens_are_removed_from_what_a_server_sends_back() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("key");
        std::fs::write(&path, "access-1:marked-secret").unwrap();
        let key = open(KeySource::File(path)).unwrap();
        let mut text =
            "eyJ is 'Bearer eyJhb.eyJpc3.s-_x', \"access-1:marked-secret\"; marked-secret eyJ.a.b"
                .to_owned();
        key.conceal(&mut text);
        assert_eq!(text, "eyJ is 'Bearer ***', \"***\"; *** ***");
    }

    #[test]
    fn what_is_no_key_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("key");
        for wrong in ["", "\n", "two words", "gr\u{fc}n", &"x".repeat(9_000)] {
            std::fs::write(&path, wrong).unwrap();
            let opened = open(KeySource::File(path.clone()));
            assert!(opened.is_err(), "{wrong:.20}");
        }
        let unset = KeySource::Variable("KINORA_TEST_NO_SUCH_VARIABLE".to_owned());
        assert!(open(unset).unwrap_err().0.contains("is not set"));
        assert!(open(KeySource::None).unwrap().header().is_none());
    }
}
