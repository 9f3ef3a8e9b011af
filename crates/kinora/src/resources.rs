//! What the process takes from its machine. File descriptors: each connection, open file and fetch
//! takes one, and most systems give a process only 1,024 unless it asks for more. Memory: freed blocks
//! are returned to the system also while the service is idle.

use std::hint::black_box;
use std::time::Duration;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use crate::failure::Failure;

/// Reserved for the store, unfinished results, engines and the listener itself (including 64
/// refused connections that still get their answer).
const RESERVE: u64 = 320;
/// Reserved for each slot of the worker: the references of one task, and its files.
const RESERVE_PER_SLOT: u64 = 16;
/// Minimum number of connections of a useful service.
const CONNECTIONS_MIN: u64 = 16;

/// The number of descriptors that this process may open, and their uses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct DescriptorLimit {
    /// The limit.
    pub(crate) limit: u64,
    /// The part that connections and downloads never take.
    pub(crate) reserve: u64,
}

/// Raises this process's soft limit to its hard one, and returns the result. Children inherit it.
pub(crate) fn raise_descriptors(slots: u32) -> DescriptorLimit {
    let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
    if current != maximum {
        let wanted = Rlimit {
            current: maximum,
            maximum,
        };
        // Some systems refuse an infinite limit, which then stays unchanged.
        let _ = setrlimit(Resource::Nofile, wanted);
    }
    let limit = getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX);
    DescriptorLimit::new(limit, slots)
}

impl DescriptorLimit {
    const fn new(limit: u64, slots: u32) -> Self {
        Self {
            limit,
            reserve: RESERVE + RESERVE_PER_SLOT * slots as u64,
        }
    }

    /// The number of concurrent connections: `configured`, or fewer if the limit does not allow
    /// that. Each may have a file open in addition to its socket.
    ///
    /// # Errors
    /// [`Failure`] if hardly any connection would remain.
    pub(crate) fn connections_max(self, configured: u32) -> Result<u32, Failure> {
        // Two for each connection: its socket, and the result file that it may be sending. With the
        // usual limit of 1,024 and two slots that makes (1024 - 352) / 2 = 336 connections.
        let possible = self.limit.saturating_sub(self.reserve) / 2;
        if possible < CONNECTIONS_MIN {
            return Err(Failure::new(format!(
                "This process may open {} files and connections, and needs {} for itself and as many \
                 again as it is to serve: raise the limit, for example by 'LimitNOFILE=65536' in a \
                 systemd unit, '--ulimit nofile=65536' of a container, or 'ulimit -n 65536' in a shell",
                self.limit, self.reserve
            )));
        }
        Ok(configured.min(u32::try_from(possible).unwrap_or(u32::MAX)))
    }
}

const EVERY: Duration = Duration::from_secs(5);
/// Large enough for its own pages; nothing is written, so it takes no memory.
const LARGE_BYTES: usize = 4 << 20;

/// Makes the allocator check periodically.
pub(crate) async fn give_back_memory() {
    loop {
        tokio::time::sleep(EVERY).await;
        // mimalloc purges freed pages late, and looks for such pages only when a large block is
        // freed. Allocating one and dropping it is that occasion; `black_box` keeps the compiler
        // from removing the pair. The pages are never touched, so no memory is used.
        drop(black_box(Vec::<u8>::with_capacity(LARGE_BYTES)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn connections(limit: u64, slots: u32, configured: u32) -> Option<u32> {
        DescriptorLimit::new(limit, slots)
            .connections_max(configured)
            .ok()
    }

    #[test]
    fn p15_connections_leave_descriptors_for_files_and_fetches() {
        assert_eq!(connections(1024, 2, 10_000), Some((1024 - 352) / 2));
        assert_eq!(connections(1024, 2, 100), Some(100));
        assert_eq!(connections(20_000, 2, 10_000), Some(9_824));
        assert_eq!(connections(u64::MAX, 2, 10_000), Some(10_000));
        assert_eq!(connections(u64::MAX, u32::MAX, u32::MAX), Some(u32::MAX));
    }

    #[test]
    fn a_limit_that_leaves_hardly_any_is_refused_with_what_to_do() {
        assert_eq!(connections(352 + 32, 2, 10_000), Some(16));
        let error = DescriptorLimit::new(352 + 31, 2)
            .connections_max(1)
            .unwrap_err();
        assert!(error.to_string().contains("LimitNOFILE="), "{error}");
        assert_eq!(connections(0, 2, 1), None);
    }

    #[test]
    fn the_soft_limit_becomes_the_hard_one() {
        let raised = raise_descriptors(2);
        let hard = getrlimit(Resource::Nofile).maximum.unwrap_or(u64::MAX);
        assert_eq!(raised.limit, hard);
    }
}
