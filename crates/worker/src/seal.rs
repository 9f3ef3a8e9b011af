//! The operator's signature on a finished film, between its label and its length and hash.

use std::path::Path;

use kinora_blobs::measure_file;
use kinora_media::{MediaError, Provenance, Sealed, Sealer, Written};

/// Signs the film, if somebody is to. Returns whether the file changed: a film that cannot be signed stays as it is.
pub(crate) fn seal(
    sealer: Option<&dyn Sealer>,
    path: &Path,
    provenance: &Provenance,
) -> Result<bool, MediaError> {
    let Some(sealer) = sealer else {
        return Ok(false);
    };
    match sealer.seal(path, provenance)? {
        Sealed::Done => Ok(true),
        Sealed::Not(why) => {
            tracing::error!(why, "film left without a C2PA manifest");
            Ok(false)
        }
    }
}

/// Length and SHA-256 of a file that did not pass through this process as it is.
pub(crate) fn measured(path: &Path) -> Result<Written, MediaError> {
    let (bytes, sha256) = measure_file(path)?;
    Ok(Written { bytes, sha256 })
}
