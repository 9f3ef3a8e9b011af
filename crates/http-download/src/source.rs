//! A file to download.

use std::path::{Path, PathBuf};

use url::Url;

/// A file, its address and what is known of it in advance.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DownloadSource {
    /// The address: http or https.
    pub url: Url,
    /// The path of the complete file. Its folder must exist.
    pub path: PathBuf,
    /// The length in bytes. `None`: that which the server announces.
    pub bytes: Option<u64>,
    /// The SHA-256 in lower-case hexadecimal. `None`: only the length is checked.
    pub sha256: Option<String>,
}

impl DownloadSource {
    /// The folder of the file.
    pub(crate) fn folder(&self) -> &Path {
        let folder = self.path.parent();
        let folder = folder.filter(|path| !path.as_os_str().is_empty());
        folder.unwrap_or(Path::new("."))
    }
}
