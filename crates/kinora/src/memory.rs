//! Memory back to the system. The allocator gives freed memory back a second later, but only looks
//! whether it should while it frees a large block: a service that has nothing to do after a burst
//! would keep all that the burst took.

use std::hint::black_box;
use std::time::Duration;

const EVERY: Duration = Duration::from_secs(5);
/// Large enough for a page of its own; nothing is written there, so it takes no memory.
const LARGE_BYTES: usize = 4 << 20;

/// Makes the allocator look, again and again.
pub(crate) async fn give_back() {
    loop {
        tokio::time::sleep(EVERY).await;
        drop(black_box(Vec::<u8>::with_capacity(LARGE_BYTES)));
    }
}
