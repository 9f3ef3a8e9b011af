//! Why an engine stopped. The worker derives the public reason from the variant alone; the engine's
//! own words stay private.

use kinora_contract::FailureCode;

/// Why an engine delivered no clip.
#[derive(Debug, thiserror::Error)]
pub enum EngineError {
    /// The engine obeyed a cancel.
    #[error("cancelled")]
    Cancelled,
    /// The spec needs a feature that the engine lacks.
    #[error("unsupported: {0}")]
    Unsupported(String),
    /// Memory ran out, on the host or an accelerator.
    #[error("out of memory: {0}")]
    OutOfMemory(String),
    /// The engine itself failed.
    #[error("generation failed: {0}")]
    Failed(String),
    /// A failure with a public code of the contract.
    #[error("{code}: {cause}")]
    Told {
        /// The failure code for the client.
        code: FailureCode,
        /// The private cause.
        cause: String,
    },
    /// The engine process ended; another attempt may succeed.
    #[error("engine process ended ({code}): {cause}")]
    Crashed {
        /// The failure code for the client if there is no other attempt.
        code: FailureCode,
        /// The private cause.
        cause: String,
    },
    /// The sink failed (encoder or storage).
    #[error("the result could not be written: {0}")]
    Sink(#[source] Box<dyn std::error::Error + Send + Sync>),
}
