//! Commands that read the store beside the processes that serve it.

use std::sync::Arc;

use kinora_store::{Operations, StoreError};
use tokio::runtime::Runtime;

use crate::cli::PlaceArgs;
use crate::config::Config;
use crate::failure::Failure;
use crate::system::SystemClock;
use crate::{folder, hint};

/// A runtime for one command.
pub(crate) fn runtime() -> Result<Runtime, Failure> {
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| Failure::because("The command could not start", error))
}

/// Opens the store of the service that `place` names; `words` is the current command.
pub(crate) async fn open(place: &PlaceArgs, words: &str) -> Result<Arc<dyn Operations>, Failure> {
    let config = Config::load(place)?;
    folder::refuse_unfinished_restore(&config.data)?;
    let opened = kinora_store::open_operations(&config.store_url(), Arc::new(SystemClock)).await;
    opened.map_err(|error| hint::not_opened(error, words, place))
}

pub(crate) fn failed(error: StoreError) -> Failure {
    Failure::because("The store does not answer", error)
}
