//! Messages for the operator when a start is refused because stored data is missing, and the
//! decision to continue once the loss is accepted.

use kinora_blobs::{BlobError, BlobStore};
use kinora_store::{LostChanges, OpenError, StoreHandles};

use crate::config::Config;
use crate::failure::Failure;
use crate::output::date;

/// Remedy at the end of every refusal.
pub(crate) const WAY_ON: &str = "Restore a backup; or start once with --accept-loss (KINORA_ACCEPT_LOSS=1) to go on \
                      without what is missing.";

/// The message for a store that cannot be opened.
pub(crate) fn open_failure(error: OpenError) -> Failure {
    match error {
        OpenError::Lost(loss) => Failure::new(format!("{}. {WAY_ON}", describe_loss(&loss))),
        OpenError::Damaged(findings) => Failure::new(format!(
            "The database is damaged: {findings}. `kinora doctor` says more. {WAY_ON}"
        )),
        error => Failure::because("The store cannot be opened", error),
    }
}

/// Describes the missing changes.
pub(crate) fn describe_loss(loss: &LostChanges) -> String {
    let newest = match loss.newest_ms {
        Some(ms) => format!("the newest remaining task is from {} UTC", date(ms)),
        None => "it has no task".to_owned(),
    };
    let last = date(loss.noted_ms);
    format!(
        "Acknowledged changes are missing: {loss}; {newest}; the last change was committed at {last} UTC"
    )
}

/// Refuses results that do not belong to the store, as when a volume is not mounted; otherwise
/// leaves the store's mark beside them.
pub(crate) async fn check_results(
    config: &Config,
    stores: &StoreHandles,
    blobs: &dyn BlobStore,
) -> Result<(), Failure> {
    // An unmounted volume looks like an empty folder, and an empty result store is normal for a new
    // service. The mark, a small file named after the store's identity, tells the two apart.
    let marked = kinora_worker::is_marked(&*stores.chores, blobs).await;
    if marked.map_err(|error| unanswered(&error))? {
        return Ok(());
    }
    let results = config.results_shown();
    let has_any = has_any_result(blobs, &stores.holds.results).await;
    if !has_any.map_err(|error| unanswered(&error))? {
        if !config.accept_loss {
            return Err(Failure::new(format!(
                "The results in {results} are not those of this store, which has completed tasks: neither \
                 its mark nor their files are there. Is the volume mounted, and the right one? {WAY_ON}"
            )));
        }
        tracing::warn!(
            results,
            "loss accepted; results of completed tasks may be missing"
        );
    }
    if let Err(error) = kinora_worker::store_mark(&*stores.chores, blobs).await {
        // A full disk must not prevent serving; the search for orphans stores the mark later.
        tracing::warn!(%error, "results not marked as those of this store");
    }
    Ok(())
}

fn unanswered(error: &dyn std::fmt::Display) -> Failure {
    Failure::because("The result store does not answer", error)
}

/// Whether at least one of the results exists, as after restoring files without the store's mark,
/// or whether none is expected.
async fn has_any_result(blobs: &dyn BlobStore, results: &[String]) -> Result<bool, BlobError> {
    for key in results {
        if blobs.head(key).await?.is_some() {
            return Ok(true);
        }
    }
    Ok(results.is_empty())
}
