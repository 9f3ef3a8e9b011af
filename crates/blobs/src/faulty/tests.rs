//! An idle wrapper passes the conformance suite of its inner store, and each fault does what its
//! name says.
#![cfg(feature = "conformance")]

use std::sync::atomic::{AtomicU32, Ordering};

use futures_util::TryStreamExt;

use super::*;
use crate::{LocalBlobs, conformance};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_wrapper_with_nothing_to_do_conforms() {
    let root = tempfile::tempdir().unwrap();
    let number = AtomicU32::new(0);
    conformance::all(|| async {
        let number = number.fetch_add(1, Ordering::Relaxed);
        let root = root.path().join(number.to_string());
        [(); 2].map(|()| {
            let inner = LocalBlobs::open(&root).unwrap();
            FaultyBlobs::new(Arc::new(inner), Arc::new(Plan::seeded(1)))
        })
    })
    .await;
}

#[tokio::test]
async fn a_call_fails_before_or_after_it_is_done_and_a_read_breaks_off() {
    let root = tempfile::tempdir().unwrap();
    let real = Arc::new(LocalBlobs::open(root.path()).unwrap());
    let plan = Arc::new(Plan::seeded(1));
    let faulty = FaultyBlobs::new(real.clone(), plan.clone());
    let bytes = Bytes::from_static(b"bytes");

    plan.fail_call(BlobMethod::PutBytes, 1, Fault::Before);
    plan.fail_call(BlobMethod::PutBytes, 2, Fault::After);
    for there in [None, Some(5)] {
        assert!(faulty.put_bytes("a/b", bytes.clone()).await.is_err());
        assert_eq!(real.head("a/b").await.unwrap(), there);
    }
    // Only the same put may repeat a lost answer.
    assert_eq!(
        faulty.put_bytes("a/b", bytes.clone()).await.unwrap().bytes,
        5
    );
    let other = faulty.put_bytes("a/b", Bytes::from_static(b"other")).await;
    assert!(matches!(other, Err(BlobError::Exists(_))), "{other:?}");

    plan.fail_next(BlobMethod::Read, 1, Fault::After);
    let broken = faulty.read("a/b", 0..5).await.unwrap();
    let chunks: Result<Vec<Bytes>, _> = broken.try_collect().await;
    assert!(chunks.is_err(), "{chunks:?}");
    let whole = faulty.read("a/b", 0..5).await.unwrap();
    let whole: Vec<Bytes> = whole.try_collect().await.unwrap();
    assert_eq!(whole.concat(), b"bytes");

    plan.set(Rates::AWAY);
    assert!(faulty.delete("a/b").await.is_err() && faulty.head("a/b").await.is_err());
    assert_eq!(real.head("a/b").await.unwrap(), Some(5));
    assert_eq!(plan.injected().before, 3);
}
