//! Options of this store alone.

/// How a PostgreSQL store is opened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PostgresOptions {
    /// Whose clock judges leases and stamps times.
    pub time: Time,
    /// Memory for tasks that are polled, in bytes.
    pub cached_bytes_max: u64,
    /// How long an ended task that was read is shown without another look, in milliseconds; 0: not at all. What this
    /// process changes is shown at once, and notifications make it shorter.
    pub cached_ms_max: u64,
    /// How old an ended task, or a key, may be that is shown while the server cannot be reached, in milliseconds, by
    /// when it was last read.
    pub last_known_ms_max: u64,
    /// How old the sums over all projects may be by which the bounds on the whole queue and on all bytes are judged,
    /// in milliseconds: several processes may pass these bounds by what they accept in that time. 0: they are
    /// summed up in each transaction. Bounds on one project are exact in either case.
    pub totals_ms_max: u64,
    /// How old the queue may be in which positions are looked up, in milliseconds.
    pub positions_ms_max: u64,
    /// Pause between two notifications of other processes, in milliseconds.
    pub notify_every_ms: u64,
    /// How long a statement may take, in milliseconds.
    pub statement_timeout_ms: u32,
    /// How long an attempt to connect may take, in milliseconds, for each host.
    pub connect_timeout_ms: u32,
    /// Where the connection listens that hears of other processes' changes; `None`: at the store's address. Needed where
    /// that address is of a pooler in transaction mode, which passes no notifications on.
    pub listen_at: Option<DirectAddress>,
    /// By so much the fencing tokens of this opening are past all earlier ones. Drawn at random (up to
    /// 2^40), so that copies of a store that both go on never use the same tokens.
    pub token_stride: u64,
}

/// The address of a database, which may hold a password. Never printed, not even by `Debug`.
#[derive(Clone, PartialEq, Eq)]
pub struct DirectAddress(pub String);

impl std::fmt::Debug for DirectAddress {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("DirectAddress(..)")
    }
}

/// Whose time it is by which a store judges.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Time {
    /// The server's wall clock: the same for all processes, whatever the clocks of their machines show.
    Server,
    /// [`crate::OpenOptions::clock`], which all handles share: for tests and simulations.
    Clock,
}

impl Default for PostgresOptions {
    fn default() -> Self {
        Self {
            time: Time::Server,
            cached_bytes_max: 64 << 20,
            cached_ms_max: 1_000,
            last_known_ms_max: 300_000,
            totals_ms_max: 1_000,
            positions_ms_max: 1_000,
            notify_every_ms: 50,
            statement_timeout_ms: 10_000,
            connect_timeout_ms: 3_000,
            listen_at: None,
            token_stride: 0,
        }
    }
}
