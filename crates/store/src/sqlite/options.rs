//! Options of this store alone.

/// How a SQLite store is opened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SqliteOptions {
    /// Tasks that a dead process of this store left running go back to the queue at once,
    /// unless one ran alone in its last attempt, of so many: the first sweep ends that one.
    pub attempts_max: u32,
    /// Memory for finished tasks that are polled or listed, in bytes. Unfinished ones are always there.
    pub finished_cached_bytes_max: u64,
    /// How long a change waits for another process (a key command, a backup) that is writing.
    pub busy_timeout_ms: u32,
    /// Bound on the database file, in pages of 4 KiB; `None` for none. Past it submits are
    /// refused as by a full disk.
    pub pages_max: Option<u32>,
    /// By so much the fencing tokens of this opening are past all earlier ones. Drawn at random (up to
    /// 2^40), so that copies of a store that both go on never use the same tokens.
    pub token_stride: u64,
    /// Whether to serve a store that is damaged or that lacks acknowledged changes.
    pub accepts_loss: bool,
    /// Whether reads and writes of the disk are done by who asks, which is a thread of the runtime, so that a
    /// simulation does not depend on the order of threads.
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
