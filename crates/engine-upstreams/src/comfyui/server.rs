//! The calls to one server, each bounded. What an answer says of the server's health
//! is recorded with its place.

use std::path::Path;
use std::time::Duration;

use hyper::Method;
use serde_json::{Value, json};

use super::answer::{self, FilmLocation, JobAnswer};
use super::card::FileUpload;
use super::shared::ComfyShared;
use crate::servers::{
    AnswerError, CallError, EncodedBody, FormPart, ServerAnswer, ServerCall, ServerOptions,
    UpstreamError, UpstreamServer, encode_form, retry_after, shown,
};

/// The name of no job.
const NO_JOB: &str = "00000000-0000-0000-0000-000000000000";

/// One server of an engine.
#[derive(Clone, Copy)]
pub(crate) struct ComfyServer<'a> {
    pub(crate) shared: &'a ComfyShared,
    pub(crate) index: usize,
}

impl ComfyShared {
    pub(crate) const fn server(&self, index: usize) -> ComfyServer<'_> {
        ComfyServer {
            shared: self,
            index,
        }
    }
}

/// Why a server does not have a job.
#[derive(Debug)]
pub(crate) enum SubmitMiss {
    /// It certainly has not taken the job, and nothing is wrong with the request: try the next.
    Next(CallError),
    /// It may have taken the job.
    Unclear(CallError),
    /// It cannot run the workflow; another may.
    Lacks(String),
    /// No other server may be tried.
    Final(UpstreamError),
}

impl From<UpstreamError> for SubmitMiss {
    fn from(error: UpstreamError) -> Self {
        match error {
            UpstreamError::Busy { cause, .. } => Self::Next(cause),
            other => Self::Final(other),
        }
    }
}

impl<'a> ComfyServer<'a> {
    pub(crate) fn upstream(&self) -> &'a UpstreamServer {
        &self.shared.pool.servers[self.index]
    }

    fn options(&self) -> &'a ServerOptions {
        &self.shared.pool.options
    }

    /// Asks for the state of a job; `None`: neither the queue nor the history knows it.
    pub(crate) async fn look(&self, id: &str) -> Result<Option<JobAnswer>, UpstreamError> {
        let limit = self.options().answer_timeout;
        let reply = self.get(&["api", "jobs", id], limit).await?;
        let seen = match reply.status {
            200 => answer::job(&reply.body, id).map(Some),
            404 if answer::is_of_jobs(&reply.body) => Ok(None),
            _ => return Err(self.refused(&reply)),
        };
        // The answer is about one job.
        let seen = seen.map_err(|error| UpstreamError::later(error.into()))?;
        self.shared.pool.places.record_answer(self.index);
        Ok(seen)
    }

    /// Whether the server tells the state of jobs. Without that a job at work is not to be told from an unknown one.
    pub(crate) async fn tells_jobs(&self) -> Result<bool, UpstreamError> {
        let limit = self.options().answer_timeout;
        let reply = self.get(&["api", "jobs", NO_JOB], limit).await?;
        match reply.status {
            200 => Ok(true),
            404 => Ok(answer::is_of_jobs(&reply.body)),
            _ => Err(self.refused(&reply)),
        }
    }

    /// What each node of a job put out, by the history; `Null` while it waits, runs or is unknown.
    pub(crate) async fn outputs(&self, id: &str) -> Result<Value, UpstreamError> {
        let limit = self.options().answer_timeout;
        let reply = self.get(&["history", id], limit).await?;
        match reply.status {
            200 => {
                // The answer is about one job.
                let sent: Result<Value, _> = serde_json::from_slice(&reply.body);
                let sent =
                    sent.map_err(|error| UpstreamError::later(AnswerError::Json(error).into()))?;
                self.shared.pool.places.record_answer(self.index);
                Ok(sent[id]["outputs"].clone())
            }
            404 => Ok(Value::Null),
            _ => Err(self.refused(&reply)),
        }
    }

    /// What the server says of a class; `None` if it has none of this name.
    pub(crate) async fn class(&self, name: &str) -> Result<Option<Value>, UpstreamError> {
        let limit = self.options().answer_timeout;
        let reply = self.get(&["object_info", name], limit).await?;
        match reply.status {
            200..=299 => Ok(self.json(&reply)?.get(name).cloned()),
            404 => Ok(None),
            _ => Err(self.refused(&reply)),
        }
    }

    /// Uploads a file; returns its name, as a node takes it.
    pub(crate) async fn upload(
        &self,
        upload: &FileUpload,
        folder: &str,
    ) -> Result<String, UpstreamError> {
        let body = encode_form(&[
            FormPart::file(
                "image",
                &upload.name,
                &upload.media_type,
                upload.bytes.clone(),
            ),
            FormPart::text("subfolder", folder.to_owned()),
            FormPart::text("type", "input".to_owned()),
            // A later attempt at the same task replaces the file.
            FormPart::text("overwrite", "true".to_owned()),
        ]);
        let limit = self.options().submit_timeout;
        let reply = self.post(&["upload", "image"], &body, limit).await;
        let reply = reply.map_err(|cause| self.unreachable(cause))?;
        match reply.status {
            200..=299 => {}
            400 | 413 | 422 => return Err(UpstreamError::Refused(reply.refusal())),
            _ => return Err(self.refused(&reply)),
        }
        let sent = self.json(&reply)?;
        let text = |name: &str| sent.get(name).and_then(Value::as_str);
        let name =
            text("name").ok_or_else(|| self.unreachable(CallError::Word(shown(&reply.body))))?;
        Ok(
            match text("subfolder").filter(|folder| !folder.is_empty()) {
                Some(folder) => format!("{folder}/{name}"),
                None => name.to_owned(),
            },
        )
    }

    /// Submits a graph as the job `id`, whose events go to the websocket of the same name.
    pub(crate) async fn submit(&self, id: &str, graph: &Value) -> Result<(), SubmitMiss> {
        let body = json!({"prompt": graph, "prompt_id": id, "client_id": id});
        let (body, limit) = (EncodedBody::json(&body), self.options().submit_timeout);
        let reply = self.post(&["prompt"], &body, limit).await;
        let reply = reply.map_err(|cause| {
            self.shared.pool.record_outage(self.index, &cause);
            match cause.is_ambiguous() {
                true => SubmitMiss::Unclear(cause),
                false => SubmitMiss::Next(cause),
            }
        })?;
        let refused = || SubmitMiss::Final(UpstreamError::Refused(reply.refusal()));
        match reply.status {
            200..=299 => self.accepted(id, &reply).await,
            // The server has a job of this name, which can only be ours.
            409 => Ok(()),
            400 => Err(answer::lacks(&reply.body).map_or_else(refused, SubmitMiss::Lacks)),
            404 | 405 => Err(SubmitMiss::Lacks(
                "it takes no workflows: is it a ComfyUI server?".to_owned(),
            )),
            300..=399 | 401..=403 | 429 => {
                self.note(&reply);
                Err(SubmitMiss::Next(reply.refusal()))
            }
            408 | 500..=599 => {
                self.note(&reply);
                Err(SubmitMiss::Unclear(reply.refusal()))
            }
            _ => Err(refused()),
        }
    }

    async fn accepted(&self, id: &str, reply: &ServerAnswer) -> Result<(), SubmitMiss> {
        match answer::accepted(&reply.body) {
            Ok(other) if other == id => {
                self.shared.pool.places.record_answer(self.index);
                Ok(())
            }
            // We could not find the job again: it must not run.
            Ok(other) => {
                if let Err(error) = self.cancel(&other).await {
                    tracing::warn!(%error, "a job with a foreign name was not cancelled");
                }
                Err(SubmitMiss::Lacks(
                    "it gives jobs names of its own; update it to 0.6.0 or later".to_owned(),
                ))
            }
            Err(error) => {
                let cause = CallError::from(error);
                self.shared.pool.record_outage(self.index, &cause);
                Err(SubmitMiss::Unclear(cause))
            }
        }
    }

    /// Stops a job, wherever it is. A finished or unknown job counts as stopped.
    pub(crate) async fn cancel(&self, id: &str) -> Result<(), UpstreamError> {
        let limit = self.options().cancel_timeout;
        let cancel = ["api", "jobs", id, "cancel"];
        let reply = self.stop(&cancel, &json!({}), limit).await?;
        if reply.is_success() {
            return Ok(());
        }
        if !matches!(reply.status, 404 | 405) {
            return Err(UpstreamError::Refused(reply.refusal()));
        }
        // Before 0.26.0 there are two calls. In this order a job that starts between them is still met.
        let queued = json!({"delete": [id]});
        self.order(&["queue"], &queued, limit).await?;
        let running = json!({"prompt_id": id});
        self.order(&["interrupt"], &running, limit).await
    }

    /// Gives an order that the server carries out later.
    pub(crate) async fn order(
        &self,
        path: &[&str],
        order: &Value,
        limit: Duration,
    ) -> Result<(), UpstreamError> {
        let reply = self.stop(path, order, limit).await?;
        if !reply.is_success() {
            return Err(UpstreamError::Refused(reply.refusal()));
        }
        Ok(())
    }

    /// Reads a part of the server's own state.
    pub(crate) async fn status(&self, path: &[&str]) -> Result<Value, UpstreamError> {
        let reply = self.get(path, self.options().probe_timeout).await?;
        if !reply.is_success() {
            return Err(UpstreamError::Refused(reply.refusal()));
        }
        self.json(&reply)
    }

    async fn stop(
        &self,
        path: &[&str],
        order: &Value,
        limit: Duration,
    ) -> Result<ServerAnswer, UpstreamError> {
        let reply = self.post(path, &EncodedBody::json(order), limit).await;
        reply.map_err(|cause| self.shared.pool.unusable(self.index, cause))
    }

    /// Saves a film to the new file `to`, without syncing it; returns its length in bytes.
    pub(crate) async fn film(
        &self,
        at: &FilmLocation,
        to: &Path,
        on_bytes: &mut (dyn FnMut(u64) + Send),
    ) -> Result<u64, UpstreamError> {
        let mut url = self.upstream().url(&["view"]);
        url.query_pairs_mut()
            .append_pair("filename", &at.filename)
            .append_pair("subfolder", &at.subfolder)
            .append_pair("type", "output");
        let (pool, limit) = (&self.shared.pool, self.options().answer_timeout);
        let call = ServerCall::new(Method::GET, url, limit);
        let response = self.upstream().open(&call).await;
        let response = response.map_err(|cause| pool.unusable(self.index, cause))?;
        pool.save_film(self.index, response, to, on_bytes).await
    }

    async fn get(&self, path: &[&str], limit: Duration) -> Result<ServerAnswer, UpstreamError> {
        let call = ServerCall::new(Method::GET, self.upstream().url(path), limit);
        let reply = self.upstream().call(&call).await;
        reply.map_err(|cause| self.unreachable(cause))
    }

    async fn post(
        &self,
        path: &[&str],
        body: &EncodedBody,
        limit: Duration,
    ) -> Result<ServerAnswer, CallError> {
        let call = ServerCall::new(Method::POST, self.upstream().url(path), limit);
        self.upstream().call(&call.with_body(Some(body))).await
    }

    fn json(&self, reply: &ServerAnswer) -> Result<Value, UpstreamError> {
        let sent = serde_json::from_slice(&reply.body);
        sent.map_err(|error| self.unreachable(AnswerError::Json(error).into()))
    }

    fn unreachable(&self, cause: CallError) -> UpstreamError {
        self.shared.pool.unreachable(self.index, cause)
    }

    /// Records what an error status says of the server.
    fn note(&self, reply: &ServerAnswer) {
        let (places, refusal) = (&self.shared.pool.places, reply.refusal());
        match reply.status {
            429 | 503 => places.record_pause(self.index, retry_after(&reply.headers)),
            // A wrong key, or a wrong URL.
            300..=399 | 401..=403 => places.record_breakage(self.index, &refusal.to_string()),
            _ => self.shared.pool.record_outage(self.index, &refusal),
        }
    }

    /// An error status: retry later.
    fn refused(&self, reply: &ServerAnswer) -> UpstreamError {
        self.note(reply);
        reply.busy()
    }
}
