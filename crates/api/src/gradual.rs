//! Marks an answer whose pieces are sent as they are produced, over an unlimited time.

use tokio_util::sync::CancellationToken;

/// The listener takes the next piece of such an answer only after it has sent the previous one. So
/// a slow client needs no memory, and does not delay a stop of the service.
#[derive(Clone, Debug)]
pub(crate) struct Gradual {
    /// Cancelled when the service stops.
    pub(crate) stopping: CancellationToken,
}
