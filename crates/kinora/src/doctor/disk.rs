//! What the disk under the data folder is like: whose it is, of which kind, how full, and whether
//! it keeps what it was told to sync. Probe files are removed again.

use std::fs::{self, File};
use std::io::{self, Write};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use rustix::fs::statfs;

use super::Finding;
use crate::folder;

/// Under this the next few results may not fit.
const FREE_BYTES_WANTED: u64 = 2 << 30;
/// Under this there is hardly room for tasks.
const FREE_BYTES_NEEDED: u64 = 100 << 20;

/// File systems over a network, by the magic numbers of Linux's `statfs(2)`: SQLite's log needs
/// shared memory and locks that they do not keep (<https://sqlite.org/wal.html>).
const NETWORK: &[(u64, &str)] = &[
    (0x6969, "NFS"),
    (0x517b, "SMB"),
    (0xff53_4d42, "CIFS"),
    (0xfe53_4d42, "SMB2"),
    (0x0102_1997, "9P"),
    (0x00c3_6400, "Ceph"),
    (0x0bd0_0bd0, "Lustre"),
    (0x5346_414f, "AFS"),
    (0x4750_4653, "GPFS"),
    (0x1983_0326, "BeeGFS"),
];
/// File systems that forget everything when the machine goes down.
const MEMORY: &[(u64, &str)] = &[(0x0102_1994, "tmpfs"), (0x8584_58f6, "ramfs")];
/// Served by a program: what it keeps depends on that program.
const FUSE: u64 = 0x6573_5546;

/// The folder itself, or the one in which it will be made.
pub(super) fn nearest_existing(data: &Path) -> Option<PathBuf> {
    let absolute = std::path::absolute(data).ok()?;
    let existing = absolute.ancestors().find(|folder| folder.is_dir())?;
    Some(existing.to_owned())
}

pub(super) fn folder(data: &Path) -> Finding {
    let shown = data.display();
    match fs::metadata(data) {
        Ok(found) if !found.is_dir() => {
            Finding::Bad(format!("{shown} is no folder; name another with --data"))
        }
        Ok(_) if folder::restoring(data).exists() => Finding::Bad(format!(
            "a restore into {shown} was begun and has not ended; run `kinora restore` again"
        )),
        Ok(found) => match folder::open_to_others(data) {
            Ok(None) => Finding::Good(format!("{shown}, closed to other users")),
            Ok(Some(mode)) if may_change(&found) => Finding::Note(format!(
                "{shown} is open to other users (mode {mode:o}); `kinora serve` will close it to them"
            )),
            Ok(Some(mode)) => Finding::Bad(format!(
                "{shown} is open to other users (mode {mode:o}) and belongs to another: run \
                 `chmod 700 {shown}` as its owner, or name a folder inside it with --data"
            )),
            Err(error) => Finding::Bad(format!("{shown} cannot be looked at: {error}")),
        },
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            Finding::Good(format!("{shown} will be made by the first `kinora serve`"))
        }
        Err(error) => Finding::Bad(format!("{shown} cannot be looked at: {error}")),
    }
}

/// Only the owner and root may change permissions.
fn may_change(found: &fs::Metadata) -> bool {
    let user = rustix::process::geteuid();
    user.is_root() || user.as_raw() == found.uid()
}

pub(super) fn file_system(folder: &Path) -> Finding {
    let shown = folder.display();
    let found = match statfs(folder) {
        Ok(found) => found,
        Err(error) => return Finding::Note(format!("{shown} does not say what it is: {error}")),
    };
    // The kernel's type of this field differs between machines; the numbers fit into 32 bits.
    let magic = found.f_type as u64 & 0xffff_ffff;
    let named = |list: &[(u64, &'static str)]| {
        let entry = list.iter().find(|(number, _)| *number == magic);
        entry.map(|(_, name)| *name)
    };
    if let Some(name) = named(NETWORK) {
        return Finding::Bad(format!(
            "{shown} lies on {name}, over a network, where SQLite loses data; keep the data \
             folder on a disk of this machine"
        ));
    }
    if let Some(name) = named(MEMORY) {
        return Finding::Note(format!(
            "{shown} is {name}: all tasks and results go when this machine stops"
        ));
    }
    if magic == FUSE {
        return Finding::Note(format!(
            "{shown} is served by a FUSE program; make sure that it keeps what is synced"
        ));
    }
    Finding::Good(format!("a local one (type {magic:x})"))
}

pub(super) fn free_space(folder: &Path) -> Finding {
    let Ok(found) = statfs(folder) else {
        return Finding::Note("unknown".to_owned());
    };
    let free = found.f_bavail * found.f_bsize as u64;
    let shown = format!("{} MiB free in {}", free >> 20, folder.display());
    if free < FREE_BYTES_NEEDED {
        Finding::Bad(format!("{shown}; submits will soon be refused: make room"))
    } else if free < FREE_BYTES_WANTED {
        Finding::Note(format!("{shown}; a minute of 1080p takes about 60 MiB"))
    } else {
        Finding::Good(shown)
    }
}

/// Whether a file can be written, synced, linked to a second name and removed, as results are.
pub(super) fn links_and_syncs(folder: &Path) -> Finding {
    let probe = folder.join(format!(".kinora-doctor-{}", std::process::id()));
    let second = probe.with_extension("link");
    let tried = try_links_and_syncs(folder, &probe, &second);
    for path in [&second, &probe] {
        // Absent when the trial came to nothing before it.
        let _ = fs::remove_file(path);
    }
    match tried {
        Ok(()) => Finding::Good("written, synced, linked and removed".to_owned()),
        Err(error) => Finding::Bad(format!(
            "{} cannot be used for results: {error}; check whose it is and how it is mounted",
            folder.display()
        )),
    }
}

fn try_links_and_syncs(folder: &Path, probe: &Path, second: &Path) -> io::Result<()> {
    let mut file = File::create_new(probe)?;
    file.write_all(b"kinora doctor")?;
    file.sync_all()?;
    fs::hard_link(probe, second)?;
    File::open(folder)?.sync_all()
}
