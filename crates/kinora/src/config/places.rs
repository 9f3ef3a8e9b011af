//! The locations of a service's data. A location without a setting is in the data folder.

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

    /// The URL of the blob store. It may contain a secret; show people [`Self::results_shown`].
    pub(crate) fn results_url(&self) -> String {
        if self.results.url.is_empty() {
            self.data.join("results").display().to_string()
        } else {
            self.results.url.clone()
        }
    }

    /// The location of the results, for people and logs.
    pub(crate) fn results_shown(&self) -> String {
        kinora_blobs::shown(&self.results_url())
    }

    /// The folder of unfinished files, with a subfolder for each process.
    pub(crate) fn scratch_folder(&self) -> PathBuf {
        if self.worker.scratch.as_os_str().is_empty() {
            self.data.join("work")
        } else {
            self.worker.scratch.clone()
        }
    }
}
