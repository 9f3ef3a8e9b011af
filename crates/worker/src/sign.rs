//! The operator's signature on a finished film, between its label and its length and hash. A film that cannot be signed
//! is never published.

use std::error::Error;
use std::fmt;
use std::fs;
use std::path::Path;

use kinora_blobs::measure_file;
use kinora_media::{MediaError, ProbeInfo, Provenance, WrittenFile, probe};

use crate::error::RecordError;

/// Signs finished films. Shared by all threads of a process.
pub trait FilmSigner: Send + Sync + fmt::Debug {
    /// Writes the complete MP4 at `input`, signed, to the new file `output`. Gives up soon after `go_on` returns false.
    ///
    /// # Errors
    /// Whatever keeps it from signing.
    fn sign(
        &self,
        input: &Path,
        output: &Path,
        provenance: &Provenance,
        go_on: &mut dyn FnMut() -> bool,
    ) -> Result<(), Box<dyn Error + Send + Sync>>;
}

/// Replaces the film by a signed one, if films are signed. Returns whether it did.
pub(crate) fn sign(
    signer: Option<&dyn FilmSigner>,
    film: &Path,
    provenance: &Provenance,
    go_on: &mut dyn FnMut() -> bool,
) -> Result<bool, RecordError> {
    let Some(signer) = signer else {
        return Ok(false);
    };
    let signed = film.with_extension("signed.mp4");
    let outcome = signer
        .sign(film, &signed, provenance, go_on)
        .and_then(|()| Ok(check(film, &signed)?))
        .map_err(RecordError::Sign)
        .and_then(|()| Ok(replace(film, &signed).map_err(MediaError::Io)?));
    if outcome.is_err() {
        // It may not exist; the next start removes what is left.
        let _ = fs::remove_file(&signed);
    }
    outcome.map(|()| true)
}

/// Whether `signed` is a film like `unsigned`. A signer that fails may still exit as if it had not.
fn check(unsigned: &Path, signed: &Path) -> Result<(), String> {
    // Opening a pipe or a device could block.
    if !fs::symlink_metadata(signed).is_ok_and(|found| found.is_file()) {
        return Err("the signer wrote no file".to_owned());
    }
    let read = |path: &Path| probe(path).map_err(|error| error.to_string());
    let before = read(unsigned)?;
    let after = read(signed).map_err(|why| format!("the signed file is no MP4: {why}"))?;
    let file_bytes = before.file_bytes;
    if (ProbeInfo {
        file_bytes,
        ..after
    }) != before
    {
        return Err(format!(
            "the signed file is another video: {after:?} instead of {before:?}"
        ));
    }
    Ok(())
}

/// Moves the signed film, with the mode of the unsigned one, to its place.
fn replace(unsigned: &Path, signed: &Path) -> std::io::Result<()> {
    fs::set_permissions(signed, fs::metadata(unsigned)?.permissions())?;
    fs::rename(signed, unsigned)
}

/// Length and SHA-256 of a file that did not pass through this process as it is.
pub(crate) fn measured(path: &Path) -> Result<WrittenFile, MediaError> {
    let (bytes, sha256) = measure_file(path)?;
    Ok(WrittenFile { bytes, sha256 })
}
