//! Unpacks a ZIP archive that was downloaded. Nothing of it is trusted: no entry leaves the folder, links lead to files within it,
//! and number and size of the files have limits.

use std::fs::{File, OpenOptions};
use std::io::{self, Read};
use std::os::unix::fs::{OpenOptionsExt, symlink};
use std::path::{Component, Path, PathBuf};

// Chooses the inflater of zip.
use flate2 as _;
use zip::ZipArchive;
use zip::read::ZipFile;
use zip::result::ZipError;

/// Maximum number of entries.
const ENTRIES_MAX: usize = 2000;
/// Maximum size of all files together, in bytes.
const BYTES_MAX: u64 = 8_000_000_000;
/// Maximum size of all files together, in multiples of the archive's.
const RATIO_MAX: u64 = 20;
/// Maximum length of a link's target.
const TARGET_BYTES_MAX: u64 = 1024;

/// Why an archive cannot be unpacked.
#[derive(Debug, thiserror::Error)]
pub(super) enum ArchiveError {
    /// It is no archive, or damaged.
    #[error("it is damaged: {0}")]
    Damaged(#[from] ZipError),
    /// An entry's name or a link's target leads out of the folder.
    #[error("its entry {0:?} leads out of the folder")]
    Path(String),
    /// Too many files, or too large ones.
    #[error("it is larger than allowed: {0}")]
    Size(String),
    /// A file cannot be written.
    #[error("{}: {source}", .path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// The cause.
        source: io::Error,
    },
}

/// Unpacks the file `archive` into the empty folder `folder`.
pub(super) fn unpack(archive: &Path, folder: &Path) -> Result<(), ArchiveError> {
    let failed = file_error(archive);
    let file = File::open(archive).map_err(&failed)?;
    let length = file.metadata().map_err(&failed)?.len();
    let mut zip = ZipArchive::new(file)?;
    if zip.len() > ENTRIES_MAX {
        return Err(ArchiveError::Size(format!("{} entries", zip.len())));
    }
    // Entries that share their bytes can be many times as large as the archive.
    if zip.has_overlapping_files()? {
        return Err(ArchiveError::Size("its entries overlap".to_owned()));
    }
    let mut left = BYTES_MAX.min(length.saturating_mul(RATIO_MAX));
    for number in 0..zip.len() {
        let mut entry = zip.by_index(number)?;
        let name = String::from_utf8_lossy(entry.name_raw()).into_owned();
        let path = entry.enclosed_name().filter(|path| is_plain(path));
        let path = path.ok_or_else(|| ArchiveError::Path(name.clone()))?;
        left = unpack_entry(&mut entry, &folder.join(path), &name, left)?;
    }
    Ok(())
}

/// Unpacks one entry to `path`; returns how many of the bytes that are `left` it leaves.
fn unpack_entry<R: Read>(
    entry: &mut ZipFile<'_, R>,
    path: &Path,
    name: &str,
    left: u64,
) -> Result<u64, ArchiveError> {
    let failed = file_error(path);
    if entry.is_dir() {
        std::fs::create_dir_all(path).map_err(&failed)?;
        return Ok(left);
    }
    if let Some(parent) = path.parent() {
        std::fs::create_dir_all(parent).map_err(&failed)?;
    }
    if entry.is_symlink() {
        let mut target = String::new();
        let mut bytes = entry.take(TARGET_BYTES_MAX);
        bytes.read_to_string(&mut target).map_err(&failed)?;
        if !is_plain(Path::new(&target)) {
            return Err(ArchiveError::Path(format!("{name} -> {target}")));
        }
        symlink(&target, path).map_err(&failed)?;
        return Ok(left);
    }
    let is_program = entry.unix_mode().is_some_and(|mode| mode & 0o111 != 0);
    // A new file: one of the same name, such as a link, is never written through.
    let mut file = OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(if is_program { 0o755 } else { 0o644 })
        .open(path)
        .map_err(&failed)?;
    // The sizes that an archive declares may be lies; one byte more shows it.
    let written = io::copy(&mut entry.take(left.saturating_add(1)), &mut file).map_err(&failed)?;
    let left = left
        .checked_sub(written)
        .ok_or_else(|| ArchiveError::Size("the bytes of its files".to_owned()))?;
    file.sync_all().map_err(&failed)?;
    Ok(left)
}

fn file_error(path: &Path) -> impl Fn(io::Error) -> ArchiveError {
    |source| ArchiveError::File {
        path: path.to_owned(),
        source,
    }
}

/// Whether a path leads down only.
fn is_plain(path: &Path) -> bool {
    let mut parts = path.components();
    path.components().next().is_some() && parts.all(|part| matches!(part, Component::Normal(_)))
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::os::unix::fs::PermissionsExt;

    use tempfile::TempDir;
    use zip::ZipWriter;
    use zip::write::SimpleFileOptions;

    use super::*;

    type Writer = ZipWriter<File>;

    fn unpacked(write: impl FnOnce(&mut Writer)) -> (TempDir, Result<(), ArchiveError>) {
        let folder = tempfile::tempdir().unwrap();
        let archive = folder.path().join("a.zip");
        let mut writer = ZipWriter::new(File::create(&archive).unwrap());
        write(&mut writer);
        writer.finish().unwrap();
        let into = folder.path().join("into");
        std::fs::create_dir(&into).unwrap();
        let result = unpack(&archive, &into);
        (folder, result)
    }

    fn add(writer: &mut Writer, name: &str, mode: u32, bytes: &[u8]) {
        let options = SimpleFileOptions::default().unix_permissions(mode);
        writer.start_file(name, options).unwrap();
        writer.write_all(bytes).unwrap();
    }

    fn link(writer: &mut Writer, name: &str, target: &str) {
        let options = SimpleFileOptions::default();
        writer.add_symlink(name, target, options).unwrap();
    }

    #[test]
    fn files_links_and_the_right_to_execute_are_unpacked() {
        let (folder, result) = unpacked(|writer| {
            add(writer, "bin/sd-server", 0o755, b"program");
            add(writer, "bin/libggml.so.1", 0o644, b"library");
            link(writer, "bin/libggml.so", "libggml.so.1");
        });
        result.unwrap();
        let into = folder.path().join("into/bin");
        let mode = |name| {
            std::fs::metadata(into.join(name))
                .unwrap()
                .permissions()
                .mode()
                & 0o111
        };
        assert_eq!((mode("sd-server") != 0, mode("libggml.so.1")), (true, 0));
        assert_eq!(std::fs::read(into.join("libggml.so")).unwrap(), b"library");
    }

    #[test]
    fn nothing_is_written_outside_of_the_folder() {
        for name in ["../outside", "a/../../outside", "/outside", "a/../outside"] {
            let (folder, result) = unpacked(|writer| add(writer, name, 0o644, b"x"));
            // The reader of archives turns some names into safe ones.
            let is_inside = folder.path().join("into/outside").exists();
            let is_refused = matches!(result, Err(ArchiveError::Path(_)));
            assert_ne!(is_refused, is_inside, "{name}: {result:?}");
            assert!(!folder.path().join("outside").exists(), "{name}");
            assert!(!Path::new("/outside").exists());
        }
        for target in ["../..", "/etc", "a/../../b", ""] {
            let (_folder, result) = unpacked(|writer| link(writer, "out", target));
            assert!(
                matches!(result, Err(ArchiveError::Path(_))),
                "{target}: {result:?}"
            );
        }
        // A link that is replaced by a file, and one that leads to a folder within.
        let (folder, result) = unpacked(|writer| {
            link(writer, "dir", "real");
            add(writer, "real/a", 0o644, b"x");
            add(writer, "dir/b", 0o644, b"y");
        });
        assert!(
            result.is_ok() || matches!(result, Err(ArchiveError::File { .. })),
            "{result:?}"
        );
        assert!(!folder.path().join("b").exists());
    }

    #[test]
    fn too_much_is_refused() {
        let (_folder, result) = unpacked(|writer| add(writer, "zeros", 0o644, &[0; 4_000_000]));
        assert!(matches!(result, Err(ArchiveError::Size(_))), "{result:?}");
        let (_folder, result) = unpacked(|writer| {
            for number in 0..=ENTRIES_MAX {
                add(writer, &number.to_string(), 0o644, b"");
            }
        });
        assert!(matches!(result, Err(ArchiveError::Size(_))), "{result:?}");
    }

    #[test]
    fn a_damaged_archive_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let archive = folder.path().join("a.zip");
        let mut writer = ZipWriter::new(File::create(&archive).unwrap());
        let noise: Vec<u8> = (0..50_000_u32)
            .map(|n| (n.wrapping_mul(2_654_435_761) >> 13) as u8)
            .collect();
        add(&mut writer, "a", 0o644, &noise);
        writer.finish().unwrap();
        let whole = std::fs::read(&archive).unwrap();
        let mut flipped = whole.clone();
        flipped[1000] ^= 1;
        for (number, bytes) in [&whole[..whole.len() / 2], &flipped, b"<html>", b""]
            .into_iter()
            .enumerate()
        {
            std::fs::write(&archive, bytes).unwrap();
            let into = folder.path().join(number.to_string());
            std::fs::create_dir(&into).unwrap();
            assert!(unpack(&archive, &into).is_err(), "{number}");
        }
    }
}
