//! The way in: chooses a server, brings the files there, keeps the ticket and submits the graph. If it is
//! unclear whether the server has taken the job, nothing is submitted anywhere until it has said so.

use std::mem;

use kinora_engine::places::{Choice, Visit, Wish};
use kinora_upstream::{Cause, Impatience};
use serde_json::Value;
use tokio::time::timeout;

use crate::attempt::Attempt;
use crate::card::Uploaded;
use crate::error::ComfyError;
use crate::server::{Server, Submitted};
use crate::ticket::Ticket;
use crate::upload::{self, Upload};

/// Number of consecutive polls that must report a job as unknown before it counts as forgotten: a submit
/// whose connection broke may arrive a moment later.
pub(crate) const MISSING_MAX: u32 = 2;
/// Where files are uploaded to, in a server's input folder; the task's own folder is in it.
const FOLDER: &str = "kinora";

/// Why a server does not have the job.
enum Miss {
    /// Nothing is wrong with the request: try the next.
    Next(Cause),
    /// This server cannot run the workflow.
    Lacks(String),
    /// No other server may be tried.
    Final(ComfyError),
}

impl From<ComfyError> for Miss {
    fn from(error: ComfyError) -> Self {
        match error {
            ComfyError::Busy { cause, .. } => Self::Next(cause),
            other => Self::Final(other),
        }
    }
}

impl Attempt<'_> {
    /// Brings the job to a server, and returns its visit there.
    pub(crate) async fn enter(&mut self) -> Result<Visit, ComfyError> {
        let bytes_max = self.shared.options.upload_bytes_max;
        let uploads = upload::read(self.job, bytes_max).await?;
        let avoid = self.job.control.place.avoided();
        let mut last = Cause::NoUpstream;
        let mut changes = self.shared.places.changes();
        loop {
            changes.mark_unchanged();
            if self.job.cancel.is_cancelled() {
                return Err(ComfyError::Cancelled);
            }
            let unfit = &self.unfit;
            if unfit.len() == self.shared.upstreams.len() {
                return Err(ComfyError::Unfit(self.lacking()));
            }
            let choice = self.shared.places.choose(&Wish {
                may: &|index| !unfit.contains_key(&index),
                prefers: &|_| false,
                avoid: &avoid,
            });
            match choice {
                Choice::Probe(probe) => {
                    let asking = async {
                        self.shared.probe(probe.index).await;
                        Ok(())
                    };
                    self.unless_cancelled(asking).await?;
                }
                Choice::Wait(until) => {
                    let cause = mem::replace(&mut last, Cause::NoUpstream);
                    let wait = until.saturating_sub(self.shared.timer.now());
                    // Wakes up when a server is available sooner than expected.
                    let changed = async { changes.changed().await.unwrap_or(()) };
                    let waited = self.patience.wait_for(changed, wait, cause).await;
                    waited.map_err(|error| match error {
                        Impatience::Silent { cause, .. } => ComfyError::NoPlace(cause),
                        error => error.into(),
                    })?;
                }
                Choice::Take(visit) => match self.enter_at(visit.index, &uploads).await {
                    Ok(()) => return Ok(visit),
                    Err(Miss::Next(cause)) => last = cause,
                    Err(Miss::Lacks(what)) => {
                        let server = &self.shared.upstreams[visit.index].name;
                        tracing::warn!(server, what, "server cannot run the workflow");
                        self.unfit.insert(visit.index, what);
                    }
                    Err(Miss::Final(error)) => return Err(error),
                },
            }
        }
    }

    /// What each server lacks.
    fn lacking(&self) -> String {
        let told = self.unfit.iter().map(|(index, what)| {
            let name = &self.shared.upstreams[*index].name;
            format!("{name}: {what}")
        });
        told.collect::<Vec<_>>().join("; ")
    }

    async fn enter_at(&mut self, index: usize, uploads: &[Upload]) -> Result<(), Miss> {
        let server = self.server(index);
        let missing = self.unless_cancelled(self.shared.missing(index)).await?;
        if let Some(what) = missing {
            return Err(Miss::Lacks(what));
        }
        // An attempt whose ticket was lost may have brought it here.
        if self
            .unless_cancelled(server.look(&self.id))
            .await?
            .is_some()
        {
            self.keep(index).await?;
            return Ok(());
        }
        let uploaded = self.unless_cancelled(self.bring(server, uploads)).await?;
        let card = &self.shared.card;
        let graph = card.fill(self.job.spec, &self.id, &uploaded)?;
        // Before the submit: a process that dies now asks there first.
        self.keep(index).await?;
        let submitted = self.submit(server, &graph).await?;
        let miss = match submitted {
            Submitted::Accepted => {
                tracing::info!(
                    server = server.upstream().name,
                    id = self.id,
                    "job submitted"
                );
                return Ok(());
            }
            Submitted::Unclear(cause) => match self.settle(server, cause).await? {
                None => return Ok(()),
                Some(cause) => Miss::Next(cause),
            },
            Submitted::NotTaken(cause) => Miss::Next(cause),
            Submitted::Lacks(what) => {
                self.shared.set_fit(index, false);
                Miss::Lacks(what)
            }
            Submitted::Refused(cause) => Miss::Final(ComfyError::Refused(cause)),
        };
        self.at = None;
        Err(miss)
    }

    async fn bring(&self, server: Server<'_>, uploads: &[Upload]) -> Result<Uploaded, ComfyError> {
        let folder = format!("{FOLDER}/{}", self.id);
        let mut uploaded = Uploaded::new();
        for upload in uploads {
            let name = server.upload(upload, &folder).await?;
            uploaded.entry(upload.role).or_default().push(name);
        }
        Ok(uploaded)
    }

    /// Stores where the job is about to be.
    async fn keep(&mut self, index: usize) -> Result<(), ComfyError> {
        let ticket = Ticket {
            comfyui: self.shared.upstreams[index].name.clone(),
            prompt_id: self.id.clone(),
        };
        let kept = self.job.tickets.store(&ticket.text()).await;
        kept.map_err(ComfyError::NotKept)?;
        self.at = Some(index);
        Ok(())
    }

    /// Submits once. A cancel waits briefly for the answer, so that an accepted job can be stopped.
    async fn submit(&self, server: Server<'_>, graph: &Value) -> Result<Submitted, ComfyError> {
        if self.job.cancel.is_cancelled() {
            return Err(ComfyError::Cancelled);
        }
        let submitting = server.submit(&self.id, graph);
        tokio::pin!(submitting);
        tokio::select! {
            biased;
            () = self.job.cancel.cancelled() => {
                let limit = self.shared.options.cancel_timeout;
                let _ = timeout(limit, submitting).await;
                Err(ComfyError::Cancelled)
            }
            submitted = &mut submitting => Ok(submitted),
        }
    }

    /// Asks until it is clear whether the server has the job: `None` if it has, otherwise `cause`.
    async fn settle(&self, server: Server<'_>, cause: Cause) -> Result<Option<Cause>, ComfyError> {
        let (mut failures, mut missing) = (0, 0);
        loop {
            match self.unless_cancelled(server.look(&self.id)).await {
                Ok(Some(_)) => return Ok(None),
                Ok(None) => {
                    missing += 1;
                    if missing >= MISSING_MAX {
                        return Ok(Some(cause));
                    }
                    self.patience.sleep(self.shared.options.poll_every).await?;
                }
                Err(ComfyError::Busy { after, cause }) => {
                    missing = 0;
                    self.patience.rest(after, cause, failures).await?;
                    failures += 1;
                }
                Err(error) => return Err(error),
            }
        }
    }
}
