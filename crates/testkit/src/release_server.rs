//! Releases with files, as GitHub answers for them: the API, and files behind a redirect to a storage. Also archives with a small
//! stand-in of `sd-server` to put there.

use std::collections::BTreeMap;
use std::io::{Cursor, Write};
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

use serde_json::json;
use zip::ZipWriter;
use zip::write::SimpleFileOptions;

use crate::http::Answer;
pub use crate::http::Request;
pub use crate::transfers::TransferFault;
use crate::transfers::{FaultPlan, Reply, listen, lock, redirect, sha256};

/// A server on a port of its own, until the process ends.
#[derive(Debug)]
pub struct ReleaseServer {
    address: SocketAddr,
    state: Arc<Mutex<ReleaseState>>,
}

#[derive(Debug, Default)]
struct ReleaseState {
    /// Files by `OWNER/NAME`, tag and name.
    files: BTreeMap<(String, String, String), Vec<u8>>,
    is_without_digests: bool,
    faults: FaultPlan,
    requests: Vec<Request>,
}

impl Default for ReleaseServer {
    fn default() -> Self {
        Self::start()
    }
}

impl ReleaseServer {
    /// A server without releases.
    pub fn start() -> Self {
        let state = Arc::new(Mutex::new(ReleaseState::default()));
        let address = listen(&state, |state: &mut ReleaseState, request| {
            state.requests.push(request.clone());
            state.reply(request)
        });
        Self { address, state }
    }

    /// `http://127.0.0.1:PORT`: the address of the API.
    pub fn base_url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Adds a file to the release `tag` of the repository `OWNER/NAME`.
    pub fn publish(&self, repository: &str, tag: &str, name: &str, bytes: Vec<u8>) {
        let key = (repository.to_owned(), tag.to_owned(), name.to_owned());
        lock(&self.state).files.insert(key, bytes);
    }

    /// Leaves digests out, as for old releases.
    pub fn omit_digests(&self) {
        lock(&self.state).is_without_digests = true;
    }

    /// Lets transfers whose path ends so fail, this many times; the path of the API ends with the tag.
    pub fn fail(&self, path_end: &str, fault: TransferFault, times: usize) {
        lock(&self.state).faults.add(path_end, fault, times);
    }

    /// Every request so far.
    pub fn requests(&self) -> Vec<Request> {
        lock(&self.state).requests.clone()
    }
}

impl ReleaseState {
    fn reply(&mut self, request: &Request) -> Reply {
        let path = request
            .line
            .strip_prefix("GET ")
            .unwrap_or_default()
            .to_owned();
        let parts: Vec<&str> = path.trim_start_matches('/').split('/').collect();
        let missing = || {
            Reply::Answer(Answer::json(
                404,
                &json!({"message": "Not Found", "status": "404"}),
            ))
        };
        match parts[..] {
            ["repos", owner, name, "releases", "tags", tag] => {
                if let Some(fault) = self.faults.next(&path) {
                    return Reply::File(Vec::new(), Some(fault));
                }
                let host = request.header("host").unwrap_or_default();
                self.release(host, &format!("{owner}/{name}"), tag)
                    .unwrap_or_else(missing)
            }
            [owner, name, "releases", "download", tag, file] => Reply::Answer(redirect(&format!(
                "/storage/{owner}/{name}/{tag}/{file}?signature=x"
            ))),
            ["storage", owner, name, tag, file] => {
                let key = (format!("{owner}/{name}"), tag.to_owned(), file.to_owned());
                let found = self.files.get(&key).cloned();
                found.map_or_else(missing, |bytes| Reply::File(bytes, self.faults.next(&path)))
            }
            _ => missing(),
        }
    }

    fn release(&self, host: &str, repository: &str, tag: &str) -> Option<Reply> {
        let own = self
            .files
            .iter()
            .filter(|((one, other, _), _)| one == repository && other == tag);
        let assets: Vec<_> = own
            .map(|((_, _, name), bytes)| {
                let digest = (!self.is_without_digests).then(|| format!("sha256:{}", sha256(bytes)));
                json!({"name": name, "size": bytes.len(), "state": "uploaded", "digest": digest,
                    "browser_download_url": format!("http://{host}/{repository}/releases/download/{tag}/{name}")})
            })
            .collect();
        let release =
            json!({"tag_name": tag, "draft": false, "prerelease": false, "assets": assets});
        (!assets.is_empty()).then(|| Reply::Answer(Answer::json(200, &release)))
    }
}

/// A ZIP archive of files: path, permissions and bytes.
pub fn archive<'f>(files: impl IntoIterator<Item = (&'f str, u32, &'f [u8])>) -> Vec<u8> {
    let mut writer = ZipWriter::new(Cursor::new(Vec::new()));
    for (path, mode, bytes) in files {
        let options = SimpleFileOptions::default()
            .compression_method(zip::CompressionMethod::Stored)
            .unix_permissions(mode);
        writer.start_file(path, options).expect("a new name");
        writer.write_all(bytes).expect("space in memory");
    }
    writer.finish().expect("an archive").into_inner()
}

/// A `sd-server` that answers `--version` and `--list-devices` as the real one does, and nothing else.
pub const SD_SERVER: &[u8] = b"#!/bin/sh
case \"$1\" in
  --version) echo 'stable-diffusion.cpp version stand-in, commit 0000000' ;;
  --list-devices) printf 'CPU\\tA processor\\nVulkan0\\tA graphics card\\n' ;;
  *) exit 1 ;;
esac
";
