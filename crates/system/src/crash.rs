//! Named points in the life of a task at which a test can kill the process or pause a thread.
//! Without the feature `armed` a point does nothing; with it, `CRASH_AT=NAME:N` aborts the process
//! when it reaches the point for the N-th time (from 1), and `HOLD_AT=NAME:N:FILE` creates FILE
//! there and waits until FILE is removed.

/// Every point, in the order in which a task comes by.
pub const POINTS: &[&str] = &[
    "store.before_commit",
    "store.after_commit",
    "api.before_answer",
    "worker.reference_fetched",
    "worker.reference_stored",
    "worker.claimed",
    "worker.opening",
    "worker.prepared",
    "worker.recorded",
    "blobs.synced",
    "blobs.linked",
    "worker.published",
    "worker.before_finish",
    "worker.finished",
    "worker.swept_file",
];

/// The points of an upload, in order.
pub const UPLOAD_POINTS: &[&str] = &[
    "api.file_added",
    "api.file_stored",
    "api.before_file_answer",
];

/// The points of an engine process, in order.
pub const HOST_POINTS: &[&str] = &[
    "host.opening",
    "host.opened",
    "host.job",
    "host.frame",
    "host.audio",
    "host.done",
];

/// The points of the backup and restore commands, in order.
pub const BACKUP_POINTS: &[&str] = &[
    "backup.snapshot",
    "backup.task",
    "backup.described",
    "restore.synced",
    "restore.moved",
];

/// The points of the export and import commands, in order.
pub const MOVE_POINTS: &[&str] = &[
    "export.records",
    "export.file",
    "import.file",
    "import.tasks",
    "import.filled",
];

/// The points of a delivery to a webhook, in order.
pub const DELIVERY_POINTS: &[&str] = &["api.before_delivery", "api.delivered"];

/// Whether points do anything in this build.
pub const ARMED: bool = cfg!(feature = "armed");

/// Aborts the process here, like a power cut, or blocks the thread, if a test requested it.
#[inline]
pub fn point(name: &str) {
    #[cfg(feature = "armed")]
    armed::point(name);
    #[cfg(not(feature = "armed"))]
    let _ = name;
}

#[cfg(feature = "armed")]
mod armed {
    use std::fs::File;
    use std::path::Path;
    use std::sync::OnceLock;
    use std::sync::atomic::{AtomicU64, Ordering};
    use std::thread::sleep;
    use std::time::Duration;

    /// How often a paused thread checks whether it may continue.
    const POLL_INTERVAL: Duration = Duration::from_millis(5);

    pub(super) struct Order {
        name: String,
        left: AtomicU64,
        /// The text after the number.
        pub(super) more: String,
    }

    impl Order {
        /// Parses `NAME:N` or `NAME:N:MORE`; `None` for anything else.
        pub(super) fn read(text: &str) -> Option<Self> {
            let (name, rest) = text.split_once(':')?;
            let (count, more) = rest.split_once(':').unwrap_or((rest, ""));
            Some(Self {
                name: name.to_owned(),
                left: AtomicU64::new(count.parse().ok()?),
                more: more.to_owned(),
            })
        }

        /// Whether this is the requested time.
        pub(super) fn is_due(&self, name: &str) -> bool {
            self.name == name && self.left.fetch_sub(1, Ordering::SeqCst) == 1
        }
    }

    /// Creates the file to show that a thread is paused, and waits until somebody removes it.
    pub(super) fn hold(file: &Path) {
        if File::create_new(file).is_ok() {
            while file.exists() {
                sleep(POLL_INTERVAL);
            }
        }
    }

    fn order(variable: &str) -> Option<Order> {
        Order::read(&std::env::var(variable).ok()?)
    }

    pub(super) fn point(name: &str) {
        static CRASH: OnceLock<Option<Order>> = OnceLock::new();
        static HOLD: OnceLock<Option<Order>> = OnceLock::new();
        let due = |order: &&Order| order.is_due(name);
        let crash = CRASH.get_or_init(|| order("CRASH_AT"));
        if crash.as_ref().filter(due).is_some() {
            std::process::abort();
        }
        let held = HOLD.get_or_init(|| order("HOLD_AT"));
        if let Some(order) = held.as_ref().filter(due) {
            hold(Path::new(&order.more));
        }
    }
}

#[cfg(all(test, feature = "armed"))]
mod tests {
    use super::armed::{Order, hold};

    #[test]
    fn an_order_is_due_once_at_its_own_point() {
        let order = Order::read("a.b:2:/some:where").unwrap();
        let came = ["a.b", "c", "a.b", "a.b"].map(|name| order.is_due(name));
        assert_eq!(came, [false, false, true, false]);
        assert_eq!(order.more, "/some:where");
        assert_eq!(Order::read("a.b:1").unwrap().more, "");
        assert!(
            ["", "a.b", "a.b:x", "a.b::/file"]
                .iter()
                .all(|text| Order::read(text).is_none())
        );
    }

    #[test]
    fn a_hold_shows_itself_and_lasts_until_its_file_is_gone() {
        let file = std::env::temp_dir().join(format!("kinora-hold-{}", std::process::id()));
        std::thread::scope(|scope| {
            let held = scope.spawn(|| hold(&file));
            while !file.exists() {
                std::thread::yield_now();
            }
            assert!(!held.is_finished());
            std::fs::remove_file(&file).unwrap();
            held.join().unwrap();
        });
        // Without a file, nobody could release the thread, so it is not paused.
        hold(&file.join("nowhere"));
    }
}
