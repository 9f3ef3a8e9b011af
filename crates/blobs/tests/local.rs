//! The local folder against the conformance suite and against its own crashes, and signed
//! addresses against forgery.

#![allow(clippy::expect_used, clippy::unwrap_used, reason = "these are tests")]

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use bytes::Bytes;
use kinora_blobs::sign::{SignatureError, SigningSecret, UrlSigner};
use kinora_blobs::{BlobError, BlobStore, LocalBlobs, S3Options, conformance, measure_bytes};
use kinora_contract::{FileId, TaskId};
use proptest::prelude::*;

fn folder() -> tempfile::TempDir {
    tempfile::tempdir().expect("a temporary folder")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_local_folder_conforms() {
    let root = folder();
    let number = std::sync::atomic::AtomicU32::new(0);
    conformance::all(|| async {
        let number = number.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        let root = root.path().join(number.to_string());
        [(); 2].map(|()| LocalBlobs::open(&root).expect("an empty store"))
    })
    .await;
}

/// Every file in the staging folder, of any process, but locks.
fn staged(root: &Path) -> Vec<String> {
    let mut found = Vec::new();
    let mut folders = vec![root.join("staging")];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else if !path.to_string_lossy().ends_with(".lock") {
                found.push(path.display().to_string());
            }
        }
    }
    found
}

/// The folder in which the only store that is open stages.
fn staging_of(root: &Path) -> PathBuf {
    let mut entries = fs::read_dir(root.join("staging")).unwrap();
    let mut folders = entries.by_ref().map(|entry| entry.unwrap().path());
    folders.find(|path| path.is_dir()).unwrap()
}

#[tokio::test]
async fn crash_leftovers_go_and_published_blobs_stay() {
    let root = folder();
    let blobs = LocalBlobs::open(root.path()).unwrap();
    blobs
        .put_bytes("kept/one", Bytes::from_static(b"kept"))
        .await
        .unwrap();
    drop(blobs);
    assert!(staged(root.path()).is_empty());
    // A crash between the two names of a file: linked, and not yet gone from staging.
    let dead = root.path().join("staging/0123456789abcdef");
    fs::create_dir(&dead).unwrap();
    fs::write(dead.with_extension("lock"), b"").unwrap();
    fs::hard_link(root.path().join("objects/kept/one"), dead.join("7")).unwrap();
    // Earlier versions staged in the folder itself.
    fs::write(root.path().join("staging/bytes-1"), b"half").unwrap();

    let blobs = LocalBlobs::open(root.path()).unwrap();
    assert!(staged(root.path()).is_empty(), "{:?}", staged(root.path()));
    assert_eq!(blobs.head("kept/one").await.unwrap(), Some(4));
    assert_eq!(
        fs::read(root.path().join("objects/kept/one")).unwrap(),
        b"kept"
    );
}

#[tokio::test]
async fn a_second_store_on_the_folder_removes_nothing_of_the_first() {
    let root = folder();
    let first = LocalBlobs::open(root.path()).unwrap();
    let half = staging_of(root.path()).join("half");
    fs::write(&half, b"half").unwrap();
    let probing = root.path().join(format!(
        "objects/.probe-{}",
        half.parent().unwrap().file_name().unwrap().display()
    ));
    fs::write(&probing, b"half").unwrap();
    for _ in 0..2 {
        let second = LocalBlobs::open(root.path()).unwrap();
        let put = second.put_bytes("a/b", Bytes::from_static(b"x")).await;
        put.unwrap();
        assert!(half.exists() && probing.exists());
        assert_eq!(first.head("a/b").await.unwrap(), Some(1));
    }
    first.probe().await.unwrap();
    assert!(half.exists() && !probing.exists());
}

/// It holds the folder alone, and would empty the staging folder at its start.
#[test]
fn a_folder_that_an_earlier_version_uses_is_refused() {
    let root = folder();
    drop(LocalBlobs::open(root.path()).unwrap());
    let earlier = fs::File::open(root.path()).unwrap();
    earlier.lock().unwrap();
    LocalBlobs::open(root.path()).unwrap_err();
    drop(earlier);
    LocalBlobs::open(root.path()).unwrap();
}

/// As a cleaner of temporary files does it, under a running service.
#[tokio::test]
async fn folders_that_are_removed_are_made_again() {
    let (root, scratch) = (folder(), folder());
    let results = root.path().join("results");
    let blobs = LocalBlobs::open(&results).unwrap();
    let from = scratch.path().join("file");
    fs::write(&from, b"xy").unwrap();
    let file = measure_bytes("a/b", b"xy");
    for gone in ["staging", "objects", ""] {
        let gone = results.join(gone);
        fs::remove_dir_all(&gone).unwrap();
        let put = blobs.put_bytes("a/b", Bytes::from_static(b"x")).await;
        assert_eq!(put.unwrap().bytes, 1);
        blobs.delete("a/b").await.unwrap();

        fs::remove_dir_all(&gone).unwrap();
        blobs.probe().await.unwrap();
        fs::remove_dir_all(&gone).unwrap();
        blobs.put_file(&file, &from).await.unwrap();
        assert!(blobs.holds(&file).await.unwrap());
        blobs.delete("a/b").await.unwrap();
    }
}

/// `/dev/shm` is memory, and another file system than that of temporary files, or a second name is had after all.
#[tokio::test]
async fn a_file_of_another_file_system_is_copied_and_measured_again() {
    let root = folder();
    let blobs = LocalBlobs::open(root.path()).unwrap();
    let elsewhere = tempfile::tempdir_in("/dev/shm").unwrap();
    let from = elsewhere.path().join("file");
    fs::write(&from, b"bytes").unwrap();
    let file = measure_bytes("a/b", b"bytes");
    blobs.put_file(&file, &from).await.unwrap();
    assert!(blobs.holds(&file).await.unwrap());
    let device = |path: &Path| fs::metadata(path).unwrap().dev();
    if device(&from) != device(root.path()) {
        let damaged = measure_bytes("a/c", b"bytez");
        let put = blobs.put_file(&damaged, &from).await;
        assert!(matches!(put, Err(BlobError::Unavailable(_))), "{put:?}");
        assert_eq!(blobs.head("a/c").await.unwrap(), None);
    }
    assert!(staged(root.path()).is_empty());
}

#[tokio::test]
async fn a_store_that_was_opened_to_read_puts_nothing() {
    let root = folder();
    let beside =
        kinora_blobs::open_beside(root.path().to_str().unwrap(), &S3Options::default()).unwrap();
    let put = beside.put_bytes("a/b", Bytes::new()).await;
    assert!(matches!(put, Err(BlobError::Unavailable(_))), "{put:?}");
    assert_eq!(fs::read_dir(root.path()).unwrap().count(), 0);
}

#[tokio::test]
async fn a_probe_fails_where_a_put_would() {
    let root = folder();
    let blobs = LocalBlobs::open(root.path()).unwrap();
    blobs.probe().await.unwrap();
    for broken in ["staging", "objects"] {
        let path = root.path().join(broken);
        fs::remove_dir_all(&path).unwrap();
        fs::write(&path, b"no folder").unwrap();
        let probed = blobs.probe().await;
        assert!(
            matches!(probed, Err(BlobError::Unavailable(_))),
            "{probed:?}"
        );
        assert!(blobs.put_bytes("a", Bytes::new()).await.is_err());
        fs::remove_file(&path).unwrap();
        blobs.probe().await.unwrap();
    }
    drop(blobs);
    // Left by a crash, of an earlier version and of this one.
    for left in [".probe", ".probe-0123456789abcdef"] {
        fs::write(root.path().join("objects").join(left), b"half").unwrap();
    }
    drop(LocalBlobs::open(root.path()).unwrap());
    let left = fs::read_dir(root.path().join("objects")).unwrap();
    assert_eq!(left.count(), 0);
}

#[tokio::test]
async fn deletes_leave_no_empty_folders() {
    let root = folder();
    let blobs = LocalBlobs::open(root.path()).unwrap();
    for key in ["v/1/a", "v/1/b", "v/2/a"] {
        blobs.put_bytes(key, Bytes::new()).await.unwrap();
    }
    blobs.delete("v/1/a").await.unwrap();
    assert!(root.path().join("objects/v/1").exists());
    blobs.delete("v/1/b").await.unwrap();
    assert!(!root.path().join("objects/v/1").exists());
    blobs.delete("v/2/a").await.unwrap();
    assert_eq!(
        fs::read_dir(root.path().join("objects")).unwrap().count(),
        0
    );
}

#[tokio::test]
async fn a_disk_that_refuses_leaves_no_object() {
    let root = folder();
    let blobs = LocalBlobs::open(root.path()).unwrap();
    // A file where a folder is needed refuses every user, root included.
    fs::write(root.path().join("objects/taken"), b"x").unwrap();
    let put = blobs
        .put_bytes("taken/by/file", Bytes::from_static(b"y"))
        .await;
    assert!(matches!(put, Err(BlobError::Exists(_))), "{put:?}");
    let staging = staging_of(root.path());
    fs::remove_dir_all(&staging).unwrap();
    fs::write(&staging, b"x").unwrap();
    let put = blobs.put_bytes("fresh", Bytes::from_static(b"y")).await;
    assert!(matches!(put, Err(BlobError::Unavailable(_))), "{put:?}");
    assert_eq!(blobs.head("fresh").await.unwrap(), None);
}

const NOW_S: u64 = 1_760_000_000;

fn task(number: u8) -> TaskId {
    TaskId::from_parts(NOW_S * 1000, [number; 10])
}

fn signer(byte: u8) -> UrlSigner {
    UrlSigner::new(SigningSecret::new([byte; 32]), None)
}

#[test]
fn every_bit_flip_of_a_signed_query_is_refused() {
    let (signer, task) = (signer(1), task(1));
    for lead in ["", "variant=video&"] {
        let query = format!("{lead}{}", signer.sign(task, "video", NOW_S + 60));
        assert_eq!(signer.verify(task, "video", &query, NOW_S), Ok(()));
        for bit in 0..query.len() * 8 {
            let mut bytes = query.clone().into_bytes();
            bytes[bit / 8] ^= 1 << (bit % 8);
            if let Ok(flipped) = String::from_utf8(bytes) {
                assert!(
                    signer.verify(task, "video", &flipped, NOW_S).is_err(),
                    "{flipped}"
                );
            }
        }
    }
}

#[test]
fn every_other_field_is_refused() {
    let signer = signer(1);
    let query = signer.sign(task(1), "video", NOW_S + 60);
    let wrong = Err(SignatureError::Wrong);
    assert_eq!(signer.verify(task(2), "video", &query, NOW_S), wrong);
    assert_eq!(signer.verify(task(1), "thumbnail", &query, NOW_S), wrong);
    assert_eq!(
        self::signer(2).verify(task(1), "video", &query, NOW_S),
        wrong
    );
    let later = query.replace(&(NOW_S + 60).to_string(), &(NOW_S + 61).to_string());
    assert_eq!(signer.verify(task(1), "video", &later, NOW_S), wrong);
}

#[test]
fn an_address_opens_until_its_second_and_not_in_it() {
    let signer = signer(1);
    let query = signer.sign(task(1), "video", NOW_S);
    assert_eq!(signer.verify(task(1), "video", &query, NOW_S - 1), Ok(()));
    for late in [NOW_S, NOW_S + 1, u64::MAX] {
        let verdict = signer.verify(task(1), "video", &query, late);
        assert_eq!(verdict, Err(SignatureError::Expired));
    }
}

#[test]
fn only_the_spelling_that_is_handed_out_is_accepted() {
    let (signer, task) = (signer(1), task(1));
    let query = signer.sign(task, "video", NOW_S + 60);
    let (expires, signature) = query.split_once('&').unwrap();
    for wrong in [
        String::new(),
        format!("{query}&"),
        format!("{query}&x=1"),
        format!("x=1&{query}"),
        format!("{query}&{query}"),
        format!("{expires}&{query}"),
        format!("{query}&{signature}"),
        format!("{signature}&{expires}"),
        format!("variant=thumbnail&{query}"),
        format!("variant=video&variant=video&{query}"),
        format!("{query}&variant=video"),
        query.to_uppercase(),
        query.replace("expires=", "expires=0"),
        query.replace("expires=", "expires=+"),
        query.replace("expires=", "expires=%20"),
        query.replace("signature=", "signature=%30"),
        query[..query.len() - 1].to_owned(),
        format!("{query}0"),
        query.replace("signature=", "signature=0"),
    ] {
        assert_eq!(
            signer.verify(task, "video", &wrong, NOW_S),
            Err(SignatureError::Malformed),
            "{wrong}"
        );
    }
}

#[test]
fn a_rotated_secret_opens_old_addresses_and_signs_new_ones() {
    let (old, new) = (SigningSecret::new([1; 32]), SigningSecret::new([2; 32]));
    let before = UrlSigner::new(old.clone(), None).sign(task(1), "video", NOW_S + 60);
    let rotated = UrlSigner::new(new.clone(), Some(old));
    assert_eq!(rotated.verify(task(1), "video", &before, NOW_S), Ok(()));
    let after = rotated.sign(task(1), "video", NOW_S + 60);
    assert_ne!(before, after);
    let gone = UrlSigner::new(new, None);
    assert_eq!(gone.verify(task(1), "video", &after, NOW_S), Ok(()));
    assert_eq!(
        gone.verify(task(1), "video", &before, NOW_S),
        Err(SignatureError::Wrong)
    );
}

#[test]
fn a_secret_is_read_and_not_printed() {
    let root = folder();
    let path = root.path().join("secret");
    assert_eq!(SigningSecret::load(&path).unwrap(), None);
    for end in ["", "\n"] {
        fs::write(&path, format!("{}{end}", "07".repeat(32))).unwrap();
        let read = SigningSecret::load(&path).unwrap();
        assert_eq!(read, Some(SigningSecret::new([7; 32])));
        assert_eq!(format!("{read:?}"), "Some(Secret(..))");
    }
}

#[test]
fn a_damaged_secret_is_refused_and_kept() {
    let root = folder();
    let path = root.path().join("secret");
    for damaged in ["", "00", &"g".repeat(64), &"0".repeat(65)] {
        fs::write(&path, damaged).unwrap();
        assert!(SigningSecret::load(&path).is_err(), "{damaged:?}");
        assert_eq!(fs::read_to_string(&path).unwrap(), damaged);
    }
}

proptest! {
    #[test]
    fn no_made_up_query_is_accepted(query in "(variant=video&)?(expires=[0-9]{0,12})?&?(signature=[0-9a-f]{62,66})?") {
        prop_assert!(signer(1).verify(task(1), "video", &query, 0).is_err());
    }

    #[test]
    fn hostile_keys_reach_no_file(key in "(\\.\\./|[a-z./]){0,12}outside") {
        let root = folder();
        fs::write(root.path().join("outside"), b"secret").unwrap();
        let blobs = LocalBlobs::open(root.path().join("store")).unwrap();
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let found = runtime.block_on(blobs.head(&key));
        prop_assert!(!matches!(found, Ok(Some(_))), "{key}");
    }
}

#[test]
fn a_file_s_signature_opens_that_file_alone_and_no_result() {
    let file = |number| FileId::from_parts(NOW_S * 1000, [number; 10]);
    let signer = signer(1);
    let query = signer.sign_file(file(1), NOW_S + 1);
    assert_eq!(signer.verify_file(file(1), &query, NOW_S), Ok(()));
    let wrong = Err(SignatureError::Wrong);
    assert_eq!(signer.verify_file(file(2), &query, NOW_S), wrong);
    // The ids have the same number.
    assert_eq!(signer.verify(task(1), "video", &query, NOW_S), wrong);
    let of_result = signer.sign(task(1), "video", NOW_S + 1);
    assert_eq!(signer.verify_file(file(1), &of_result, NOW_S), wrong);
    let late = signer.verify_file(file(1), &query, NOW_S + 1);
    assert_eq!(late, Err(SignatureError::Expired));
    let led = format!("variant=video&{query}");
    let led = signer.verify_file(file(1), &led, NOW_S);
    assert_eq!(led, Err(SignatureError::Malformed));
}
