//! The file that describes a folder created by `kinora backup` or `kinora export`, written last: a
//! folder without it is incomplete. Such a folder may come from a stranger, so only regular files
//! are opened.

use std::fs::File;
use std::io::{self, ErrorKind, Write};
use std::path::Path;

use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use crate::failure::Failure;

/// Name and format of a manifest.
pub(crate) struct ManifestFile {
    pub(crate) name: &'static str,
    /// The version of its format. A program reads its own version and older ones.
    pub(crate) format: u32,
    /// Description of a complete folder, as in "backup that `kinora backup` has finished".
    pub(crate) whole: &'static str,
    /// The remedy for a newer format.
    pub(crate) newer: &'static str,
}

impl ManifestFile {
    /// Writes the manifest into `folder`, synced.
    pub(crate) fn write(&self, manifest: &impl Serialize, folder: &Path) -> Result<(), Failure> {
        let path = folder.join(self.name);
        write_json(&path, manifest).map_err(|error| Failure::at(&path, "cannot be written", error))
    }

    /// Reads the manifest in `folder`.
    pub(crate) fn read<T: DeserializeOwned>(&self, folder: &Path) -> Result<T, Failure> {
        let path = folder.join(self.name);
        let shown = path.display();
        let text = open_plain(&path).and_then(io::read_to_string);
        let text = text.map_err(|error| {
            let folder = folder.display();
            let text = format!("{folder} is not a {}: {}", self.whole, self.name);
            Failure::because(text, error)
        })?;
        let damaged = |error| Failure::because(format!("{shown} is damaged"), error);
        // The format number is read from plain JSON, before the fields: a newer format need not
        // parse as this one, and its number is the useful message.
        let value: Value = serde_json::from_str(&text).map_err(damaged)?;
        let format = value["format"].as_u64().unwrap_or_default();
        if format > u64::from(self.format) {
            return Err(Failure::new(format!(
                "{shown} has format {format}, but this program supports {}: {}",
                self.format, self.newer
            )));
        }
        serde_json::from_value(value).map_err(damaged)
    }
}

fn write_json(path: &Path, manifest: &impl Serialize) -> io::Result<()> {
    let mut file = File::create(path)?;
    serde_json::to_writer_pretty(&mut file, manifest)?;
    file.write_all(b"\n")?;
    file.sync_all()
}

/// A manifest for programs, with its folder and notes for the operator.
pub(crate) fn report_json(manifest: &impl Serialize, folder: &Path, notes: &[String]) -> Value {
    let mut value = json!(manifest);
    if let Some(fields) = value.as_object_mut() {
        fields.insert("path".to_owned(), json!(folder));
        fields.insert("notes".to_owned(), json!(notes));
    }
    value
}

/// Opens a regular file, and nothing else: it follows no link, and does not wait for the other end of a FIFO.
///
/// # Errors
/// If the file cannot be opened, or is not a regular file.
pub(crate) fn open_plain(path: &Path) -> io::Result<File> {
    // NONBLOCK, since opening a FIFO otherwise waits for a writer, for ever. NOFOLLOW, since a
    // restore often runs as root: a link in the backup could name any private file of this machine,
    // and the restore would copy it into the results.
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let file = rustix::fs::open(path, flags, Mode::empty()).map_err(|error| match error {
        Errno::LOOP => not_regular(),
        error => error.into(),
    })?;
    let file = File::from(file);
    // Checked on the open descriptor. Looking at the path first would leave a moment in which the
    // file can be exchanged.
    if !file.metadata()?.is_file() {
        return Err(not_regular());
    }
    Ok(file)
}

fn not_regular() -> io::Error {
    io::Error::new(ErrorKind::InvalidInput, "it is not a regular file")
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    const FILE: ManifestFile = ManifestFile {
        name: "list.json",
        format: 1,
        whole: "list that anybody has finished",
        newer: "take a newer program",
    };

    #[test]
    fn it_is_read_as_it_was_written_and_a_newer_or_damaged_one_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let read = || {
            let read = FILE.read::<Value>(folder.path());
            read.map_err(|failure| failure.to_string())
        };
        assert!(
            read()
                .unwrap_err()
                .contains("is not a list that anybody has finished: list.json")
        );
        let manifest = json!({"format": 1, "tasks": 3});
        FILE.write(&manifest, folder.path()).unwrap();
        assert_eq!(read().unwrap(), manifest);
        let path = folder.path().join(FILE.name);
        let text = fs::read_to_string(&path).unwrap();
        fs::write(&path, text.replace("\"format\": 1", "\"format\": 2")).unwrap();
        let newer = read().unwrap_err();
        assert!(newer.contains("has format 2, but this program supports 1: take a newer program"));
        fs::write(&path, &text[..text.len() / 2]).unwrap();
        assert!(read().unwrap_err().contains("damaged"));
    }
}

#[cfg(test)]
mod plain_file_tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn only_a_regular_file_is_opened() {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        fs::write(path("file"), "x").unwrap();
        assert!(open_plain(&path("file")).is_ok());
        symlink(path("file"), path("link")).unwrap();
        rustix::fs::mknodat(
            rustix::fs::CWD,
            path("fifo"),
            rustix::fs::FileType::Fifo,
            Mode::RUSR | Mode::WUSR,
            0,
        )
        .unwrap();
        fs::create_dir(path("folder")).unwrap();
        for name in ["link", "fifo", "folder"] {
            let error = open_plain(&path(name)).unwrap_err().to_string();
            assert_eq!(error, "it is not a regular file", "{name}");
        }
        let none = open_plain(&path("none")).unwrap_err();
        assert_eq!(none.kind(), ErrorKind::NotFound);
    }
}
