//! Uploaded files: a row first, then its bytes, then the confirmation, so that a death in between leaves a
//! row by which a sweep removes both. All of these run under the lock of the project, like submits.

use std::collections::BTreeMap;

use kinora_contract::lifecycle::upload_key;
use kinora_contract::{FileId, UnixMs};

use crate::backend::{CommitChannel, RowNeeds, StoreOperation, StoreTransaction};
use crate::sql::{SqlRow, UnreadableValue, json};
use crate::tables::uploads::{self, UploadRow};
use crate::tasks::ExceededLimit;
use crate::{
    AddFileOutcome, ExceededQuota, FileBounds, IdempotencyKey, NewFile, PENDING_FILE_MS,
    QueueBounds, UploadedFile,
};

/// How long a sweep leaves a file alone that an unfinished task names.
const NEEDED_MS: u64 = 60_000;

impl StoreOperation for NewFile {
    type Output = AddFileOutcome;

    fn needs(&self, needs: &mut RowNeeds) {
        needs.projects.insert(self.project.clone());
        needs.totals = true;
    }

    fn channel(&self) -> CommitChannel<'_> {
        CommitChannel::Submits(&self.project)
    }

    fn has_client(&self) -> bool {
        true
    }

    async fn apply<T: StoreTransaction>(&self, tx: &mut T) -> Result<AddFileOutcome, T::Fault> {
        let now_ms = tx.now().wall_ms;
        // 1. A bound key answers with its file.
        if let Some(idempotency) = &self.idempotency
            && let Some(answer) = answer_by_key(self, idempotency, tx).await?
        {
            return Ok(answer);
        }
        // 2. Limits, of which the one on bytes concerns only bytes that the project does not have.
        let count = tx.query(uploads::count(&self.project)).await?;
        let count: Option<u64> = count.first().map(|row| row.get(0)).transpose()?;
        if count.unwrap_or(0) >= self.bounds.files_max {
            return Ok(AddFileOutcome::TooMany);
        }
        let twin = tx.query(uploads::twin(&self.project, &self.sha256, now_ms));
        let twin: Option<String> = twin.await?.first().map(|row| row.get(0)).transpose()?;
        let needs_bytes = twin.is_none();
        if needs_bytes && let Some(quota) = exceeded(self.bounds, self.bytes, &self.project, tx) {
            return Ok(AddFileOutcome::QuotaFull(quota));
        }
        // 3. The row, for a short time.
        let file = UploadedFile {
            id: self.id,
            project: self.project.clone(),
            filename: self.filename.clone(),
            purpose: self.purpose.clone(),
            kind: self.kind,
            media_type: self.media_type.clone(),
            bytes: self.bytes,
            sha256: self.sha256.clone(),
            blob_key: twin.unwrap_or_else(|| upload_key(self.id)),
            created_at_ms: now_ms,
            expires_at_ms: now_ms.saturating_add(self.lifetime_ms),
        };
        let due_ms = now_ms.saturating_add(PENDING_FILE_MS);
        tx.write(uploads::add(self, &file, due_ms)).await?;
        if needs_bytes {
            tx.charge_files(&self.project, to_charge(self.bytes), &[]);
        }
        Ok(AddFileOutcome::Added { file, needs_bytes })
    }
}

/// The answer to a request whose idempotency key is bound; `None` if the key is free.
async fn answer_by_key<T: StoreTransaction>(
    new: &NewFile,
    idempotency: &IdempotencyKey,
    tx: &mut T,
) -> Result<Option<AddFileOutcome>, T::Fault> {
    let now_ms = tx.now().wall_ms;
    let found = tx.query(uploads::find_by_key(&new.project, &idempotency.key));
    let Some(row) = first_row(&found.await?)? else {
        return Ok(None);
    };
    if !row.binds(idempotency, now_ms) {
        tx.write(uploads::free_key(row.file.id)).await?;
        return Ok(None);
    }
    if !row.has_fingerprint(&idempotency.fingerprint) {
        return Ok(Some(AddFileOutcome::KeyReused));
    }
    if row.is_stored {
        return Ok(Some(AddFileOutcome::Replayed(row.file)));
    }
    // The first request died before it confirmed the file, or is still storing the same bytes under the same
    // key: this one does the same.
    let due_ms = now_ms.saturating_add(PENDING_FILE_MS);
    tx.write(uploads::set_due(row.file.id, due_ms)).await?;
    Ok(Some(AddFileOutcome::Added {
        needs_bytes: row.owns_bytes(),
        file: row.file,
    }))
}

fn first_row(rows: &[SqlRow]) -> Result<Option<UploadRow>, UnreadableValue> {
    rows.first().map(uploads::read_row).transpose()
}

/// The limit that more bytes would exceed.
fn exceeded<T: StoreTransaction>(
    bounds: FileBounds,
    bytes: u64,
    project: &str,
    tx: &T,
) -> Option<ExceededQuota> {
    let bounds = QueueBounds {
        project_bytes_max: bounds.project_bytes_max,
        bytes_max: bounds.bytes_max,
        ..QueueBounds::NONE
    };
    match bounds.refusal(bytes, tx.load(project)) {
        Some(ExceededLimit::Quota(quota)) => Some(quota),
        _ => None,
    }
}

fn to_charge(bytes: u64) -> i64 {
    i64::try_from(bytes).unwrap_or(i64::MAX)
}

/// Makes a file of this project visible, now that its bytes are stored.
#[derive(Debug)]
pub(crate) struct ConfirmFile {
    pub(crate) project: String,
    pub(crate) id: FileId,
}

impl StoreOperation for ConfirmFile {
    type Output = Option<UploadedFile>;

    fn needs(&self, needs: &mut RowNeeds) {
        needs.projects.insert(self.project.clone());
    }

    fn channel(&self) -> CommitChannel<'_> {
        CommitChannel::Submits(&self.project)
    }

    fn has_client(&self) -> bool {
        true
    }

    async fn apply<T: StoreTransaction>(
        &self,
        tx: &mut T,
    ) -> Result<Option<UploadedFile>, T::Fault> {
        let now_ms = tx.now().wall_ms;
        let found = tx.query(uploads::find(&self.project, self.id)).await?;
        let Some(row) = first_row(&found)? else {
            return Ok(None);
        };
        if row.is_stored {
            return Ok(row.is_visible(now_ms).then_some(row.file));
        }
        let mut file = row.file;
        // Of two uploads of the same bytes at the same time, the second to end gives its own away.
        let twin = tx.query(uploads::twin(&file.project, &file.sha256, now_ms));
        let twin: Option<String> = twin.await?.first().map(|row| row.get(0)).transpose()?;
        let given_up = twin
            .filter(|key| *key != file.blob_key)
            .map(|key| std::mem::replace(&mut file.blob_key, key));
        tx.write(uploads::confirm(file.id, &file.blob_key)).await?;
        if let Some(key) = given_up {
            release_bytes(vec![(file.project.clone(), key, file.bytes)], tx).await?;
        }
        Ok(Some(file))
    }
}

/// Removes a visible file of this project, or hides it while an unfinished task names it.
#[derive(Debug)]
pub(crate) struct DeleteFile {
    pub(crate) project: String,
    pub(crate) id: FileId,
}

impl StoreOperation for DeleteFile {
    type Output = bool;

    fn needs(&self, needs: &mut RowNeeds) {
        needs.projects.insert(self.project.clone());
    }

    fn channel(&self) -> CommitChannel<'_> {
        CommitChannel::Submits(&self.project)
    }

    fn has_client(&self) -> bool {
        true
    }

    async fn apply<T: StoreTransaction>(&self, tx: &mut T) -> Result<bool, T::Fault> {
        let now_ms = tx.now().wall_ms;
        let found = tx.query(uploads::find(&self.project, self.id)).await?;
        if !first_row(&found)?.is_some_and(|row| row.is_visible(now_ms)) {
            return Ok(false);
        }
        let removed = tx.write(uploads::remove_unused(self.id)).await?;
        if removed.is_empty() {
            tx.write(uploads::hide(self.id, now_ms)).await?;
        }
        release_rows(&removed, tx).await?;
        Ok(true)
    }
}

/// Removes files, each with its project, if they are still due at this time and no unfinished task names
/// them. Returns their number.
#[derive(Debug)]
pub(crate) struct SweepFiles {
    pub(crate) files: Vec<(String, String)>,
    pub(crate) now_ms: UnixMs,
}

impl StoreOperation for SweepFiles {
    type Output = u64;

    fn needs(&self, needs: &mut RowNeeds) {
        let projects = self.files.iter().map(|(_, project)| project.clone());
        needs.projects.extend(projects);
    }

    async fn apply<T: StoreTransaction>(&self, tx: &mut T) -> Result<u64, T::Fault> {
        let ids = json(&self.files.iter().map(|(id, _)| id).collect::<Vec<_>>());
        let remove = uploads::remove_due(T::DIALECT, &ids, self.now_ms);
        let removed = tx.write(remove).await?;
        if removed.len() < self.files.len() {
            // The others are looked at later: they must not fill every batch.
            let due_ms = self.now_ms.saturating_add(NEEDED_MS);
            let postpone = uploads::postpone_due(T::DIALECT, &ids, self.now_ms, due_ms);
            tx.write(postpone).await?;
        }
        tx.write(uploads::remove_uses(T::DIALECT, &ids)).await?;
        release_rows(&removed, tx).await?;
        Ok(removed.len() as u64)
    }
}

async fn release_rows<T: StoreTransaction>(removed: &[SqlRow], tx: &mut T) -> Result<(), T::Fault> {
    let removed = removed.iter().map(uploads::read_bytes);
    release_bytes(removed.collect::<Result<_, _>>()?, tx).await
}

/// Gives up the bytes of rows that are gone: project, key and length. Those that no other row shares are
/// removed, and no longer charged.
async fn release_bytes<T: StoreTransaction>(
    removed: Vec<(String, String, u64)>,
    tx: &mut T,
) -> Result<(), T::Fault> {
    let removed = removed.into_iter();
    // By key, since several of these rows may have shared their bytes.
    let removed = removed.map(|(project, key, bytes)| (key, (project, bytes)));
    let mut removed: BTreeMap<String, (String, u64)> = removed.collect();
    if removed.is_empty() {
        return Ok(());
    }
    let keys: Vec<String> = removed.keys().cloned().collect();
    let used = uploads::used_keys(T::DIALECT, &keys);
    for row in tx.query(used.query).await? {
        removed.remove(&(used.read)(&row)?);
    }
    for (key, (project, bytes)) in removed {
        tx.charge_files(&project, -to_charge(bytes), &[key]);
    }
    Ok(())
}
