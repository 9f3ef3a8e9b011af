//! Saves a result to a file. The bytes go to a partial file beside the target, which is renamed to
//! the target once it is complete. An interrupted download, even of an earlier process, resumes
//! where it stopped. A task's files never change, so the bytes of two attempts fit together.

use std::io;
use std::path::{Path, PathBuf};

use hyper::body::Incoming;
use hyper::header::{CONTENT_LENGTH, CONTENT_RANGE, HeaderMap, HeaderValue, RANGE};
use hyper::{Method, Response, StatusCode};
use kinora_http::{PartialFile, content_range, next_piece, redirect_target};

use crate::client::{Client, Variant};
use crate::error::Error;
use crate::http::ApiCall;
use crate::retry::BACKOFF;

impl Client {
    /// Saves a file of a completed task as `path`, replacing an existing file, and returns its
    /// length in bytes.
    ///
    /// Fails with the service's refusal if there is no such file (`video_not_ready`,
    /// `video_failed`, `video_expired`, and `not_found` for a frame that the result lacks), and with
    /// [`Error::File`] if it cannot be written. After a broken connection it resumes, as often as
    /// the client retries calls; after that the partial file `.NAME.ID-VARIANT.part` remains, and
    /// the next download to the same path resumes it. The file gets its final name only when its
    /// length is right and it is synced.
    pub async fn download(&self, id: &str, variant: Variant, path: &Path) -> Result<u64, Error> {
        let beside = partial_path(path, id, variant)?;
        let opened = PartialFile::open(beside.clone()).await;
        let mut partial = opened.map_err(|source| failure(&beside, source))?;
        let mut attempt = 0;
        loop {
            let before = partial.length();
            let error = match self.fetch(id, variant, &mut partial).await {
                Ok(()) => {
                    let finished = partial.finish(path).await;
                    return finished.map_err(|source| failure(path, source));
                }
                Err(error) => error,
            };
            if partial.length() > before {
                // A long file over a bad connection arrives in many pieces.
                attempt = 0;
            }
            if attempt >= self.0.retries || !error.is_transient() {
                partial.leave().await;
                return Err(error);
            }
            tokio::time::sleep(BACKOFF.wait(attempt, error.retry_after())).await;
            attempt += 1;
        }
    }

    /// One attempt to get the missing bytes.
    async fn fetch(
        &self,
        id: &str,
        variant: Variant,
        partial: &mut PartialFile,
    ) -> Result<(), Error> {
        let mut call = self
            .to(Method::GET, &["videos", id, "content"])
            .query("variant", variant.name());
        if partial.length() > 0 {
            call = call.header(RANGE, range(partial.length())?);
        }
        let response = match self.content(&call).await {
            // The partial file is as long as the whole or longer: perhaps an earlier rename failed.
            Err(error) if status(&error) == Some(416) => {
                clear(partial).await?;
                let broken = "the partial file did not match";
                return Err(Error::Broken(broken.into()));
            }
            answered => answered?,
        };
        if response.status() != StatusCode::PARTIAL_CONTENT {
            clear(partial).await?;
        }
        let whole = whole_length(response.headers(), partial.length())?;
        self.save(response.into_body(), partial).await?;
        match whole {
            Some(whole) if partial.length() > whole => {
                // Another attempt would not help.
                clear(partial).await?;
                Err(Error::Answer(
                    "more bytes arrived than the file has".to_owned(),
                ))
            }
            Some(whole) if whole != partial.length() => Err(Error::Broken(
                format!("{} of {whole} bytes arrived", partial.length()).into(),
            )),
            _ => Ok(()),
        }
    }

    /// The answer with the bytes, from the service or from the store that it redirects to.
    async fn content(&self, call: &ApiCall) -> Result<Response<Incoming>, Error> {
        let http = &self.0.http;
        let response = http.accepted(http.open(call).await?).await?;
        if !response.status().is_redirection() {
            return Ok(response);
        }
        let url = redirect_target(&self.0.base, response.headers())
            .ok_or_else(|| Error::Answer("a redirect leads nowhere".to_owned()))?;
        let response = http.open(&call.elsewhere(url)).await?;
        let response = http.accepted(response).await?;
        if !response.status().is_success() {
            return Err(Error::Answer("a redirect led to another one".to_owned()));
        }
        Ok(response)
    }

    async fn save(&self, mut body: Incoming, partial: &mut PartialFile) -> Result<(), Error> {
        while let Some(bytes) = next_piece(&mut body, self.0.http.limit).await? {
            let added = partial.add(&bytes).await;
            added.map_err(|source| failure(partial.path(), source))?;
        }
        Ok(())
    }
}

/// `.NAME.ID-VARIANT.part` in the folder of `target`.
fn partial_path(target: &Path, id: &str, variant: Variant) -> Result<PathBuf, Error> {
    // An id comes from the caller and must not contain a path.
    let id: String = id
        .chars()
        .filter(|c| c.is_ascii_alphanumeric() || matches!(*c, '_' | '-'))
        .collect();
    let path = PartialFile::path_for(target, &format!("{id}-{}.part", variant.name()));
    path.ok_or_else(|| Error::Options(format!("{} names no file", target.display())))
}

async fn clear(partial: &mut PartialFile) -> Result<(), Error> {
    let cleared = partial.clear().await;
    cleared.map_err(|source| failure(partial.path(), source))
}

fn failure(path: &Path, source: io::Error) -> Error {
    Error::File {
        path: path.to_owned(),
        source,
    }
}

fn status(error: &Error) -> Option<u16> {
    error.refusal().map(|refusal| refusal.status)
}

fn range(from: u64) -> Result<HeaderValue, Error> {
    let range = HeaderValue::from_str(&format!("bytes={from}-"));
    range.map_err(|error| Error::Options(error.to_string()))
}

/// The length of the whole file, of which `from` bytes are present. A part must begin at the
/// requested byte.
fn whole_length(headers: &HeaderMap, from: u64) -> Result<Option<u64>, Error> {
    let Some(range) = headers.get(CONTENT_RANGE) else {
        let length = headers.get(CONTENT_LENGTH);
        let length = length.and_then(|length| length.to_str().ok());
        return Ok(length.and_then(|length| length.parse().ok()));
    };
    match content_range(headers) {
        Some((first, whole)) if first == from => Ok(whole),
        _ => {
            let range = String::from_utf8_lossy(range.as_bytes());
            let text = format!("'{range}' is not the requested part");
            Err(Error::Answer(text))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_must_be_the_one_that_was_asked_for() {
        let length = |name: &'static str, value: &'static str| {
            let mut headers = HeaderMap::new();
            headers.insert(name, HeaderValue::from_static(value));
            whole_length(&headers, 10).ok()
        };
        assert_eq!(length("content-range", "bytes 10-19/20"), Some(Some(20)));
        assert_eq!(length("content-range", "bytes 10-19/*"), Some(None));
        assert_eq!(length("content-range", "bytes 0-19/20"), None);
        assert_eq!(length("content-range", "lines 10-19/20"), None);
        assert_eq!(length("content-length", "20"), Some(Some(20)));
        assert_eq!(length("x", "20"), Some(None));
    }

    #[test]
    fn an_id_leads_to_no_other_folder() {
        let path = |target, id| partial_path(Path::new(target), id, Variant::Video);
        let expected = Path::new("a/.out.mp4.video_x-video.part");
        assert_eq!(path("a/out.mp4", "video_x").unwrap(), expected);
        assert_eq!(path("a/out.mp4", "../video_x").unwrap(), expected);
        assert!(path("/", "x").is_err());
    }
}
