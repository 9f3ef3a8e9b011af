//! Why an engine stopped. The public reason is chosen by the worker from the variant alone:
//! an engine's own words stay private.

use kinora_contract::FailureCode;

/// Why an engine gave no clip.
#[derive(Debug, thiserror::Error)]
pub enum EngineError {
    /// The cancel was obeyed.
    #[error("cancelled")]
    Cancelled,
    /// The spec needs what this engine does not offer.
    #[error("unsupported: {0}")]
    Unsupported(String),
    /// Memory ran out, on the host or an accelerator.
    #[error("out of memory: {0}")]
    OutOfMemory(String),
    /// The engine itself failed.
    #[error("generation failed: {0}")]
    Failed(String),
    /// Something went wrong that a client can be told by a code of the contract.
    #[error("{code}: {cause}")]
    Told {
        /// What the client is told.
        code: FailureCode,
        /// What happened; private.
        cause: String,
    },
    /// The process that the engine ran in came to its end: another attempt may fare better.
    #[error("the engine's process ended ({code}): {cause}")]
    Crashed {
        /// What the client is told when there is no other attempt.
        code: FailureCode,
        /// What is known of it; private.
        cause: String,
    },
    /// The sink could not take what was made (encoder or storage).
    #[error("the result could not be written: {0}")]
    Sink(#[source] Box<dyn std::error::Error + Send + Sync>),
}
