//! `[[engines.files]]`: where the files of an engine come from, and how to recognise them.

use std::path::PathBuf;

use kinora_download::Source;
use serde::Deserialize;
use url::Url;

/// One file of an engine.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct EngineFile {
    /// Its path, as in the engine's own settings.
    pub(crate) path: PathBuf,
    /// Its address at its publisher.
    url: String,
    /// SHA-256, hexadecimal.
    sha256: Option<String>,
    /// Its length.
    pub(crate) bytes: Option<u64>,
}

impl EngineFile {
    /// What is wrong with it; `own` are the files that the engine's settings name, if they do.
    pub(super) fn wrong(&self, own: &[PathBuf]) -> Option<String> {
        let path = self.path.display();
        if self.path.as_os_str().is_empty() || self.path.file_name().is_none() {
            return Some("files: a path is empty or names no file".to_owned());
        }
        if !own.is_empty() && !own.contains(&self.path) {
            return Some(format!(
                "files: its settings do not name {path}; write the path as it is there"
            ));
        }
        if self.url().is_none() {
            return Some(format!(
                "files: the url of {path} must be http or https, without user name, password or fragment"
            ));
        }
        if self.sha256.is_some() && self.sha256().is_none() {
            return Some(format!(
                "files: the sha256 of {path} must have 64 hexadecimal digits"
            ));
        }
        None
    }

    /// The address at the publisher. `None` only if [`Self::wrong`] says so.
    pub(crate) fn url(&self) -> Option<Url> {
        Url::parse(&self.url).ok().filter(|url| {
            matches!(url.scheme(), "http" | "https")
                && url.has_host()
                && url.username().is_empty()
                && url.password().is_none()
                && url.fragment().is_none()
        })
    }

    /// SHA-256 in lower-case hexadecimal, if it is known.
    pub(crate) fn sha256(&self) -> Option<String> {
        let text = self.sha256.as_ref()?;
        let is_hash = text.len() == 64 && text.bytes().all(|byte| byte.is_ascii_hexdigit());
        is_hash.then(|| text.to_ascii_lowercase())
    }

    /// The download of the file from `url`.
    pub(crate) fn source(&self, url: Url) -> Source {
        Source {
            url,
            path: self.path.clone(),
            bytes: self.bytes,
            sha256: self.sha256(),
        }
    }
}
