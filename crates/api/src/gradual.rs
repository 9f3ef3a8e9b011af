//! The mark of an answer that goes out piece by piece, as its pieces come into being, over an unlimited time.

use tokio_util::sync::CancellationToken;

/// The listener takes the next piece of such an answer when the one before has been sent, so that it needs no memory
/// for a slow client, and does not wait for that client once the service stops.
#[derive(Clone, Debug)]
pub(crate) struct Gradual {
    /// Cancelled when the service stops.
    pub(crate) stopping: CancellationToken,
}
