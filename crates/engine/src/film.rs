//! The other kind of engine: it delivers a finished film instead of frames, because another server
//! makes it. The file is untrusted until the caller has checked it. The engine may leave a ticket
//! with its caller, so that a later attempt can continue.

use std::error::Error;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use async_trait::async_trait;
use kinora_contract::{VideoSpec, Warning};
use tokio_util::sync::CancellationToken;

use crate::places::Places;
use crate::{EngineDescription, EngineError, JobControl};

/// A maker of whole films. All workers of a process share one.
#[async_trait]
pub trait FilmEngine: Send + Sync {
    /// The engine's name and features.
    fn describe(&self) -> &EngineDescription;

    /// Whether the engine can switch sound on and off. If not, a film may have sound that nobody
    /// requested.
    fn has_sound_switch(&self) -> bool;

    /// The parts of a spec that [`FilmEngine::film`] cannot honour; the client sees them with the
    /// task.
    fn warnings(&self, _spec: &VideoSpec) -> Vec<Warning> {
        Vec::new()
    }

    /// Whether the operator accepts films that cannot be decoded, and so not checked, here.
    fn keeps_undecodable(&self) -> bool {
        false
    }

    /// Whether to keep films of another size, length or sound than requested, with a warning.
    fn keeps_mismatched(&self) -> bool {
        false
    }

    /// Makes the film of `job` and writes it to the new file `job.to`, which is not synced. Ends
    /// within 2 s of `job.cancel`, and the server stops too, as far as that is possible. Dropping
    /// the future stops nothing elsewhere: a later attempt follows the ticket, unless another kind
    /// of engine made it.
    ///
    /// # Errors
    /// [`EngineError::Cancelled`] after a cancel; [`EngineError::NoPlace`] if no server took the job,
    /// [`EngineError::JobFailed`] if another server may complete it, otherwise [`EngineError::CodedFailure`]. If its ticket
    /// cannot be stored, the work stops with
    /// [`FailureCode::StorageFailed`](kinora_contract::FailureCode::StorageFailed). After an error
    /// there is no file.
    async fn film(&self, job: &FilmJob<'_>) -> Result<(), EngineError>;

    /// Cancels the work that `ticket` leads to, since its task has ended without a film. The work
    /// may have ended or been cancelled already; a ticket of another engine counts as no work.
    /// Takes at most 2 s.
    ///
    /// # Errors
    /// [`EngineError::CodedFailure`] if no server could be reached: the work may continue.
    async fn call_off(&self, ticket: &str) -> Result<(), EngineError>;

    /// Has the servers free the memory that they keep between films, so that another engine can use their device; the next
    /// film loads it again. Returns once the memory is free, or the servers do not free it. Films in work are not affected.
    async fn unload(&self) {}

    /// The servers, each a place that can break by itself.
    fn places(&self) -> Option<&Arc<Places>> {
        None
    }

    /// Whether a job that failed at one server may be resubmitted to another automatically;
    /// false where each submit costs money.
    fn repeats_failed_jobs(&self) -> bool {
        true
    }

    /// What the servers can be asked for, in words for an operator. `None`: not known.
    fn summary(&self) -> Option<FilmEngineSummary> {
        None
    }

    /// Checks that a request for `spec`, without the files of its references, can be written for the servers. Calls
    /// none of them.
    ///
    /// # Errors
    /// What cannot be said.
    async fn check_spec(&self, _spec: &VideoSpec) -> Result<(), EngineError> {
        Ok(())
    }

    /// Checks whether each server would accept films, at no cost.
    async fn ask_servers(&self) -> Vec<ServerReport> {
        Vec::new()
    }
}

/// What an engine's servers can be asked for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FilmEngineSummary {
    /// The protocol and what it offers.
    pub offers: String,
    /// What an operator may want to change.
    pub advice: Vec<String>,
}

/// A server's answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServerReport {
    /// Its name, for an operator.
    pub server: String,
    /// Why it refuses this service.
    pub refusal: Option<String>,
}

/// A film to make.
#[derive(Clone, Copy)]
pub struct FilmJob<'a> {
    /// The task's identifier: the same for every attempt at one task, and for no other.
    pub key: &'a str,
    /// The requested video. Its size is decided; its length may be left to the engine.
    pub spec: &'a VideoSpec,
    /// The spec's references, in the order of its
    /// [`references`](kinora_contract::VideoInputs::references); the caller has checked that they can be
    /// opened.
    pub references: &'a [ReferenceFile],
    /// The video that the spec edits, as this service keeps it.
    pub source: Option<&'a ReferenceFile>,
    /// The last ticket of an earlier attempt.
    pub ticket: Option<&'a str>,
    /// The path of the new film.
    pub to: &'a Path,
    /// Receives signs of life. Its cancel is unused.
    pub control: &'a JobControl,
    /// Requests a stop, here and at the server.
    pub cancel: &'a CancellationToken,
    /// Stores the ticket.
    pub tickets: &'a dyn TicketStore,
}

/// Stores the ticket with which a later attempt finds the work of this one.
#[async_trait]
pub trait TicketStore: Send + Sync {
    /// Stores `ticket`, a short text, in place of an earlier one; an empty one removes it. Returns once that is durable.
    ///
    /// # Errors
    /// If it cannot be stored.
    async fn store(&self, ticket: &str) -> Result<(), Box<dyn Error + Send + Sync>>;
}

/// A fetched reference.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReferenceFile {
    /// The file's path.
    pub path: PathBuf,
    /// Its media type, detected from its content: `image/png`.
    pub media_type: String,
}
