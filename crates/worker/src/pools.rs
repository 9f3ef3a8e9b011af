//! The threads that a worker blocks: a share of the runtime's threads per kind of work, so that one
//! kind cannot starve another, and the thread that keeps leases. A simulation does everything on
//! the spot.

use kinora_pool::Pool;

const PREVIEW_THREADS: usize = 2;
/// References are decoded one task at a time, see [`crate::References`].
const DECODING_THREADS: usize = 1;

/// A worker's shares.
#[derive(Clone, Debug)]
pub struct Pools {
    /// Encoding previews.
    pub previews: Pool,
    /// Writing, opening and examining local files.
    pub(crate) files: Pool,
    /// Whether leases are kept on a separate thread.
    pub(crate) keeps_leases_apart: bool,
}

impl Pools {
    /// The shares of a worker with this many slots.
    pub fn new(slots: usize) -> Self {
        Self {
            previews: Pool::new(PREVIEW_THREADS),
            files: Pool::new(Self::file_threads(slots)),
            keeps_leases_apart: true,
        }
    }

    /// No threads: the worker blocks its runtime, so that the order of events does not depend on
    /// threads. For simulations, whose engines deliver films; an engine that makes frames always
    /// has a thread.
    pub const fn on_the_spot() -> Self {
        Self {
            previews: Pool::on_the_spot(),
            files: Pool::on_the_spot(),
            keeps_leases_apart: false,
        }
    }

    /// Maximum number of runtime threads that a worker with this many slots blocks.
    pub const fn threads(slots: usize) -> usize {
        PREVIEW_THREADS + Self::file_threads(slots)
    }

    /// Besides the decoding one, each run moves or examines one file at a time, and one thread
    /// probes the scratch folder.
    const fn file_threads(slots: usize) -> usize {
        DECODING_THREADS + slots + 1
    }
}
