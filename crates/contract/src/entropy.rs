//! Randomness as a value: code that needs random bytes takes an [`EntropySource`]. The binary holds the
//! machine's generator; tests use a seeded one.

/// Gives unpredictable bytes.
pub trait EntropySource: Send + Sync + std::fmt::Debug {
    /// Fills `bytes`.
    ///
    /// # Errors
    /// [`NoEntropy`] if the source fails; then `bytes` must not be used.
    fn fill(&self, bytes: &mut [u8]) -> Result<(), NoEntropy>;
}

/// The source of randomness failed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("no random bytes: {0}")]
pub struct NoEntropy(pub String);
