//! A stream of server-sent events (<https://html.spec.whatwg.org/multipage/server-sent-events.html>): updates of one
//! task or of a project's, as their readers get them. It never falls behind in memory: an update is read from the store
//! when it is sent.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use axum::http::{HeaderMap, HeaderName, HeaderValue, header};
use axum::response::Response;
use bytes::Bytes;
use futures_util::FutureExt;
use futures_util::stream::unfold;
use kinora_contract::limits::EVENT_KEEP_ALIVE_SECONDS;
use kinora_contract::{ErrorCode, Task, TaskId, UnixMs};
use kinora_store::{Glance, NewKey};
use tokio::time::{Sleep, sleep};

use crate::buffers::Full;
use crate::error::ApiError;
use crate::event_id::{EventId, Told};
use crate::gradual::Gradual;
use crate::recently_told::RecentlyTold;
use crate::state::{Api, SharedApi};
use crate::watch::{Letter, Place, Waiter};

const KEEP_ALIVE: Duration = Duration::from_secs(EVENT_KEEP_ALIVE_SECONDS);
/// How soon a client connects again after a stream has ended, unless it decides otherwise.
const HELLO: &[u8] = b"retry: 3000\n\n";
/// A line that says only that the stream is alive.
const SIGN_OF_LIFE: &[u8] = b":\n\n";
/// Pause after a failed read of the store.
const STORE_PAUSE: Duration = Duration::from_secs(1);
/// How soon a client may ask again for a stream that there is no room for.
const RETRY_SECONDS: u64 = 15;

const LAST_EVENT_ID: HeaderName = HeaderName::from_static("last-event-id");
/// Keeps nginx from collecting events until it has a buffer full.
const X_ACCEL_BUFFERING: HeaderName = HeaderName::from_static("x-accel-buffering");

/// A client that opens a stream.
pub(crate) struct Opening {
    /// The project whose tasks it sees.
    pub(crate) project: Arc<str>,
    /// The last event that it has read, of an earlier stream.
    pub(crate) last: Option<EventId>,
    key_sha256: [u8; 32],
    _place: Place,
}

/// An open stream.
pub(crate) struct EventStream {
    api: SharedApi,
    opening: Opening,
    waiter: Waiter,
    /// What the stream begins with, as far as it is not sent.
    beginning: VecDeque<TaskId>,
    of: Of,
    told: RecentlyTold,
    progress: Progress,
    /// When to look at the key, and to send a sign of life.
    alarm: Pin<Box<Sleep>>,
    step: Step,
}

/// How far the reader has been told.
#[derive(Clone, Copy, Debug, Default)]
struct Progress {
    /// As the next id says.
    since_ms: UnixMs,
    /// As the next id says.
    is_partial: bool,
    /// Since when the stream tells of everything.
    open_ms: UnixMs,
    /// The last end told.
    ended_ms: UnixMs,
}

/// What a stream is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Of {
    /// A task.
    Task,
    /// All tasks of a project.
    Project,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Step {
    Begun,
    Open,
    Ended,
}

impl Opening {
    /// Takes a place for a stream of the client with this key.
    pub(crate) fn new(api: &Api, key: &NewKey, headers: &HeaderMap) -> Result<Self, ApiError> {
        let place = api.watch.streams.take(&key.id).map_err(no_room)?;
        let last = headers.get(LAST_EVENT_ID);
        Ok(Self {
            project: key.project.as_str().into(),
            // One that is not ours says nothing: the stream begins anew.
            last: last.and_then(|id| id.to_str().ok()?.parse().ok()),
            key_sha256: key.sha256,
            _place: place,
        })
    }
}

fn no_room(full: Full) -> ApiError {
    let (code, message) = match full {
        Full::Owner => (
            ErrorCode::RateLimitExceeded,
            "This API key has too many open event streams; close some, or follow the whole project with one.",
        ),
        Full::All => (
            ErrorCode::Overloaded,
            "The service has too many open event streams; poll, or try again soon.",
        ),
    };
    ApiError::new(code, message).retry_after(RETRY_SECONDS)
}

impl EventStream {
    /// The updates of one task, which begin with its state, unless its reader knows it.
    pub(crate) fn of_task(api: SharedApi, opening: Opening, waiter: Waiter, id: TaskId) -> Self {
        let known = opening.last.map(|last| last.told);
        let known = known.filter(|told| told.task() == id);
        Self {
            of: Of::Task,
            told: RecentlyTold::from_known(known),
            ..Self::new(
                api,
                opening,
                waiter,
                VecDeque::from([id]),
                Progress::default(),
            )
        }
    }

    /// The updates of a project's tasks, which begin with these tasks. `open_ms`: the stream tells of all that
    /// ends then or later.
    pub(crate) fn of_project(
        api: SharedApi,
        opening: Opening,
        waiter: Waiter,
        beginning: VecDeque<TaskId>,
        open_ms: UnixMs,
    ) -> Self {
        let progress = Progress {
            since_ms: opening.last.map_or(open_ms, |last| last.since_ms),
            is_partial: opening.last.is_none_or(|last| last.is_partial),
            open_ms,
            ended_ms: 0,
        };
        Self::new(api, opening, waiter, beginning, progress)
    }

    fn new(
        api: SharedApi,
        opening: Opening,
        waiter: Waiter,
        beginning: VecDeque<TaskId>,
        progress: Progress,
    ) -> Self {
        Self {
            api,
            opening,
            waiter,
            beginning,
            of: Of::Project,
            told: RecentlyTold::default(),
            progress,
            alarm: Box::pin(sleep(KEEP_ALIVE)),
            step: Step::Begun,
        }
    }

    /// The answer with this stream.
    pub(crate) fn response(self) -> Response {
        let gradual = Gradual {
            stopping: self.api.stopping.clone(),
        };
        // Boxed: the future of a piece would hold the stream several times over.
        let pieces = unfold(Box::new(self), async |mut stream| {
            let piece = stream.piece().await?;
            Some((Ok::<_, Infallible>(piece), stream))
        });
        let mut response = Response::new(Body::from_stream(pieces));
        response.extensions_mut().insert(gradual);
        let headers = response.headers_mut();
        let kind = HeaderValue::from_static("text/event-stream");
        headers.insert(header::CONTENT_TYPE, kind);
        headers.insert(X_ACCEL_BUFFERING, HeaderValue::from_static("no"));
        response
    }

    /// The next piece, once there is one; `None` at the end.
    async fn piece(&mut self) -> Option<Bytes> {
        if self.step == Step::Begun {
            self.step = Step::Open;
            return Some(Bytes::from_static(HELLO));
        }
        while self.step == Step::Open {
            // Also where there is always something to tell.
            if self.alarm.as_mut().now_or_never().is_some() {
                return self.sign_of_life().await;
            }
            if let Some(letter) = self.letter() {
                if let Some(event) = self.tell(letter).await {
                    return Some(event);
                }
                continue;
            }
            if self.waiter.mailbox().is_over() {
                return None;
            }
            tokio::select! {
                biased;
                () = self.waiter.mailbox().moved() => {}
                () = self.alarm.as_mut() => return self.sign_of_life().await,
            }
        }
        None
    }

    /// A sign of life, unless the key may not read any more.
    async fn sign_of_life(&mut self) -> Option<Bytes> {
        self.alarm.set(sleep(KEEP_ALIVE));
        let is_allowed = self.is_allowed().await;
        is_allowed.then(|| Bytes::from_static(SIGN_OF_LIFE))
    }

    /// The next task to tell of.
    fn letter(&mut self) -> Option<Letter> {
        let mailbox = self.waiter.mailbox();
        let Some(id) = self.beginning.pop_front() else {
            return mailbox.take();
        };
        // What has changed so far is read now.
        mailbox.remove(id);
        if self.beginning.is_empty() {
            self.beginning = VecDeque::new();
        }
        Some(Letter { id, task: None })
    }

    /// The event of a task; none where there is nothing to tell.
    async fn tell(&mut self, letter: Letter) -> Option<Bytes> {
        let id = letter.id;
        match self.event(letter).await {
            Ok(event) => event,
            Err(error) => {
                tracing::debug!(code = ?error.code(), "event delayed: task not read");
                self.beginning.push_front(id);
                let stopping = self.api.stopping.clone();
                tokio::select! {
                    () = stopping.cancelled() => self.step = Step::Ended,
                    () = sleep(STORE_PAUSE) => {}
                }
                None
            }
        }
    }

    async fn event(&mut self, letter: Letter) -> Result<Option<Bytes>, ApiError> {
        let task = match letter.task {
            Some(task) => Some(task),
            None => {
                let tasks = &self.api.tasks;
                tasks.get(&self.opening.project, letter.id).await?
            }
        };
        let seen = task.and_then(|task| Some((Told::from(Glance::of(&task)?), task)));
        let Some((told, task)) = seen else {
            if self.of != Of::Project {
                self.step = Step::Ended;
            }
            return Ok(None);
        };
        let position = self.api.position(&task).await?;
        let json = match self.of {
            Of::Task => self.api.object_json_once(&task, position)?.0,
            // Others read it as well.
            Of::Project => self.api.object_json(&task, position)?,
        };
        if self.of == Of::Task && told.has_ended() {
            self.step = Step::Ended;
        }
        if !self.told.is_news(told) {
            return Ok(None);
        }
        self.note_told(&task);
        let id = EventId {
            since_ms: self.progress.since_ms,
            is_partial: self.progress.is_partial,
            told,
        };
        let mut event = format!("id: {id}\nevent: video.updated\ndata: ").into_bytes();
        event.extend_from_slice(&json);
        event.extend_from_slice(b"\n\n");
        Ok(Some(event.into()))
    }

    /// Notes that the reader is told of `task`. As long as others wait, which may have ended before, it has not
    /// been told of everything up to now.
    fn note_told(&mut self, task: &Task) {
        let progress = &mut self.progress;
        let ended_ms = task.finished_at_ms.unwrap_or(0);
        progress.ended_ms = progress.ended_ms.max(ended_ms);
        if self.beginning.is_empty() && self.waiter.mailbox().is_empty() {
            let told_ms = progress.open_ms.max(progress.ended_ms);
            progress.since_ms = progress.since_ms.max(told_ms);
            progress.is_partial = false;
        }
    }

    /// Whether the key that opened the stream may still read.
    async fn is_allowed(&self) -> bool {
        let now_ms = self.api.clock.now_ms();
        let found = self.api.keys.find_key(&self.opening.key_sha256, now_ms);
        match found.await {
            Ok(found) => found.is_some_and(|key| key.is_usable(now_ms)),
            // It was allowed before, and nobody knows better.
            Err(_) => true,
        }
    }
}
