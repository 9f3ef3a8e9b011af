//! A workflow as an engine of finished films. It does not inspect the film.

use std::sync::Arc;

use async_trait::async_trait;
use kinora_contract::{FailureCode, VideoSpec, Warning, WarningCode};
use kinora_engine::places::Places;
use kinora_engine::{
    Description, EngineError, FilmEngine, FilmJob, ServerReport, refuse_unsupported,
};
use kinora_upstream::chain;

use crate::error::ComfyError;
use crate::shared::Comfy;
use crate::ticket::Ticket;

/// An engine whose films a workflow makes.
#[derive(Debug)]
pub struct ComfyEngine {
    comfy: Comfy,
    description: Description,
}

impl ComfyEngine {
    /// An engine of this name that uses `comfy`.
    pub fn new(comfy: Comfy, name: &str) -> Self {
        let card = &comfy.0.card;
        let description = Description {
            name: name.to_owned(),
            version: card.describe().version.clone(),
            features: card.bindings().features(),
            is_trained: card.describe().is_trained,
            final_from_video: false,
        };
        Self { comfy, description }
    }
}

#[async_trait]
impl FilmEngine for ComfyEngine {
    fn describe(&self) -> &Description {
        &self.description
    }

    fn has_sound_switch(&self) -> bool {
        self.description.features.audio_output
    }

    fn warnings(&self, _spec: &VideoSpec) -> Vec<Warning> {
        if self.comfy.0.card.bindings().seed.is_empty() {
            vec![WarningCode::SeedIgnored.into()]
        } else {
            Vec::new()
        }
    }

    async fn film(&self, job: &FilmJob<'_>) -> Result<(), EngineError> {
        refuse_unsupported(self.description.features, job.spec)?;
        match self.comfy.make(job).await {
            Ok(bytes) => {
                tracing::debug!(bytes, "film received");
                Ok(())
            }
            Err(ComfyError::Cancelled) => Err(EngineError::Cancelled),
            Err(error) => Err(engine_error(&error)),
        }
    }

    fn places(&self) -> Option<&Arc<Places>> {
        Some(&self.comfy.0.places)
    }

    async fn call_off(&self, ticket: &str) -> Result<(), EngineError> {
        let Some(ticket) = Ticket::read(ticket) else {
            return Ok(());
        };
        match self.comfy.call_off(&ticket).await {
            // If the server is no longer configured, there is nobody to call off.
            Ok(()) | Err(ComfyError::Forgotten(_)) => Ok(()),
            Err(error) => Err(engine_error(&error)),
        }
    }

    async fn unload(&self) {
        self.comfy.free().await;
    }

    async fn ask_servers(&self) -> Vec<ServerReport> {
        self.comfy.ask_all().await
    }
}

/// Whose failure it is: the job's, unless a node failed without a code, the film cannot be read, or
/// the server stopped answering.
fn engine_error(error: &ComfyError) -> EngineError {
    let (code, cause) = (error.code(), chain(error));
    match error {
        ComfyError::NoPlace(_) => EngineError::NoPlace(cause),
        ComfyError::Failed {
            code: FailureCode::GenerationFailed,
            ..
        }
        | ComfyError::Unread(_)
        | ComfyError::Silent { .. }
        | ComfyError::Forgotten(_) => EngineError::JobFailed { code, cause },
        _ => EngineError::Told { code, cause },
    }
}
