//! Asks a release for one of its files: where it is, how long it is, and its SHA-256. The API is GitHub's
//! (docs.github.com/rest/releases, "Get a release by tag name").

use std::path::Path;
use std::time::Duration;

use bytes::Bytes;
use hyper::header::{ACCEPT, USER_AGENT};
use hyper::{Request, Response};
use kinora_http::error_chain;
use kinora_http_download::DownloadSource;
use serde::Deserialize;
use url::Url;

use crate::environment::kind::{EnvironmentError, EnvironmentOptions};
use crate::hub::client;

const LIMIT: Duration = Duration::from_mins(1);
const BODY_BYTES_MAX: usize = 4 << 20;
const USER_AGENT_TEXT: &str = concat!("kinora/", env!("CARGO_PKG_VERSION"));
/// The number of a SHA-256's hexadecimal digits.
const DIGITS: usize = 64;
const LATER: &str = "Try again later";
const UPDATE: &str = "Update Kinora";

/// A release's file.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ServerBuild {
    /// `OWNER/NAME`.
    pub(super) repository: String,
    pub(super) tag: String,
    pub(super) asset: String,
    /// The one that the release says, if it is not here.
    sha256: Option<String>,
}

#[derive(Deserialize)]
struct ReleaseAnswer {
    assets: Vec<AssetAnswer>,
}

#[derive(Deserialize)]
struct AssetAnswer {
    name: String,
    size: u64,
    /// `sha256:` and digits; absent for files of before June 2025.
    digest: Option<String>,
    browser_download_url: String,
}

/// Asks for the file of `build`, which will be put into `folder`.
///
/// # Errors
/// Without an answer, the file or its SHA-256.
pub(super) async fn find_file(
    build: &ServerBuild,
    folder: &Path,
    options: &EnvironmentOptions,
) -> Result<DownloadSource, EnvironmentError> {
    let (repository, tag, name) = (&build.repository, &build.tag, &build.asset);
    let failed = |why: String, advice: &str| {
        EnvironmentError(format!(
            "The release {tag} of {repository} {why}. {advice}, or get sd-server yourself and name it with --sd-server PATH."
        ))
    };
    let base = options.releases.as_str().trim_end_matches('/');
    let url = format!("{base}/repos/{repository}/releases/tags/{tag}");
    let answer = ask(&url, &options.download.roots_pem).await;
    let answer = answer.map_err(|why| {
        failed(
            format!("cannot be asked for: {why}"),
            "Check the connection and try again",
        )
    })?;
    match answer.status().as_u16() {
        200 => {}
        403 | 429 => {
            let why = "was not told: the server limits requests per hour and address";
            return Err(failed(why.to_owned(), "Try again in an hour"));
        }
        404 => return Err(failed("is gone".to_owned(), UPDATE)),
        status => return Err(failed(format!("was answered with HTTP {status}"), LATER)),
    }
    let release = serde_json::from_slice(answer.body());
    let release: ReleaseAnswer =
        release.map_err(|error| failed(format!("is described unintelligibly: {error}"), LATER))?;
    let mut assets = release.assets.into_iter();
    let asset = assets
        .find(|asset| asset.name == *name)
        .ok_or_else(|| failed(format!("has no file {name}"), UPDATE))?;
    let published = asset.digest.as_deref().and_then(sha256_of);
    let sha256 = build.sha256.clone().or(published).ok_or_else(|| {
        let why = format!("has no SHA-256 of {name}, so it cannot be checked");
        failed(why, UPDATE)
    })?;
    let url = Url::parse(&asset.browser_download_url);
    Ok(DownloadSource {
        url: url.map_err(|error| failed(format!("has no usable address: {error}"), LATER))?,
        path: folder.join(name),
        bytes: Some(asset.size),
        sha256: Some(sha256),
    })
}

async fn ask(url: &str, roots_pem: &[u8]) -> Result<Response<Bytes>, String> {
    let client = client(roots_pem)?;
    let request = Request::get(url)
        .header(ACCEPT, "application/vnd.github+json")
        .header(USER_AGENT, USER_AGENT_TEXT)
        .body(Bytes::new())
        .map_err(|error| error.to_string())?;
    let exchanged = client.exchange(request, LIMIT, BODY_BYTES_MAX).await;
    exchanged.map_err(|error| error_chain(&error))
}

/// The digits of `sha256:DIGITS`.
fn sha256_of(digest: &str) -> Option<String> {
    let digits = digest.strip_prefix("sha256:")?.to_ascii_lowercase();
    let is_right = digits.len() == DIGITS && digits.bytes().all(|byte| byte.is_ascii_hexdigit());
    is_right.then_some(digits)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_complete_sha256_counts() {
        let digits = "ab".repeat(32);
        assert_eq!(
            sha256_of(&format!("sha256:{}", digits.to_uppercase())),
            Some(digits.clone())
        );
        for wrong in [
            &digits,
            "sha256:abc",
            &format!("sha512:{digits}"),
            &format!("sha256:{}", "xy".repeat(32)),
        ] {
            assert_eq!(sha256_of(wrong), None, "{wrong}");
        }
    }
}
