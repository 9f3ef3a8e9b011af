//! Judges a file that a client sends before it says what for: as an image or as sound, by its content
//! alone, in the words of references.

use std::fs::File;
use std::io::Read;
use std::path::Path;

use kinora_contract::FileKind;

use crate::error::DecodeError;
use crate::kinds::{self, HEAD_BYTES};
use crate::{image, signatures, sound};

/// A file that can be a reference.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct JudgedFile {
    /// What it can be used for.
    pub kind: FileKind,
    /// Its media type, such as `image/png`.
    pub media_type: &'static str,
}

/// Why a file cannot be a reference.
#[derive(Debug, thiserror::Error)]
pub enum UploadRefusal {
    /// Neither an image nor sound: the sentence for the client.
    #[error("{0}")]
    Neither(String),
    /// An image or sound that cannot be used.
    #[error(transparent)]
    Decode(#[from] DecodeError),
}

/// Decodes the whole file at `path` as what its content says that it is.
///
/// # Errors
/// [`UploadRefusal`].
pub fn judge_upload(path: &Path) -> Result<JudgedFile, UploadRefusal> {
    let media_type = signatures::media_type(path).map_err(DecodeError::Io)?;
    let mut head = Vec::new();
    let file = File::open(path).map_err(DecodeError::Io)?;
    let read = file.take(HEAD_BYTES as u64).read_to_end(&mut head);
    read.map_err(DecodeError::Io)?;
    // The table of kinds first: HEIC has the signature of MP4, and is a picture all the same.
    let kind = match (kinds::kind_of(&head), media_type) {
        (Ok(kind), _) => kind,
        (Err(_), Some(known)) if known.starts_with("image/") => FileKind::Image,
        (Err(_), Some(_)) => FileKind::Audio,
        (Err(message), None) => return Err(UploadRefusal::Neither(message)),
    };
    // The pixels and samples are thrown away. The smallest cover keeps the scaled copy small.
    match kind {
        FileKind::Image => image::image(path, (1, 1)).map(drop)?,
        FileKind::Audio => sound::sound(path).map(drop)?,
    }
    Ok(JudgedFile {
        kind,
        // Nothing without a signature can be decoded.
        media_type: media_type.unwrap_or("application/octet-stream"),
    })
}
