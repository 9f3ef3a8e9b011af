//! The end of an import: reads the stored data back and compares it with the export.

use std::path::Path;
use std::sync::Arc;

use kinora_blobs::BlobStore;
use kinora_contract::StoredFile;
use kinora_store::{Export, MovedChore, MovedKey, MovedStore, MovedTask, StoreError};

use super::crowd::Crowd;
use super::parts;
use crate::backup::progress::Progress;
use crate::failure::Failure;

/// The expected contents of a store besides its tasks.
pub(super) struct Expected<'a> {
    pub(super) store: &'a MovedStore,
    pub(super) keys: &'a [MovedKey],
    pub(super) chores: &'a [MovedChore],
}

/// Compares everything in a store with the expected contents.
pub(super) async fn records(
    mut found: Box<dyn Export>,
    mut tasks: impl Iterator<Item = Result<MovedTask, Failure>>,
    expected: &Expected<'_>,
) -> Result<(), Failure> {
    Progress::new().say("verifying the store");
    loop {
        let some = found.tasks().await.map_err(unread)?;
        if some.is_empty() {
            break;
        }
        for task in some {
            let task = task.map_err(unread)?;
            let wanted = tasks.next().transpose()?;
            if wanted.as_ref() != Some(&task) {
                return Err(differs(&format!("its task {}", task.id)));
            }
        }
    }
    if let Some(lacking) = tasks.next() {
        return Err(differs(&format!("it lacks {}, which", lacking?.id)));
    }
    if found.keys().await.map_err(unread)? != expected.keys {
        return Err(differs("its set of API keys"));
    }
    if found.chores().await.map_err(unread)? != expected.chores {
        return Err(differs("its list of chores"));
    }
    if found.store().await.map_err(unread)? != *expected.store {
        return Err(differs("its identity, signing key, webhooks or history"));
    }
    Ok(())
}

/// Checks that every file in the list at `listed` is among the results with the right contents.
pub(super) async fn files(
    listed: &Path,
    blobs: &Arc<dyn BlobStore>,
    results: &str,
) -> Result<(), Failure> {
    Progress::new().say("verifying results");
    let mut crowd = Crowd::new();
    for file in parts::read::<StoredFile>(listed)? {
        let (file, blobs, results) = (file?, blobs.clone(), results.to_owned());
        crowd
            .begin(async move {
                let held = blobs.holds(&file).await;
                let held = held.map_err(|error| {
                    Failure::because(format!("The results in {results} cannot be read"), error)
                })?;
                held.then_some(()).ok_or_else(|| {
                    Failure::new(format!(
                        "The file {} in the results in {results} differs from the export.",
                        file.key
                    ))
                })
            })
            .await?;
    }
    while crowd.next().await?.is_some() {}
    Ok(())
}

fn unread(error: StoreError) -> Failure {
    Failure::because("The store cannot be read back", error)
}

fn differs(what: &str) -> Failure {
    Failure::new(format!(
        "The store differs from the export: {what} differs."
    ))
}
