//! Files that slipped by the store's own list of garbage: removed when they are old, their task is known
//! and does not name them, and nothing else is.

use std::collections::HashSet;
use std::sync::Arc;

use async_trait::async_trait;
use bytes::Bytes;
use futures_util::TryStreamExt;
use kinora_blobs::BlobStore;
use kinora_contract::lifecycle::upload_key;
use kinora_contract::{FileId, Task, TaskId};
use kinora_store::StoreError;
use kinora_worker::{KnownTasks, OrphanCheck};

use crate::bench::{Bench, NOW, Running, until};
use crate::engines::{Act, Puppet};

const HOUR_MS: u64 = 60 * 60 * 1000;

async fn put(bench: &Bench, key: &str) -> u64 {
    let bytes = Bytes::from_static(b"late");
    bench.blobs.put_bytes(key, bytes).await.unwrap();
    let listed = bench.blobs.list(key).try_concat().await.unwrap();
    listed[0].modified_at_ms
}

/// A wrong or new database beside old results.
#[tokio::test(flavor = "multi_thread")]
async fn p04_results_that_another_store_may_know_are_left_alone() {
    let bench = Bench::new();
    put(&bench, "stores/0000000000000001").await;
    let unknown = TaskId::from_parts(NOW, [9; 10]);
    let theirs = format!("videos/{unknown}/1/video.mp4");
    let written_at_ms = put(&bench, &theirs).await;
    let later_ms = written_at_ms + 2 * HOUR_MS;
    let look =
        async || kinora_worker::remove_orphans(&*bench.store.chores, &*bench.blobs, later_ms).await;
    let say = async |removes| {
        let (tasks, blobs) = (&*bench.store.chores, &*bench.blobs);
        let said = kinora_worker::find_orphans(tasks, blobs, later_ms, removes).await;
        said.unwrap()
    };
    assert_eq!(look().await.unwrap(), OrphanCheck::default());
    assert_eq!(say(true).await, None);
    assert_eq!(bench.keys().await, std::slice::from_ref(&theirs));
    // Who has gone for good takes its mark away, and then what it left is nobody's, but for an operator:
    // this store does not know the task.
    bench.blobs.delete("stores/0000000000000001").await.unwrap();
    for _ in 0..2 {
        let checked = look().await.unwrap();
        assert_eq!((checked.removed, checked.unknown.files), (0, 1));
        assert_eq!(checked.unknown.newest_ms, Some(NOW));
    }
    assert_eq!(say(false).await.unwrap().files, 1);
    assert_eq!(bench.keys().await, [theirs]);
    assert_eq!(say(true).await.unwrap().files, 1);
    assert_eq!(bench.keys().await, [""; 0]);
}

#[tokio::test(flavor = "multi_thread")]
async fn p03_old_files_that_no_task_names_are_removed_and_no_others() {
    let bench = Bench::new();
    let engine = Arc::new(Puppet::new(Act::Good));
    let unknown = TaskId::from_parts(NOW, [9; 10]);
    let of_unknown = format!("videos/{unknown}/1/video.mp4");
    let written_at_ms = put(&bench, &of_unknown).await;
    let reference = format!("references/{unknown}/0");
    put(&bench, &reference).await;
    let upload = upload_key(FileId::from_parts(NOW, [9; 10]));
    put(&bench, &upload).await;
    let not_ours = "videos/notes.txt".to_owned();
    put(&bench, &not_ours).await;
    // The files were written by this machine's clock; half an hour later they are young.
    bench.clock.advance(written_at_ms - NOW + HOUR_MS / 2);
    let first = Running::start(bench.worker(&engine));
    let id = bench.submit().await;
    let artifact = bench.completes(id).await;
    first.drained().await;
    let late = format!("videos/{id}/999/video.mp4");
    put(&bench, &late).await;
    let failed = bench.submit().await;
    bench.cancel(failed).await;
    put(&bench, &format!("videos/{failed}/1/video.mp4")).await;
    put(&bench, &format!("references/{failed}/0")).await;
    assert_eq!(bench.keys().await.len(), 4 + 5 + 3);

    bench.clock.advance(HOUR_MS);
    let second = Running::start(bench.worker(&engine));
    // Five of the completed task, and four that belong to nothing in this store.
    until("the leftovers of both tasks are removed", async || {
        bench.keys().await.len() == 4 + 5
    })
    .await;
    second.drained().await;
    let kept = bench.keys().await;
    for key in [&not_ours, &of_unknown, &reference, &upload] {
        assert!(kept.contains(key), "{key}: {kept:?}");
    }
    bench.is_whole(&artifact).await;
}

/// A store as it is seen from beside its service.
struct Beside(Arc<Task>);

#[async_trait]
impl KnownTasks for Beside {
    async fn known(
        &self,
        ids: &[TaskId],
    ) -> Result<Vec<Result<Option<Arc<Task>>, StoreError>>, StoreError> {
        let find = |id: &TaskId| Ok((*id == self.0.id).then(|| self.0.clone()));
        Ok(ids.iter().map(find).collect())
    }

    async fn known_uploads(&self, _: &[String]) -> Result<HashSet<String>, StoreError> {
        Ok(HashSet::new())
    }

    fn identity(&self) -> Result<u64, StoreError> {
        Ok(1)
    }
}

/// The command works beside a service, whose runs publish files before their tasks name them.
#[tokio::test(flavor = "multi_thread")]
async fn p03_an_operator_removes_no_file_of_a_task_that_runs() {
    let bench = Bench::new();
    let id = bench.submit().await;
    let known = Beside(bench.task(id).await);
    let published = format!("videos/{id}/1/video.mp4");
    let unknown = TaskId::from_parts(NOW, [9; 10]);
    let strange = format!("videos/{unknown}/1/video.mp4");
    let mut written_at_ms = 0;
    for key in [&published, &strange] {
        written_at_ms = put(&bench, key).await;
    }
    let look = kinora_worker::find_orphans(&known, &*bench.blobs, written_at_ms, true);
    assert_eq!(look.await.unwrap().unwrap().files, 1);
    assert_eq!(bench.keys().await, [published]);
}
