//! One task from submit to film. A job that its server no longer knows is submitted anew, and nothing else
//! is ever submitted twice.

use std::collections::BTreeMap;

use kinora_engine::FilmJob;
use kinora_engine::places::Visit;
use kinora_upstream::Patience;
use tokio::time::timeout;

use crate::attempt::{Attempt, View};
use crate::error::ComfyError;
use crate::event::Progress;
use crate::identity::prompt_id;
use crate::server::Server;
use crate::shared::Comfy;
use crate::ticket::Ticket;

impl Comfy {
    /// Makes the film of `job`, or follows its ticket, and writes it to the new file `job.to`, which is
    /// not synced; returns its length in bytes.
    ///
    /// A cancel stops the server as well. Dropping the future stops nothing there: the stored ticket can
    /// be followed later.
    ///
    /// # Errors
    /// [`ComfyError`], but never [`ComfyError::Busy`].
    pub async fn make(&self, job: &FilmJob<'_>) -> Result<u64, ComfyError> {
        let options = &self.0.options;
        let mut attempt = Attempt {
            shared: &self.0,
            job,
            id: prompt_id(job.key),
            patience: Patience::new(&*self.0.timer, job.cancel, options.limits, job.key),
            view: View {
                control: job.control,
                progress: Progress::of(self.0.card.workflow()),
                fraction: 0.0,
            },
            at: None,
            unfit: BTreeMap::new(),
        };
        let (mut ticket, mut resubmits) = (job.ticket.and_then(Ticket::read), 0);
        loop {
            let entered = match ticket.take() {
                Some(ticket) => attempt.resume(ticket),
                None => attempt.enter().await,
            };
            let ended = match entered {
                Ok(visit) => {
                    job.control.place.choose(&self.0.places, visit.index);
                    attempt.follow(&visit).await
                }
                Err(error) => Err(error),
            };
            match ended {
                Err(error @ ComfyError::Forgotten(_)) if resubmits < options.resubmits_max => {
                    resubmits += 1;
                    attempt.at = None;
                    tracing::warn!(%error, "server lost the job; submitting it again");
                }
                Err(error) => {
                    if error.leaves_work() {
                        attempt.call_off().await;
                    }
                    return Err(error);
                }
                Ok(bytes) => return Ok(bytes),
            }
        }
    }

    /// Stops the job of `ticket`. A finished or unknown job counts as stopped.
    ///
    /// # Errors
    /// [`ComfyError::Busy`] if the server does not answer. [`ComfyError::Forgotten`] if it is no longer
    /// configured.
    pub async fn call_off(&self, ticket: &Ticket) -> Result<(), ComfyError> {
        let index = self
            .0
            .index_of(&ticket.comfyui)
            .ok_or_else(|| ComfyError::Forgotten(ticket.comfyui.clone()))?;
        let server = Server {
            shared: &self.0,
            index,
        };
        let limit = self.0.options.cancel_timeout;
        let stopped = timeout(limit, server.cancel(&ticket.prompt_id)).await;
        stopped.unwrap_or_else(|_| {
            Err(ComfyError::Busy {
                after: limit,
                cause: kinora_upstream::Cause::Timeout(limit),
            })
        })
    }
}

impl Attempt<'_> {
    /// Goes back to the job of an earlier attempt.
    fn resume(&mut self, ticket: Ticket) -> Result<Visit, ComfyError> {
        let Some(index) = self.shared.index_of(&ticket.comfyui) else {
            return Err(ComfyError::Forgotten(ticket.comfyui));
        };
        self.at = Some(index);
        self.id = ticket.prompt_id;
        Ok(self.shared.places.visit(index))
    }
}
