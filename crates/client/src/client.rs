//! The client: a method for each endpoint. Separate files have waiting, lists and downloads.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use hyper::Method;
use hyper::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, HeaderName, HeaderValue};
use serde::{Deserialize, Serialize};
use serde_json::json;
use url::Url;

use crate::error::Error;
use crate::http::{ApiCall, ApiReply, ServiceConnections};
use crate::model::Model;
use crate::request::{Edit, NewVideo};
use crate::retry::BACKOFF;
use crate::video::Video;

/// A client of one service. Clones share its connections.
#[derive(Clone)]
pub struct Client(pub(crate) Arc<ClientInner>);

pub(crate) struct ClientInner {
    pub(crate) http: ServiceConnections,
    /// `.../v1`
    pub(crate) base: Url,
    pub(crate) authorization: Option<HeaderValue>,
    pub(crate) retries: u32,
    pub(crate) outage_max: Duration,
}

// Manual, so that the key is not shown.
impl fmt::Debug for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Client({})", self.0.base)
    }
}

/// The files of a completed task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Variant {
    /// The MP4.
    Video,
    /// The poster, WebP.
    Thumbnail,
    /// Small frames in one JPEG.
    Spritesheet,
    /// The first frame in full size, JPEG.
    FirstFrame,
    /// The last frame in full size, JPEG.
    LastFrame,
}

impl Variant {
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Video => "video",
            Self::Thumbnail => "thumbnail",
            Self::Spritesheet => "spritesheet",
            Self::FirstFrame => "first_frame",
            Self::LastFrame => "last_frame",
        }
    }
}

#[derive(Deserialize)]
struct ModelList {
    data: Vec<Model>,
}

#[derive(Deserialize)]
struct CancelledCount {
    cancelled: u64,
}

impl Client {
    /// Submits a task and returns it once the service has stored it on disk. After a lost answer
    /// the client repeats the request with the same idempotency key, which creates no second task.
    pub async fn submit(&self, video: &NewVideo) -> Result<Video, Error> {
        let key = video.idempotency_key.as_deref();
        self.post_once(&["videos"], video, key).await
    }

    /// Submits an edit of a completed video.
    pub async fn edit(&self, edit: &Edit) -> Result<Video, Error> {
        let key = edit.idempotency_key.as_deref();
        self.post_once(&["videos", "edits"], edit, key).await
    }

    /// Submits the final of a completed draft, with the draft's model.
    pub async fn final_of(&self, draft_id: &str) -> Result<Video, Error> {
        let draft = self.get(draft_id).await?;
        let video = NewVideo::final_of(draft.model, draft.id);
        self.submit(&video).await
    }

    /// The current state of a task.
    pub async fn get(&self, id: &str) -> Result<Video, Error> {
        self.call(&self.to(Method::GET, &["videos", id]))
            .await?
            .json()
    }

    /// Cancels an unfinished task: it becomes failed with the code `cancelled`. A cancelled task is
    /// returned unchanged; one that finished otherwise is refused with `not_cancellable`.
    pub async fn cancel(&self, id: &str) -> Result<Video, Error> {
        let call = self.to(Method::POST, &["videos", id, "cancel"]);
        match self.call(&call).await {
            Ok(reply) => reply.json(),
            Err(error) if error.code() == Some("not_cancellable") => {
                let video = self.get(id).await?;
                if video.is_cancelled() {
                    Ok(video)
                } else {
                    Err(error)
                }
            }
            Err(error) => Err(error),
        }
    }

    /// Cancels the tasks of the project that wait for their first run, of one model (`None`: of all).
    /// Returns how many. After a lost answer the client repeats the call; the count is then of those that
    /// the repeat found.
    pub async fn cancel_queued(&self, model: Option<&str>) -> Result<u64, Error> {
        let body = json!({"status": "queued", "model": model});
        let call = self
            .to(Method::POST, &["videos", "cancel"])
            .header(CONTENT_TYPE, HeaderValue::from_static("application/json"))
            .body(body.to_string());
        Ok(self.call(&call).await?.json::<CancelledCount>()?.cancelled)
    }

    /// Removes a task and its files; cancels it first if it is unfinished.
    pub async fn delete(&self, id: &str) -> Result<(), Error> {
        let call = self.to(Method::DELETE, &["videos", id]);
        self.call(&call).await.map(|_| ())
    }

    /// The models that the key may use.
    pub async fn models(&self) -> Result<Vec<Model>, Error> {
        let reply = self.call(&self.to(Method::GET, &["models"])).await?;
        Ok(reply.json::<ModelList>()?.data)
    }

    /// The latest preview of an unfinished video, or the poster of a completed one: WebP. `None` if
    /// there is none.
    pub async fn preview(&self, id: &str) -> Result<Option<Bytes>, Error> {
        let mut call = self.to(Method::GET, &["videos", id, "content"]);
        call = call.header(ACCEPT, HeaderValue::from_static("image/webp"));
        let call = call.query("variant", Variant::Thumbnail.name());
        match self.0.http.exchange(&call).await {
            Ok(reply) => Ok((!reply.body.is_empty()).then_some(reply.body)),
            Err(error) if matches!(error.code(), Some("video_not_ready" | "video_failed")) => {
                Ok(None)
            }
            Err(error) => Err(error),
        }
    }

    /// A call to `segments` under `/v1`, with the key.
    pub(crate) fn to(&self, method: Method, segments: &[&str]) -> ApiCall {
        let mut url = self.0.base.clone();
        if let Ok(mut path) = url.path_segments_mut() {
            path.extend(segments);
        }
        let call = ApiCall::new(method, url);
        match &self.0.authorization {
            Some(key) => call.header(AUTHORIZATION, key.clone()),
            None => call,
        }
    }

    /// Makes a call that is safe to repeat, and repeats it after transient failures.
    pub(crate) async fn call(&self, call: &ApiCall) -> Result<ApiReply, Error> {
        self.retrying(|| self.0.http.exchange(call)).await
    }

    /// The reply to `exchange`, which is repeated after transient failures.
    pub(crate) async fn retrying<F: Future<Output = Result<ApiReply, Error>>>(
        &self,
        exchange: impl Fn() -> F,
    ) -> Result<ApiReply, Error> {
        let mut attempt = 0;
        loop {
            let error = match exchange().await {
                Ok(reply) => return Ok(reply),
                Err(error) => error,
            };
            if attempt >= self.0.retries || !error.is_transient() {
                return Err(error);
            }
            tokio::time::sleep(BACKOFF.wait(attempt, error.retry_after())).await;
            attempt += 1;
        }
    }

    async fn post_once(
        &self,
        segments: &[&str],
        body: &impl Serialize,
        key: Option<&str>,
    ) -> Result<Video, Error> {
        let body = serde_json::to_vec(body).map_err(|error| Error::Options(error.to_string()))?;
        let key = key.map_or_else(fresh_key, |key| Ok(key.to_owned()))?;
        let key = HeaderValue::from_str(&key).map_err(|_| {
            Error::Options("an idempotency key is 1 to 255 visible ASCII characters".to_owned())
        })?;
        let call = self
            .to(Method::POST, segments)
            .header(CONTENT_TYPE, HeaderValue::from_static("application/json"))
            .header(HeaderName::from_static("idempotency-key"), key)
            .body(body);
        self.call(&call).await?.json()
    }
}

/// 128 random bits in hexadecimal.
pub(crate) fn fresh_key() -> Result<String, Error> {
    let mut bytes = [0; 16];
    getrandom::fill(&mut bytes)
        .map_err(|error| Error::Options(format!("the machine gave no random bytes: {error}")))?;
    Ok(format!("{:032x}", u128::from_be_bytes(bytes)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::files::NewFile;

    /// A program spawns calls as tasks.
    #[test]
    fn calls_can_move_between_threads() {
        fn spawnable(_: impl Send) {}
        let client = Client::new("http://127.0.0.1:1", "key").unwrap();
        spawnable(client.submit(&NewVideo::new("m", "p")));
        spawnable(client.files().upload(&NewFile::new("x")));
        spawnable(client.list().next());
        spawnable(client.watch("x").next());
    }
}
