//! Follows a task until it is finished: by server-sent events, or by polling if the service has
//! none. Tolerates outages shorter than the client's `outage_max`.

use std::time::Duration;

use hyper::header::{ACCEPT, CONTENT_TYPE, HeaderName, HeaderValue};
use hyper::{HeaderMap, Method};

use crate::client::Client;
use crate::error::Error;
use crate::events::EventStream;
use crate::retry::{self, BACKOFF};
use crate::video::Video;

/// How long one poll asks the service to wait for a change.
const PREFER_WAIT: Duration = Duration::from_secs(30);
/// Interval of polls if the service does not suggest one.
const POLL: Duration = Duration::from_secs(1);
/// Interval of polls that the service itself delays until a change.
const POLL_AFTER_WAIT: Duration = Duration::from_millis(100);
/// How long a new stream may take to report the task's state.
const GREETING_MAX: Duration = Duration::from_secs(2);
/// A stream that sends nothing for this long, not even a comment, is closed: the connection may be
/// dead.
const SILENCE_MAX: Duration = Duration::from_secs(60);

/// The updates of one task, each different from the previous; the last one is completed or failed.
#[derive(Debug)]
pub struct VideoWatch {
    client: Client,
    id: String,
    source: UpdateSource,
    last_event: Option<String>,
    last: Option<Video>,
}

#[derive(Debug)]
enum UpdateSource {
    /// The service is not known yet, or a stream has broken.
    Unopened,
    Events(Box<EventStream>),
    /// The service has no events; the next poll follows this pause.
    Polls(Duration),
}

impl Client {
    /// Follows the task `id`.
    ///
    /// ```no_run
    /// # async fn example(client: kinora_client::Client) -> Result<(), kinora_client::Error> {
    /// let mut watch = client.watch("video_01k3v8r2n8p5c1w9g7d4x6m2ta");
    /// while let Some(task) = watch.next().await? {
    ///     println!("{} {} %", task.status.name(), task.progress);
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub fn watch(&self, id: &str) -> VideoWatch {
        VideoWatch {
            client: self.clone(),
            id: id.to_owned(),
            source: UpdateSource::Unopened,
            last_event: None,
            last: None,
        }
    }

    /// Waits until the task `id` is completed or failed, and returns it. A failed task is not an
    /// error of this call.
    pub async fn wait(&self, id: &str) -> Result<Video, Error> {
        let mut watch = self.watch(id);
        loop {
            match watch.next().await? {
                Some(video) if video.is_finished() => return Ok(video),
                Some(_) => {}
                None => return Err(Error::Answer("the task has no end".to_owned())),
            }
        }
    }
}

impl VideoWatch {
    /// The next update: first the current state, then each change. `None` after a final state.
    /// Cancel-safe.
    pub async fn next(&mut self) -> Result<Option<Video>, Error> {
        if self.last.as_ref().is_some_and(Video::is_finished) {
            return Ok(None);
        }
        loop {
            let video = self.update().await?;
            if let Some(video) = video.filter(|video| self.last.as_ref() != Some(video)) {
                self.last = Some(video.clone());
                return Ok(Some(video));
            }
        }
    }

    /// The next update from the source; `None` if the source has changed or has nothing to report.
    async fn update(&mut self) -> Result<Option<Video>, Error> {
        match &mut self.source {
            UpdateSource::Unopened => {
                self.source = self.open().await?;
                Ok(None)
            }
            UpdateSource::Polls(pause) => {
                tokio::time::sleep(*pause).await;
                let (video, pause) = self.poll().await?;
                self.source = UpdateSource::Polls(pause);
                Ok(Some(video))
            }
            UpdateSource::Events(events) => {
                let is_first = self.last.is_none();
                let silence_max = if is_first { GREETING_MAX } else { SILENCE_MAX };
                let update = events.next(silence_max).await;
                if let Some(id) = events.last_id() {
                    self.last_event = Some(id.to_owned());
                }
                match update {
                    Ok(Some(video)) => return Ok(Some(video)),
                    // The stream reports only changes, so poll for the current state.
                    Err(Error::Timeout(_)) if is_first => {}
                    // The stream ended, broke or went silent. A poll also shows whether the service
                    // is available.
                    _ => {
                        tokio::time::sleep(POLL).await;
                        self.source = UpdateSource::Unopened;
                    }
                }
                Ok(Some(self.poll().await?.0))
            }
        }
    }

    /// Opens a stream of events, or falls back to polling.
    async fn open(&self) -> Result<UpdateSource, Error> {
        let mut call = self
            .client
            .to(Method::GET, &["videos", &self.id, "events"])
            .header(ACCEPT, HeaderValue::from_static("text/event-stream"));
        let last = self.last_event.as_deref().map(HeaderValue::from_str);
        if let Some(Ok(last)) = last {
            call = call.header(HeaderName::from_static("last-event-id"), last);
        }
        let http = &self.client.0.http;
        let opened = match http.open(&call).await {
            Ok(response) => http.accepted(response).await,
            Err(error) => Err(error),
        };
        match opened {
            Ok(response) if is_event_stream(response.headers()) => Ok(UpdateSource::Events(
                Box::new(EventStream::new(response.into_body())),
            )),
            // A poll shows any problem too, and waits until it is over.
            Ok(_) | Err(_) => Ok(UpdateSource::Polls(Duration::ZERO)),
        }
    }

    /// The task's current state, or its state at the next change, and the pause until the next
    /// poll.
    async fn poll(&self) -> Result<(Video, Duration), Error> {
        let mut last = match self.poll_once().await {
            Err(error) if error.is_transient() => error,
            polled => return polled,
        };
        let again = async {
            let mut attempt = 0;
            loop {
                tokio::time::sleep(BACKOFF.wait(attempt, last.retry_after())).await;
                match self.poll_once().await {
                    Err(error) if error.is_transient() => last = error,
                    polled => return polled,
                }
                attempt += 1;
            }
        };
        let polled = tokio::time::timeout(self.client.0.outage_max, again).await;
        polled.unwrap_or(Err(last))
    }

    async fn poll_once(&self) -> Result<(Video, Duration), Error> {
        let mut call = self.client.to(Method::GET, &["videos", &self.id]);
        if self.last.is_some() {
            let wait = format!("wait={}", PREFER_WAIT.as_secs());
            if let Ok(wait) = HeaderValue::from_str(&wait) {
                call = call.header(HeaderName::from_static("prefer"), wait);
            }
            call = call.waiting(PREFER_WAIT);
        }
        let reply = self.client.0.http.exchange(&call).await?;
        Ok((reply.json()?, pause(&reply.headers)))
    }
}

fn is_event_stream(headers: &HeaderMap) -> bool {
    let media_type = headers
        .get(CONTENT_TYPE)
        .and_then(|value| value.to_str().ok());
    media_type.is_some_and(|value| value.starts_with("text/event-stream"))
}

/// A service that has waited for a change (RFC 7240, section 3) is polled again soon.
fn pause(headers: &HeaderMap) -> Duration {
    let applied = headers
        .get("preference-applied")
        .and_then(|value| value.to_str().ok());
    if applied.is_some_and(|value| value.contains("wait")) {
        return POLL_AFTER_WAIT;
    }
    let asked = retry::poll_after(headers).or_else(|| retry::retry_after(headers));
    asked.unwrap_or(POLL)
}
