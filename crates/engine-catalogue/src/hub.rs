//! Asks the model hub which files a choice needs, at which commit, with their lengths and SHA-256.

use kinora_http::TrustedRoots;
use kinora_http_download::OriginToken;
use url::Url;

use crate::choice::Choice;

/// The API of a model hub.
#[derive(Debug)]
pub struct Hub {
    base: Url,
    token: Option<OriginToken>,
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
    /// The hub could not be reached, or broke off.
    #[error("{0}")]
    Unreachable(String),
    /// The hub refused, or its answer is unusable.
    #[error("{0}")]
    Refused(String),
}

impl Hub {
    /// A hub at `base`, such as `https://huggingface.co`. Only its own origin gets the token.
    ///
    /// # Errors
    /// [`HubError`] if the certificates are unusable.
    pub fn new(
        base: Url,
        token: Option<OriginToken>,
        _roots: TrustedRoots,
    ) -> Result<Self, HubError> {
        Ok(Self { base, token })
    }

    /// The files of a choice, in the order of its repositories.
    ///
    /// # Errors
    /// [`HubError`] with what to do.
    pub async fn resolve(&self, _choice: &Choice) -> Result<Vec<HubFile>, HubError> {
        Err(HubError::Refused(format!("{} {:?}", self.base, self.token)))
    }
}
