//! The errors of a run's steps, the failures that clients see, and the reasons to stop a run.
//! Distinguishes faults of this machine (no space, no file descriptors, an unavailable store) from
//! faults of a task: a run that meets one of the first kind returns its task to the queue, and the
//! attempt does not count.

use std::error::Error;
use std::io;
use std::io::ErrorKind;
use std::time::Duration;

use kinora_blobs::BlobError;
use kinora_contract::limits::REFERENCE_AUDIO_SECONDS_MAX;
use kinora_contract::{Failure, FailureCode, VideoSpec};
use kinora_engine::EngineError;
use kinora_http_fetch::{FetchCause, FetchError};
use kinora_media::MediaError;
use kinora_media_decode::DecodeError;
use kinora_store::{LeaseLost, StoreError};
use rustix::io::Errno;

use crate::host_failures::{HostFailure, TryCount};
use crate::retry::TransientError;

/// Why the references of a task are not available.
#[derive(Debug, thiserror::Error)]
pub(crate) enum GatherError {
    /// A reference cannot be fetched: the task has failed.
    #[error("reference {index}: {error}")]
    Fetch {
        index: usize,
        #[source]
        error: FetchError,
    },
    /// A reference is not usable: the task has failed.
    #[error("reference {index}: {error}")]
    Invalid {
        index: usize,
        #[source]
        error: DecodeError,
    },
    /// The host of a reference failed in a way that may pass: the task waits for another try, up to a
    /// bound.
    #[error("reference {index}: {}", error.failure().message)]
    Host {
        index: usize,
        #[source]
        error: FetchError,
    },
    /// The reference is not at fault: the task waits.
    #[error("reference {index} cannot be fetched at the moment: {error}")]
    Later {
        index: usize,
        #[source]
        error: FetchError,
    },
    /// The bytes of a file of this service are gone: the task has failed.
    #[error("reference {index}: the file is gone")]
    UploadGone { index: usize },
    #[error("the reference sounds are {0:.1} s long in total")]
    AudioTooLong(f64),
    #[error("disk space below the reserve")]
    NoRoom,
    #[error("references could not be stored: {0}")]
    Blobs(#[from] BlobError),
    #[error("references could not be looked up: {0}")]
    Store(#[from] StoreError),
    #[error("the task has ended meanwhile")]
    Ended,
    #[error("stored references are missing")]
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

    /// An error of the fetch of the reference at `index`.
    pub(crate) fn from_fetch(index: usize, error: FetchError) -> Self {
        if error.is_transient() {
            Self::Host { index, error }
        } else if error.is_of_reference() {
            Self::Fetch { index, error }
        } else {
            Self::Later { index, error }
        }
    }

    /// An error of the copy of an uploaded file, the reference at `index`.
    pub(crate) fn from_copy(index: usize, error: BlobError) -> Self {
        match error {
            BlobError::NotFound(_) => Self::UploadGone { index },
            error => Self::Blobs(error),
        }
    }

    /// The order in which errors of a task's references count, if other references may go on: a host
    /// that failed before a fetch that waits for its turn. `None` if the error ends all fetches.
    pub(crate) const fn rank(&self) -> Option<(u8, usize)> {
        match self {
            Self::Host { index, .. } => Some((0, *index)),
            Self::Later { index, .. } => Some((1, *index)),
            _ => None,
        }
    }

    /// Minimum pause before the next try, if known.
    pub(crate) const fn retry_after(&self) -> Option<Duration> {
        match self {
            Self::Host { error, .. } | Self::Later { error, .. } => error.retry_after(),
            _ => None,
        }
    }

    /// The host failure behind this error, if it may pass.
    pub(crate) fn host_failure(&self) -> Option<HostFailure> {
        let Self::Host { index, error } = self else {
            return None;
        };
        let reached = error.reached()?;
        Some(HostFailure {
            index: *index,
            reached,
        })
    }

    /// The stable code, even of an error that fails no task.
    pub(crate) fn code(&self, spec: &VideoSpec) -> String {
        match self {
            Self::Host { error, .. } | Self::Later { error, .. } => error.failure().code,
            Self::Ended => "withdrawn".to_owned(),
            _ => self.failure(spec).code,
        }
    }

    /// The client's failure of the task with this `spec`; it names the reference.
    pub(crate) fn failure(&self, spec: &VideoSpec) -> Failure {
        match self {
            Self::Fetch { index, error } | Self::Host { index, error } => {
                named(error.failure(), spec, *index)
            }
            Self::Invalid { index, error } => named(error.failure(), spec, *index),
            Self::UploadGone { index } => {
                let message =
                    "the file was deleted or has expired; upload it again, or name another.";
                let failure = Failure::new(FailureCode::ReferenceUnreachable, message);
                named(failure, spec, *index)
            }
            Self::AudioTooLong(seconds) => audio_too_long_failure(*seconds),
            _ => FailureCode::StorageFailed.into(),
        }
    }

    /// The client's failure of the task with this `spec`, whose references had these `tries`.
    pub(crate) fn failure_after(&self, tries: TryCount, spec: &VideoSpec) -> Failure {
        let Self::Host { index, error } = self else {
            return self.failure(spec);
        };
        let mut failure = error.failure();
        if let Some(reached) = error.reached() {
            failure.message = format!("{reached} {tries}.");
        }
        named(failure, spec, *index)
    }
}

/// Names the reference at `index` in a failure.
fn named(failure: Failure, spec: &VideoSpec, index: usize) -> Failure {
    match spec.inputs.param(index) {
        Some(param) => failure.with_param(param),
        None => failure,
    }
}

impl TransientError for GatherError {
    fn is_transient(&self) -> bool {
        match self {
            Self::Blobs(error) => error.is_transient(),
            Self::Store(error) => error.is_transient(),
            Self::Host { .. } | Self::Later { .. } => true,
            // Space does not become free that quickly.
            Self::NoRoom => false,
            Self::Fetch { .. }
            | Self::Invalid { .. }
            | Self::UploadGone { .. }
            | Self::AudioTooLong(_)
            | Self::Ended
            | Self::Missing => false,
        }
    }
}

/// Why a run could not be prepared.
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
    #[error("the reference sounds are {0:.1} s long in total")]
    AudioTooLong(f64),
    #[error("the source of the edit no longer exists")]
    SourceGone,
    #[error("the source of the edit: {0}")]
    Source(#[from] MediaError),
    #[error("files could not be copied to this machine: {0}")]
    Blobs(#[from] BlobError),
    #[error("the source could not be looked up: {0}")]
    Store(#[from] StoreError),
    #[error(transparent)]
    Plan(#[from] EngineError),
    #[error("preparing panicked")]
    Panicked,
}

impl PrepareError {
    /// Whether references that were stored are gone: the fetch stage must fetch them again.
    pub(crate) const fn is_missing(&self) -> bool {
        matches!(self, Self::Gather(GatherError::Missing))
    }

    /// Whether the process that read the source died: another attempt may succeed.
    pub(crate) const fn is_lost(&self) -> bool {
        matches!(self, Self::Source(MediaError::Lost(_)))
    }

    /// Logs the error, at the level of information if the client's input is the cause.
    pub(crate) fn log(&self) {
        match self {
            Self::Decode { .. } | Self::AudioTooLong(_) | Self::SourceGone => {
                tracing::info!(error = %self, "the run could not be prepared");
            }
            _ => tracing::error!(error = %self, "the run could not be prepared"),
        }
    }

    /// The client's failure of the task with this `spec`; it names the field.
    pub(crate) fn failure(&self, spec: &VideoSpec) -> Failure {
        match self {
            Self::Gather(error) => error.failure(spec),
            Self::Decode { index, error } => named(error.failure(), spec, *index),
            Self::AudioTooLong(seconds) => audio_too_long_failure(*seconds),
            Self::SourceGone => Failure::new(
                FailureCode::GenerationFailed,
                "the video that this one starts from was deleted or has expired.",
            )
            .with_param(match spec.edit {
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

/// The failure of a task whose sounds are too long in total.
fn audio_too_long_failure(seconds: f64) -> Failure {
    let message = format!(
        "the sounds last {seconds:.1} s in total; at most {REFERENCE_AUDIO_SECONDS_MAX} s are allowed."
    );
    Failure::new(FailureCode::AudioTooLong, message).with_param("reference_audios")
}

/// Why there is no recording.
#[derive(Debug, thiserror::Error)]
pub(crate) enum RecordError {
    #[error(transparent)]
    Engine(#[from] EngineError),
    #[error("recording: {0}")]
    Media(#[from] MediaError),
    #[error("signing: {0}")]
    Sign(#[source] Box<dyn std::error::Error + Send + Sync>),
    #[error("the result could not be stored: {0}")]
    Publish(#[source] BlobError),
    #[error("the engine panicked")]
    Panicked,
    #[error("no thread available for the engine: {0}")]
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
            Self::Engine(
                EngineError::CodedFailure { code, .. }
                | EngineError::JobFailed { code, .. }
                | EngineError::Crashed { code, .. },
            ) => *code,
            Self::Media(MediaError::Io(_)) | Self::Sign(_) | Self::Publish(_) => {
                FailureCode::StorageFailed
            }
            // An engine that returns `Cancelled` without a request is at fault too: runs that were
            // told to stop never get here.
            _ => FailureCode::GenerationFailed,
        }
    }
}

/// Whether a sink refused invalid data, rather than failed to write it.
pub(crate) fn is_engines_fault(cause: &(dyn std::error::Error + 'static)) -> bool {
    let cause = cause.downcast_ref::<MediaError>();
    cause.is_some_and(|cause| !matches!(cause, MediaError::Io(_)))
}

/// Why a run must stop early.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum StopReason {
    /// The lease is lost: this run must not write anything.
    Lost(LeaseLost),
    /// The engine makes no progress.
    Stalled,
    /// The lease expired while the store was unreachable: another worker may hold the task.
    RanOut,
    /// The process stops: the task returns to the queue.
    Shutdown,
}

impl StopReason {
    /// Stable code, for traces.
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

/// Why a run has no result.
pub(crate) enum RunEnd {
    /// The engine has not started.
    Unprepared {
        error: PrepareError,
        /// The failure for the client, if the task ends with it.
        failure: Failure,
    },
    /// The engine, the recording or the publication failed.
    Failed(RecordError),
    /// The operator's policy refused the result.
    Refused(Failure),
    /// The run had to stop.
    Stopped(StopReason),
}

impl RunEnd {
    /// A stable code, for traces.
    pub(crate) fn code(&self) -> String {
        match self {
            Self::Failed(error) => error.code().as_str().to_owned(),
            Self::Unprepared { failure, .. } | Self::Refused(failure) => failure.code.clone(),
            Self::Stopped(stop) => stop.code().to_owned(),
        }
    }
}

impl From<StopReason> for RunEnd {
    fn from(stop: StopReason) -> Self {
        Self::Stopped(stop)
    }
}

impl<E: Into<RecordError>> From<E> for RunEnd {
    fn from(error: E) -> Self {
        Self::Failed(error.into())
    }
}

/// Whether this machine is at fault; checks `error` and its whole chain of causes.
pub(crate) fn is_machine_fault(error: &(dyn Error + 'static)) -> bool {
    // Libraries wrap errors: a full disk may be the cause of a cause of a media error.
    let mut next = Some(error);
    while let Some(error) = next {
        if is_machine_fault_itself(error) {
            return true;
        }
        next = error.source();
    }
    false
}

/// Whether the reference is at fault and its task fails; otherwise this service is.
pub(crate) fn is_reference_fault(error: &GatherError) -> bool {
    let theirs = match error {
        GatherError::Fetch { error, .. } => error.is_of_reference(),
        GatherError::Invalid { .. }
        | GatherError::UploadGone { .. }
        | GatherError::AudioTooLong(_) => true,
        _ => false,
    };
    theirs && !is_machine_fault(error)
}

/// Whether a fetch only waits for its turn or its project's share, with no fault of this machine.
pub(crate) fn is_postponed(error: &(dyn Error + 'static)) -> bool {
    let mut next = Some(error);
    while let Some(error) = next {
        if let Some(FetchError::Later(cause)) = error.downcast_ref() {
            return matches!(
                cause,
                FetchCause::Budget { .. } | FetchCause::HostBusy(_) | FetchCause::Resolve { .. }
            );
        }
        next = error.source();
    }
    false
}

fn is_machine_fault_itself(error: &(dyn Error + 'static)) -> bool {
    if let Some(error) = error.downcast_ref::<io::Error>() {
        return is_exhausted(error);
    }
    if let Some(error) = error.downcast_ref::<BlobError>() {
        return matches!(error, BlobError::Unavailable(_));
    }
    if let Some(error) = error.downcast_ref::<StoreError>() {
        return matches!(error, StoreError::Unavailable(_));
    }
    if let Some(error) = error.downcast_ref::<FetchError>() {
        return !error.is_of_reference();
    }
    let gather = match error.downcast_ref() {
        Some(PrepareError::Gather(error)) => Some(error),
        _ => error.downcast_ref(),
    };
    if matches!(gather, Some(GatherError::NoRoom)) {
        return true;
    }
    match error.downcast_ref::<RecordError>() {
        Some(RecordError::Thread(_)) => return true,
        // A film made elsewhere is written to a file of this machine (`FilmEngine::film`).
        Some(RecordError::Engine(EngineError::CodedFailure {
            code: FailureCode::StorageFailed,
            ..
        })) => return true,
        _ => {}
    }
    // Both read and write only files of this machine, so a system error is this machine's fault.
    match (error.downcast_ref(), error.downcast_ref()) {
        (Some(MediaError::Io(error)), _) | (_, Some(DecodeError::Io(error))) => {
            error.raw_os_error().is_some()
        }
        _ => false,
    }
}

/// Whether an operation failed because this machine ran out of a resource or a disk failed. That is
/// this machine's fault even in a call to another host.
fn is_exhausted(error: &io::Error) -> bool {
    let kind = error.kind();
    let told = matches!(
        kind,
        ErrorKind::StorageFull
            | ErrorKind::QuotaExceeded
            | ErrorKind::ReadOnlyFilesystem
            | ErrorKind::OutOfMemory
            | ErrorKind::StaleNetworkFileHandle
    );
    let errno = error.raw_os_error().map(Errno::from_raw_os_error);
    told || matches!(errno, Some(Errno::MFILE | Errno::NFILE | Errno::IO))
}

#[cfg(test)]
mod fault_tests {
    use std::time::Duration;

    use super::*;

    fn os(errno: Errno) -> io::Error {
        io::Error::from_raw_os_error(errno.raw_os_error())
    }

    #[test]
    fn what_this_machine_lacks_is_its_own_fault_however_deep() {
        for errno in [
            Errno::MFILE,
            Errno::NFILE,
            Errno::NOSPC,
            Errno::DQUOT,
            Errno::IO,
            Errno::ROFS,
        ] {
            assert!(is_machine_fault(&os(errno)), "{errno}");
            let media = MediaError::Io(os(errno));
            assert!(is_machine_fault(&RecordError::Engine(EngineError::Sink(
                media.into()
            ))));
            assert!(is_machine_fault(&RecordError::Media(MediaError::Io(os(
                errno
            )))));
            let fetch = FetchError::Unreachable(FetchCause::Connect {
                address: ([127, 0, 0, 1], 80).into(),
                source: os(errno),
            });
            let gather = GatherError::Fetch {
                index: 0,
                error: fetch,
            };
            assert!(is_machine_fault(&PrepareError::Gather(gather)), "{errno}");
            let error = DecodeError::Io(os(errno));
            assert!(is_machine_fault(&PrepareError::Decode { index: 0, error }));
        }
        let away = BlobError::Unavailable(io::Error::other("away"));
        assert!(is_machine_fault(&PrepareError::Gather(away.into())));
        assert!(is_machine_fault(&StoreError::Unavailable("away".into())));
        assert!(is_machine_fault(&FetchError::Storage(os(Errno::NOENT))));
        assert!(is_machine_fault(&RecordError::Media(MediaError::Io(os(
            Errno::NOENT
        )))));
    }

    #[test]
    fn what_others_do_is_not() {
        let refused = FetchError::Unreachable(FetchCause::Connect {
            address: ([127, 0, 0, 1], 80).into(),
            source: os(Errno::CONNREFUSED),
        });
        assert!(!is_machine_fault(&refused));
        assert!(!is_machine_fault(&BlobError::Exists("key".to_owned())));
        assert!(!is_machine_fault(&StoreError::Corrupt("row".to_owned())));
        let cut = MediaError::Io(ErrorKind::UnexpectedEof.into());
        assert!(!is_machine_fault(&RecordError::Media(cut)));
        assert!(!is_machine_fault(&RecordError::Engine(
            EngineError::Failed("no space left on device".to_owned())
        )));
    }

    #[test]
    fn a_fetch_may_wait_for_its_turn_and_says_for_how_long() {
        let later = |cause| GatherError::Later {
            index: 0,
            error: FetchError::Later(cause),
        };
        let frees_after = Duration::from_secs(90);
        let over_budget = later(FetchCause::Budget { frees_after });
        assert!(is_postponed(&over_budget));
        assert_eq!(over_budget.retry_after(), Some(frees_after));
        assert!(is_postponed(&later(FetchCause::HostBusy(
            "example.org".to_owned()
        ))));
        let lacking = later(FetchCause::Connect {
            address: ([127, 0, 0, 1], 80).into(),
            source: os(Errno::MFILE),
        });
        assert!(!is_postponed(&lacking) && is_machine_fault(&lacking));
    }
}
