//! Free disk space. Downloads that run at the same time share it, so each claims what it still has
//! to write.

use std::collections::BTreeMap;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use rustix::fs::statvfs;

use crate::error::DownloadError;
use crate::partial::partial_bytes;
use crate::source::DownloadSource;

/// Bytes that running downloads will still write, by file system.
#[derive(Clone, Debug, Default)]
pub(crate) struct ClaimedSpace(Arc<Mutex<BTreeMap<u64, u64>>>);

/// Space that one download will still need; returned when dropped.
#[derive(Debug)]
pub(crate) struct SpaceClaim {
    room: ClaimedSpace,
    device: u64,
    bytes: u64,
}

/// Checks before the first download that the disks can hold all files whose length is known.
///
/// # Errors
/// [`DownloadError::Room`], or [`DownloadError::File`] if a folder does not exist.
pub fn check_room(sources: &[DownloadSource]) -> Result<(), DownloadError> {
    let (room, mut claims) = (ClaimedSpace::default(), Vec::new());
    for source in sources {
        let held = partial_bytes(&source.path).unwrap_or(0);
        let missing = source.bytes.unwrap_or(0).saturating_sub(held);
        claims.push(room.claim(source.folder(), missing)?);
    }
    Ok(())
}

impl ClaimedSpace {
    /// Claims space for `bytes` more bytes in `folder`.
    pub(crate) fn claim(&self, folder: &Path, bytes: u64) -> Result<SpaceClaim, DownloadError> {
        let unknown = |source: io::Error| DownloadError::File {
            path: folder.to_owned(),
            source,
        };
        let device = std::fs::metadata(folder).map_err(unknown)?.dev();
        let found = statvfs(folder).map_err(|error| unknown(error.into()))?;
        let free = found.f_bavail.saturating_mul(found.f_frsize.max(1));
        self.claim_of(folder, device, free, bytes)
    }

    fn claim_of(
        &self,
        folder: &Path,
        device: u64,
        free: u64,
        bytes: u64,
    ) -> Result<SpaceClaim, DownloadError> {
        let mut claimed = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let all = claimed.entry(device).or_default();
        let needed = all.saturating_add(bytes);
        if needed > free {
            return Err(DownloadError::Room {
                folder: folder.to_owned(),
                needed,
                free,
            });
        }
        *all = needed;
        Ok(SpaceClaim {
            room: self.clone(),
            device,
            bytes,
        })
    }
}

impl SpaceClaim {
    /// Gives up the claim to `bytes`, which are on disk now.
    pub(crate) fn used(&mut self, bytes: u64) {
        let bytes = bytes.min(self.bytes);
        self.bytes -= bytes;
        let mut claimed = self.room.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(all) = claimed.get_mut(&self.device) {
            *all = all.saturating_sub(bytes);
        }
    }
}

impl Drop for SpaceClaim {
    fn drop(&mut self) {
        self.used(self.bytes);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn downloads_share_the_space_of_a_file_system() {
        let room = ClaimedSpace::default();
        let claim = |device, free, bytes| room.claim_of(Path::new("/a"), device, free, bytes);
        let mut first = claim(1, 100, 60).unwrap();
        let refused = claim(1, 100, 41).unwrap_err();
        assert!(
            matches!(
                refused,
                DownloadError::Room {
                    needed: 101,
                    free: 100,
                    ..
                }
            ),
            "{refused}"
        );
        // Another file system.
        let _other = claim(2, 100, 100).unwrap();
        let second = claim(1, 100, 40).unwrap();
        // What is written is neither free nor claimed.
        first.used(50);
        claim(1, 50, 1).unwrap_err();
        drop(second);
        let _third = claim(1, 50, 40).unwrap();
        drop(first);
        claim(1, 50, 10).unwrap();
    }

    #[test]
    fn all_files_together_must_fit() {
        let folder = tempfile::tempdir().unwrap();
        let source = |name: &str, bytes| DownloadSource {
            url: "https://a/b".parse().unwrap(),
            path: folder.path().join(name),
            bytes,
            sha256: None,
        };
        let half = Some(u64::MAX / 2 + 1);
        check_room(&[source("a", Some(1)), source("b", None)]).unwrap();
        let refused = check_room(&[source("a", half), source("b", half)]).unwrap_err();
        assert!(matches!(refused, DownloadError::Room { .. }), "{refused}");
    }

    #[test]
    fn a_folder_has_the_space_of_its_file_system() {
        let folder = tempfile::tempdir().unwrap();
        let room = ClaimedSpace::default();
        room.claim(folder.path(), 1).unwrap();
        let refused = room.claim(folder.path(), u64::MAX).unwrap_err();
        assert!(matches!(refused, DownloadError::Room { .. }), "{refused}");
        assert!(room.claim(&folder.path().join("absent"), 1).is_err());
    }
}
