//! Opens the files of a backup or an export, which may come from a stranger: regular files only.

use std::fs::File;
use std::io::{self, ErrorKind};
use std::path::Path;

use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;

/// Opens a regular file, and nothing else: it follows no link, and does not wait for the other end of a FIFO.
///
/// # Errors
/// If the file cannot be opened, or is none.
pub(crate) fn open(path: &Path) -> io::Result<File> {
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let other = || io::Error::new(ErrorKind::InvalidInput, "it is not a regular file");
    let file = rustix::fs::open(path, flags, Mode::empty()).map_err(|error| match error {
        Errno::LOOP => other(),
        error => error.into(),
    })?;
    let file = File::from(file);
    if !file.metadata()?.is_file() {
        return Err(other());
    }
    Ok(file)
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn only_a_regular_file_is_opened() {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        fs::write(path("file"), "x").unwrap();
        assert!(open(&path("file")).is_ok());
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
            let error = open(&path(name)).unwrap_err().to_string();
            assert_eq!(error, "it is not a regular file", "{name}");
        }
        let none = open(&path("none")).unwrap_err();
        assert_eq!(none.kind(), ErrorKind::NotFound);
    }
}
