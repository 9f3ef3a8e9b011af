//! Gets one file, in as many attempts as it takes while there is progress, and in a bounded number
//! without.

use std::time::Duration;

use hyper::body::Incoming;
use hyper::header::{HeaderMap, HeaderValue, IF_RANGE, RANGE};
use kinora_http::{Backoff, next_piece};

use crate::check;
use crate::error::DownloadError;
use crate::head::{self, BodyMeaning, HeldBytes};
use crate::http::DownloadClient;
use crate::partial::NotedFile;
use crate::room::{ClaimedSpace, SpaceClaim};
use crate::source::DownloadSource;
use crate::token::OriginToken;
use crate::watcher::DownloadWatcher;

/// The longest wait between two attempts, unless the server asks for a longer one.
const WAIT_MAX: Duration = Duration::from_secs(60);

/// How to download.
#[derive(Clone, Debug)]
pub struct DownloadOptions {
    /// Maximum time to connect, for a head, and for each further piece of a file.
    pub stall_limit: Duration,
    /// Maximum number of retries in a row without progress.
    pub retries_max: u32,
    /// The wait before the first retry; it doubles with each further one, up to a minute.
    pub first_wait: Duration,
    /// The token, if one is needed.
    pub token: Option<OriginToken>,
    /// Trusted certificates in PEM besides the public ones.
    pub roots_pem: Vec<u8>,
}

/// Gets files; several at a time share the disk's free space.
#[derive(Debug)]
pub struct Downloader {
    http: DownloadClient,
    options: DownloadOptions,
    room: ClaimedSpace,
}

impl Downloader {
    /// A downloader with these options.
    ///
    /// # Errors
    /// [`DownloadError::Options`] if the certificates are unusable.
    pub fn new(options: DownloadOptions) -> Result<Self, DownloadError> {
        let token = options.token.clone();
        Ok(Self {
            http: DownloadClient::new(options.stall_limit, token, &options.roots_pem)?,
            room: ClaimedSpace::default(),
            options,
        })
    }

    /// Gets the file of `source`, and returns its length in bytes. A file that exists at its path is
    /// not replaced: its length is returned.
    ///
    /// # Errors
    /// The last attempt's. The bytes remain beside the path, as `.NAME.part`, for the next call,
    /// unless they are wrong.
    pub async fn get(
        &self,
        source: &DownloadSource,
        watcher: &dyn DownloadWatcher,
    ) -> Result<u64, DownloadError> {
        let mut partial = NotedFile::open(&source.path, source.url.as_str()).await?;
        if let Ok(there) = tokio::fs::metadata(&source.path).await {
            partial.leave().await;
            return Ok(there.len());
        }
        let (mut retry, mut furthest) = (0, partial.held.length);
        // Only bytes of several answers can be wrong although each answer was right.
        let mut is_pieced = furthest > 0;
        loop {
            let error = match self.attempt(source, &mut partial, watcher).await {
                Ok(()) => return partial.finish(&source.path).await,
                Err(error) => error,
            };
            let may_help =
                error.is_transient() || is_pieced && matches!(error, DownloadError::Hash { .. });
            is_pieced = partial.held.length > 0;
            if partial.held.length > furthest {
                // A long file over a bad connection arrives in many pieces. What an attempt got
                // again, because it began anew, is no progress.
                furthest = partial.held.length;
                retry = 0;
            }
            if retry >= self.options.retries_max || !may_help {
                partial.leave().await;
                return Err(error);
            }
            let backoff = Backoff {
                first: self.options.first_wait,
                max: WAIT_MAX,
            };
            let wait = backoff.wait(retry, error.retry_after());
            retry += 1;
            watcher.retrying(&error, wait, retry, self.options.retries_max);
            tokio::time::sleep(wait).await;
        }
    }

    /// One attempt to get the missing bytes, and the check of all.
    async fn attempt(
        &self,
        source: &DownloadSource,
        partial: &mut NotedFile,
        watcher: &dyn DownloadWatcher,
    ) -> Result<(), DownloadError> {
        let fetched = self.fetch(source, partial, watcher).await;
        if let Err(DownloadError::Changed) = &fetched {
            partial.empty().await?;
        }
        partial.flush().await?;
        fetched?;
        if let Some(expected) = &source.sha256 {
            watcher.checking();
            let checked = check::sha256(partial.path(), expected).await;
            if checked.is_err() {
                partial.empty().await?;
            }
            checked?;
        }
        Ok(())
    }

    async fn fetch(
        &self,
        source: &DownloadSource,
        partial: &mut NotedFile,
        watcher: &dyn DownloadWatcher,
    ) -> Result<(), DownloadError> {
        // Without a validator and a hash nobody would notice that the pieces are of two files.
        if partial.held.validator.is_none() && source.sha256.is_none() {
            partial.empty().await?;
        }
        let asked = request(&partial.held)?;
        let (response, origin) = self.http.get(&source.url, &asked).await?;
        let (head, body) = response.into_parts();
        let following = head::evaluate_head(head.status, &head.headers, &origin, &partial.held)?;
        let announced = match following {
            BodyMeaning::Nothing => Some(partial.held.length),
            BodyMeaning::Whole(whole) | BodyMeaning::Rest(whole) => whole,
        };
        let whole = expected(source, announced)?;
        match following {
            BodyMeaning::Nothing => return Ok(()),
            BodyMeaning::Whole(_) => {
                let validator = head::validator(&head.headers);
                let url = source.url.as_str();
                partial.begin(url, validator, whole).await?;
            }
            BodyMeaning::Rest(_) => {}
        }
        watcher.begun(partial.held.length, whole);
        let missing = whole.saturating_sub(partial.held.length);
        let claim = self.room.claim(source.folder(), missing)?;
        self.save(body, whole, partial, claim, watcher).await?;
        let held = partial.held.length;
        if held < whole {
            return Err(DownloadError::Broken(
                format!("{held} of {whole} bytes arrived").into(),
            ));
        }
        Ok(())
    }

    /// Writes the body, up to the length of the whole file.
    async fn save(
        &self,
        mut body: Incoming,
        whole: u64,
        partial: &mut NotedFile,
        mut claim: SpaceClaim,
        watcher: &dyn DownloadWatcher,
    ) -> Result<(), DownloadError> {
        let limit = self.options.stall_limit;
        while let Some(bytes) = next_piece(&mut body, limit).await? {
            let length = partial.held.length + bytes.len() as u64;
            if length > whole {
                // Another attempt would not help.
                partial.empty().await?;
                let what = "more bytes arrived than the file has";
                return Err(DownloadError::Answer(what.to_owned()));
            }
            partial.add(&bytes).await?;
            claim.used(bytes.len() as u64);
            watcher.grown(length);
        }
        Ok(())
    }
}

/// Asks for the bytes after those that are held, or for the whole file if it has changed.
fn request(held: &HeldBytes) -> Result<HeaderMap, DownloadError> {
    let mut headers = HeaderMap::new();
    if held.length == 0 {
        return Ok(headers);
    }
    let value = |text: String| {
        HeaderValue::try_from(text).map_err(|error| DownloadError::Options(error.to_string()))
    };
    headers.insert(RANGE, value(format!("bytes={}-", held.length))?);
    if let Some(validator) = &held.validator {
        headers.insert(IF_RANGE, value(validator.clone())?);
    }
    Ok(headers)
}

/// The length that the file must have in the end. The announced one must be the configured one.
fn expected(source: &DownloadSource, announced: Option<u64>) -> Result<u64, DownloadError> {
    match (announced, source.bytes) {
        (Some(found), Some(expected)) if found != expected => {
            Err(DownloadError::Length { found, expected })
        }
        (Some(bytes), _) | (None, Some(bytes)) => Ok(bytes),
        (None, None) => Err(DownloadError::Answer(
            "it announces no length, and the length of the file is not known".to_owned(),
        )),
    }
}
