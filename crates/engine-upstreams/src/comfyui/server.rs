//! The calls to one server, each bounded. What an answer says of the server's health
//! is recorded with its place.

use std::path::Path;
use std::time::Duration;

use crate::servers::{
    CallError, EncodedBody, FormPart, PartContent, ResultError, ResultTarget, ServerAnswer,
    ServerCall, UpstreamServer, chain, encode_form, retry_after, save_result, shown,
};
use hyper::Method;
use serde_json::{Value, json};
use url::Url;

use super::answer::FilmLocation;
use super::answer::{self, JobAnswer};
use super::card::FileUpload;
use super::error::ComfyError;
use super::shared::ComfyShared;

/// The name of no job.
const NO_JOB: &str = "00000000-0000-0000-0000-000000000000";

/// One server of an engine.
#[derive(Clone, Copy)]
pub(crate) struct ComfyServer<'a> {
    pub(crate) shared: &'a ComfyShared,
    pub(crate) index: usize,
}

/// What became of a submit.
#[derive(Debug)]
pub(crate) enum SubmitAnswer {
    /// The server has the job.
    Accepted,
    /// This server lacks something; another may have it.
    Lacks(String),
    /// Every server would refuse it.
    Refused(CallError),
    /// The server certainly has not taken the job.
    NotTaken(CallError),
    /// The server may have taken the job.
    Unclear(CallError),
}

impl<'a> ComfyServer<'a> {
    pub(crate) fn upstream(&self) -> &'a UpstreamServer {
        &self.shared.upstreams[self.index]
    }

    /// Asks for the state of a job; `None`: neither the queue nor the history knows it.
    pub(crate) async fn look(&self, id: &str) -> Result<Option<JobAnswer>, ComfyError> {
        let limit = self.shared.options.answer_timeout;
        let reply = self.get(&["api", "jobs", id], limit).await?;
        let seen = match reply.status {
            200 => answer::job(&reply.body, id).map(Some),
            404 if answer::is_of_jobs(&reply.body) => Ok(None),
            _ => return Err(self.refused(&reply)),
        };
        self.read(seen)
    }

    /// Whether the server tells the state of jobs. Without that a job at work is not to be told from an unknown one.
    pub(crate) async fn tells_jobs(&self) -> Result<bool, ComfyError> {
        let limit = self.shared.options.answer_timeout;
        let reply = self.get(&["api", "jobs", NO_JOB], limit).await?;
        match reply.status {
            200 => Ok(true),
            404 => Ok(answer::is_of_jobs(&reply.body)),
            _ => Err(self.refused(&reply)),
        }
    }

    /// What the history says of a job; `None` while it waits, runs or is unknown.
    pub(crate) async fn history(&self, id: &str) -> Result<Option<JobAnswer>, ComfyError> {
        let limit = self.shared.options.answer_timeout;
        let reply = self.get(&["history", id], limit).await?;
        match reply.status {
            200 => self.read(answer::history(&reply.body, id)),
            404 => Ok(None),
            _ => Err(self.refused(&reply)),
        }
    }

    /// What the server says of a class; `None` if it has none of this name.
    pub(crate) async fn class(&self, name: &str) -> Result<Option<Value>, ComfyError> {
        let limit = self.shared.options.answer_timeout;
        let reply = self.get(&["object_info", name], limit).await?;
        if reply.status == 404 {
            return Ok(None);
        }
        if !reply.is_success() {
            return Err(self.refused(&reply));
        }
        let sent: Result<Value, _> = serde_json::from_slice(&reply.body);
        let sent = sent.map_err(|error| self.failed(CallError::Answer(error.into())))?;
        Ok(sent.get(name).cloned())
    }

    /// Uploads a file; returns its name, as a node takes it.
    pub(crate) async fn upload(
        &self,
        upload: &FileUpload,
        folder: &str,
    ) -> Result<String, ComfyError> {
        let text = |name: &str, value: &str| FormPart {
            name: name.to_owned(),
            content: PartContent::Text(value.to_owned()),
        };
        let file = FormPart {
            name: "image".to_owned(),
            content: PartContent::File {
                file_name: upload.name.clone(),
                media_type: upload.media_type.clone(),
                bytes: upload.bytes.clone(),
            },
        };
        // A later attempt at the same task replaces the file.
        let body = encode_form(&[
            file,
            text("subfolder", folder),
            text("type", "input"),
            text("overwrite", "true"),
        ]);
        let limit = self.shared.options.submit_timeout;
        let reply = self.post(&["upload", "image"], &body, limit).await;
        let reply = reply.map_err(|cause| self.failed(cause))?;
        match reply.status {
            200..=299 => {}
            400 | 413 | 422 => return Err(ComfyError::Refused(reply.refusal())),
            _ => return Err(self.refused(&reply)),
        }
        let sent: Result<Value, _> = serde_json::from_slice(&reply.body);
        let sent = sent.map_err(|error| self.failed(CallError::Answer(error.into())))?;
        let text = |name: &str| sent.get(name).and_then(Value::as_str);
        let name = text("name").ok_or_else(|| self.failed(CallError::Word(shown(&reply.body))))?;
        Ok(
            match text("subfolder").filter(|folder| !folder.is_empty()) {
                Some(folder) => format!("{folder}/{name}"),
                None => name.to_owned(),
            },
        )
    }

    /// Submits a graph as the job `id`, whose events go to the websocket of the same name.
    pub(crate) async fn submit(&self, id: &str, graph: &Value) -> SubmitAnswer {
        let body = json!({"prompt": graph, "prompt_id": id, "client_id": id});
        let limit = self.shared.options.submit_timeout;
        let reply = match self.post(&["prompt"], &json_body(&body), limit).await {
            Ok(reply) => reply,
            Err(cause) => {
                self.note_outage(&cause);
                return if cause.is_ambiguous() {
                    SubmitAnswer::Unclear(cause)
                } else {
                    SubmitAnswer::NotTaken(cause)
                };
            }
        };
        match reply.status {
            200..=299 => self.accepted(id, &reply).await,
            // The server has a job of this name, which can only be ours.
            409 => SubmitAnswer::Accepted,
            400 => match answer::lacks(&reply.body) {
                Some(what) => SubmitAnswer::Lacks(what),
                None => SubmitAnswer::Refused(reply.refusal()),
            },
            404 | 405 => {
                SubmitAnswer::Lacks("it takes no workflows: is it a ComfyUI server?".to_owned())
            }
            300..=399 | 401..=403 | 429 => {
                self.note(&reply);
                SubmitAnswer::NotTaken(reply.refusal())
            }
            408 | 500..=599 => {
                self.note(&reply);
                SubmitAnswer::Unclear(reply.refusal())
            }
            _ => SubmitAnswer::Refused(reply.refusal()),
        }
    }

    async fn accepted(&self, id: &str, reply: &ServerAnswer) -> SubmitAnswer {
        match answer::accepted(&reply.body) {
            Ok(other) if other == id => {
                self.shared.places.record_answer(self.index);
                SubmitAnswer::Accepted
            }
            // We could not find the job again: it must not run.
            Ok(other) => {
                if let Err(error) = self.cancel(&other).await {
                    tracing::warn!(%error, "a job with a foreign name was not cancelled");
                }
                SubmitAnswer::Lacks(
                    "it gives jobs names of its own; update it to 0.6.0 or later".to_owned(),
                )
            }
            Err(error) => {
                let cause = CallError::Answer(error.into());
                self.note_outage(&cause);
                SubmitAnswer::Unclear(cause)
            }
        }
    }

    /// Stops a job, wherever it is. A finished or unknown job counts as stopped.
    pub(crate) async fn cancel(&self, id: &str) -> Result<(), ComfyError> {
        let limit = self.shared.options.cancel_timeout;
        let nothing = json_body(&json!({}));
        let reply = self
            .stop(&["api", "jobs", id, "cancel"], &nothing, limit)
            .await?;
        if reply.is_success() {
            return Ok(());
        }
        if !matches!(reply.status, 404 | 405) {
            return Err(ComfyError::Refused(reply.refusal()));
        }
        // Before 0.26.0 there are two calls. In this order a job that starts between them is still met.
        let queued = json_body(&json!({"delete": [id]}));
        let running = json_body(&json!({"prompt_id": id}));
        for (path, body) in [("queue", queued), ("interrupt", running)] {
            let reply = self.stop(&[path], &body, limit).await?;
            if !reply.is_success() {
                return Err(ComfyError::Refused(reply.refusal()));
            }
        }
        Ok(())
    }

    /// Gives an order that the server carries out later.
    pub(crate) async fn order(
        &self,
        path: &[&str],
        order: &Value,
        limit: Duration,
    ) -> Result<(), ComfyError> {
        let reply = self.stop(path, &json_body(order), limit).await?;
        if !reply.is_success() {
            return Err(ComfyError::Refused(reply.refusal()));
        }
        Ok(())
    }

    /// Reads a part of the server's own state.
    pub(crate) async fn status(&self, path: &[&str], limit: Duration) -> Result<Value, ComfyError> {
        let reply = self.get(path, limit).await?;
        if !reply.is_success() {
            return Err(ComfyError::Refused(reply.refusal()));
        }
        let sent: Result<Value, _> = serde_json::from_slice(&reply.body);
        sent.map_err(|error| self.failed(CallError::Answer(error.into())))
    }

    async fn stop(
        &self,
        path: &[&str],
        body: &EncodedBody,
        limit: Duration,
    ) -> Result<ServerAnswer, ComfyError> {
        let reply = self.post(path, body, limit).await;
        reply.map_err(|cause| self.unusable(cause))
    }

    /// Saves a film to the new file `to`, without syncing it; returns its length in bytes.
    pub(crate) async fn film(
        &self,
        at: &FilmLocation,
        to: &Path,
        on_bytes: &mut (dyn FnMut(u64) + Send),
    ) -> Result<u64, ComfyError> {
        let options = &self.shared.options;
        let mut url = self.upstream().url(&["view"]);
        url.query_pairs_mut()
            .append_pair("filename", &at.filename)
            .append_pair("subfolder", &at.subfolder)
            .append_pair("type", "output");
        let call = call(Method::GET, url, None, options.answer_timeout);
        let response = self.upstream().open(&call).await;
        let response = response.map_err(|cause| self.unusable(cause))?;
        let saved = ResultTarget {
            to,
            bytes_max: options.film_bytes_max,
            answer_timeout: options.answer_timeout,
            rate_window: options.rate_window,
            rate_bytes_min: options.rate_bytes_min,
            disk: &self.shared.disk,
            clock: &self.shared.clock,
        };
        let saved = save_result(response, saved, on_bytes).await;
        saved.map_err(|error| match error {
            ResultError::Refused(reply) => ComfyError::Busy {
                after: retry_after(&reply.headers).unwrap_or_default(),
                cause: reply.refusal(),
            },
            // It was not asked for, and would come again.
            ResultError::Broken(cause @ CallError::Encoding(_)) => ComfyError::Unread(cause),
            ResultError::Broken(cause) => later(cause),
            ResultError::TooLarge => ComfyError::FilmTooLarge(options.film_bytes_max),
            ResultError::Storage(error) => ComfyError::Storage(error),
        })
    }

    pub(crate) async fn get(
        &self,
        path: &[&str],
        limit: Duration,
    ) -> Result<ServerAnswer, ComfyError> {
        let url = self.upstream().url(path);
        let reply = self
            .upstream()
            .call(&call(Method::GET, url, None, limit))
            .await;
        reply.map_err(|cause| self.failed(cause))
    }

    async fn post(
        &self,
        path: &[&str],
        body: &EncodedBody,
        limit: Duration,
    ) -> Result<ServerAnswer, CallError> {
        let url = self.upstream().url(path);
        let call = call(Method::POST, url, Some(body), limit);
        self.upstream().call(&call).await
    }

    fn read<T>(&self, read: Result<T, answer::ComfyAnswerError>) -> Result<T, ComfyError> {
        match read {
            Ok(read) => {
                self.shared.places.record_answer(self.index);
                Ok(read)
            }
            // The answer is about one job.
            Err(error) => Err(later(CallError::Answer(error.into()))),
        }
    }

    fn note_outage(&self, cause: &CallError) {
        self.shared.places.record_outage(self.index, &chain(cause));
    }

    fn failed(&self, cause: CallError) -> ComfyError {
        self.note_outage(&cause);
        later(cause)
    }

    /// No answer about one job. Its content may be at fault, so the server is only if it cannot be
    /// connected to.
    fn unusable(&self, cause: CallError) -> ComfyError {
        match cause {
            CallError::Connect(_) => self.failed(cause),
            cause => later(cause),
        }
    }

    /// Records what an error status says of the server.
    fn note(&self, reply: &ServerAnswer) {
        let (places, refusal) = (&self.shared.places, reply.refusal());
        match reply.status {
            429 | 503 => places.record_pause(self.index, retry_after(&reply.headers)),
            // A wrong key, or a wrong URL.
            300..=399 | 401..=403 => places.record_breakage(self.index, &refusal.to_string()),
            _ => self.note_outage(&refusal),
        }
    }

    /// An error status: retry later.
    fn refused(&self, reply: &ServerAnswer) -> ComfyError {
        self.note(reply);
        ComfyError::Busy {
            after: retry_after(&reply.headers).unwrap_or_default(),
            cause: reply.refusal(),
        }
    }
}

/// Retry when it suits; the server is not at fault.
const fn later(cause: CallError) -> ComfyError {
    ComfyError::Busy {
        after: Duration::ZERO,
        cause,
    }
}

fn call(method: Method, url: Url, body: Option<&EncodedBody>, limit: Duration) -> ServerCall<'_> {
    ServerCall {
        method,
        url,
        body,
        headers: &[],
        limit,
        is_public: false,
    }
}

fn json_body(value: &Value) -> EncodedBody {
    EncodedBody {
        content_type: "application/json".to_owned(),
        body: value.to_string().into(),
    }
}
