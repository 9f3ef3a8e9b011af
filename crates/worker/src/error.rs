//! Why a run has no result: the errors of its stages with the failures that clients see, and the reasons to
//! stop it.

use std::time::Duration;

use kinora_blobs::BlobError;
use kinora_contract::limits::REFERENCE_AUDIO_SECONDS_MAX;
use kinora_contract::{Failure, FailureCode, VideoSpec};
use kinora_decode::DecodeError;
use kinora_engine::EngineError;
use kinora_fetch::FetchError;
use kinora_media::{MediaError, Mismatch};
use kinora_store::{LeaseLost, StoreError};

use crate::retry::Transient;

/// Why the references of a task are not at hand.
#[derive(Debug, thiserror::Error)]
pub(crate) enum GatherError {
    /// One of them cannot be had: the task has failed.
    #[error("reference {index}: {error}")]
    Fetch {
        index: usize,
        #[source]
        error: FetchError,
    },
    /// One of them is not usable: the task has failed.
    #[error("reference {index}: {error}")]
    Judge {
        index: usize,
        #[source]
        error: DecodeError,
    },
    /// Nothing is wrong with the reference: the task waits.
    #[error("reference {index} cannot be fetched at the moment: {error}")]
    Later {
        index: usize,
        #[source]
        error: FetchError,
    },
    #[error("the reference sounds are {0:.1} s long together")]
    AudioTooLong(f64),
    #[error("disk space below the reserve")]
    NoRoom,
    #[error("references could not be stored: {0}")]
    Blobs(#[from] BlobError),
    #[error("references could not be looked after: {0}")]
    Store(#[from] StoreError),
    #[error("the task has ended meanwhile")]
    Ended,
    #[error("references that were at hand are gone")]
    Missing,
}

impl GatherError {
    /// Whether writing the file failed; writing a result would fail too.
    pub(crate) const fn is_of_this_disk(&self) -> bool {
        let (Self::Fetch { error, .. } | Self::Later { error, .. }) = self else {
            return false;
        };
        matches!(error, FetchError::Storage(_))
    }

    /// How long to wait at least before the next try, where that is known.
    pub(crate) const fn retry_after(&self) -> Option<Duration> {
        match self {
            Self::Later { error, .. } => error.retry_after(),
            _ => None,
        }
    }

    /// The stable code, also of an error that fails no task.
    pub(crate) fn code(&self, spec: &VideoSpec) -> String {
        match self {
            Self::Later { error, .. } => error.failure().code,
            Self::Ended => "withdrawn".to_owned(),
            _ => self.failure(spec).code,
        }
    }

    /// The failure for the client of the task with this `spec`; it names the reference.
    pub(crate) fn failure(&self, spec: &VideoSpec) -> Failure {
        match self {
            Self::Fetch { index, error } => named(error.failure(), spec, *index),
            Self::Judge { index, error } => named(error.failure(), spec, *index),
            Self::AudioTooLong(seconds) => audio_too_long_failure(*seconds),
            _ => FailureCode::StorageFailed.into(),
        }
    }
}

/// `failure` as one of the reference at `index`.
fn named(failure: Failure, spec: &VideoSpec, index: usize) -> Failure {
    match spec.inputs.param(index) {
        Some(param) => failure.of(param),
        None => failure,
    }
}

impl Transient for GatherError {
    fn is_transient(&self) -> bool {
        match self {
            Self::Blobs(error) => error.is_transient(),
            Self::Store(error) => error.is_transient(),
            Self::Later { .. } => true,
            // Room takes a while.
            Self::NoRoom => false,
            Self::Fetch { .. }
            | Self::Judge { .. }
            | Self::AudioTooLong(_)
            | Self::Ended
            | Self::Missing => false,
        }
    }
}

/// Why there is nothing to record.
#[derive(Debug, thiserror::Error)]
pub(crate) enum PrepareError {
    #[error(transparent)]
    Gather(#[from] GatherError),
    #[error("reference {index}: {error}")]
    Decode {
        index: usize,
        #[source]
        error: DecodeError,
    },
    #[error("the reference sounds are {0:.1} s long together")]
    AudioTooLong(f64),
    #[error("the source of the edit is gone")]
    SourceGone,
    #[error("the source of the edit: {0}")]
    Source(#[from] MediaError),
    #[error("files could not be brought here: {0}")]
    Blobs(#[from] BlobError),
    #[error("the source could not be looked up: {0}")]
    Store(#[from] StoreError),
    #[error(transparent)]
    Plan(#[from] EngineError),
    #[error("preparing panicked")]
    Panicked,
}

impl PrepareError {
    /// Whether references that were at hand are gone: the fetch stage brings them again.
    pub(crate) const fn is_missing(&self) -> bool {
        matches!(self, Self::Gather(GatherError::Missing))
    }

    /// Whether the process that read the source came to its end: another attempt may fare better.
    pub(crate) const fn is_lost(&self) -> bool {
        matches!(self, Self::Source(MediaError::Lost(_)))
    }

    /// Logs it as an error, or as information where the client's input is at fault.
    pub(crate) fn log(&self) {
        match self {
            Self::Decode { .. } | Self::AudioTooLong(_) | Self::SourceGone => {
                tracing::info!(error = %self, "the run could not be prepared");
            }
            _ => tracing::error!(error = %self, "the run could not be prepared"),
        }
    }

    /// The failure for the client of the task with this `spec`; it names the field.
    pub(crate) fn failure(&self, spec: &VideoSpec) -> Failure {
        match self {
            Self::Gather(error) => error.failure(spec),
            Self::Decode { index, error } => named(error.failure(), spec, *index),
            Self::AudioTooLong(seconds) => audio_too_long_failure(*seconds),
            Self::SourceGone => Failure::new(
                FailureCode::GenerationFailed,
                "the video that this one starts from was deleted or has expired.",
            )
            .of(match spec.edit {
                Some(_) => "edit_task_id",
                None => "draft_task_id",
            }),
            Self::Blobs(_) | Self::Store(_) => FailureCode::StorageFailed.into(),
            Self::Plan(EngineError::OutOfMemory(_)) => FailureCode::OutOfMemory.into(),
            Self::Source(_) | Self::Plan(_) | Self::Panicked => {
                FailureCode::GenerationFailed.into()
            }
        }
    }
}

/// The failure of a task whose sounds are too long together.
fn audio_too_long_failure(seconds: f64) -> Failure {
    let message = format!(
        "the sounds last {seconds:.1} s together; at most {REFERENCE_AUDIO_SECONDS_MAX} s are taken."
    );
    Failure::new(FailureCode::AudioTooLong, message).of("reference_audios")
}

/// Why there is no file.
#[derive(Debug, thiserror::Error)]
pub(crate) enum RecordError {
    #[error(transparent)]
    Engine(#[from] EngineError),
    #[error("recording: {0}")]
    Media(#[from] MediaError),
    #[error("the file is not what was asked for: {0}")]
    Mismatch(#[from] Mismatch),
    #[error("the result could not be stored: {0}")]
    Publish(#[source] BlobError),
    #[error("the engine panicked")]
    Panicked,
    #[error("no thread for the engine: {0}")]
    Thread(#[from] std::io::Error),
}

impl RecordError {
    /// The code for the client.
    pub(crate) fn code(&self) -> FailureCode {
        match self {
            Self::Engine(EngineError::OutOfMemory(_)) => FailureCode::OutOfMemory,
            Self::Engine(EngineError::Sink(cause)) if !is_engines_fault(&**cause) => {
                FailureCode::StorageFailed
            }
            Self::Engine(EngineError::Told { code, .. } | EngineError::Crashed { code, .. }) => {
                *code
            }
            Self::Media(MediaError::Io(_)) | Self::Publish(_) => FailureCode::StorageFailed,
            // A `Cancelled` that nobody asked for is the engine's fault as well: runs that were
            // told to stop never come here.
            _ => FailureCode::GenerationFailed,
        }
    }
}

/// Whether a sink refused invalid data, rather than failed to write it.
fn is_engines_fault(cause: &(dyn std::error::Error + 'static)) -> bool {
    let cause = cause.downcast_ref::<MediaError>();
    cause.is_some_and(|cause| !matches!(cause, MediaError::Io(_)))
}

/// Why a run must end before it is done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stop {
    /// The lease is no longer ours: nothing of this run may be written.
    Lost(LeaseLost),
    /// The engine stands still.
    Stalled,
    /// The lease ran out while the store could not be reached: somebody else may have the task.
    RanOut,
    /// The process stops: the task goes back to the queue.
    Shutdown,
}

impl Stop {
    /// A stable code, for traces.
    pub(crate) const fn code(self) -> &'static str {
        match self {
            Self::Lost(LeaseLost::Withdrawn) => "withdrawn",
            Self::Lost(LeaseLost::Superseded) => "superseded",
            Self::Stalled => FailureCode::GenerationTimeout.as_str(),
            Self::RanOut => "lease_ran_out",
            Self::Shutdown => "shutdown",
        }
    }
}

/// Why a run has no result: the engine or the recording failed, the operator's policy refused it, or there was a
/// reason to stop.
pub(crate) enum Unmade {
    Failed(RecordError),
    Refused(Failure),
    Stopped(Stop),
}

impl Unmade {
    /// A stable code, for traces.
    pub(crate) fn code(&self) -> String {
        match self {
            Self::Failed(error) => error.code().as_str().to_owned(),
            Self::Refused(failure) => failure.code.clone(),
            Self::Stopped(stop) => stop.code().to_owned(),
        }
    }
}

impl From<Stop> for Unmade {
    fn from(stop: Stop) -> Self {
        Self::Stopped(stop)
    }
}

impl<E: Into<RecordError>> From<E> for Unmade {
    fn from(error: E) -> Self {
        Self::Failed(error.into())
    }
}
