//! The high-water mark: a small file beside the database with the number of committed changes. The
//! writer updates it after each commit and before it answers, so that a log that is truncated or
//! replaced later is detected at the next opening. It is never ahead of the synced data.

use std::fs::{self, File, OpenOptions};
use std::io::{self, ErrorKind};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, SyncSender};
use std::time::{Duration, UNIX_EPOCH};

use kinora_contract::UnixMs;

use super::rows::RowChecksum;

const MAGIC: &[u8; 8] = b"KINMARK1";
/// Magic, identity, changes, checksum: 8 bytes each, little-endian.
const SLOT_BYTES: usize = 32;
/// Two slots used in turn, in different pages: a torn write leaves the other intact.
const OFFSETS: [u64; 2] = [0, 4096];

/// Delay between a write and its sync, which includes later writes: after a power loss the mark is
/// a few seconds old.
const SYNC_AFTER: Duration = Duration::from_secs(5);

/// The contents of a mark.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct StoredMark {
    /// Identity of the store that it belongs to.
    pub(super) identity: u64,
    /// Number of committed changes.
    pub(super) changes: u64,
    /// Time of the last write, by the file system's clock.
    pub(super) written_ms: UnixMs,
}

/// The path of a database's mark.
fn path(database: &Path) -> PathBuf {
    database.with_extension("mark")
}

/// The mark of a database; `None` if it is missing or unreadable.
pub(super) fn read(database: &Path) -> io::Result<Option<StoredMark>> {
    let file = match File::open(path(database)) {
        Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => {
            return Ok(None);
        }
        file => file?,
    };
    let written = file.metadata()?.modified()?.duration_since(UNIX_EPOCH);
    let written_ms = u64::try_from(written.unwrap_or_default().as_millis()).unwrap_or(u64::MAX);
    let mut newest: Option<StoredMark> = None;
    // The higher count wins. A crash during a write leaves one slot torn, whose checksum fails, and the
    // other one has the count of the commit before.
    for offset in OFFSETS {
        let mut slot = [0; SLOT_BYTES];
        match file.read_exact_at(&mut slot, offset) {
            Err(error) if error.kind() == ErrorKind::UnexpectedEof => continue,
            read => read?,
        }
        if let Some((identity, changes)) = decode(&slot)
            && newest.is_none_or(|newest| newest.changes < changes)
        {
            newest = Some(StoredMark {
                identity,
                changes,
                written_ms,
            });
        }
    }
    if newest.is_none() {
        tracing::warn!("high-water mark unreadable; missing changes cannot be detected");
    }
    Ok(newest)
}

fn encode(identity: u64, changes: u64) -> [u8; SLOT_BYTES] {
    let mut slot = [0; SLOT_BYTES];
    slot[..8].copy_from_slice(MAGIC);
    slot[8..16].copy_from_slice(&identity.to_le_bytes());
    slot[16..24].copy_from_slice(&changes.to_le_bytes());
    let sum = u64::from(RowChecksum::new().bytes(&slot[..24]).finish());
    slot[24..].copy_from_slice(&sum.to_le_bytes());
    slot
}

fn decode(slot: &[u8; SLOT_BYTES]) -> Option<(u64, u64)> {
    let identity = u64::from_le_bytes(slot[8..16].try_into().ok()?);
    let changes = u64::from_le_bytes(slot[16..24].try_into().ok()?);
    (encode(identity, changes) == *slot).then_some((identity, changes))
}

/// The mark of a served store. If it cannot be written, the store works without it.
#[derive(Debug)]
pub(super) struct HighWaterMark {
    file: Option<Arc<File>>,
    identity: u64,
    /// The number of changes in the file.
    changes: u64,
    next_slot: usize,
    unsynced: Arc<AtomicBool>,
    /// Signals the thread that syncs it; the thread ends with the mark.
    written: SyncSender<()>,
    is_working: bool,
}

impl HighWaterMark {
    /// Begins the mark of the store with this identity, at this number of changes.
    pub(super) fn create(database: &Path, identity: u64, changes: u64) -> Self {
        let file = match create_file(&path(database), &encode(identity, changes)) {
            Ok(file) => Some(Arc::new(file)),
            Err(error) => {
                tracing::warn!(%error, "high-water mark unavailable; a truncated log would go unnoticed");
                None
            }
        };
        let unsynced = Arc::new(AtomicBool::new(false));
        let (written, writes) = mpsc::sync_channel(1);
        if let Some(file) = file.clone() {
            let unsynced = unsynced.clone();
            let thread = std::thread::Builder::new().name("store-mark".to_owned());
            if let Err(error) = thread.spawn(move || keep_synced(&file, &unsynced, &writes)) {
                tracing::warn!(%error, "high-water mark not synced by the service; the system syncs it");
            }
        }
        Self {
            file,
            identity,
            changes,
            next_slot: 0,
            unsynced,
            written,
            is_working: true,
        }
    }

    /// Records the number of committed changes.
    pub(super) fn write(&mut self, changes: u64) {
        let Some(file) = &self.file else { return };
        if changes == self.changes {
            return;
        }
        self.changes = changes;
        let slot = encode(self.identity, changes);
        // Not synced here: the write survives the death of this process, and the page cache shows it
        // to the next one. Only a power loss takes it, and the thread limits that to a few seconds.
        // The mark may lag behind the database; it must not run ahead of it.
        let done = file.write_all_at(&slot, OFFSETS[self.next_slot]);
        self.next_slot = 1 - self.next_slot;
        // Wakes the thread once per sync, not once per commit.
        if !self.unsynced.swap(true, Ordering::AcqRel) {
            // Fails only if no thread syncs it.
            let _ = self.written.try_send(());
        }
        if let Err(error) = &done
            && self.is_working
        {
            tracing::warn!(%error, "high-water mark not written; a truncated log may go unnoticed");
        }
        self.is_working = done.is_ok();
    }
}

/// Syncs a mark some time after each write, until it is closed. The writer never waits for it.
fn keep_synced(file: &File, unsynced: &AtomicBool, writes: &Receiver<()>) {
    while writes.recv().is_ok() {
        let closed = writes.recv_timeout(SYNC_AFTER) == Err(RecvTimeoutError::Disconnected);
        // Cleared before the sync: a write during the sync may miss it, so it must wake this thread
        // again.
        unsynced.store(false, Ordering::Release);
        if let Err(error) = file.sync_data() {
            tracing::debug!(%error, "high-water mark not synced");
        }
        if closed {
            return;
        }
    }
}

/// Creates or reuses the file, with both slots identical and synced.
fn create_file(path: &Path, slot: &[u8]) -> io::Result<File> {
    let file = OpenOptions::new()
        .read(true)
        .write(true)
        .create(true)
        .truncate(false)
        .open(path)?;
    for offset in OFFSETS {
        file.write_all_at(slot, offset)?;
    }
    file.sync_all()?;
    // A new file's name is durable only once its folder is synced (`fsync(2)`).
    let folder = path.parent().filter(|path| !path.as_os_str().is_empty());
    fs::File::open(folder.unwrap_or(Path::new(".")))?.sync_all()?;
    Ok(file)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_whole_slot_counts() {
        let folder = tempfile::tempdir().unwrap();
        let database = folder.path().join("kinora.db");
        assert_eq!(read(&database).unwrap(), None);
        let mut mark = HighWaterMark::create(&database, 7, 3);
        for changes in 4..=9 {
            mark.write(changes);
            let noted = read(&database).unwrap().unwrap();
            assert_eq!((noted.identity, noted.changes), (7, changes));
            assert!(noted.written_ms > 0);
        }
        // Any flipped bit of a slot leaves the other one, and of both none.
        let path = path(&database);
        let good = fs::read(&path).unwrap();
        let newest = if mark.next_slot == 1 { 0 } else { 4096 };
        for bit in 0..SLOT_BYTES * 8 {
            let mut torn = good.clone();
            torn[newest + bit / 8] ^= 1 << (bit % 8);
            fs::write(&path, &torn).unwrap();
            assert_eq!(read(&database).unwrap().unwrap().changes, 8, "bit {bit}");
            torn[4096 - newest + bit / 8] ^= 1 << (bit % 8);
            fs::write(&path, &torn).unwrap();
            assert_eq!(read(&database).unwrap(), None, "bit {bit}");
        }
        fs::write(&path, "").unwrap();
        assert_eq!(read(&database).unwrap(), None);
    }
}
