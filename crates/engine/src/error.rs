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
    /// The job failed at its place, and may succeed at another: a film that cannot be read, a
    /// server's failure without a reason.
    #[error("{code}: {cause}")]
    JobFailed {
        /// The failure code for the client if there is no other attempt.
        code: FailureCode,
        /// The private cause.
        cause: String,
    },
    /// The place failed and did not begin the job: no server accepted it, or the process did not
    /// open. The task returns to the queue without cost.
    #[error("no place could begin the job: {0}")]
    NoPlace(String),
    /// The place says that it is broken. The task runs again without cost, but not forever: the job
    /// may be what breaks it.
    #[error("engine process is broken: {0}")]
    Broken(String),
    /// A failure of the job with a public code of the contract; final.
    #[error("{code}: {cause}")]
    CodedFailure {
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
