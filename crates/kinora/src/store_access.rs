//! Commands that read the store beside the processes that serve it. They never create a store, and
//! refuse one whose restore has not ended.

use std::sync::Arc;

use kinora_store::{OperatorStore, StoreError};
use tokio::runtime::Runtime;

use crate::cli::HomeArgs;
use crate::config::Config;
use crate::failure::Failure;
use crate::system::SystemClock;
use crate::{folder, shell_hint};

/// A runtime for one command.
pub(crate) fn runtime() -> Result<Runtime, Failure> {
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| Failure::because("The command could not start", error))
}

/// The configuration of the service that `home` names.
///
/// # Errors
/// If it is invalid, or a restore has not ended: a half-restored database would open and read as if it were complete.
pub(crate) fn config(home: &HomeArgs) -> Result<Config, Failure> {
    let config = Config::load(home)?;
    folder::refuse_unfinished_restore(&config.data)?;
    Ok(config)
}

/// The store of the service that `home` names; `words` is this command.
pub(crate) async fn open_operations(
    home: &HomeArgs,
    words: &str,
) -> Result<Arc<dyn OperatorStore>, Failure> {
    let config = config(home)?;
    let opened = kinora_store::open_operations(&config.store_url(), Arc::new(SystemClock)).await;
    opened.map_err(|error| shell_hint::open_failure(error, words, home))
}

impl From<StoreError> for Failure {
    fn from(error: StoreError) -> Self {
        let what = match error {
            StoreError::Unavailable(_) => "The store does not answer",
            StoreError::LeaseLost(_) | StoreError::Corrupt(_) => "The store could not be read",
        };
        Self::because(what, error)
    }
}
