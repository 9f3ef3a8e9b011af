//! Randomness as a value: everything that needs random bytes is handed an [`Entropy`].
//! The generator of the machine lives in the binary; tests hold a seeded one.

/// Gives unpredictable bytes.
pub trait Entropy: Send + Sync + std::fmt::Debug {
    /// Fills `bytes`.
    ///
    /// # Errors
    /// [`NoEntropy`] when the source gives nothing; nothing may be made of such bytes.
    fn fill(&self, bytes: &mut [u8]) -> Result<(), NoEntropy>;
}

/// The source of randomness failed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("no random bytes: {0}")]
pub struct NoEntropy(pub String);
