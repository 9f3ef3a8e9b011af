//! Options of the PostgreSQL store.

use kinora_contract::limits::POLL_AGE_MS;

/// Options for opening a PostgreSQL store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PostgresOptions {
    /// The clock that judges leases and stamps times.
    pub time: TimeSource,
    /// Memory for polled tasks, in bytes.
    pub cached_bytes_max: u64,
    /// Time for which an ended task is shown without another query, in milliseconds; 0: none.
    /// Changes by this process show at once, and notifications shorten it.
    pub cached_ms_max: u64,
    /// Maximum age of an unfinished task in a poll, in milliseconds; 0: each poll asks the server. Changes by
    /// this process show at once, and notifications shorten it.
    pub polled_ms_max: u64,
    /// Maximum time since an ended task or a key was read, in milliseconds, for use while the server cannot
    /// be reached.
    pub last_known_ms_max: u64,
    /// Maximum age of the sums over all projects that judge the bounds on the whole queue and on
    /// all bytes, in milliseconds: several processes may exceed these bounds by the tasks accepted
    /// in that time. 0: each transaction sums up. Bounds on one project are exact in either case.
    pub totals_ms_max: u64,
    /// Maximum age of the copy of the queue that positions come from, in milliseconds.
    pub positions_ms_max: u64,
    /// Pause between two notifications of other processes, in milliseconds.
    pub notify_every_ms: u64,
    /// Maximum time for a statement, in milliseconds.
    pub statement_timeout_ms: u32,
    /// Maximum time for an attempt to connect, in milliseconds, for each host.
    pub connect_timeout_ms: u32,
    /// Address of the connection that listens for changes by other processes; `None`: the store's
    /// address. Needed if that address belongs to a pooler in transaction mode, which passes on no
    /// notifications.
    pub listen_at: Option<DirectAddress>,
    /// Distance of this opening's fencing tokens from all earlier ones. Drawn at random (up to
    /// 2^40), so that copies of a store that both continue never use the same tokens.
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

/// The clock by which a store judges.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TimeSource {
    /// The server's wall clock: the same for all processes, whatever their machines' clocks show.
    Server,
    /// [`crate::OpenOptions::clock`], which all handles share: for tests and simulations.
    Clock,
}

impl Default for PostgresOptions {
    fn default() -> Self {
        Self {
            time: TimeSource::Server,
            cached_bytes_max: 64 << 20,
            cached_ms_max: 1_000,
            // Too short for a person to notice, and still several polls per second share a query.
            polled_ms_max: POLL_AGE_MS,
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
