//! Uploaded files: pictures and sounds of the caller, which tasks take as references by their `url`.

use std::collections::VecDeque;
use std::fmt;
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use http_body_util::BodyExt as _;
use hyper::Method;
use hyper::body::{Body, Frame, SizeHint};
use hyper::header::{CONTENT_TYPE, HeaderName, HeaderValue};
use kinora_http::BoxError;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::client::{Client, fresh_key};
use crate::error::Error;
use crate::pages::Pages;

/// Time for the body of an upload: at this rate, in addition to that of any answer.
const RATE_BYTES_PER_SECOND: u64 = 32 * 1024;
/// Bytes sent between two reports of progress.
const PIECE_BYTES: usize = 64 * 1024;

/// An iterator over the files of the key's project; reads pages as needed.
pub type FilePages = Pages<File>;

/// An uploaded file.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct File {
    /// Identifier.
    pub id: String,
    /// Length in bytes.
    #[serde(default)]
    pub bytes: u64,
    /// Time of the upload, in Unix seconds.
    #[serde(default)]
    pub created_at: u64,
    /// Time when the file expires, in Unix seconds.
    #[serde(default)]
    pub expires_at: u64,
    /// Its name.
    #[serde(default)]
    pub filename: String,
    /// Its purpose.
    #[serde(default)]
    pub purpose: String,
    /// Signed address, which tasks take as a reference.
    #[serde(default)]
    pub url: String,
    /// Fields that this client does not know.
    #[serde(flatten)]
    pub other: Map<String, Value>,
}

/// A file to upload.
///
/// ```
/// use kinora_client::NewFile;
///
/// let file = NewFile::new("day.jpg")
///     .purpose("vision")
///     .expires_after(3_600)
///     .on_progress(|sent, all| eprintln!("{sent} of {all} bytes"));
/// ```
#[derive(Clone)]
#[must_use]
pub struct NewFile {
    path: PathBuf,
    purpose: Option<String>,
    expires_after: Option<u64>,
    report: ProgressReport,
}

type ProgressReport = Arc<dyn Fn(u64, u64) + Send + Sync>;

impl fmt::Debug for NewFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("NewFile")
            .field("path", &self.path)
            .field("purpose", &self.purpose)
            .field("expires_after", &self.expires_after)
            .finish_non_exhaustive()
    }
}

impl NewFile {
    /// The file at `path`.
    pub fn new(path: impl Into<PathBuf>) -> Self {
        Self {
            path: path.into(),
            purpose: None,
            expires_after: None,
            report: Arc::new(|_, _| {}),
        }
    }

    /// A note that the service returns unchanged.
    pub fn purpose(mut self, purpose: impl Into<String>) -> Self {
        self.purpose = Some(purpose.into());
        self
    }

    /// Lifetime in seconds; a day without it.
    pub fn expires_after(mut self, seconds: u64) -> Self {
        self.expires_after = Some(seconds);
        self
    }

    /// Calls `report` with the bytes that were sent and their number in all. After a retry it starts
    /// again.
    pub fn on_progress(mut self, report: impl Fn(u64, u64) + Send + Sync + 'static) -> Self {
        self.report = Arc::new(report);
        self
    }

    /// The form, as its head, the bytes of the file, and its tail.
    async fn form(&self, boundary: &str) -> Result<[Bytes; 3], Error> {
        let bytes = tokio::fs::read(&self.path).await;
        let bytes = bytes.map_err(|source| Error::Unreadable {
            path: self.path.clone(),
            source,
        })?;
        let mut head = String::new();
        let seconds = self.expires_after.map(|seconds| seconds.to_string());
        let anchor = seconds.as_ref().map(|_| "created_at".to_owned());
        for (name, text) in [
            ("purpose", &self.purpose),
            ("expires_after[anchor]", &anchor),
            ("expires_after[seconds]", &seconds),
        ] {
            if let Some(text) = text {
                head += &format!(
                    "--{boundary}\r\nContent-Disposition: form-data; name=\"{name}\"\r\n\r\n{text}\r\n"
                );
            }
        }
        let name = form_name(&self.path);
        head += &format!(
            "--{boundary}\r\nContent-Disposition: form-data; name=\"file\"; filename=\"{name}\"\r\n\
             Content-Type: application/octet-stream\r\n\r\n"
        );
        let tail = format!("\r\n--{boundary}--\r\n");
        Ok([head.into(), bytes.into(), tail.into()])
    }
}

/// The name of the file at `path`, escaped as browsers do
/// (<https://html.spec.whatwg.org/#multipart-form-data>).
fn form_name(path: &Path) -> String {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let name = name.replace('"', "%22");
    name.replace('\r', "%0D").replace('\n', "%0A")
}

/// The uploaded files of the key's project.
#[derive(Clone, Debug)]
pub struct Files(Client);

impl Client {
    /// The uploaded files of the key's project.
    ///
    /// ```no_run
    /// # async fn example(client: kinora_client::Client) -> Result<(), kinora_client::Error> {
    /// use kinora_client::{NewFile, NewVideo};
    ///
    /// let photo = client.files().upload(&NewFile::new("day.jpg")).await?;
    /// let video = NewVideo::new("kinora-a1", "Day turns into night").first_frame(photo.url);
    /// let task = client.submit(&video).await?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn files(&self) -> Files {
        Files(self.clone())
    }
}

impl Files {
    /// Uploads a file and returns it once the service has checked and stored it. After a lost answer
    /// the client repeats the request with the same idempotency key, which stores no second file.
    pub async fn upload(&self, file: &NewFile) -> Result<File, Error> {
        let key = fresh_key()?;
        let boundary = format!("kinora-{key}");
        let form = file.form(&boundary).await?;
        let all: u64 = form.iter().map(|part| part.len() as u64).sum();
        let text = |text: String| {
            HeaderValue::from_str(&text).map_err(|error| Error::Options(error.to_string()))
        };
        let call = self
            .0
            .to(Method::POST, &["files"])
            .header(
                CONTENT_TYPE,
                text(format!("multipart/form-data; boundary={boundary}"))?,
            )
            .header(HeaderName::from_static("idempotency-key"), text(key)?)
            .waiting(Duration::from_secs(all / RATE_BYTES_PER_SECOND));
        let upload = || {
            let body = ProgressBody {
                rest: form.clone().into(),
                sent: 0,
                all,
                report: file.report.clone(),
            };
            self.0.0.http.upload(&call, body.boxed_unsync())
        };
        let reply = self.0.retrying(upload).await?;
        // Nobody asks the body for its last piece once its length is sent.
        (file.report)(all, all);
        reply.json()
    }

    /// A file.
    pub async fn get(&self, id: &str) -> Result<File, Error> {
        let call = self.0.to(Method::GET, &["files", id]);
        self.0.call(&call).await?.json()
    }

    /// Deletes a file. Tasks that were accepted with it keep its bytes until they end.
    pub async fn delete(&self, id: &str) -> Result<(), Error> {
        let call = self.0.to(Method::DELETE, &["files", id]);
        self.0.call(&call).await.map(|_| ())
    }

    /// The files, newest first.
    pub fn list(&self) -> FilePages {
        Pages::new(&self.0, "files")
    }
}

/// The bytes of a form, with reports of how many were sent.
struct ProgressBody {
    rest: VecDeque<Bytes>,
    sent: u64,
    all: u64,
    report: ProgressReport,
}

impl Body for ProgressBody {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        (self.report)(self.sent, self.all);
        while self.rest.front().is_some_and(Bytes::is_empty) {
            self.rest.pop_front();
        }
        let Some(part) = self.rest.front_mut() else {
            return Poll::Ready(None);
        };
        let piece = part.split_to(part.len().min(PIECE_BYTES));
        self.sent += piece.len() as u64;
        Poll::Ready(Some(Ok(Frame::data(piece))))
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.all - self.sent)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_cannot_leave_its_quotes() {
        assert_eq!(form_name(Path::new("a/day 1.jpg")), "day 1.jpg");
        assert_eq!(form_name(Path::new("a\"\r\nb")), "a%22%0D%0Ab");
        assert_eq!(form_name(Path::new("/")), "");
    }
}
