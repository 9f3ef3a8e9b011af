//! The upstreams as an engine of finished films: converts jobs to requests, and follows tickets. It
//! does not inspect the film.

use std::error::Error;
use std::sync::Arc;

use async_trait::async_trait;
use kinora_contract::{FailureCode, Features, VideoSpec, Warning, WarningCode};
use kinora_engine::places::Places;
use kinora_engine::{
    Control, Description, EngineError, FilmEngine, FilmJob, ServerReport, Stage, TicketStore,
};
use kinora_upstream::chain;

use crate::dialect::Field;
use crate::error::RemoteError;
use crate::remote::Remote;
use crate::request::{RemoteRequest, Ticket};
use crate::run::Watcher;

/// Settings of a [`RemoteEngine`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EngineOptions {
    /// The configured name, visible to clients.
    pub name: String,
    /// The upstreams' name of the model; `None` lets them choose.
    pub model: Option<String>,
    /// Whether the model has a switch for sound. Without it, sound cannot be requested.
    pub sound: bool,
    /// Whether to accept films that cannot be decoded here.
    pub keeps_undecodable: bool,
}

/// An engine whose films come from upstreams.
#[derive(Debug)]
pub struct RemoteEngine {
    remote: Remote,
    description: Description,
    model: Option<String>,
    sound: bool,
    keeps_undecodable: bool,
}

impl RemoteEngine {
    /// An engine that uses `remote`.
    pub fn new(remote: Remote, options: EngineOptions) -> Self {
        let can = remote.dialect().features();
        let sound = options.sound && can.audio_output;
        let features = Features {
            audio_output: sound,
            ..can
        };
        let description = Description {
            // Unknown, so assume a trained model.
            is_trained: true,
            final_from_video: false,
            name: options.name,
            version: env!("CARGO_PKG_VERSION").to_owned(),
            features,
        };
        Self {
            remote,
            description,
            model: options.model,
            sound,
            keeps_undecodable: options.keeps_undecodable,
        }
    }
}

#[async_trait]
impl FilmEngine for RemoteEngine {
    fn describe(&self) -> &Description {
        &self.description
    }

    fn has_sound_switch(&self) -> bool {
        self.sound
    }

    fn warnings(&self, _spec: &VideoSpec) -> Vec<Warning> {
        match self.remote.dialect().wire(Field::Seed) {
            Some(_) => Vec::new(),
            None => vec![WarningCode::SeedIgnored.into()],
        }
    }

    fn keeps_undecodable(&self) -> bool {
        self.keeps_undecodable
    }

    async fn film(&self, job: &FilmJob<'_>) -> Result<(), EngineError> {
        let request = RemoteRequest {
            model: self.model.clone(),
            spec: job.spec.clone(),
            references: job.references.to_vec(),
            audio_switch: self.sound,
            key: job.key.to_owned(),
            avoid: job.control.place.avoided(),
        };
        let mut relay = Relay {
            control: job.control,
            tickets: job.tickets,
        };
        let ticket = job.ticket.and_then(read);
        let ran = self
            .remote
            .run(&request, ticket, job.to, &mut relay, job.cancel);
        match ran.await {
            Ok(bytes) => {
                tracing::debug!(bytes, "film received");
                Ok(())
            }
            Err(RemoteError::Cancelled) => Err(EngineError::Cancelled),
            Err(error) => Err(engine_error(&error)),
        }
    }

    fn places(&self) -> Option<&Arc<Places>> {
        Some(self.remote.places())
    }

    fn repeats_failed_jobs(&self) -> bool {
        self.remote.repeats_failed_jobs()
    }

    async fn call_off(&self, ticket: &str) -> Result<(), EngineError> {
        let Some(ticket) = read(ticket) else {
            return Ok(());
        };
        match self.remote.call_off(&ticket).await {
            // If the upstream is no longer configured, there is nobody to call off.
            Ok(()) | Err(RemoteError::Forgotten(_)) => Ok(()),
            Err(error) => Err(engine_error(&error)),
        }
    }

    async fn ask_servers(&self) -> Vec<ServerReport> {
        let asked = self.remote.ask_all().await.into_iter();
        asked
            .map(|(server, answer)| ServerReport {
                server,
                refusal: answer.err().map(|cause| cause.to_string()),
            })
            .collect()
    }
}

/// Whose failure it is: the job's, unless the upstream gave no reason, its result cannot be read,
/// or it stopped answering.
fn engine_error(error: &RemoteError) -> EngineError {
    let (code, cause) = (error.code(), chain(error));
    match error {
        RemoteError::NoPlace(_) => EngineError::NoPlace(cause),
        RemoteError::Failed {
            code: FailureCode::GenerationFailed | FailureCode::GenerationTimeout,
            ..
        }
        | RemoteError::NoResult(_)
        | RemoteError::Silent { .. }
        | RemoteError::Forgotten(_) => EngineError::JobFailed { code, cause },
        _ => EngineError::Told { code, cause },
    }
}

/// The ticket of an earlier attempt, unless another kind of engine made it.
fn read(text: &str) -> Option<Ticket> {
    let ticket = serde_json::from_str(text);
    if let Err(error) = &ticket {
        tracing::warn!(%error, "unreadable ticket of an earlier attempt; submitting again");
    }
    ticket.ok()
}

/// Forwards a run's reports to the worker.
struct Relay<'a> {
    control: &'a Control,
    tickets: &'a dyn TicketStore,
}

#[async_trait]
impl Watcher for Relay<'_> {
    async fn submitted(&mut self, ticket: &Ticket) -> Result<(), Box<dyn Error + Send + Sync>> {
        let upstream = &ticket.upstream;
        tracing::info!(upstream, id = ticket.id, "task submitted to upstream");
        self.tickets.store(&serde_json::to_string(ticket)?).await
    }

    fn placed(&mut self, places: &Arc<Places>, index: usize) {
        self.control.place.choose(places, index);
    }

    fn alive(&mut self, fraction: f64) {
        // A cancel arrives through the job's token.
        let _ = self.control.report(Stage::Generating, fraction);
    }
}
