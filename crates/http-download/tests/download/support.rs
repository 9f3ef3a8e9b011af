//! A folder for one file, and the bytes of it.

use std::fs;
use std::path::PathBuf;
use std::sync::Mutex;
use std::time::Duration;

use kinora_http_download::{
    DownloadError, DownloadOptions, DownloadSource, DownloadWatcher, Downloader, OriginToken,
};
use tempfile::TempDir;
use url::Url;

use crate::server::{Answer, Seen, Server};

/// SHA-256 of [`weights`], by `sha256sum`.
pub(crate) const SHA256: &str = "cd2df694e424bc7968cc37f47751019e5ca0cd1bdf2e479ea537c3a1c32ee1aa";
/// Never sent where a test does not expect it.
pub(crate) const SECRET: &str = "marked-secret";

/// 100,000 bytes.
pub(crate) fn weights() -> Vec<u8> {
    (0..100_000_u32).map(|n| (n % 251) as u8).collect()
}

/// Other bytes of the same length.
pub(crate) fn other() -> Vec<u8> {
    weights().into_iter().rev().collect()
}

/// `file` as a good server sends it: its missing part if it is still the one with this tag.
pub(crate) fn sent(seen: &Seen, file: &[u8], tag: &str) -> Answer {
    let tagged = format!("ETag: \"{tag}\"\r\n");
    let is_same = seen.header("if-range") == Some(&format!("\"{tag}\""));
    match seen.from().filter(|_| is_same) {
        None => Answer::new(200, &tagged, file),
        Some(from) if from >= file.len() => {
            let range = format!("Content-Range: bytes */{}\r\n", file.len());
            Answer::new(416, &range, "")
        }
        Some(from) => part(file, from, &tagged),
    }
}

/// A part of `file` from this byte on.
pub(crate) fn part(file: &[u8], from: usize, headers: &str) -> Answer {
    let (last, whole) = (file.len() - 1, file.len());
    let range = format!("{headers}Content-Range: bytes {from}-{last}/{whole}\r\n");
    Answer::new(206, &range, &file[from..])
}

/// Where a file is to go.
pub(crate) struct Place {
    folder: TempDir,
    pub(crate) retries: Mutex<Vec<String>>,
}

impl Place {
    pub(crate) fn new() -> Self {
        Self {
            folder: tempfile::tempdir().unwrap(),
            retries: Mutex::default(),
        }
    }

    pub(crate) fn path(&self) -> PathBuf {
        self.folder.path().join("a.gguf")
    }

    pub(crate) fn source(&self, server: &Server) -> DownloadSource {
        DownloadSource {
            url: Url::parse(&format!("{}/a/resolve/a.gguf", server.url)).unwrap(),
            path: self.path(),
            bytes: None,
            sha256: None,
        }
    }

    /// Gets it from the server, without what is known in advance.
    pub(crate) async fn get(&self, server: &Server) -> Result<u64, DownloadError> {
        self.get_by(&self.source(server), options()).await
    }

    pub(crate) async fn get_by(
        &self,
        source: &DownloadSource,
        options: DownloadOptions,
    ) -> Result<u64, DownloadError> {
        let downloader = Downloader::new(options).unwrap();
        downloader.get(source, self).await
    }

    pub(crate) fn names(&self) -> Vec<String> {
        let entries = fs::read_dir(self.folder.path()).unwrap();
        let mut names: Vec<String> = entries
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        names
    }

    /// Asserts that the file is there and has these bytes, and that nothing else is.
    pub(crate) fn assert_has(&self, bytes: &[u8]) {
        assert_eq!(self.names(), ["a.gguf"]);
        assert!(fs::read(self.path()).unwrap() == bytes, "other bytes");
    }

    /// The retries so far.
    pub(crate) fn retried(&self) -> Vec<String> {
        self.retries.lock().unwrap().clone()
    }
}

impl DownloadWatcher for Place {
    fn begun(&self, _: u64, _: u64) {}

    fn grown(&self, _: u64) {}

    fn checking(&self) {}

    fn retrying(&self, error: &DownloadError, _: Duration, _: u32, _: u32) {
        self.retries.lock().unwrap().push(error.to_string());
    }
}

/// Waits that a test can afford, and no stall on the slowest machine.
pub(crate) fn options() -> DownloadOptions {
    DownloadOptions {
        stall_limit: Duration::from_secs(100),
        retries_max: 3,
        first_wait: Duration::from_millis(1),
        token: None,
        roots_pem: Vec::new(),
    }
}

/// The same with one attempt.
pub(crate) fn once() -> DownloadOptions {
    DownloadOptions {
        retries_max: 0,
        ..options()
    }
}

/// The same with a token for the server.
pub(crate) fn with_token(server: &Server) -> DownloadOptions {
    DownloadOptions {
        token: Some(OriginToken::new(&server.url, SECRET).unwrap()),
        ..options()
    }
}
