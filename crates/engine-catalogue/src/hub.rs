//! Asks the model hub which files a choice needs, at which commit, with their lengths and SHA-256. It believes no name that
//! could lead out of a folder, and no answer without an end. The shapes are those of the package `huggingface_hub` 2.4.0.

use std::time::Duration;

use bytes::Bytes;
use hyper::header::{AUTHORIZATION, HeaderMap, LINK, USER_AGENT};
use hyper::{Request, Response, StatusCode};
use kinora_http::{ClientOptions, HttpClient, TrustedRoots, error_chain, redirect_target};
use kinora_http_download::OriginToken;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use url::Url;

use crate::choice::Choice;
use crate::entry::RepositoryFiles;
use crate::files::repositories;

/// Time for an answer.
const ANSWER_LIMIT: Duration = Duration::from_secs(30);
/// Maximum size of an answer. A page of the hub has up to 1,000 files, of about 400 bytes each.
const ANSWER_BYTES_MAX: usize = 8 << 20;
/// Maximum number of pages of a repository.
const PAGES_MAX: usize = 50;
/// More files than any model has.
const FILES_MAX: usize = 10_000;
/// More bytes than any file of a model has: a thousand times the largest. So no sum of lengths overflows.
const FILE_BYTES_MAX: u64 = 1 << 47;
/// Redirects of a repository that was renamed.
const REDIRECTS_MAX: usize = 3;
/// Lengths of a name and of a path that file systems take.
const NAME_BYTES_MAX: usize = 200;
const PATH_BYTES_MAX: usize = 1024;

/// The API of a model hub.
#[derive(Debug)]
pub struct Hub {
    base: Url,
    token: Option<OriginToken>,
    http: HttpClient,
}

/// A file of a repository.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HubFile {
    /// `ORGANISATION/NAME`.
    pub repository: String,
    /// The commit, 40 hexadecimal digits.
    pub commit: String,
    /// Path in the repository: plain names, with `/` between them.
    pub path: String,
    /// Address of its bytes.
    pub url: Url,
    /// Length.
    pub bytes: Option<u64>,
    /// SHA-256 in hexadecimal digits, of large files.
    pub sha256: Option<String>,
}

/// Why the hub did not say which files there are.
#[derive(Debug, thiserror::Error)]
pub enum HubError {
    /// The hub could not be reached, broke off, or asks to come back later.
    #[error("{0}")]
    Unreachable(String),
    /// The hub refused, or its answer is unusable.
    #[error("{0}")]
    Refused(String),
}

/// A commit of a repository.
#[derive(Deserialize)]
struct Revision {
    sha: String,
}

/// A file or folder of a repository.
#[derive(Deserialize)]
struct TreeEntry {
    #[serde(rename = "type")]
    kind: String,
    path: String,
    size: Option<u64>,
    lfs: Option<LargeFile>,
}

/// A file in the large storage; `oid` is its SHA-256.
#[derive(Deserialize)]
struct LargeFile {
    oid: String,
    size: Option<u64>,
}

impl Hub {
    /// A hub at `base`, such as `https://huggingface.co`. Only the token's own origin gets it. `roots_pem` are trusted
    /// certificates in PEM besides the public ones.
    ///
    /// # Errors
    /// [`HubError::Refused`] if the certificates are unusable.
    pub fn new(base: Url, token: Option<OriginToken>, roots_pem: &[u8]) -> Result<Self, HubError> {
        let http = client(roots_pem).map_err(|why| {
            HubError::Refused(format!(
                "The certificates besides the public ones are unusable: {why}. Correct the file in SSL_CERT_FILE."
            ))
        })?;
        Ok(Self { base, token, http })
    }

    /// The files of a choice, in the order of its repositories.
    ///
    /// # Errors
    /// [`HubError`] with what to do.
    pub async fn resolve(&self, choice: &Choice) -> Result<Vec<HubFile>, HubError> {
        let mut files = Vec::new();
        for wanted in repositories(choice) {
            let commit = self.commit(&wanted).await?;
            let listed = self.tree(&wanted, &commit).await?;
            let (id, revision) = (&wanted.id, &wanted.revision);
            // A pattern without a star is a file that must be there.
            let is_missing = |name: &&String| {
                !name.contains('*') && !listed.iter().any(|file| file.path == **name)
            };
            if let Some(missing) = wanted.include.iter().find(is_missing) {
                return Err(HubError::Refused(format!(
                    "{id} has no file {missing} at {revision}: its publisher may have renamed it."
                )));
            }
            if listed.is_empty() {
                return Err(HubError::Refused(format!(
                    "{id} has none of the needed files at {revision}."
                )));
            }
            files.extend(listed);
        }
        Ok(files)
    }

    /// The commit of the wanted revision.
    async fn commit(&self, wanted: &RepositoryFiles) -> Result<String, HubError> {
        let id = &wanted.id;
        let url = self.address(id, &["api", "models"], &["revision", &wanted.revision]);
        let answer = self.get(id, url).await?;
        let Revision { sha } = parsed(id, answer.body())?;
        if is_hexadecimal(&sha, 40) {
            return Ok(sha);
        }
        Err(refused(id, "the hub's answer names no commit"))
    }

    /// The wanted files at a commit.
    async fn tree(&self, wanted: &RepositoryFiles, commit: &str) -> Result<Vec<HubFile>, HubError> {
        let id = &wanted.id;
        let mut url = self.address(id, &["api", "models"], &["tree", commit]);
        url.set_query(Some("recursive=true"));
        let mut files = Vec::new();
        for _ in 0..PAGES_MAX {
            let answer = self.get(id, url.clone()).await?;
            let page: Vec<TreeEntry> = parsed(id, answer.body())?;
            for entry in page {
                if entry.kind == "file" && wanted.takes(&entry.path) {
                    files.push(self.file(id, commit, entry)?);
                }
            }
            if files.len() > FILES_MAX {
                break;
            }
            match next_page(&url, answer.headers()) {
                None => return Ok(files),
                Some(next) if next.origin() == self.base.origin() => url = next,
                Some(_) => {
                    let what = "the hub continues its list at another server";
                    return Err(refused(id, what));
                }
            }
        }
        Err(refused(id, "it has more files than a model can need"))
    }

    /// A file of the list. Its path becomes the name of a file here, so it must be plain.
    fn file(&self, id: &str, commit: &str, entry: TreeEntry) -> Result<HubFile, HubError> {
        let path = entry.path;
        let unusable = |what: &str| {
            let path = path.escape_debug();
            Err(refused(id, &format!("the file '{path}' {what}")))
        };
        if !is_plain(&path) {
            return unusable("has no plain name");
        }
        let lfs = entry.lfs.map(|lfs| (lfs.size, Some(lfs.oid)));
        let (large_bytes, sha256) = lfs.unwrap_or_default();
        let bytes = large_bytes.or(entry.size);
        if bytes.is_some_and(|bytes| bytes > FILE_BYTES_MAX) {
            return unusable("is longer than any file of a model");
        }
        if sha256.as_ref().is_some_and(|it| !is_hexadecimal(it, 64)) {
            return unusable("has no SHA-256 that can be read");
        }
        let mut below = vec!["resolve", commit];
        below.extend(path.split('/'));
        Ok(HubFile {
            repository: id.to_owned(),
            commit: commit.to_owned(),
            url: self.address(id, &[], &below),
            bytes,
            sha256: sha256.map(|it| it.to_ascii_lowercase()),
            path,
        })
    }

    /// The address of `before/ORGANISATION/NAME/after` below the hub's.
    fn address(&self, id: &str, before: &[&str], after: &[&str]) -> Url {
        let mut url = self.base.clone();
        // An address of http has a path.
        if let Ok(mut segments) = url.path_segments_mut() {
            let segments = segments.pop_if_empty().extend(before);
            segments.extend(id.split('/')).extend(after);
        }
        url
    }

    /// An answer of status 200. Follows a repository to its new name at the same hub.
    async fn get(&self, id: &str, mut url: Url) -> Result<Response<Bytes>, HubError> {
        for _ in 0..=REDIRECTS_MAX {
            let mut request = Request::get(url.as_str()).header(USER_AGENT, "kinora");
            let token = self.token.as_ref().and_then(|token| token.header_for(&url));
            if let Some(token) = token {
                request = request.header(AUTHORIZATION, token);
            }
            let request = request.body(Bytes::new());
            let request = request.map_err(|error| refused(id, &error.to_string()))?;
            let asked = self.http.exchange(request, ANSWER_LIMIT, ANSWER_BYTES_MAX);
            let answer = asked.await.map_err(|error| {
                let why = error_chain(&error);
                HubError::Unreachable(format!(
                    "The hub {} could not be asked about {id}: {why}. Repeat the command when it can be reached, or \
                     set weights.hub_url to another one.",
                    self.base
                ))
            })?;
            if answer.status() == StatusCode::OK {
                return Ok(answer);
            }
            let moved = answer.status().is_redirection();
            let target = redirect_target(&url, answer.headers()).filter(|_| moved);
            match target {
                Some(target) if target.origin() == self.base.origin() => url = target,
                _ => return Err(self.refusal(id, &answer)),
            }
        }
        Err(refused(id, "the hub redirects in a circle"))
    }

    /// What an answer of another status means.
    fn refusal(&self, id: &str, answer: &Response<Bytes>) -> HubError {
        let mut page = self.base.clone();
        page.set_path(id);
        match answer.status().as_u16() {
            status @ (401 | 403) => {
                let code = answer.headers().get("x-error-code");
                let is_gated = code.is_some_and(|code| code == "GatedRepo");
                let doubt = match (is_gated, &self.token) {
                    (true, _) => "",
                    (false, None) => " If that page does not exist, the repository is gone.",
                    (false, Some(_)) => " Or the token is wrong or has no read access.",
                };
                HubError::Refused(format!(
                    "The hub gives {id} to known accounts only (HTTP {status}). Accept the licence at {page}, create a token \
                     with read access, and set weights.token_file and weights.token_origin (docs/models.md).{doubt}"
                ))
            }
            404 => HubError::Refused(format!(
                "The hub has no repository {id}, or not its revision: see {page}."
            )),
            status @ (429 | 500..) => HubError::Unreachable(format!(
                "The hub {} cannot answer now (HTTP {status}). Repeat the command later.",
                self.base
            )),
            status => refused(id, &format!("the hub answered with HTTP {status}")),
        }
    }
}

/// A client that trusts the certificates `roots_pem` besides the public ones.
pub(crate) fn client(roots_pem: &[u8]) -> Result<HttpClient, String> {
    let roots = TrustedRoots::public().with_pem((!roots_pem.is_empty()).then_some(roots_pem));
    let tls = roots.and_then(TrustedRoots::client_config);
    let tls = tls.map_err(|error| error_chain(&error))?;
    let options = ClientOptions {
        connect_timeout: Some(Duration::from_secs(10)),
        ..ClientOptions::default()
    };
    Ok(HttpClient::new(tls, options, None))
}

fn parsed<T: DeserializeOwned>(id: &str, body: &[u8]) -> Result<T, HubError> {
    serde_json::from_slice(body).map_err(|error| {
        let what = "the hub's answer is not that of a model hub";
        refused(id, &format!("{what} ({error}). Check weights.hub_url"))
    })
}

fn refused(id: &str, what: &str) -> HubError {
    HubError::Refused(format!("{id}: {what}."))
}

/// The address in `Link: <ADDRESS>; rel="next"`.
fn next_page(url: &Url, headers: &HeaderMap) -> Option<Url> {
    let links = headers.get_all(LINK).into_iter();
    let mut links = links.filter_map(|value| value.to_str().ok());
    links.find_map(|value| {
        let mut links = value.split(',');
        let link = links.find(|link| link.contains("rel=\"next\""))?;
        let (_, rest) = link.split_once('<')?;
        url.join(rest.split_once('>')?.0).ok()
    })
}

/// Whether a path is one of plain names below a folder.
fn is_plain(path: &str) -> bool {
    let is_name = |name: &str| {
        !name.is_empty()
            && name.len() <= NAME_BYTES_MAX
            && !name.starts_with('.')
            && !name.contains(|one: char| one == '\\' || one.is_control())
    };
    path.len() <= PATH_BYTES_MAX && path.split('/').all(is_name)
}

fn is_hexadecimal(text: &str, digits: usize) -> bool {
    text.len() == digits && text.bytes().all(|byte| byte.is_ascii_hexdigit())
}
