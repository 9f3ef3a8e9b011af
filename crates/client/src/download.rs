//! Saves a result to a file. The bytes go to a partial file beside the target, which is renamed to
//! the target once it is complete. An interrupted download, even of an earlier process, resumes
//! where it stopped. A task's files never change, so the bytes of two attempts fit together.

use std::path::Path;

use http_body_util::BodyExt;
use hyper::body::Incoming;
use hyper::header::{CONTENT_LENGTH, CONTENT_RANGE, HeaderMap, HeaderValue, LOCATION, RANGE};
use hyper::{Method, Response, StatusCode};
use url::Url;

use crate::client::{Client, Variant};
use crate::error::Error;
use crate::http::Call;
use crate::partial::Partial;
use crate::retry;

impl Client {
    /// Saves a file of a completed task as `path`, replacing an existing file, and returns its
    /// length in bytes.
    ///
    /// Fails with the service's refusal if there is no such file (`video_not_ready`,
    /// `video_failed`, `video_expired`), and with [`Error::File`] if it cannot be written. After a
    /// broken connection it resumes, as often as the client retries calls; after that the partial
    /// file `.NAME.ID-VARIANT.part` remains, and the next download to the same path resumes it. The
    /// file gets its final name only when its length is right and it is synced.
    pub async fn download(&self, id: &str, variant: Variant, path: &Path) -> Result<u64, Error> {
        let label = format!("{id}-{}", variant.name());
        let mut partial = Partial::open(path, &label).await?;
        let mut attempt = 0;
        loop {
            let before = partial.length;
            let error = match self.fetch(id, variant, &mut partial).await {
                Ok(()) => return partial.finish(path).await,
                Err(error) => error,
            };
            if partial.length > before {
                // A long file over a bad connection arrives in many pieces.
                attempt = 0;
            }
            if attempt >= self.0.retries || !error.is_transient() {
                partial.leave().await;
                return Err(error);
            }
            tokio::time::sleep(retry::wait(attempt, error.retry_after())).await;
            attempt += 1;
        }
    }

    /// One attempt to get the missing bytes.
    async fn fetch(&self, id: &str, variant: Variant, partial: &mut Partial) -> Result<(), Error> {
        let mut call = self
            .to(Method::GET, &["videos", id, "content"])
            .query("variant", variant.name());
        if partial.length > 0 {
            call = call.header(RANGE, range(partial.length)?);
        }
        let response = match self.content(&call).await {
            // The partial file is as long as the whole or longer: perhaps an earlier rename failed.
            Err(error) if status(&error) == Some(416) => {
                partial.restart().await?;
                let broken = "the partial file did not match";
                return Err(Error::Broken(broken.into()));
            }
            answered => answered?,
        };
        if response.status() != StatusCode::PARTIAL_CONTENT {
            partial.restart().await?;
        }
        let whole = whole_length(response.headers(), partial.length)?;
        self.save(response.into_body(), partial).await?;
        match whole {
            Some(whole) if partial.length > whole => {
                // Another attempt would not help.
                partial.restart().await?;
                Err(Error::Answer(
                    "more bytes arrived than the file has".to_owned(),
                ))
            }
            Some(whole) if whole != partial.length => Err(Error::Broken(
                format!("{} of {whole} bytes arrived", partial.length).into(),
            )),
            _ => Ok(()),
        }
    }

    /// The answer with the bytes, from the service or from the store that it redirects to.
    async fn content(&self, call: &Call) -> Result<Response<Incoming>, Error> {
        let http = &self.0.http;
        let response = http.accepted(http.open(call).await?).await?;
        if !response.status().is_redirection() {
            return Ok(response);
        }
        let location = response.headers().get(LOCATION);
        let location = location.and_then(|value| value.to_str().ok()).unwrap_or("");
        let url = redirected(&self.0.base, location)?;
        let response = http.open(&call.elsewhere(url)).await?;
        let response = http.accepted(response).await?;
        if !response.status().is_success() {
            return Err(Error::Answer("a redirect led to another one".to_owned()));
        }
        Ok(response)
    }

    async fn save(&self, mut body: Incoming, partial: &mut Partial) -> Result<(), Error> {
        let limit = self.0.http.limit();
        loop {
            let frame = tokio::time::timeout(limit, body.frame()).await;
            let Some(frame) = frame.map_err(|_| Error::Timeout(limit))? else {
                return Ok(());
            };
            let frame = frame.map_err(|error| Error::Broken(error.into()))?;
            if let Some(bytes) = frame.data_ref() {
                partial.add(bytes).await?;
            }
        }
    }
}

fn status(error: &Error) -> Option<u16> {
    error.refusal().map(|refusal| refusal.status)
}

fn range(from: u64) -> Result<HeaderValue, Error> {
    let range = HeaderValue::from_str(&format!("bytes={from}-"));
    range.map_err(|error| Error::Options(error.to_string()))
}

/// The target of a redirect: http or https, but not from https to http.
fn redirected(base: &Url, location: &str) -> Result<Url, Error> {
    let url = base.join(location).ok().filter(|url| match url.scheme() {
        "https" => true,
        scheme => scheme == "http" && base.scheme() == "http",
    });
    url.ok_or_else(|| Error::Answer("a redirect leads nowhere".to_owned()))
}

/// The length of the whole file, of which `from` bytes are present. A part must begin at the
/// requested byte.
fn whole_length(headers: &HeaderMap, from: u64) -> Result<Option<u64>, Error> {
    let text = |name| {
        headers
            .get(name)
            .and_then(|value: &HeaderValue| value.to_str().ok())
    };
    let Some(range) = text(CONTENT_RANGE) else {
        return Ok(text(CONTENT_LENGTH).and_then(|length| length.parse().ok()));
    };
    let parts = range.strip_prefix("bytes ").and_then(|range| {
        let (part, whole) = range.split_once('/')?;
        let (first, _) = part.split_once('-')?;
        Some((first.parse::<u64>().ok()?, whole.parse::<u64>().ok()))
    });
    match parts {
        Some((first, whole)) if first == from => Ok(whole),
        _ => Err(Error::Answer(format!(
            "'{range}' is not the requested part"
        ))),
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
    fn a_redirect_never_leaves_https() {
        let to = |base: &str, location| redirected(&Url::parse(base).unwrap(), location).is_ok();
        assert!(to("http://a/v1", "https://s3/x") && to("http://a/v1", "http://s3/x"));
        assert!(to("https://a/v1", "https://s3/x") && !to("https://a/v1", "http://s3/x"));
        assert!(!to("http://a/v1", "file:///etc/passwd"));
    }
}
