//! The contracts of engines as checks for their tests and for `kinora engine check`: engines that make frames here,
//! makers of whole films in `film`. The checks use only the public interface.

#[cfg(feature = "conformance")]
pub mod film;
mod frames;

pub use frames::{
    check, fingerprint, follows, leaves_no_trace, leaves_no_trace_of_a_step, obeys_cancel,
    obeys_preset, outline, repeats, returns_sink_errors,
};

/// Why an engine did not pass a check.
#[derive(Debug, thiserror::Error)]
pub enum CheckError {
    /// A broken promise, in words.
    #[error("{0}")]
    Broken(String),
    /// The engine's jobs cannot show whether it keeps a promise.
    #[error("not tested: {0}")]
    Untested(String),
}

/// The result of a check.
pub type CheckResult = Result<(), CheckError>;

/// The promise in words, if it is broken.
///
/// # Errors
/// [`CheckError::Broken`].
pub fn require(truth: bool, promise: &str) -> CheckResult {
    if truth {
        Ok(())
    } else {
        Err(CheckError::Broken(promise.to_owned()))
    }
}
