//! One attempt at a film: what its way in and its following share.

use std::collections::BTreeMap;
use std::sync::Arc;

use bytes::Bytes;
use kinora_contract::Size;
use kinora_engine::{Control, FilmJob, Picture, Stage};
use kinora_upstream::{Patience, chain};
use tokio::time::timeout;

use crate::error::ComfyError;
use crate::event::{Event, Progress};
use crate::server::Server;
use crate::shared::Shared;

/// Larger previews are not shown.
const PREVIEW_SIDE_MAX: u32 = 2_048;

/// An attempt and what it has learned.
pub(crate) struct Attempt<'a> {
    pub(crate) shared: &'a Arc<Shared>,
    pub(crate) job: &'a FilmJob<'a>,
    /// The job's identifier at every server.
    pub(crate) id: String,
    pub(crate) patience: Patience<'a>,
    pub(crate) view: View<'a>,
    /// The server that may have the job.
    pub(crate) at: Option<usize>,
    /// What each server lacks that cannot run the workflow.
    pub(crate) unfit: BTreeMap<usize, String>,
}

/// What the task's client sees of the work.
pub(crate) struct View<'a> {
    pub(crate) control: &'a Control,
    pub(crate) progress: Progress,
    /// The fraction done; never decreases.
    pub(crate) fraction: f64,
}

impl<'a> Attempt<'a> {
    pub(crate) fn server(&self, index: usize) -> Server<'a> {
        Server {
            shared: self.shared,
            index,
        }
    }

    /// Waits for `working`, or for a cancel.
    pub(crate) async fn unless_cancelled<T>(
        &self,
        working: impl Future<Output = Result<T, ComfyError>>,
    ) -> Result<T, ComfyError> {
        tokio::select! {
            biased;
            () = self.job.cancel.cancelled() => Err(ComfyError::Cancelled),
            worked = working => worked,
        }
    }

    /// Stops the job at the server that may have it.
    pub(crate) async fn call_off(&self) {
        let Some(index) = self.at else {
            return;
        };
        let limit = self.shared.options.cancel_timeout;
        let error = match timeout(limit, self.server(index).cancel(&self.id)).await {
            Ok(Ok(())) => return,
            Ok(Err(error)) => chain(&error),
            Err(_) => format!("no answer within {limit:?}"),
        };
        let server = &self.shared.upstreams[index].name;
        tracing::warn!(
            server,
            error,
            "server did not accept the cancel and may still work on the job"
        );
    }
}

impl View<'_> {
    /// Reports a sign of life.
    pub(crate) fn alive(&mut self, fraction: f64) {
        self.fraction = self.fraction.max(fraction.clamp(0.0, 1.0));
        // A cancel arrives through the job's token.
        let _ = self.control.report(Stage::Generating, self.fraction);
    }

    /// Shows an event; returns whether the job has ended.
    pub(crate) async fn show(&mut self, event: Event, shared: &Shared) -> bool {
        match event {
            Event::Nodes(nodes) => {
                let fraction = self.progress.record(nodes);
                self.alive(fraction);
            }
            Event::Preview(image) if self.control.preview.is_wanted() => {
                if let Some(picture) = decoded(image, shared).await {
                    self.control.preview.show(picture);
                }
            }
            Event::Preview(_) => {}
            Event::Ended => return true,
        }
        false
    }
}

/// Decodes a preview; one that cannot be decoded is not shown.
async fn decoded(image: Bytes, shared: &Shared) -> Option<Picture> {
    let decoding = shared
        .disk
        .run(move || kinora_decode::image_of(&image, PREVIEW_SIDE_MAX));
    match decoding.await.ok()? {
        Ok(image) => Some(Picture {
            size: Size::new(image.width, image.height),
            rgb: image.rgb,
        }),
        Err(error) => {
            tracing::debug!(error = chain(&error), "a preview could not be decoded");
            None
        }
    }
}
