//! Asks a release for one of its files: where it is, how long it is, and its SHA-256. The API is GitHub's
//! (docs.github.com/rest/releases, "Get a release by tag name").

use std::time::Duration;

use bytes::Bytes;
use hyper::Request;
use hyper::header::{ACCEPT, USER_AGENT};
use kinora_http::{ClientOptions, ExchangeError, HttpClient, TrustedRoots, error_chain};
use serde::Deserialize;
use url::Url;

use crate::environment::kind::{EnvironmentError, EnvironmentOptions};

const LIMIT: Duration = Duration::from_mins(1);
const BODY_BYTES_MAX: usize = 4 << 20;
const USER_AGENT_TEXT: &str = concat!("kinora/", env!("CARGO_PKG_VERSION"));
/// The number of a SHA-256's hexadecimal digits.
const DIGITS: usize = 64;

/// A release's file, and what is known of it in advance.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ServerBuild {
    /// `OWNER/NAME`.
    pub(super) repository: String,
    pub(super) tag: String,
    pub(super) asset: String,
    bytes: Option<u64>,
    sha256: Option<String>,
}

/// A file that can be downloaded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct ReleaseFile {
    pub(super) url: Url,
    pub(super) bytes: u64,
    /// `None` only where the operator accepts that.
    pub(super) sha256: Option<String>,
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

/// Asks for the file of `build`.
///
/// # Errors
/// Without an answer, the file or its SHA-256.
pub(super) async fn find_file(
    build: &ServerBuild,
    options: &EnvironmentOptions,
) -> Result<ReleaseFile, EnvironmentError> {
    let (repository, tag) = (&build.repository, &build.tag);
    let base = options.releases.as_str().trim_end_matches('/');
    let url = format!("{base}/repos/{repository}/releases/tags/{tag}");
    let what = format!("The release {tag} of {repository}");
    let failed = |why: &str, advice: &str| {
        EnvironmentError::Failed(format!(
            "{what} {why}. {advice}, or get sd-server yourself and name it with --sd-server PATH."
        ))
    };
    let answered = ask(&url, options).await;
    let answer = answered.map_err(|why| {
        failed(
            &format!("cannot be asked for: {why}"),
            "Check the connection and try again",
        )
    })?;
    match answer.status().as_u16() {
        200 => {}
        403 | 429 => {
            let why = "was not told: the server limits requests per hour and address";
            return Err(failed(why, "Try again in an hour"));
        }
        404 => return Err(failed("is gone", "Update Kinora")),
        status => {
            return Err(failed(
                &format!("was answered with HTTP {status}"),
                "Try again later",
            ));
        }
    }
    let release: ReleaseAnswer = serde_json::from_slice(answer.body()).map_err(|error| {
        failed(
            &format!("is described unintelligibly: {error}"),
            "Try again later",
        )
    })?;
    let found = release
        .assets
        .into_iter()
        .find(|asset| asset.name == build.asset);
    let asset =
        found.ok_or_else(|| failed(&format!("has no file {}", build.asset), "Update Kinora"))?;
    let published = asset.digest.as_deref().and_then(sha256_of);
    let sha256 = build.sha256.clone().or(published);
    if sha256.is_none() && !options.allow_unverified {
        let why = format!("has no SHA-256 of {}, so it cannot be checked", build.asset);
        return Err(failed(&why, "Update Kinora"));
    }
    let url = Url::parse(&asset.browser_download_url);
    Ok(ReleaseFile {
        url: url.map_err(|error| {
            failed(
                &format!("has no usable address: {error}"),
                "Try again later",
            )
        })?,
        bytes: build.bytes.unwrap_or(asset.size),
        sha256,
    })
}

async fn ask(url: &str, options: &EnvironmentOptions) -> Result<hyper::Response<Bytes>, String> {
    let extra = Some(&*options.roots_pem).filter(|pem| !pem.is_empty());
    let roots = TrustedRoots::public().with_pem(extra);
    let tls = roots.and_then(TrustedRoots::client_config);
    let tls = tls.map_err(|error| error_chain(&error))?;
    let client = HttpClient::new(tls, ClientOptions::default(), None);
    let request = Request::get(url)
        .header(ACCEPT, "application/vnd.github+json")
        .header(USER_AGENT, USER_AGENT_TEXT)
        .body(Bytes::new())
        .map_err(|error| error.to_string())?;
    let exchanged = client.exchange(request, LIMIT, BODY_BYTES_MAX).await;
    exchanged.map_err(|error: ExchangeError| error_chain(&error))
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
