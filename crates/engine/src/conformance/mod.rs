//! What every engine must keep to, as checks that its tests call: those of an engine of frames
//! here, those of a maker of whole films in [`film`]. They look from outside only.

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
