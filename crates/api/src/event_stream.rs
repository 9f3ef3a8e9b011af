//! A stream of server-sent events
//! (<https://html.spec.whatwg.org/multipage/server-sent-events.html>) with the updates of one task
//! or of a whole project. Its memory does not grow with a slow client: each update is read from the
//! store when it is sent.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use axum::http::{HeaderMap, HeaderName, HeaderValue, header};
use axum::response::Response;
use bytes::Bytes;
use futures_util::stream::unfold;
use kinora_contract::limits::EVENT_KEEP_ALIVE_SECONDS;
use kinora_contract::{ErrorCode, TaskId, UnixMs};
use kinora_store::{NewKey, TaskGlance};
use tokio::time::{Sleep, sleep};

use crate::error::ApiError;
use crate::event_id::{EventId, RecentReports, ReportedState};
use crate::memory::{GradualResponse, LimitReached};
use crate::request_turns::ActiveTurn;
use crate::state::{Api, SharedApi};
use crate::watch::{KeyHold, RenderedTask, TaskUpdate, TaskWaiter};

const KEEP_ALIVE: Duration = Duration::from_secs(EVENT_KEEP_ALIVE_SECONDS);
/// How soon a client reconnects after a stream has ended, unless it chooses another delay.
const HELLO: &[u8] = b"retry: 3000\n\n";
/// A comment line that keeps the connection alive.
const SIGN_OF_LIFE: &[u8] = b":\n\n";
/// Pause after a failed read of the store.
const STORE_PAUSE: Duration = Duration::from_secs(1);
/// How soon a client may retry after a stream was refused for lack of room.
const RETRY_SECONDS: u64 = 15;

const LAST_EVENT_ID: HeaderName = HeaderName::from_static("last-event-id");
/// Tells nginx not to buffer events.
const X_ACCEL_BUFFERING: HeaderName = HeaderName::from_static("x-accel-buffering");

/// A client's request to open a stream.
pub(crate) struct StreamRequest {
    /// The project whose tasks it sees.
    pub(crate) project: Arc<str>,
    /// The last event that the client received on an earlier stream.
    pub(crate) last: Option<EventId>,
    key: KeyHold,
    of: StreamSubject,
    _permits: (ActiveTurn, Option<ActiveTurn>),
}

/// An open stream.
pub(crate) struct EventStream {
    api: SharedApi,
    opening: StreamRequest,
    waiter: TaskWaiter,
    /// Tasks of the initial snapshot that are not sent yet.
    beginning: VecDeque<TaskId>,
    reported: RecentReports,
    progress: StreamProgress,
    /// When to send a keep-alive.
    alarm: Pin<Box<Sleep>>,
    step: StreamStep,
}

/// How much of the project's state the client has received.
#[derive(Clone, Copy, Debug, Default)]
struct StreamProgress {
    /// Goes into the next id.
    since_ms: UnixMs,
    /// Goes into the next id.
    is_partial: bool,
    /// The time from which the stream reports everything.
    open_ms: UnixMs,
    /// Time of the last reported end.
    ended_ms: UnixMs,
}

/// The subject of a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum StreamSubject {
    /// One task.
    Task,
    /// All tasks of a project.
    Project,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum StreamStep {
    Begun,
    Open,
    Ended,
}

impl StreamRequest {
    /// Takes a permit for a stream of the client with this key.
    pub(crate) fn new(
        api: &Api,
        key: &NewKey,
        headers: &HeaderMap,
        of: StreamSubject,
    ) -> Result<Self, ApiError> {
        let permit = api.watch.streams.try_acquire(&key.id).map_err(no_room)?;
        let of_project = match of {
            StreamSubject::Task => None,
            StreamSubject::Project => Some(api.watch.project_streams.try_acquire(&key.id)),
        };
        let last = headers.get(LAST_EVENT_ID);
        Ok(Self {
            project: key.project.as_str().into(),
            // An id that we did not issue tells us nothing: start from the beginning.
            last: last.and_then(|id| EventId::parse(id.to_str().ok()?)),
            key: api.watch.keys.hold(key.sha256, &api.keys, &api.clock),
            of,
            _permits: (permit, of_project.transpose().map_err(no_room)?),
        })
    }
}

fn no_room(full: LimitReached) -> ApiError {
    let (code, message) = match full {
        LimitReached::Owner => (
            ErrorCode::RateLimitExceeded,
            "This API key has too many open event streams; close some. One stream of the whole project reports all of its tasks.",
        ),
        LimitReached::All => (
            ErrorCode::Overloaded,
            "The service has too many open event streams; poll, or try again soon.",
        ),
    };
    ApiError::new(code, message).retry_after(RETRY_SECONDS)
}

impl EventStream {
    /// Streams the updates of a task or of a project's tasks, starting with the current states of the
    /// given tasks, unless the client already has them. The stream of a project reports every end from
    /// `open_ms` on.
    pub(crate) fn new(
        api: SharedApi,
        opening: StreamRequest,
        waiter: TaskWaiter,
        beginning: VecDeque<TaskId>,
        open_ms: UnixMs,
    ) -> Self {
        let progress = match opening.of {
            // It says nothing about other tasks.
            StreamSubject::Task => StreamProgress::default(),
            StreamSubject::Project => StreamProgress {
                since_ms: opening.last.map_or(open_ms, |last| last.since_ms),
                is_partial: opening.last.is_none_or(|last| last.is_partial),
                open_ms,
                ended_ms: 0,
            },
        };
        Self {
            api,
            waiter,
            beginning,
            // Another process's notification of the last event's change may still be on its way.
            reported: RecentReports::from_known(opening.last.map(|last| last.state)),
            opening,
            progress,
            alarm: Box::pin(sleep(KEEP_ALIVE)),
            step: StreamStep::Begun,
        }
    }

    /// The response that carries this stream.
    pub(crate) fn response(self) -> Response {
        let gradual = GradualResponse {
            stopping: self.api.stopping.clone(),
        };
        // Boxed: the future of a piece would contain the stream several times.
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

    /// Waits for the next piece; `None` at the end.
    async fn piece(&mut self) -> Option<Bytes> {
        if self.step == StreamStep::Begun {
            self.step = StreamStep::Open;
            return Some(Bytes::from_static(HELLO));
        }
        while self.step == StreamStep::Open {
            if self.opening.key.has_ended() {
                return None;
            }
            if let Some(update) = self.update() {
                if let Some(event) = self.event_or_retry(update).await {
                    return Some(event);
                }
                continue;
            }
            if self.waiter.mailbox().is_over() {
                return None;
            }
            tokio::select! {
                biased;
                () = self.opening.key.ended() => return None,
                () = self.waiter.mailbox().moved() => {}
                () = self.alarm.as_mut() => {
                    self.alarm.set(sleep(KEEP_ALIVE));
                    return Some(Bytes::from_static(SIGN_OF_LIFE));
                }
            }
        }
        None
    }

    /// The next task to report.
    fn update(&mut self) -> Option<TaskUpdate> {
        let mailbox = self.waiter.mailbox();
        let Some(id) = self.beginning.pop_front() else {
            return mailbox.pop();
        };
        // The read below covers all changes up to now.
        mailbox.remove(id);
        if self.beginning.is_empty() {
            self.beginning = VecDeque::new();
        }
        Some(TaskUpdate {
            id,
            task: None,
            change: u64::MAX,
        })
    }

    /// The event for a task; `None` if there is nothing to report.
    async fn event_or_retry(&mut self, update: TaskUpdate) -> Option<Bytes> {
        let id = update.id;
        match self.event(update).await {
            Ok(event) => event,
            Err(error) => {
                tracing::debug!(code = ?error.code(), "event delayed: task not read");
                // The task goes back to the front and is read again: its update has been taken, and
                // nobody else would deliver it.
                self.beginning.push_front(id);
                let stopping = self.api.stopping.clone();
                tokio::select! {
                    () = stopping.cancelled() => self.step = StreamStep::Ended,
                    () = sleep(STORE_PAUSE) => {}
                }
                None
            }
        }
    }

    async fn event(&mut self, update: TaskUpdate) -> Result<Option<Bytes>, ApiError> {
        let render = async |update| self.render(update).await;
        let Some(rendering) = self.waiter.rendering(update, render).await? else {
            if self.opening.of != StreamSubject::Project {
                self.step = StreamStep::Ended;
            }
            return Ok(None);
        };
        let told = rendering.state;
        if self.opening.of == StreamSubject::Task && told.has_ended() {
            self.step = StreamStep::Ended;
        }
        if !self.reported.record_if_new(told) {
            return Ok(None);
        }
        self.record_sent(rendering.ended_ms);
        let id = EventId {
            since_ms: self.progress.since_ms,
            is_partial: self.progress.is_partial,
            state: told,
        };
        let mut event = format!("id: {id}\nevent: video.updated\ndata: ").into_bytes();
        event.extend_from_slice(&rendering.json);
        event.extend_from_slice(b"\n\n");
        Ok(Some(event.into()))
    }

    /// Renders a task for all streams of the project; `None` if there is nothing to report.
    async fn render(&self, update: TaskUpdate) -> Result<Option<RenderedTask>, ApiError> {
        let task = match update.task {
            Some(task) => Some(task),
            None => {
                let tasks = &self.api.tasks;
                tasks.get(&self.opening.project, update.id).await?
            }
        };
        let seen =
            task.and_then(|task| Some((ReportedState::from(TaskGlance::from_task(&task)?), task)));
        let Some((told, task)) = seen else {
            return Ok(None);
        };
        let position = self.api.position(&task).await?;
        let json = match self.opening.of {
            StreamSubject::Task => self.api.object_json_once(&task, position)?.0,
            // Other clients read it as well, so it may use the cache.
            StreamSubject::Project => self.api.object_json(&task, position)?,
        };
        Ok(Some(RenderedTask {
            state: told,
            ended_ms: task.finished_at_ms.unwrap_or(0),
            json,
        }))
    }

    /// Records that the client has received a task that ended at this time. While other tasks wait,
    /// any of which may have ended earlier, or some were dropped, the client does not have everything
    /// up to this time.
    fn record_sent(&mut self, ended_ms: UnixMs) {
        if self.opening.of == StreamSubject::Task {
            // It says nothing about other tasks.
            return;
        }
        let progress = &mut self.progress;
        progress.ended_ms = progress.ended_ms.max(ended_ms);
        let mailbox = self.waiter.mailbox();
        // Example: tasks A and B end at 12:00:01 and 12:00:02, and B is sent first. If the id of
        // that event said 12:00:02, a client that reconnects with it would never learn of A. So the
        // time moves only when nothing is left to send. Until then the id repeats the earlier time,
        // and a client that reconnects may receive an end twice, but misses none.
        if self.beginning.is_empty() && mailbox.is_empty() && !mailbox.is_over() {
            let told_ms = progress.open_ms.max(progress.ended_ms);
            progress.since_ms = progress.since_ms.max(told_ms);
            progress.is_partial = false;
        }
    }
}
