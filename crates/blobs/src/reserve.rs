//! A reserve of free disk space: below it nothing new is taken in, so that what was taken in can still be
//! published. The file system is asked twice a second at most; in between the last answer stands.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use rustix::fs::statvfs;

/// How long an answer stands.
const FRESH: Duration = Duration::from_millis(500);
/// The reserve is at most this part of the file system: small ones must be usable as well.
const PART: u64 = 50;

/// Watches the file systems of some folders; clones share what was seen last.
#[derive(Clone, Debug, Default)]
pub struct Reserve(Option<Arc<Watched>>);

#[derive(Debug)]
struct Watched {
    folders: Vec<PathBuf>,
    bytes_min: u64,
    seen: Mutex<Option<(Instant, bool)>>,
}

impl Reserve {
    /// A reserve of `bytes_min` bytes, or of 2 % where that is less, on the file system of each of
    /// `folders`. 0: none.
    pub fn new(folders: Vec<PathBuf>, bytes_min: u64) -> Self {
        let watched = Watched {
            folders,
            bytes_min,
            seen: Mutex::default(),
        };
        Self((bytes_min > 0).then(|| Arc::new(watched)))
    }

    /// Whether there is room besides the reserve. A file system that does not say so is taken to have
    /// some: writing to it will tell.
    pub fn has_room(&self) -> bool {
        self.0.as_ref().is_none_or(|watched| watched.has_room())
    }
}

impl Watched {
    fn has_room(&self) -> bool {
        let now = Instant::now();
        let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        let had = match *seen {
            Some((at, room)) if now.duration_since(at) < FRESH => return room,
            Some((_, room)) => room,
            None => true,
        };
        // Noted before the look: on a file system that hangs nobody else waits for the answer.
        *seen = Some((now, had));
        drop(seen);
        let room = self.folders.iter().all(|folder| {
            let Ok(found) = statvfs(folder) else {
                return true;
            };
            let size = found.f_frsize.max(1);
            let reserve = (found.f_blocks.saturating_mul(size) / PART).min(self.bytes_min);
            found.f_bavail.saturating_mul(size) >= reserve
        });
        let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        *seen = Some((now, room));
        if room != had {
            log_turn(room);
        }
        room
    }
}

fn log_turn(room: bool) {
    if room {
        tracing::info!("disk space recovered; submits and references are taken again");
    } else {
        tracing::error!("disk space below the reserve; submits and references are refused");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_free_or_cannot_be_told_is_room() {
        let folder = tempfile::tempdir().unwrap();
        let folders = vec![folder.path().to_owned()];
        assert!(Reserve::default().has_room());
        assert!(Reserve::new(folders, 1).has_room());
        assert!(Reserve::new(vec![folder.path().join("absent")], u64::MAX).has_room());
    }
}
