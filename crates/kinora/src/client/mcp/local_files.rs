//! Files of the user's machine that a model names: references to upload, and the place of a downloaded video. A model can be
//! talked into naming any path, so this file refuses everything but pictures and sounds to read, and `.mp4` files to write.

use std::fs::{self, OpenOptions};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use kinora_contract::limits::{REFERENCE_AUDIO_BYTES_MAX, REFERENCE_IMAGE_BYTES_MAX};

use super::tool_error::ToolError;
use crate::cli::{Reference, reference};
use crate::home_path::expand_home;

/// The address, or the picture or sound of this machine, that the argument `param` names.
pub(super) fn find_reference(param: &str, text: &str) -> Result<Reference, ToolError> {
    let refuse = |why: String| {
        ToolError::new("invalid_reference", format!("{text}: {why}")).with_param(param)
    };
    let found = reference(text).map_err(refuse)?;
    if let Reference::File(path) = &found {
        check_media(path).map_err(refuse)?;
    }
    Ok(found)
}

/// Checks a file before any of it leaves this machine.
fn check_media(path: &Path) -> Result<(), String> {
    let found = fs::metadata(path).map_err(|error| error.to_string())?;
    // Before it is opened: that of a pipe may wait for ever, and a device may have no end.
    if !found.is_file() {
        return Err("this is not a regular file".to_owned());
    }
    let max = REFERENCE_IMAGE_BYTES_MAX.max(REFERENCE_AUDIO_BYTES_MAX);
    if found.len() > max {
        return Err(format!("the file is larger than {max} bytes"));
    }
    match kinora_media_decode::media_type(path) {
        Ok(Some(_)) => Ok(()),
        Ok(None) => Err(
            "this is neither a picture (JPEG, PNG, WebP, GIF) nor a sound (WAV, MP3, AAC, FLAC, Ogg, MP4, WebM)"
                .to_owned(),
        ),
        Err(error) => Err(error.to_string()),
    }
}

/// The place of a video: a file that exists and may be replaced, or a new, empty one that reserves the path until the video is
/// complete.
#[derive(Debug)]
pub(super) struct OutputFile {
    path: PathBuf,
    is_reserved: bool,
}

impl OutputFile {
    /// Reserves `text`; refuses a file that exists, unless it may be overwritten.
    pub(super) fn reserve(text: &str, overwrite: bool) -> Result<Self, ToolError> {
        let refuse = |code: &str, why: &dyn std::fmt::Display| {
            ToolError::new(code, format!("{text}: {why}")).with_param("path")
        };
        let path = expand_home(text).map_err(|failure| refuse("invalid_path", &failure))?;
        let path = std::path::absolute(path).map_err(|error| refuse("invalid_path", &error))?;
        if path
            .extension()
            .is_none_or(|extension| !extension.eq_ignore_ascii_case("mp4"))
        {
            return Err(refuse("invalid_path", &"the path of a video ends in .mp4"));
        }
        match fs::metadata(&path) {
            Ok(found) if !found.is_file() => {
                return Err(refuse("invalid_path", &"this is not a regular file"));
            }
            Ok(_) if overwrite => {
                return Ok(Self {
                    path,
                    is_reserved: false,
                });
            }
            _ => {}
        }
        // Not a check alone: two calls at a time, or another program, could both find no file.
        match OpenOptions::new().write(true).create_new(true).open(&path) {
            Ok(_) => Ok(Self {
                path,
                is_reserved: true,
            }),
            Err(error) if error.kind() == ErrorKind::AlreadyExists => Err(refuse(
                "file_exists",
                &"the file exists; choose another path, or set overwrite to true if the user wants that",
            )),
            Err(error) => Err(refuse("file_unwritable", &error)),
        }
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// The video is complete: the file stays.
    pub(super) fn keep(mut self) {
        self.is_reserved = false;
    }
}

impl Drop for OutputFile {
    fn drop(&mut self) {
        if self.is_reserved {
            // An empty file that remains would be harmless.
            let _ = fs::remove_file(&self.path);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused<T: std::fmt::Debug>(result: Result<T, ToolError>) -> String {
        serde_json::to_string(&result.unwrap_err()).unwrap()
    }

    #[test]
    fn only_pictures_and_sounds_are_read() {
        let folder = tempfile::tempdir().unwrap();
        let file = |name: &str, bytes: &[u8]| {
            let path = folder.path().join(name);
            fs::write(&path, bytes).unwrap();
            path.to_str().unwrap().to_owned()
        };
        let picture = file("a.png", b"\x89PNG\r\n\x1a\n");
        assert_eq!(
            find_reference("first_frame", &picture).unwrap(),
            Reference::File(picture.into())
        );
        let key = file("id_rsa.png", b"-----BEGIN OPENSSH PRIVATE KEY-----");
        assert!(refused(find_reference("first_frame", &key)).contains("neither a picture"));
        let large = file("large.png", b"\x89PNG\r\n\x1a\n");
        let opened = OpenOptions::new().write(true).open(&large).unwrap();
        opened.set_len(REFERENCE_IMAGE_BYTES_MAX + 1).unwrap();
        assert!(refused(find_reference("first_frame", &large)).contains("larger"));
        let named = folder.path().to_str().unwrap();
        assert!(refused(find_reference("first_frame", named)).contains("folder"));
        let device = refused(find_reference("last_frame", "/dev/zero"));
        assert!(device.contains("not a regular file") && device.contains("last_frame"));
    }

    #[test]
    fn a_file_that_exists_is_replaced_only_on_purpose() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.mp4");
        let text = path.to_str().unwrap();
        let place = OutputFile::reserve(text, false).unwrap();
        assert!(refused(OutputFile::reserve(text, false)).contains("file_exists"));
        drop(place);
        assert!(!path.exists(), "a failed download leaves nothing");
        OutputFile::reserve(text, false).unwrap().keep();
        assert!(path.exists());
        drop(OutputFile::reserve(text, true).unwrap());
        assert!(path.exists(), "a failed overwrite leaves the old file");
        for other in ["a.txt", "missing/a.mp4"] {
            let other = folder.path().join(other);
            refused(OutputFile::reserve(other.to_str().unwrap(), true));
        }
        fs::create_dir(folder.path().join("b.mp4")).unwrap();
        let nested = folder.path().join("b.mp4");
        let nested = refused(OutputFile::reserve(nested.to_str().unwrap(), true));
        assert!(nested.contains("not a regular file"), "{nested}");
    }
}
