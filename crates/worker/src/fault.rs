//! Distinguishes faults of this machine from faults of a task: no space, no file descriptors, an
//! unavailable store. A run that meets one returns its task to the queue, and the attempt does not
//! count.

use std::error::Error;
use std::io::{self, ErrorKind};

use kinora_blobs::BlobError;
use kinora_contract::FailureCode;
use kinora_decode::DecodeError;
use kinora_engine::EngineError;
use kinora_fetch::{Cause, FetchError};
use kinora_media::MediaError;
use kinora_store::StoreError;
use rustix::io::Errno;

use crate::error::{GatherError, PrepareError, RecordError};

/// Whether this machine is at fault; checks `error` and its whole chain of causes.
pub(crate) fn is_ours(error: &(dyn Error + 'static)) -> bool {
    let mut next = Some(error);
    while let Some(error) = next {
        if is_ours_alone(error) {
            return true;
        }
        next = error.source();
    }
    false
}

/// Whether the reference is at fault and its task fails; otherwise this service is.
pub(crate) fn is_theirs(error: &GatherError) -> bool {
    let theirs = match error {
        GatherError::Fetch { error, .. } => error.is_of_reference(),
        GatherError::Judge { .. } | GatherError::AudioTooLong(_) => true,
        _ => false,
    };
    theirs && !is_ours(error)
}

/// Whether a fetch only waits for its turn or its project's share, with no fault of this machine.
pub(crate) fn is_postponed(error: &(dyn Error + 'static)) -> bool {
    let mut next = Some(error);
    while let Some(error) = next {
        if let Some(FetchError::Later(cause)) = error.downcast_ref() {
            return matches!(
                cause,
                Cause::Budget { .. } | Cause::HostBusy(_) | Cause::Resolve { .. }
            );
        }
        next = error.source();
    }
    false
}

fn is_ours_alone(error: &(dyn Error + 'static)) -> bool {
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
        Some(RecordError::Engine(EngineError::Told {
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
mod tests {
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
            assert!(is_ours(&os(errno)), "{errno}");
            let media = MediaError::Io(os(errno));
            assert!(is_ours(&RecordError::Engine(EngineError::Sink(
                media.into()
            ))));
            assert!(is_ours(&RecordError::Media(MediaError::Io(os(errno)))));
            let fetch = FetchError::Unreachable(Cause::Connect {
                address: ([127, 0, 0, 1], 80).into(),
                source: os(errno),
            });
            let gather = GatherError::Fetch {
                index: 0,
                error: fetch,
            };
            assert!(is_ours(&PrepareError::Gather(gather)), "{errno}");
            let error = DecodeError::Io(os(errno));
            assert!(is_ours(&PrepareError::Decode { index: 0, error }));
        }
        let away = BlobError::Unavailable(io::Error::other("away"));
        assert!(is_ours(&PrepareError::Gather(away.into())));
        assert!(is_ours(&StoreError::Unavailable("away".into())));
        assert!(is_ours(&FetchError::Storage(os(Errno::NOENT))));
        assert!(is_ours(&RecordError::Media(MediaError::Io(os(
            Errno::NOENT
        )))));
    }

    #[test]
    fn what_others_do_is_not() {
        let refused = FetchError::Unreachable(Cause::Connect {
            address: ([127, 0, 0, 1], 80).into(),
            source: os(Errno::CONNREFUSED),
        });
        assert!(!is_ours(&refused));
        assert!(!is_ours(&BlobError::Exists("key".to_owned())));
        assert!(!is_ours(&StoreError::Corrupt("row".to_owned())));
        let cut = MediaError::Io(ErrorKind::UnexpectedEof.into());
        assert!(!is_ours(&RecordError::Media(cut)));
        assert!(!is_ours(&RecordError::Engine(EngineError::Failed(
            "no space left on device".to_owned()
        ))));
    }

    #[test]
    fn a_fetch_may_wait_for_its_turn_and_says_for_how_long() {
        let later = |cause| GatherError::Later {
            index: 0,
            error: FetchError::Later(cause),
        };
        let frees_after = Duration::from_secs(90);
        let over_budget = later(Cause::Budget { frees_after });
        assert!(is_postponed(&over_budget));
        assert_eq!(over_budget.retry_after(), Some(frees_after));
        assert!(is_postponed(&later(Cause::HostBusy(
            "example.org".to_owned()
        ))));
        let lacking = later(Cause::Connect {
            address: ([127, 0, 0, 1], 80).into(),
            source: os(Errno::MFILE),
        });
        assert!(!is_postponed(&lacking) && is_ours(&lacking));
    }
}
