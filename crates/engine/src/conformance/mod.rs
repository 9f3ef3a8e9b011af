//! The contracts of engines as checks for their tests and for `kinora engine check`: engines that make frames here,
//! makers of whole films in `film`. The checks use only the public interface.

#[cfg(feature = "conformance")]
pub mod film;
mod frames;

pub use frames::{
    check, fingerprint, leaves_no_trace, leaves_no_trace_of_a_step, obeys_cancel, outline, repeats,
    returns_sink_errors,
};

/// A broken promise, in words.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct Broken(String);

/// What came of a check.
pub type Check = Result<(), Broken>;

/// The promise in words, if it is broken.
///
/// # Errors
/// [`Broken`].
pub fn hold(truth: bool, promise: &str) -> Check {
    if truth {
        Ok(())
    } else {
        Err(Broken(promise.to_owned()))
    }
}
