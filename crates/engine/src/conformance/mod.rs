//! The contracts of engines as checks for their tests: engines that make frames here, makers of
//! whole films in [`film`]. The checks use only the public interface.

pub mod film;
mod frames;

pub use frames::{check, obeys_cancel, outline, repeats, returns_sink_errors};

/// A broken promise, in words.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct Broken(String);

type Check = Result<(), Broken>;

fn hold(truth: bool, promise: &str) -> Check {
    if truth {
        Ok(())
    } else {
        Err(Broken(promise.to_owned()))
    }
}
