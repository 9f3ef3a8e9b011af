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
    /// A hub at `base`, such as `https://huggingface.co`. Only the token's own origin gets it.
    ///
    /// # Errors
    /// [`HubError::Refused`] if the address or the certificates are unusable.
    pub fn new(
        base: Url,
        token: Option<OriginToken>,
        roots: TrustedRoots,
    ) -> Result<Self, HubError> {
        let unusable = |what: &str| HubError::Refused(format!("The hub's {what}."));
        if !matches!(base.scheme(), "http" | "https") {
            return Err(unusable("address must begin with http or https"));
        }
        let tls = roots.client_config();
        let tls =
            tls.map_err(|error| unusable(&format!("certificates: {}", error_chain(&error))))?;
        let options = ClientOptions {
            connect_timeout: Some(Duration::from_secs(10)),
            ..ClientOptions::default()
        };
        let http = HttpClient::new(tls, options, None);
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
            // A pattern without a star is a file that must be there.
            let mut named = wanted
                .include
                .iter()
                .filter(|pattern| !pattern.contains('*'));
            if let Some(missing) = named.find(|name| !listed.iter().any(|file| file.path == **name))
            {
                return Err(HubError::Refused(format!(
                    "{} has no file {missing} at {}: its publisher may have renamed it.",
                    wanted.id, wanted.revision
                )));
            }
            if listed.is_empty() {
                let (id, revision) = (&wanted.id, &wanted.revision);
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
        let url = self.address(
            &wanted.id,
            &["api", "models"],
            &["revision", &wanted.revision],
        )?;
        let answer = self.get(&wanted.id, url).await?;
        let revision: Revision = parsed(&wanted.id, answer.body())?;
        if revision.sha.len() != 40 || !is_hexadecimal(&revision.sha) {
            return Err(HubError::Refused(format!(
                "{}: the hub's answer names no commit.",
                wanted.id
            )));
        }
        Ok(revision.sha)
    }

    /// The wanted files at a commit.
    async fn tree(&self, wanted: &RepositoryFiles, commit: &str) -> Result<Vec<HubFile>, HubError> {
        let id = &wanted.id;
        let mut url = self.address(id, &["api", "models"], &["tree", commit])?;
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
                    return Err(HubError::Refused(format!(
                        "{id}: the hub continues its list at another server."
                    )));
                }
            }
        }
        Err(HubError::Refused(format!(
            "{id} has more files than a model can need."
        )))
    }

    /// A file of the list. Its path becomes the name of a file here, so it must be plain.
    fn file(&self, id: &str, commit: &str, entry: TreeEntry) -> Result<HubFile, HubError> {
        let TreeEntry {
            path, size, lfs, ..
        } = entry;
        let refused = |what: &str| {
            let path = path.escape_debug();
            Err(HubError::Refused(format!(
                "{id}: the file '{path}' {what}."
            )))
        };
        if !is_plain(&path) {
            return refused("has no plain name");
        }
        let (large_bytes, sha256) = lfs.map_or((None, None), |lfs| (lfs.size, Some(lfs.oid)));
        let bytes = large_bytes.or(size);
        if bytes.is_some_and(|bytes| bytes > FILE_BYTES_MAX) {
            return refused("is longer than any file of a model");
        }
        if sha256
            .as_ref()
            .is_some_and(|it| it.len() != 64 || !is_hexadecimal(it))
        {
            return refused("has no SHA-256 that can be read");
        }
        let mut below = vec!["resolve", commit];
        below.extend(path.split('/'));
        Ok(HubFile {
            repository: id.to_owned(),
            commit: commit.to_owned(),
            url: self.address(id, &[], &below)?,
            bytes,
            sha256: sha256.map(|it| it.to_ascii_lowercase()),
            path,
        })
    }

    /// The address of `before/ORGANISATION/NAME/after` below the hub's.
    fn address(&self, id: &str, before: &[&str], after: &[&str]) -> Result<Url, HubError> {
        let mut url = self.base.clone();
        match url.path_segments_mut() {
            Ok(mut segments) => {
                let segments = segments.pop_if_empty().extend(before);
                segments.extend(id.split('/')).extend(after);
            }
            Err(()) => {
                return Err(HubError::Refused(
                    "The hub's address has no path.".to_owned(),
                ));
            }
        }
        Ok(url)
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
            let request = request.map_err(|error| HubError::Refused(format!("{id}: {error}.")))?;
            let asked = self
                .http
                .exchange(request, ANSWER_LIMIT, ANSWER_BYTES_MAX)
                .await;
            let answer = asked.map_err(|error| {
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
        Err(HubError::Refused(format!(
            "{id}: the hub redirects in a circle."
        )))
    }

    /// What an answer of another status means.
    fn refusal(&self, id: &str, answer: &Response<Bytes>) -> HubError {
        let status = answer.status();
        let mut page = self.base.clone();
        page.set_path(id);
        match status {
            StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN => {
                let code = answer.headers().get("x-error-code");
                let is_gated = code.is_some_and(|code| code == "GatedRepo");
                let doubt = match (is_gated, &self.token) {
                    (true, _) => "",
                    (false, None) => " If that page does not exist, the repository is gone.",
                    (false, Some(_)) => " Or the token is wrong or has no read access.",
                };
                HubError::Refused(format!(
                    "The hub gives {id} to known accounts only (HTTP {}). Accept the licence at {page}, create a token \
                     with read access, and set weights.token_file and weights.token_origin (docs/models.md).{doubt}",
                    status.as_u16()
                ))
            }
            StatusCode::NOT_FOUND => HubError::Refused(format!(
                "The hub has no repository {id}, or not its revision: see {page}."
            )),
            _ if status.is_server_error() || status == StatusCode::TOO_MANY_REQUESTS => {
                HubError::Unreachable(format!(
                    "The hub {} cannot answer now (HTTP {}). Repeat the command later.",
                    self.base,
                    status.as_u16()
                ))
            }
            _ => HubError::Refused(format!(
                "{id}: the hub answered with HTTP {}.",
                status.as_u16()
            )),
        }
    }
}

fn parsed<T: DeserializeOwned>(id: &str, body: &[u8]) -> Result<T, HubError> {
    serde_json::from_slice(body).map_err(|error| {
        HubError::Refused(format!(
            "{id}: the hub's answer is not that of a model hub ({error}). Check weights.hub_url."
        ))
    })
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

fn is_hexadecimal(text: &str) -> bool {
    text.bytes().all(|byte| byte.is_ascii_hexdigit())
}
