//! Holds a thread at a named point of the service's code (see `kinora_system::crash`), so that a test can look
//! at a stage that is usually over in moments.

use std::path::PathBuf;

use tempfile::TempDir;

use crate::server::Setup;
use crate::wait::until;

/// Holds one thread of one service; lets it go when dropped.
#[derive(Debug)]
pub struct Hold {
    order: String,
    folder: TempDir,
}

impl Hold {
    /// Holds who comes to `point` as the `time`-th, from 1.
    pub fn at(point: &str, time: u32) -> Self {
        let mut known = kinora_system::crash::POINTS
            .iter()
            .chain(kinora_system::crash::UPLOAD_POINTS)
            .chain(kinora_system::crash::HOST_POINTS)
            .chain(kinora_system::crash::BACKUP_POINTS)
            .chain(kinora_system::crash::MOVE_POINTS)
            .chain(kinora_system::crash::DELIVERY_POINTS);
        assert!(known.any(|known| *known == point), "no point {point}");
        Self {
            order: format!("{point}:{time}"),
            folder: tempfile::tempdir().unwrap(),
        }
    }

    /// In the service that is started so.
    #[must_use]
    pub fn over(&self, setup: Setup) -> Setup {
        let (name, value) = self.variable();
        setup.set(name, value)
    }

    /// The variable by which a process learns of it.
    pub fn variable(&self) -> (&'static str, String) {
        let value = format!("{}:{}", self.order, self.sign().display());
        ("HOLD_AT", value)
    }

    /// Waits until somebody is held.
    pub fn wait(&self) {
        until(&format!("somebody at {}", self.order), || {
            self.is_holding().then_some(())
        });
    }

    /// Whether somebody is held at the moment.
    pub fn is_holding(&self) -> bool {
        self.sign().exists()
    }

    /// Lets go; panics when nobody was held any more.
    pub fn release(self) {
        self.forget();
    }

    /// The next who comes by for the time that was asked for is held as well, in another process;
    /// panics when nobody was held.
    pub fn forget(&self) {
        std::fs::remove_file(self.sign()).unwrap();
    }

    /// The file that is there as long as somebody is held.
    fn sign(&self) -> PathBuf {
        self.folder.path().join("held")
    }
}
