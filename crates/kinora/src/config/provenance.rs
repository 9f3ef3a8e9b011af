//! The settings of the operator's signature on videos.

use std::path::PathBuf;

use serde::Deserialize;

use super::Config;
#[cfg(feature = "c2pa")]
use super::secret::{secret_file, text_file};
use crate::failure::Failure;

/// A chain of a few certificates has some thousand bytes.
#[cfg(feature = "c2pa")]
const CERTIFICATES_BYTES_MAX: u64 = 64 * 1024;

/// `[provenance]`.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Provenance {
    pub(crate) certificate_file: PathBuf,
    pub(crate) key_file: PathBuf,
}

/// The texts of the two files.
#[cfg(feature = "c2pa")]
pub(crate) struct Pem {
    pub(crate) certificates: String,
    pub(crate) key: String,
}

impl Provenance {
    /// Whether videos are to be signed.
    pub(crate) fn signs(&self) -> bool {
        !self.certificate_file.as_os_str().is_empty()
    }

    /// Reads both files.
    #[cfg(feature = "c2pa")]
    pub(crate) fn pem(&self) -> Result<Pem, Failure> {
        let certificates = &self.certificate_file;
        Ok(Pem {
            certificates: text_file(
                "provenance.certificate_file",
                certificates,
                CERTIFICATES_BYTES_MAX,
            )?,
            key: secret_file("provenance.key_file", &self.key_file)?,
        })
    }
}

impl Config {
    pub(super) fn check_provenance(&self) -> Result<(), Failure> {
        let provenance = &self.provenance;
        if provenance.signs() == provenance.key_file.as_os_str().is_empty() {
            return Err(Failure::new(
                "The settings provenance.certificate_file and provenance.key_file need each other.",
            ));
        }
        Ok(())
    }
}
