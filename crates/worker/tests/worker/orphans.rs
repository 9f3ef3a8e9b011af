//! Files that slipped by the store's own list of garbage: removed when they are old and no task
//! names them, and nothing else is.

use std::sync::Arc;

use bytes::Bytes;
use kinora_blobs::BlobStore;
use kinora_contract::TaskId;

use crate::bench::{Bench, NOW, Running, until};
use crate::engines::{Act, Puppet};

const HOUR_MS: u64 = 60 * 60 * 1000;

async fn put(bench: &Bench, key: &str) -> u64 {
    let bytes = Bytes::from_static(b"late");
    bench.blobs.put_bytes(key, bytes).await.unwrap();
    let listed = bench.blobs.list(key, None, 1).await.unwrap();
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
    let look = async || kinora_worker::remove_orphans(&*bench.store, &*bench.blobs, later_ms).await;
    assert_eq!(look().await.unwrap(), 0);
    assert_eq!(bench.keys().await, [theirs]);
    // Who has gone for good takes its mark away, and then what it left is nobody's.
    bench.blobs.delete("stores/0000000000000001").await.unwrap();
    assert_eq!(look().await.unwrap(), 1);
    assert_eq!(bench.keys().await, [""; 0]);
}

#[tokio::test(flavor = "multi_thread")]
async fn p03_old_files_that_no_task_names_are_removed_and_no_others() {
    let bench = Bench::new();
    let engine = Arc::new(Puppet::new(Act::Good));
    let unknown = TaskId::from_parts(NOW, [9; 10]);
    let of_unknown = format!("videos/{unknown}/1/video.mp4");
    let written_at_ms = put(&bench, &of_unknown).await;
    put(&bench, &format!("references/{unknown}/0")).await;
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
    assert_eq!(bench.keys().await.len(), 3 + 3 + 3);

    bench.clock.advance(HOUR_MS);
    let second = Running::start(bench.worker(&engine));
    until("only named files are left", async || {
        bench.keys().await.len() == 4
    })
    .await;
    second.drained().await;
    assert!(bench.keys().await.contains(&not_ours));
    bench.is_whole(&artifact).await;
}
