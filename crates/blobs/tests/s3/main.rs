//! The store in S3 against the conformance suite, on servers that create only and on those that
//! cannot, and against everything that may go wrong on the way.

#![allow(clippy::expect_used, clippy::unwrap_used, reason = "these are tests")]

mod credentials;
mod links;
mod tls;

use std::io::{ErrorKind, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use bytes::Bytes;
use futures_util::{StreamExt, TryStreamExt, future};
use hyper::Method;
use kinora_blobs::faulty::{FaultyBlobs, Plan};
use kinora_blobs::{
    BlobError, BlobStore, S3Options, S3Variables, conformance, measure_bytes, open, open_beside,
};
use kinora_testkit::s3::{Fault, TestS3};
use tempfile::NamedTempFile;

/// More than one part.
const BIG: usize = 20_000_000;

fn options(server: &TestS3) -> S3Options {
    options_with(server, TestS3::SECRET)
}

fn options_with(server: &TestS3, secret: &str) -> S3Options {
    let variables = S3Variables::read(|name| match name {
        "AWS_ACCESS_KEY_ID" => Some(TestS3::KEY_ID.to_owned()),
        "AWS_SECRET_ACCESS_KEY" => Some(secret.to_owned()),
        _ => None,
    });
    S3Options {
        endpoint: server.endpoint(),
        path_style: true,
        allow_http: true,
        variables,
        ..S3Options::default()
    }
}

fn url(prefix: &str) -> String {
    format!("s3://{}/{prefix}", TestS3::BUCKET)
}

fn store(server: &TestS3) -> Arc<dyn BlobStore> {
    open(&url("kinora"), &options(server)).unwrap()
}

fn pattern(length: usize) -> Bytes {
    let bytes = (0..length).map(|at| (at * 7 + at / 251) as u8);
    bytes.collect()
}

fn file(bytes: &[u8]) -> NamedTempFile {
    let mut file = NamedTempFile::new().unwrap();
    file.write_all(bytes).unwrap();
    file
}

async fn read(store: &dyn BlobStore, key: &str) -> std::io::Result<Bytes> {
    let stream = store.read(key, 0..u64::MAX).await.unwrap();
    let chunks: Vec<Bytes> = stream.try_collect().await?;
    Ok(chunks.concat().into())
}

/// Asserts an error that callers may try again, and that gives nothing away.
fn assert_unavailable<T>(result: Result<T, BlobError>, named: &str) {
    let error = result.err().expect("the call fails");
    assert!(matches!(error, BlobError::Unavailable(_)), "{error:?}");
    let text = format!("{error} {error:?}");
    assert!(text.contains(named), "{text}");
    assert!(
        !text.contains(TestS3::SECRET) && !text.contains(TestS3::KEY_ID),
        "{text}"
    );
}

async fn conforms(server: &TestS3, has_races: bool) {
    let number = AtomicU32::new(0);
    let make = || async {
        let number = number.fetch_add(1, Ordering::Relaxed);
        let url = url(&format!("tests/{number}"));
        // A wrapper without faults, for a type of its own.
        let open = || open(&url, &options(server)).unwrap();
        [(); 2].map(|()| FaultyBlobs::new(open(), Arc::new(Plan::seeded(1))))
    };
    if has_races {
        conformance::all(make).await;
    } else {
        conformance::all_but_races(make).await;
    }
    assert_eq!(server.unfinished_uploads(), 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_creates_only_conforms() {
    conforms(&TestS3::start(), true).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_ignores_create_only_conforms_but_for_races() {
    conforms(&TestS3::ignoring_create_only(), false).await;
}

/// What remains there: of puts at once more than one may succeed, and the bytes are whole and of one of them.
#[tokio::test]
async fn puts_at_once_where_create_only_is_ignored_leave_one_whole() {
    let server = TestS3::ignoring_create_only();
    let store = store(&server);
    let bodies: Vec<Bytes> = (0..8_u8).map(|n| Bytes::from(vec![n; 50_000])).collect();
    let puts = bodies
        .iter()
        .map(|body| store.put_bytes("a/b", body.clone()));
    let done = future::join_all(puts).await;
    let left = read(&*store, "a/b").await.unwrap();
    let of = bodies.iter().position(|body| *body == left).unwrap();
    assert!(done[of].is_ok(), "{done:?}");
}

#[tokio::test]
async fn a_server_that_refuses_create_only_is_served_without() {
    let server = TestS3::start();
    let store = store(&server);
    server.fail_methods(Fault::Status(501), &[Method::PUT], Some(3));
    store.put_bytes("a/b", pattern(10)).await.unwrap();
    store.put_bytes("a/c", pattern(10)).await.unwrap();
    let other = store.put_bytes("a/b", pattern(11)).await;
    assert!(matches!(other, Err(BlobError::Exists(_))), "{other:?}");
}

#[tokio::test]
async fn a_big_file_goes_in_parts_and_leaves_no_upload() {
    let server = TestS3::start();
    let store = store(&server);
    let bytes = pattern(BIG);
    let wanted = measure_bytes("a/big", &bytes);
    let from = file(&bytes);
    for _ in 0..2 {
        store.put_file(&wanted, from.path()).await.unwrap();
    }
    assert!(store.holds(&wanted).await.unwrap());
    assert!(read(&*store, "a/big").await.unwrap() == bytes);
    let other = measure_bytes("a/big", &bytes[1..]);
    let put = store.put_file(&other, file(&bytes[1..]).path()).await;
    assert!(matches!(put, Err(BlobError::Exists(_))), "{put:?}");
    // One byte differs from what was measured.
    let mut changed = bytes.to_vec();
    changed[BIG - 1] ^= 1;
    let wanted = measure_bytes("a/changed", &bytes);
    let put = store.put_file(&wanted, file(&changed).path()).await;
    assert_unavailable(put, "changed");
    assert_eq!(store.head("a/changed").await.unwrap(), None);
    assert_eq!(server.unfinished_uploads(), 0);
}

#[tokio::test]
async fn a_big_put_that_fails_is_aborted() {
    let server = TestS3::start();
    let store = store(&server);
    let bytes = pattern(BIG);
    let wanted = measure_bytes("a/big", &bytes);
    let from = file(&bytes);
    server.fail_methods(Fault::Status(503), &[Method::PUT], None);
    let put = store.put_file(&wanted, from.path()).await;
    assert_unavailable(put, "503 SlowDown");
    server.recover();
    assert_eq!(server.unfinished_uploads(), 0);
    assert_eq!(server.keys(), [""; 0]);
    store.put_file(&wanted, from.path()).await.unwrap();
}

#[tokio::test]
async fn the_lost_answer_of_a_put_is_resolved() {
    let server = TestS3::start();
    let store = store(&server);
    server.fail_methods(Fault::LoseAnswer, &[Method::PUT], Some(1));
    store.put_bytes("a/small", pattern(100)).await.unwrap();
    server.fail_methods(Fault::LoseAnswer, &[Method::PUT], None);
    store.put_bytes("a/other", pattern(100)).await.unwrap();
    server.fail_methods(Fault::LoseAnswer, &[Method::POST], None);
    let bytes = pattern(BIG);
    let wanted = measure_bytes("a/big", &bytes);
    let lost = store.put_file(&wanted, file(&bytes).path()).await;
    // No upload could be begun, as far as is known.
    assert_unavailable(lost, "broke");
    server.recover();
    store.put_file(&wanted, file(&bytes).path()).await.unwrap();
    assert!(store.holds(&wanted).await.unwrap());
}

#[tokio::test]
async fn a_server_that_is_away_is_unavailable_in_bounded_time_and_comes_back() {
    let server = TestS3::start();
    let store = store(&server);
    let body = pattern(1000);
    store.put_bytes("a/b", body.clone()).await.unwrap();
    for (fault, named) in [
        (Fault::Away, "127.0.0.1"),
        (Fault::Status(500), "500 InternalError"),
        (Fault::Status(503), "503 SlowDown"),
        (Fault::Status(403), "403 AccessDenied"),
    ] {
        server.fail(fault);
        // A limit, far above what it takes.
        let all = tokio::time::timeout(Duration::from_secs(60), async {
            assert_unavailable(store.read("a/b", 0..9).await.map(drop), named);
            assert_unavailable(store.delete("a/b").await, named);
            assert_unavailable(store.list("").next().await.unwrap(), named);
            assert_unavailable(store.probe().await, named);
            // Heads have no body with a code.
            let status = named.split(' ').next().unwrap();
            assert_unavailable(store.put_bytes("a/c", body.clone()).await, status);
            assert_unavailable(store.head("a/b").await, status);
            assert_unavailable(store.checksum("a/b").await, status);
        });
        all.await.expect("a bounded time");
        server.recover();
        store.probe().await.unwrap();
        assert_eq!(read(&*store, "a/b").await.unwrap(), body);
    }
    assert_eq!(server.keys(), ["kinora/a/b"]);
}

#[tokio::test]
async fn an_answer_that_does_not_come_is_given_up() {
    let server = TestS3::start();
    let options = S3Options {
        patience: Duration::from_millis(1),
        ..options(&server)
    };
    let store = open(&url("kinora"), &options).unwrap();
    server.fail(Fault::Hold);
    let head = store.head("a/b").await;
    assert_unavailable(head, "no answer from 127.0.0.1");
    server.recover();
}

#[tokio::test]
async fn a_missing_bucket_loses_no_blob() {
    let server = TestS3::start();
    let store = open("s3://another-bucket", &options(&server)).unwrap();
    assert_unavailable(store.read("a/b", 0..9).await.map(drop), "NoSuchBucket");
    assert_unavailable(store.list("").next().await.unwrap(), "NoSuchBucket");
    assert_unavailable(store.probe().await, "NoSuchBucket");
    assert_unavailable(store.put_bytes("a/b", Bytes::new()).await, "NoSuchBucket");
}

#[tokio::test]
async fn wrong_credentials_are_named_and_never_shown() {
    let server = TestS3::start();
    let options = options_with(&server, "wrong");
    let store = open(&url(""), &options).unwrap();
    assert_unavailable(store.probe().await, "403 SignatureDoesNotMatch");
    assert!(!format!("{store:?} {options:?}").contains("wrong"));
    assert!(!format!("{store:?}").contains(TestS3::KEY_ID));
}

#[tokio::test]
async fn corrupted_bodies_are_noticed() {
    let server = TestS3::start();
    let store = store(&server);
    let body = pattern(300_000);
    server.fail_methods(Fault::CorruptRequest, &[Method::PUT], None);
    store.put_bytes("a/b", body.clone()).await.unwrap_err();
    assert_eq!(server.keys(), [""; 0], "the server checks what arrives");
    let big = pattern(BIG);
    let wanted = measure_bytes("a/big", &big);
    store
        .put_file(&wanted, file(&big).path())
        .await
        .unwrap_err();
    assert_eq!(server.keys(), [""; 0]);
    assert_eq!(server.unfinished_uploads(), 0);
    server.recover();

    store.put_bytes("a/b", body.clone()).await.unwrap();
    server.fail_methods(Fault::CorruptAnswer, &[Method::GET], None);
    let error = read(&*store, "a/b").await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidData);
    server.recover();
    server.damage("kinora/a/b");
    let error = read(&*store, "a/b").await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidData);
}

#[tokio::test]
async fn objects_of_other_programs_are_measured_or_ignored() {
    let server = TestS3::start();
    let store = store(&server);
    let body = pattern(200_000);
    server.put("kinora/a/b", body.clone());
    let found = store.checksum("a/b").await.unwrap();
    assert_eq!(found, Some(measure_bytes("a/b", &body)));
    store.put_bytes("a/b", body.clone()).await.unwrap();
    let other = store.put_bytes("a/b", pattern(5)).await;
    assert!(matches!(other, Err(BlobError::Exists(_))), "{other:?}");
    for foreign in ["kinora/.probe-1", "kinora/Upper", "other/a", "kinora-2/a"] {
        server.put(foreign, Bytes::new());
    }
    let listed = store.list("").try_concat().await.unwrap();
    let keys: Vec<&str> = listed.iter().map(|entry| &*entry.key).collect();
    assert_eq!(keys, ["a/b"]);
}

#[tokio::test]
async fn a_store_that_is_opened_beside_a_service_puts_nothing() {
    let server = TestS3::start();
    let (own, beside) = (
        store(&server),
        open_beside(&url("kinora"), &options(&server)).unwrap(),
    );
    own.put_bytes("a/b", pattern(10)).await.unwrap();
    assert_unavailable(beside.put_bytes("a/c", pattern(10)).await, "reading only");
    assert_unavailable(beside.probe().await, "reading only");
    assert_eq!(read(&*beside, "a/b").await.unwrap(), pattern(10));
    beside.delete("a/b").await.unwrap();
    assert_eq!(server.keys(), [""; 0]);
}

#[tokio::test]
async fn chunks_are_bounded() {
    let server = TestS3::start();
    let store = store(&server);
    store.put_bytes("a/b", pattern(1_000_003)).await.unwrap();
    for range in [0..u64::MAX, 7..900_000] {
        let chunks: Vec<Bytes> = store
            .read("a/b", range)
            .await
            .unwrap()
            .try_collect()
            .await
            .unwrap();
        assert!(
            chunks
                .iter()
                .all(|chunk| (1..=128 * 1024).contains(&chunk.len()))
        );
    }
}
