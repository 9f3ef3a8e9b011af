//! Returns memory to the system. The allocator releases freed memory after a second, but checks
//! only when a large block is freed, so a service that is idle after a burst would keep all of the
//! burst's memory.

use std::hint::black_box;
use std::time::Duration;

const EVERY: Duration = Duration::from_secs(5);
/// Large enough for its own pages; nothing is written, so it takes no memory.
const LARGE_BYTES: usize = 4 << 20;

/// Makes the allocator check periodically.
pub(crate) async fn give_back() {
    loop {
        tokio::time::sleep(EVERY).await;
        drop(black_box(Vec::<u8>::with_capacity(LARGE_BYTES)));
    }
}
