//! Defects of files that decoders of this crate tell apart.

/// A defect that has a sentence of its own.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Defect {
    #[error("the file ends early")]
    EndsEarly,
    #[error("no sound")]
    NoSound,
}
