//! Options of the SQLite store.

/// How to open a SQLite store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SqliteOptions {
    /// Tasks that a dead process left running return to the queue immediately, except one that ran
    /// alone in its last attempt of this many: the first sweep ends that one.
    pub attempts_max: u32,
    /// Maximum bytes of memory for finished tasks that are polled or listed. Unfinished ones are
    /// always in memory.
    pub finished_cached_bytes_max: u64,
    /// How long a change waits for another process (a key command, a backup) that is writing.
    pub busy_timeout_ms: u32,
    /// Limit of the database file, in pages of 4 KiB; `None` for no limit. Beyond it, submits are
    /// refused as on a full disk.
    pub pages_max: Option<u32>,
    /// How far to advance the fencing tokens past all earlier ones. Random (up to 2^40), so that
    /// copies of a store never use the same tokens if both continue.
    pub token_stride: u64,
    /// Whether to serve a store that is damaged or lacks acknowledged changes.
    pub accepts_loss: bool,
    /// Whether the calling thread of the runtime does reads and writes itself, so that a simulation
    /// does not depend on the order of threads.
    pub on_the_spot: bool,
}

impl Default for SqliteOptions {
    fn default() -> Self {
        Self {
            attempts_max: 3,
            finished_cached_bytes_max: 64 << 20,
            busy_timeout_ms: 5_000,
            pages_max: None,
            token_stride: 0,
            accepts_loss: false,
            on_the_spot: false,
        }
    }
}
