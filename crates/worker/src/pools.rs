//! The runtime's threads that a worker may block, by kind of work: none takes another's.

use kinora_pool::Pool;

const PREVIEW_THREADS: usize = 2;
/// References are decoded one task at a time, see [`crate::References`].
const DECODING_THREADS: usize = 1;

/// The shares of a worker.
#[derive(Clone, Debug)]
pub struct Pools {
    /// Encoding previews.
    pub previews: Pool,
}

impl Pools {
    /// Threads that a worker with so many slots blocks at most. Besides the kinds, each run moves
    /// or examines one file at a time, and one thread probes the scratch folder.
    pub const fn threads(slots: usize) -> usize {
        PREVIEW_THREADS + DECODING_THREADS + slots + 1
    }
}

impl Default for Pools {
    fn default() -> Self {
        Self {
            previews: Pool::new(PREVIEW_THREADS),
        }
    }
}
