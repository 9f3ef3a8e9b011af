//! Checks of the disk under the data folder: owner, file system, free space, and whether syncs
//! work. Probe files are removed afterwards.

use std::fs::{self, File};
use std::io::{self, Write};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use kinora_blobs::{BlobError, DiskReserve};
use rustix::fs::statfs;

use super::report::Finding;
use crate::config::Config;
use crate::folder::{self, nearest_existing};
use crate::system::SystemClock;

/// Network file systems, by the magic numbers of Linux's `statfs(2)`: they do not provide the
/// shared memory and locks that SQLite's log needs (<https://sqlite.org/wal.html>).
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
/// File systems whose contents are lost when the machine goes down.
const MEMORY: &[(u64, &str)] = &[(0x0102_1994, "tmpfs"), (0x8584_58f6, "ramfs")];
/// Served by a program that decides on durability.
const FUSE: u64 = 0x6573_5546;

pub(super) fn folder(data: &Path) -> Finding {
    let shown = data.display();
    match fs::metadata(data) {
        Ok(found) if !found.is_dir() => {
            Finding::Bad(format!("{shown} is not a folder; name another with --data"))
        }
        Ok(_) if folder::restoring_folder(data).exists() => Finding::Bad(format!(
            "a restore into {shown} was started but has not ended; run `kinora restore` again"
        )),
        Ok(found) => match folder::foreign_access_mode(data) {
            Ok(None) => Finding::Good(format!("{shown}, closed to other users")),
            Ok(Some(mode)) if folder::has_foreign_files(data).unwrap_or(true) => {
                Finding::Bad(format!(
                    "{shown} is open to other users (mode {mode:o}) and holds things that are not \
                     Kinora's; name a folder of its own with --data, for example {shown}/kinora"
                ))
            }
            Ok(Some(mode)) if is_owner(&found) => Finding::Note(format!(
                "{shown} is open to other users (mode {mode:o}); `kinora serve` will close it to them"
            )),
            Ok(Some(mode)) => Finding::Bad(format!(
                "{shown} is open to other users (mode {mode:o}) and belongs to another: run \
                 `chmod 700 {shown}` as its owner, or name a folder inside it with --data"
            )),
            Err(error) => Finding::Bad(format!("{shown} cannot be examined: {error}")),
        },
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            Finding::Good(format!("the first `kinora serve` will create {shown}"))
        }
        Err(error) => Finding::Bad(format!("{shown} cannot be examined: {error}")),
    }
}

/// Whether this user may change the permissions: only the owner and root may.
fn is_owner(found: &fs::Metadata) -> bool {
    let user = rustix::process::geteuid();
    user.is_root() || user.as_raw() == found.uid()
}

pub(super) fn file_system(folder: &Path) -> Finding {
    let shown = folder.display();
    let found = match statfs(folder) {
        Ok(found) => found,
        Err(error) => {
            return Finding::Note(format!("the file system of {shown} is unknown: {error}"));
        }
    };
    // The kernel's type of this field differs between machines; the numbers fit into 32 bits.
    let magic = found.f_type as u64 & 0xffff_ffff;
    if let Some(name) = named(NETWORK, magic) {
        return Finding::Bad(format!(
            "{shown} lies on {name}, over a network, where SQLite loses data; keep the data \
             folder on a disk of this machine"
        ));
    }
    if let Some(name) = named(MEMORY, magic) {
        return Finding::Note(format!(
            "{shown} is {name}: all tasks and results are lost when this machine stops"
        ));
    }
    if magic == FUSE {
        return Finding::Note(format!(
            "{shown} is served by a FUSE program; make sure that its syncs are durable"
        ));
    }
    Finding::Good(format!("a local one (type {magic:x})"))
}

/// The name of the file system with this number, if it is in the list.
fn named(list: &[(u64, &'static str)], magic: u64) -> Option<&'static str> {
    let entry = list.iter().find(|(number, _)| *number == magic);
    entry.map(|(_, name)| *name)
}

/// Uses the service's own reserve: `bytes_min` is `quota.free_bytes_min`.
pub(super) fn free_space(folder: &Path, bytes_min: u64) -> Finding {
    let Ok(found) = statfs(folder) else {
        return Finding::Note("unknown".to_owned());
    };
    // `f_bavail` and not `f_bfree`: the blocks that are reserved for root are of no use to the
    // service.
    let free = found.f_bavail.saturating_mul(found.f_bsize as u64);
    let shown = format!("{} MiB free in {}", free >> 20, folder.display());
    // Even without a reserve, at least one byte must be free.
    evaluate_free_space(&shown, bytes_min.max(1), |bytes_min| {
        DiskReserve::new(vec![folder.to_owned()], bytes_min, Arc::new(SystemClock)).has_room()
    })
}

/// `keeps` returns whether that many bytes would stay free.
fn evaluate_free_space(shown: &str, bytes_min: u64, keeps: impl Fn(u64) -> bool) -> Finding {
    if !keeps(bytes_min) {
        return Finding::Bad(format!(
            "{shown}, less than quota.free_bytes_min keeps for accepted tasks: submits are refused; \
             make room"
        ));
    }
    if !keeps(bytes_min.saturating_mul(2)) {
        return Finding::Note(format!(
            "{shown}, close to quota.free_bytes_min, below which submits are refused; a minute of \
             1080p takes about 60 MiB"
        ));
    }
    Finding::Good(shown.to_owned())
}

/// Compares the quotas with the disk of the results, if those are in a folder.
pub(super) fn quotas(config: &Config) -> Option<Finding> {
    let disk_bytes = config.results_disk_bytes()?;
    Some(compare_quotas(
        config.project_bytes_max(),
        config.quota.bytes_max,
        disk_bytes,
    ))
}

/// Compares the quotas with the disk, in bytes; a quota of 0 is no bound.
fn compare_quotas(project_bytes: u64, all_bytes: u64, disk_bytes: u64) -> Finding {
    let disk = format!("the {} MiB of the disk of the results", disk_bytes >> 20);
    // 0 is no bound, so it is over every disk.
    let quotas = [project_bytes, all_bytes];
    if quotas
        .iter()
        .all(|bytes| *bytes == 0 || *bytes > disk_bytes)
    {
        return Finding::Note(format!(
            "one project may fill {disk}, and then no project can submit: lower quota.project_bytes_max, or set it to \
             \"auto\""
        ));
    }
    if all_bytes > disk_bytes {
        return Finding::Note(format!("quota.bytes_max exceeds {disk}"));
    }
    let bounds = [project_bytes, all_bytes]
        .into_iter()
        .filter(|bytes| *bytes > 0);
    let project = bounds.min().unwrap_or_default();
    Finding::Good(format!("{} MiB for a project, of {disk}", project >> 20))
}

/// The disks of results and of unfinished files, if they differ from that of the data folder.
pub(super) fn other_disks(config: &Config) -> Vec<(&'static str, Finding)> {
    let bytes_min = config.quota.free_bytes_min;
    let mut found = Vec::new();
    match kinora_blobs::local_root(&config.results_url()) {
        Ok(None) => found.push(("results in s3", bucket(config))),
        Ok(Some(results)) => {
            if let Some(folder) = on_other_disk(config, &results) {
                found.push(("results space", free_space(&folder, bytes_min)));
                found.push(("results syncs", links_and_syncs(&folder)));
            }
        }
        Err(error) => found.push(("results", Finding::Bad(error.to_string()))),
    }
    if let Some(folder) = on_other_disk(config, &config.scratch_folder()) {
        found.push(("scratch space", free_space(&folder, bytes_min)));
    }
    found
}

/// The nearest existing folder, if it is on another disk than the data folder.
fn on_other_disk(config: &Config, folder: &Path) -> Option<PathBuf> {
    let (folder, data) = (nearest_existing(folder)?, nearest_existing(&config.data)?);
    is_another(&folder, &data).then_some(folder)
}

/// Whether the results' bucket stores, returns and removes a small object.
fn bucket(config: &Config) -> Finding {
    let shown = config.results_shown();
    match try_bucket(config) {
        Ok(()) => Finding::Good(format!("{shown}: put, read and removed")),
        Err(error) => Finding::Bad(format!("{shown}: {error}; see docs/s3.md")),
    }
}

fn try_bucket(config: &Config) -> Result<(), BlobError> {
    let blobs = kinora_blobs::open(&config.results_url(), &config.s3())?;
    let mut runtime = tokio::runtime::Builder::new_current_thread();
    let runtime = runtime.enable_all().build()?;
    runtime.block_on(blobs.probe())
}

/// Whether two folders are on different file systems.
pub(super) fn is_another(one: &Path, other: &Path) -> bool {
    let [one, other] =
        [one, other].map(|folder| fs::metadata(folder).map(|found| found.dev()).ok());
    one != other
}

/// Whether a file can be written, synced, linked to a second name and removed, as results are.
pub(super) fn links_and_syncs(folder: &Path) -> Finding {
    // Named after this process, so that two doctors do not disturb each other; hidden, so that
    // nothing takes it for a result.
    let probe = folder.join(format!(".kinora-doctor-{}", std::process::id()));
    let second = probe.with_extension("link");
    let tried = try_links_and_syncs(folder, &probe, &second);
    for path in [&second, &probe] {
        // Absent if the trial failed before creating it.
        let _ = fs::remove_file(path);
    }
    match tried {
        Ok(()) => Finding::Good("written, synced, linked and removed".to_owned()),
        Err(error) => Finding::Bad(format!(
            "{} cannot be used for results: {error}; check its owner and its mount options",
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

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn quotas_beyond_the_disk_are_named() {
        let words = |finding| match finding {
            Finding::Note(words) => words,
            Finding::Good(words) | Finding::Bad(words) => panic!("{words}"),
        };
        for project_bytes in [0, 101] {
            for all_bytes in [0, 101] {
                let found = words(compare_quotas(project_bytes, all_bytes, 100));
                assert!(found.contains("one project may fill"), "{found}");
            }
        }
        assert!(words(compare_quotas(25, 101, 100)).contains("bytes_max exceeds"));
        for (project_bytes, all_bytes) in [(25, 0), (25, 80), (0, 80), (200, 80)] {
            let found = compare_quotas(project_bytes, all_bytes, 100);
            assert!(matches!(found, Finding::Good(_)));
        }
    }

    #[test]
    fn free_space_is_judged_by_the_configured_reserve() {
        let found = |bytes_min| evaluate_free_space("500 MiB free", bytes_min, |most| most <= 500);
        assert!(matches!(found(501), Finding::Bad(_)));
        assert!(matches!(found(251), Finding::Note(_)));
        assert!(matches!(found(250), Finding::Good(_)));
        let folder = tempfile::tempdir().unwrap();
        let found = free_space(folder.path(), 0);
        assert!(matches!(found, Finding::Good(_)), "{found:?}");
    }

    #[test]
    fn an_open_folder_that_holds_other_things_is_bad() {
        let root = tempfile::tempdir().unwrap();
        let data = root.path().join("srv");
        fs::create_dir(&data).unwrap();
        fs::set_permissions(&data, fs::Permissions::from_mode(0o755)).unwrap();
        assert!(matches!(folder(&data), Finding::Note(_)));
        fs::write(data.join("notes"), "").unwrap();
        assert!(matches!(folder(&data), Finding::Bad(_)));
        fs::write(data.join("kinora.db"), "").unwrap();
        assert!(matches!(folder(&data), Finding::Note(_)));
    }
}
