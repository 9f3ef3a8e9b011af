//! The way in: chooses a server, brings the files there, keeps the ticket and submits the graph. If it is
//! unclear whether the server has taken the job, nothing is submitted anywhere until it has said so.

use std::mem;

use kinora_upstream::{Cause, Choice, Slot};
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
    /// Brings the job to a server; the slot is its place there.
    pub(crate) async fn enter(&mut self) -> Result<Slot, ComfyError> {
        let bytes_max = self.shared.options.upload_bytes_max;
        let uploads = upload::read(self.job, bytes_max).await?;
        let (mut last, mut failures) = (Cause::NoUpstream, 0);
        loop {
            if self.job.cancel.is_cancelled() {
                return Err(ComfyError::Cancelled);
            }
            let unfit = &self.unfit;
            if unfit.len() == self.shared.upstreams.len() {
                return Err(ComfyError::Unfit(self.lacking()));
            }
            let now = self.shared.timer.now();
            let may = |index: usize| !unfit.contains_key(&index);
            match self.shared.pool.choose_among(now, may) {
                Choice::Probe(index) => {
                    let probe = async {
                        self.shared.probe(index).await;
                        Ok(())
                    };
                    self.unless_cancelled(probe).await?;
                }
                Choice::Wait(until) => {
                    let cause = mem::replace(&mut last, Cause::NoUpstream);
                    let wait = until.saturating_sub(now);
                    self.patience.rest(wait, cause, failures).await?;
                    failures += 1;
                }
                Choice::Take(slot) => match self.enter_at(&slot, &uploads).await {
                    Ok(()) => return Ok(slot),
                    Err(Miss::Next(cause)) => last = cause,
                    Err(Miss::Lacks(what)) => {
                        let server = &self.shared.upstreams[slot.index].name;
                        tracing::warn!(server, what, "server cannot run the workflow");
                        self.unfit.insert(slot.index, what);
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

    async fn enter_at(&mut self, slot: &Slot, uploads: &[Upload]) -> Result<(), Miss> {
        let server = self.server(slot.index);
        let missing = self
            .unless_cancelled(self.shared.missing(slot.index))
            .await?;
        if let Some(what) = missing {
            return Err(Miss::Lacks(what));
        }
        // An attempt whose ticket was lost may have brought it here.
        if self
            .unless_cancelled(server.look(&self.id))
            .await?
            .is_some()
        {
            self.keep(slot.index).await?;
            return Ok(());
        }
        let uploaded = self.unless_cancelled(self.bring(server, uploads)).await?;
        let card = &self.shared.card;
        let graph = card.fill(self.job.spec, &self.id, &uploaded)?;
        // Before the submit: a process that dies now asks there first.
        self.keep(slot.index).await?;
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
                self.shared.set_fit(slot.index, false);
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
