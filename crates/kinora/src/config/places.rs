//! Where a service keeps its things. A place without a setting is in the data folder.

use std::path::PathBuf;

use super::Config;

impl Config {
    /// The address of the task store.
    pub(crate) fn store_url(&self) -> String {
        if self.store.url.is_empty() {
            format!("sqlite:{}", self.data.join("kinora.db").display())
        } else {
            self.store.url.clone()
        }
    }

    /// The address of the blob store. It may contain a secret: people are shown [`Self::results_shown`].
    pub(crate) fn results_url(&self) -> String {
        if self.results.url.is_empty() {
            self.data.join("results").display().to_string()
        } else {
            self.results.url.clone()
        }
    }

    /// Where results are, for people and logs.
    pub(crate) fn results_shown(&self) -> String {
        kinora_blobs::shown(&self.results_url())
    }

    /// The folder of unfinished files, in which each process makes one of its own.
    pub(crate) fn scratch_folder(&self) -> PathBuf {
        if self.worker.scratch.as_os_str().is_empty() {
            self.data.join("work")
        } else {
            self.worker.scratch.clone()
        }
    }
}
