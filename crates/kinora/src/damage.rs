//! What a start refuses because something that was there is not there any more, in words for the
//! operator; and what it goes on with once the loss is accepted.

use kinora_blobs::{BlobError, BlobStore};
use kinora_store::{Loss, OpenError, Stores};

use crate::config::Config;
use crate::date::date;
use crate::failure::Failure;

/// The way on that every refusal names.
pub(crate) const WAY_ON: &str = "Restore a backup; or start once with --accept-loss (KINORA_ACCEPT_LOSS=1) to go on \
                      without what is missing.";

/// Why the store is not opened.
pub(crate) fn refused(error: OpenError) -> Failure {
    match error {
        OpenError::Lost(loss) => Failure::new(format!("{}. {WAY_ON}", lost(&loss))),
        OpenError::Damaged(findings) => Failure::new(format!(
            "The database is damaged: {findings}. `kinora doctor` says more. {WAY_ON}"
        )),
        error => Failure::because("The store cannot be opened", error),
    }
}

/// What is missing, and since when.
pub(crate) fn lost(loss: &Loss) -> String {
    let newest = match loss.newest_ms {
        Some(ms) => format!("the newest task that is there is of {} UTC", date(ms)),
        None => "it has no task".to_owned(),
    };
    let last = date(loss.noted_ms);
    format!(
        "Acknowledged changes are missing: {loss}; {newest}; the last change was committed at {last} UTC"
    )
}

/// Refuses results that are not those of the store, as where a volume is not mounted; leaves the
/// store's mark beside them otherwise.
pub(crate) async fn check_results(
    config: &Config,
    stores: &Stores,
    blobs: &dyn BlobStore,
) -> Result<(), Failure> {
    let failed =
        |error: &dyn std::fmt::Display| Failure::because("The result store does not answer", error);
    let marked = kinora_worker::is_marked(&*stores.chores, blobs).await;
    if marked.map_err(|error| failed(&error))? {
        return Ok(());
    }
    let results = config.results_shown();
    let has_any = has_any(blobs, &stores.holds.results).await;
    if !has_any.map_err(|error| failed(&error))? {
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
    if let Err(error) = kinora_worker::put_mark(&*stores.chores, blobs).await {
        // A full disk is no reason not to serve what is there; the look for orphans puts the mark.
        tracing::warn!(%error, "results not marked as those of this store");
    }
    Ok(())
}

/// Whether any of the results is there, as where files were restored without the store's mark, or there
/// is none that should be.
async fn has_any(blobs: &dyn BlobStore, results: &[String]) -> Result<bool, BlobError> {
    for key in results {
        if blobs.head(key).await?.is_some() {
            return Ok(true);
        }
    }
    Ok(results.is_empty())
}
