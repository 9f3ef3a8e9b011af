//! Where a worker blocks: shares of the runtime's threads by kind of work, so that none takes another's, and the
//! thread that keeps leases. A simulation has everything done on the spot.

use kinora_pool::Pool;

const PREVIEW_THREADS: usize = 2;
/// References are decoded one task at a time, see [`crate::References`].
const DECODING_THREADS: usize = 1;

/// The shares of a worker.
#[derive(Clone, Debug)]
pub struct Pools {
    /// Encoding previews.
    pub previews: Pool,
    /// Writing, opening and examining files of this machine.
    pub(crate) files: Pool,
    /// Whether leases are kept on a thread of their own.
    pub(crate) keeps_leases_apart: bool,
}

impl Pools {
    /// Those of a worker with so many slots.
    pub fn new(slots: usize) -> Self {
        Self {
            previews: Pool::new(PREVIEW_THREADS),
            files: Pool::new(Self::file_threads(slots)),
            keeps_leases_apart: true,
        }
    }

    /// No threads: a worker that blocks its runtime, so that the order of what happens does not depend on threads.
    /// For simulations, whose engines deliver films: one that makes frames has a thread in any case.
    pub const fn on_the_spot() -> Self {
        Self {
            previews: Pool::on_the_spot(),
            files: Pool::on_the_spot(),
            keeps_leases_apart: false,
        }
    }

    /// Threads of the runtime that a worker with so many slots blocks at most.
    pub const fn threads(slots: usize) -> usize {
        PREVIEW_THREADS + Self::file_threads(slots)
    }

    /// Besides the one that decodes, each run moves or examines one file at a time, and one thread probes the
    /// scratch folder.
    const fn file_threads(slots: usize) -> usize {
        DECODING_THREADS + slots + 1
    }
}
