//! Uploaded files: each is there once it is confirmed, as long as anybody may need it, and once for equal
//! bytes; deaths and races leave nothing behind.

use kinora_contract::lifecycle::upload_key;
use kinora_contract::{FileId, FileKind};

use super::bench::Bench;
use super::fixtures::{NOW, RETENTION_MS, id, task};
use super::handles::in_turn;
use super::{Harness, Site};
use crate::{
    AddFileOutcome, ExceededQuota, FileBounds, FilePageRequest, IdempotencyKey, InsertOutcome,
    ListOrder, NewFile, NewTask, PENDING_FILE_MS, QueueBounds, SweepRequest, UploadedFile,
};

/// Length of the files.
const BYTES: u64 = 1_000_000;
/// How long they are kept.
pub const LIFETIME_MS: u64 = 3_600_000;
/// How long a sweep leaves a file alone that a task needs.
const NEEDED_MS: u64 = 60_000;

const NO_BOUNDS: FileBounds = FileBounds {
    files_max: u64::MAX,
    project_bytes_max: u64::MAX,
    bytes_max: u64::MAX,
};

/// An id with the creation time `NOW + number`.
pub fn file_id(number: u64) -> FileId {
    FileId::from_parts(NOW + number, [7; 10])
}

/// A file without limits. Equal contents are equal bytes.
pub fn file(number: u64, project: &str, content: u64) -> NewFile {
    NewFile {
        id: file_id(number),
        project: project.to_owned(),
        filename: format!("photo \u{1f30a} {number}.png"),
        purpose: ["vision", "user_data"][usize::from(number.is_multiple_of(2))].to_owned(),
        kind: FileKind::Image,
        media_type: "image/png".to_owned(),
        bytes: BYTES,
        sha256: format!("{content:064x}"),
        lifetime_ms: LIFETIME_MS,
        idempotency: None,
        bounds: NO_BOUNDS,
    }
}

/// Adds a file that must be accepted, and says whether its bytes must be stored.
async fn add(stores: &Site, new: NewFile) -> (UploadedFile, bool) {
    match stores.files.add_file(new).await.unwrap() {
        AddFileOutcome::Added { file, needs_bytes } => (file, needs_bytes),
        other => panic!("not added: {other:?}"),
    }
}

/// Adds and confirms a file with bytes of its own.
pub async fn upload(stores: &Site, number: u64, project: &str) -> UploadedFile {
    let (added, needs_bytes) = add(stores, file(number, project, number)).await;
    assert!(needs_bytes);
    let confirmed = stores.files.confirm_file(added.id).await.unwrap();
    assert_eq!(confirmed.as_ref(), Some(&added));
    added
}

async fn is_there(stores: &Site, number: u64) -> bool {
    let found = stores.files.any_file(file_id(number)).await.unwrap();
    found.is_some()
}

async fn bytes(stores: &Site, project: &str) -> u64 {
    stores.tasks.usage(project).await.unwrap().bytes
}

fn naming(number: u64, project: &str, files: &[u64]) -> NewTask {
    NewTask {
        files: files.iter().copied().map(file_id).collect(),
        ..task(number, project)
    }
}

fn page(order: ListOrder) -> FilePageRequest {
    FilePageRequest {
        project: "one".to_owned(),
        after: None,
        limit: 100,
        order,
        purpose: None,
    }
}

/// It is in no list and under no id before, and for no other project ever, but for a signed address.
pub async fn a_file_is_there_once_it_is_confirmed(harness: &impl Harness) {
    let [stores, other] = harness.open_both("store").await;
    let files = &stores.files;
    let (added, needs_bytes) = add(&stores, file(1, "one", 1)).await;
    assert_eq!(added.blob_key, upload_key(file_id(1)));
    assert_eq!(added.expires_at_ms, NOW + LIFETIME_MS);
    assert!(needs_bytes && !is_there(&stores, 1).await);
    assert!(!files.delete_file("one", file_id(1)).await.unwrap());
    let listed = files.list_files(page(ListOrder::Ascending)).await.unwrap();
    assert_eq!((listed.files.len(), listed.has_more), (0, false));
    for _ in 0..2 {
        let confirmed = other.files.confirm_file(file_id(1)).await.unwrap();
        assert_eq!(confirmed.as_ref(), Some(&added));
    }
    assert_eq!(files.confirm_file(file_id(2)).await.unwrap(), None);
    let listed = files.list_files(page(ListOrder::Ascending)).await.unwrap();
    assert_eq!(listed.files, std::slice::from_ref(&added));
    for site in [&stores, &other] {
        let found = site.files.file("one", file_id(1)).await.unwrap();
        assert_eq!(found.as_ref(), Some(&added));
        assert!(is_there(site, 1).await);
        let foreign = site.files.file("two", file_id(1)).await.unwrap();
        assert_eq!(foreign, None);
    }
    assert!(!files.delete_file("two", file_id(1)).await.unwrap());
    drop((stores, other));

    let stores = harness.open("store").await;
    let found = stores.files.any_file(file_id(1)).await.unwrap();
    assert_eq!(found, Some(added));
    let keys = [1, 2].map(|number| upload_key(file_id(number)));
    let known = stores.chores.find_uploads(&keys).await.unwrap();
    assert_eq!(known.into_iter().collect::<Vec<_>>(), keys[..1]);
}

/// They count once, and the last of them removes them; another project has its own.
pub async fn equal_bytes_are_stored_once(harness: &impl Harness) {
    let stores = harness.open("store").await;
    let first = upload(&stores, 1, "one").await;
    for number in [2, 3] {
        let (twin, needs_bytes) = add(&stores, file(number, "one", 1)).await;
        assert_eq!((&twin.blob_key, needs_bytes), (&first.blob_key, false));
        stores.files.confirm_file(twin.id).await.unwrap().unwrap();
    }
    assert_eq!(bytes(&stores, "one").await, BYTES);
    let (_, needs_bytes) = add(&stores, file(4, "two", 1)).await;
    assert!(needs_bytes);
    for number in [1, 3] {
        assert!(
            stores
                .files
                .delete_file("one", file_id(number))
                .await
                .unwrap()
        );
        assert_eq!(bytes(&stores, "one").await, BYTES);
        assert_eq!(stores.files_due().await, [""; 0]);
    }
    // The last one expires.
    assert_eq!(stores.sweep(NOW + LIFETIME_MS).await.files, 2);
    assert_eq!(bytes(&stores, "one").await, 0);
    let both = [1, 4].map(|number| upload_key(file_id(number)));
    assert_eq!(stores.remove_files().await, both);
}

/// Neither finds the other's bytes when it begins.
pub async fn of_two_uploads_at_once_the_second_gives_its_bytes_away(harness: &impl Harness) {
    let sites = harness.open_both("store").await;
    for (number, site) in in_turn(&sites, 2) {
        let (_, needs_bytes) = add(&site, file(number, "one", 5)).await;
        assert!(needs_bytes);
    }
    assert_eq!(bytes(&sites[0], "one").await, 2 * BYTES);
    for (number, site) in in_turn(&sites, 2) {
        let confirmed = site.files.confirm_file(file_id(number)).await.unwrap();
        assert_eq!(confirmed.unwrap().blob_key, upload_key(file_id(0)));
    }
    assert_eq!(bytes(&sites[0], "one").await, BYTES);
    assert_eq!(sites[1].remove_files().await, [upload_key(file_id(1))]);
}

/// Whether the process died before or after it stored the bytes: its row is removed, and they with it.
pub async fn an_upload_that_died_leaves_nothing(harness: &impl Harness) {
    let stores = harness.open("store").await;
    add(&stores, file(1, "one", 1)).await;
    upload(&stores, 2, "one").await;
    drop(stores);

    let stores = harness.open("store").await;
    assert_eq!(bytes(&stores, "one").await, 2 * BYTES);
    let before_ms = NOW + PENDING_FILE_MS - 1;
    assert_eq!(stores.sweep(before_ms).await.files, 0);
    let untrusted = SweepRequest {
        due_ms: None,
        ..super::fixtures::sweep_at(NOW)
    };
    stores.clock.advance(1);
    assert_eq!(stores.sweep_by(untrusted).await.files, 0);
    assert_eq!(stores.sweep(before_ms + 1).await.files, 1);
    assert_eq!(stores.remove_files().await, [upload_key(file_id(1))]);
    assert_eq!(bytes(&stores, "one").await, BYTES);
    let late = stores.files.confirm_file(file_id(1)).await.unwrap();
    assert_eq!(late, None);
    assert!(is_there(&stores, 2).await);
}

/// However many are added at the same time, and by whom.
pub async fn files_and_their_bytes_are_bounded_exactly(harness: &impl Harness) {
    let sites = harness.open_both("store").await;
    let few = FileBounds {
        files_max: 150,
        ..NO_BOUNDS
    };
    let small = FileBounds {
        project_bytes_max: 37 * BYTES + 5,
        ..NO_BOUNDS
    };
    for (project, bounds, accepted) in [("one", few, 150), ("two", small, 37)] {
        let first = 1_000 * accepted;
        let adds = in_turn(&sites, 200).map(|(number, site)| {
            let new = NewFile {
                bounds,
                ..file(first + number, project, number)
            };
            tokio::spawn(async move { site.files.add_file(new).await.unwrap() })
        });
        let mut added = 0;
        for outcome in adds.collect::<Vec<_>>() {
            match outcome.await.unwrap() {
                AddFileOutcome::Added { .. } => added += 1,
                AddFileOutcome::TooMany => assert_eq!(project, "one"),
                AddFileOutcome::QuotaFull(quota) => {
                    assert_eq!((project, quota), ("two", ExceededQuota::ProjectBytes));
                }
                other => panic!("{other:?}"),
            }
        }
        assert_eq!(added, accepted);
        for site in &sites {
            assert_eq!(bytes(site, project).await, accepted * BYTES);
        }
    }
    let alone = NewFile {
        bounds: FileBounds {
            bytes_max: BYTES - 1,
            ..NO_BOUNDS
        },
        ..file(1, "three", 1)
    };
    let refused = sites[0].files.add_file(alone).await.unwrap();
    let never = AddFileOutcome::QuotaFull(ExceededQuota::Task);
    assert_eq!(refused, never);
    let task = NewTask {
        bounds: QueueBounds {
            project_bytes_max: 37 * BYTES,
            ..QueueBounds::NONE
        },
        ..task(1, "two")
    };
    let refused = sites[1].tasks.insert(task).await.unwrap();
    assert!(
        matches!(
            refused,
            InsertOutcome::QuotaFull(ExceededQuota::ProjectBytes)
        ),
        "files count for submits: {refused:?}"
    );
}

/// Nobody can name it any more, but its bytes stay, and it does not hold up the sweep of others.
pub async fn an_expired_file_stays_for_an_unfinished_task(harness: &impl Harness) {
    let stores = harness.open("store").await;
    for number in [1, 2] {
        upload(&stores, number, "one").await;
    }
    stores.submit_all([naming(1, "one", &[1])]).await;
    let at_ms = NOW + LIFETIME_MS;
    let sweep = |now_ms| SweepRequest {
        batch: 1,
        ..super::fixtures::sweep_at(now_ms)
    };
    for removed in [0, 1] {
        let swept = stores.sweep_by(sweep(at_ms)).await;
        assert_eq!((swept.files, swept.more), (removed, true));
    }
    assert_eq!(stores.sweep_by(sweep(at_ms)).await.files, 0);
    assert!(!is_there(&stores, 1).await);
    assert_eq!(stores.remove_files().await, [upload_key(file_id(2))]);
    let late = stores.tasks.insert(naming(2, "one", &[1])).await.unwrap();
    assert!(
        matches!(late, InsertOutcome::FileGone(gone) if gone == file_id(1)),
        "{late:?}"
    );
    drop(stores);

    let stores = harness.open_at("store", at_ms).await;
    stores.sweep(at_ms + NEEDED_MS).await;
    assert_eq!(stores.files_due().await, [""; 0]);
    stores.cancel("one", 1, RETENTION_MS).await;
    let before = bytes(&stores, "one").await;
    stores.sweep(at_ms + 2 * NEEDED_MS).await;
    assert_eq!(stores.remove_files().await, [upload_key(file_id(1))]);
    assert_eq!(bytes(&stores, "one").await, before - BYTES);
}

/// A task that is accepted finds its file until it ends, however close the deletion comes.
pub async fn a_deleted_file_stays_for_an_unfinished_task(harness: &impl Harness) {
    let sites = harness.open_both("store").await;
    let [stores, other] = &sites;
    upload(stores, 1, "one").await;
    stores.submit_all([naming(1, "one", &[1, 1])]).await;
    assert!(other.files.delete_file("one", file_id(1)).await.unwrap());
    assert!(!other.files.delete_file("one", file_id(1)).await.unwrap());
    assert!(!is_there(stores, 1).await);
    let (_, needs_bytes) = add(stores, file(2, "one", 1)).await;
    assert!(needs_bytes, "a file that goes lends nothing");
    assert_eq!(stores.sweep(NOW).await.files, 0);
    let claim = stores.claim_one().await;
    stores.complete(&claim).await.unwrap();
    assert_eq!(stores.sweep(NOW + NEEDED_MS).await.files, 1);
    let mut removed = stores.remove_files().await;
    removed.retain(|key| key.starts_with("uploads/"));
    assert_eq!(removed, [upload_key(file_id(1))]);

    // No task needs it any more: there is nothing to wait for.
    upload(stores, 3, "one").await;
    stores.submit_all([naming(3, "one", &[3])]).await;
    stores.cancel("one", 3, RETENTION_MS).await;
    assert!(other.files.delete_file("one", file_id(3)).await.unwrap());
    assert_eq!(stores.remove_files().await, [upload_key(file_id(3))]);

    for number in 10..30 {
        upload(stores, number, "one").await;
        let insert = stores.tasks.insert(naming(number, "one", &[number]));
        let delete = other.files.delete_file("one", file_id(number));
        let (inserted, deleted) = tokio::join!(insert, delete);
        assert!(deleted.unwrap());
        let is_accepted = match inserted.unwrap() {
            InsertOutcome::Inserted(_) => true,
            InsertOutcome::FileGone(_) => false,
            other => panic!("{other:?}"),
        };
        let is_removed = stores
            .files_due()
            .await
            .contains(&upload_key(file_id(number)));
        assert_eq!(is_accepted, !is_removed);
        stores.remove_files().await;
    }
}

/// It repeats the answer, and an upload that died goes on.
pub async fn an_idempotency_key_belongs_to_one_upload(harness: &impl Harness) {
    let sites = harness.open_both("store").await;
    let keyed = |number, project: &str, fingerprint| NewFile {
        idempotency: Some(IdempotencyKey {
            key: "key".to_owned(),
            fingerprint: [fingerprint; 32],
            bound_ms: 50_000,
        }),
        ..file(number, project, 1)
    };
    let [stores, other] = &sites;
    let (first, _) = add(stores, keyed(1, "one", 1)).await;
    let (again, needs_bytes) = add(other, keyed(2, "one", 1)).await;
    assert_eq!((&again, needs_bytes), (&first, true));
    stores.files.confirm_file(first.id).await.unwrap().unwrap();
    let outcome = async |number, fingerprint| {
        let new = keyed(number, "one", fingerprint);
        other.files.add_file(new).await.unwrap()
    };
    assert_eq!(outcome(3, 1).await, AddFileOutcome::Replayed(first));
    assert_eq!(outcome(3, 2).await, AddFileOutcome::KeyReused);
    assert_eq!(bytes(stores, "one").await, BYTES);
    add(stores, keyed(4, "two", 2)).await;
    // After its time, and after a deletion, it is free.
    stores.clock.advance(50_000);
    let (later, _) = add(stores, keyed(5, "one", 2)).await;
    stores.files.confirm_file(later.id).await.unwrap().unwrap();
    stores.submit_all([naming(1, "one", &[5])]).await;
    assert!(stores.files.delete_file("one", later.id).await.unwrap());
    add(stores, keyed(6, "one", 3)).await;
}

/// By creation, and by purpose.
pub async fn pages_of_files_join_to_the_whole_list_in_both_orders(harness: &impl Harness) {
    let stores = harness.open("store").await;
    for number in [5, 1, 4, 2, 3] {
        upload(&stores, number, "one").await;
    }
    upload(&stores, 6, "two").await;
    let read = async |request: FilePageRequest| {
        let (mut found, mut request) = (Vec::new(), request);
        loop {
            let part = stores.files.list_files(request.clone()).await.unwrap();
            assert!(part.files.len() == request.limit || !part.has_more);
            found.extend(part.files.iter().map(|file| file.id));
            if !part.has_more {
                return found;
            }
            request.after = found.last().copied();
        }
    };
    for limit in [1, 2, 5, 6] {
        for order in [ListOrder::Ascending, ListOrder::Descending] {
            let request = FilePageRequest {
                limit,
                ..page(order)
            };
            let mut all = [1, 2, 3, 4, 5].map(file_id);
            let mut even = [2, 4].map(file_id);
            if order == ListOrder::Descending {
                all.reverse();
                even.reverse();
            }
            assert_eq!(read(request.clone()).await, all);
            let user_data = FilePageRequest {
                purpose: Some("user_data".to_owned()),
                ..request
            };
            assert_eq!(read(user_data).await, even);
        }
    }
    stores.files.delete_file("one", file_id(3)).await.unwrap();
    let after_deleted = FilePageRequest {
        after: Some(file_id(3)),
        ..page(ListOrder::Ascending)
    };
    assert_eq!(read(after_deleted).await, [4, 5].map(file_id));
}

/// Otherwise it is not accepted, and nothing is stored.
pub async fn a_task_names_only_files_of_its_project(harness: &impl Harness) {
    let stores = harness.open("store").await;
    upload(&stores, 1, "one").await;
    upload(&stores, 2, "two").await;
    add(&stores, file(3, "one", 3)).await;
    upload(&stores, 4, "one").await;
    stores.files.delete_file("one", file_id(4)).await.unwrap();
    for gone in [2, 3, 4, 9] {
        let refused = stores.tasks.insert(naming(1, "one", &[1, gone])).await;
        assert!(
            matches!(refused, Ok(InsertOutcome::FileGone(file)) if file == file_id(gone)),
            "{gone}: {refused:?}"
        );
        assert!(stores.tasks.get("one", id(1)).await.unwrap().is_none());
    }
    assert!(stores.files.delete_file("one", file_id(1)).await.unwrap());
    let removed = [4, 1].map(|number| upload_key(file_id(number)));
    assert_eq!(
        stores.remove_files().await,
        removed,
        "no refused task uses it"
    );
    // A replay needs no file any more.
    let keyed = |files: &[u64]| NewTask {
        idempotency: Some(IdempotencyKey {
            key: "key".to_owned(),
            fingerprint: [1; 32],
            bound_ms: 50_000,
        }),
        ..naming(5, "two", files)
    };
    stores.submit_all([keyed(&[2])]).await;
    stores.files.delete_file("two", file_id(2)).await.unwrap();
    let replayed = stores.tasks.insert(keyed(&[2])).await.unwrap();
    assert!(
        matches!(replayed, InsertOutcome::Replayed(_)),
        "{replayed:?}"
    );
}
