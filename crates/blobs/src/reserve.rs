//! A reserve of free disk space: below it the service accepts nothing new, so that accepted work
//! can still be published. Checks the file system at most twice a second and caches the answer in
//! between.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use kinora_contract::{Clock, Stopwatch};
use rustix::fs::statvfs;

/// How long an answer is cached.
const CACHE_AGE_MAX: Duration = Duration::from_millis(500);
/// The reserve is at most 1/PART of the file system, so that small ones stay usable.
const RESERVE_DIVISOR: u64 = 50;

/// Watches the file systems of some folders; clones share the last answer.
#[derive(Clone, Debug, Default)]
pub struct DiskReserve(Option<Arc<WatchedFolders>>);

#[derive(Debug)]
struct WatchedFolders {
    folders: Vec<PathBuf>,
    bytes_min: u64,
    clock: Arc<dyn Clock>,
    seen: Mutex<SpaceReading>,
}

/// The last answer and its age.
#[derive(Debug)]
struct SpaceReading {
    /// `None` before the first check.
    checked_at: Option<Stopwatch>,
    has_room: bool,
    is_checking: bool,
}

impl DiskReserve {
    /// A reserve of `bytes_min` bytes, or of 2 % if that is less, on the file system of each of
    /// `folders`. 0: none. `clock` measures the age of an answer.
    pub fn new(folders: Vec<PathBuf>, bytes_min: u64, clock: Arc<dyn Clock>) -> Self {
        let watched = WatchedFolders {
            folders,
            bytes_min,
            clock,
            seen: Mutex::new(SpaceReading {
                checked_at: None,
                has_room: true,
                is_checking: false,
            }),
        };
        Self((bytes_min > 0).then(|| Arc::new(watched)))
    }

    /// A reserve that always reports no room, for tests.
    #[cfg(feature = "faulty")]
    #[must_use]
    pub fn without_room() -> Self {
        let reserve = Self::new(
            Vec::new(),
            1,
            Arc::new(kinora_contract::ManualClock::default()),
        );
        if let Some(watched) = &reserve.0 {
            // Looks like a check in progress, so no caller checks again.
            *watched.last_reading() = SpaceReading {
                checked_at: None,
                has_room: false,
                is_checking: true,
            };
        }
        reserve
    }

    /// Whether there is space beyond the reserve. If a file system does not report its space,
    /// assumes that there is some: a write will fail if not.
    pub fn has_room(&self) -> bool {
        self.0.as_ref().is_none_or(|watched| watched.has_room())
    }
}

impl WatchedFolders {
    fn has_room(&self) -> bool {
        let mut seen = self.last_reading();
        // One caller checks at a time: on a file system that hangs, the others do not wait.
        if seen.is_checking
            || seen
                .checked_at
                .as_ref()
                .is_some_and(|at| at.elapsed() < CACHE_AGE_MAX)
        {
            return seen.has_room;
        }
        // `statvfs` blocks for as long as the file system does (NFS without its server). Mark
        // the check as begun and release the lock, so only this caller can hang.
        seen.is_checking = true;
        drop(seen);
        let room = self.folders.iter().all(|folder| {
            let Ok(found) = statvfs(folder) else {
                return true;
            };
            let size = found.f_frsize.max(1);
            // f_bavail, not f_bfree: the blocks that only root may use do not help the service.
            let reserve =
                (found.f_blocks.saturating_mul(size) / RESERVE_DIVISOR).min(self.bytes_min);
            found.f_bavail.saturating_mul(size) >= reserve
        });
        let mut seen = self.last_reading();
        let had = seen.has_room;
        *seen = SpaceReading {
            checked_at: Some(Stopwatch::start(&self.clock)),
            has_room: room,
            is_checking: false,
        };
        drop(seen);
        // Log the change, not each refused request.
        if room != had {
            log_turn(room);
        }
        room
    }

    fn last_reading(&self) -> MutexGuard<'_, SpaceReading> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn log_turn(room: bool) {
    if room {
        tracing::info!("disk space recovered; accepting submits and references again");
    } else {
        tracing::error!("disk space below the reserve; refusing submits and references");
    }
}

#[cfg(test)]
mod tests {
    use kinora_contract::ManualClock;

    use super::*;

    fn clock() -> Arc<dyn Clock> {
        Arc::new(ManualClock::default())
    }

    #[test]
    fn what_is_free_or_cannot_be_told_is_room() {
        let folder = tempfile::tempdir().unwrap();
        let folders = vec![folder.path().to_owned()];
        assert!(DiskReserve::default().has_room());
        assert!(DiskReserve::new(folders, 1, clock()).has_room());
        assert!(DiskReserve::new(vec![folder.path().join("absent")], u64::MAX, clock()).has_room());
    }
}
