//! The local folder against the conformance suite and against its own crashes, and signed
//! addresses against forgery.

#![allow(clippy::expect_used, clippy::unwrap_used, reason = "these are tests")]

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use bytes::Bytes;
use kinora_blobs::sign::{Secret, SignatureError, Signer};
use kinora_blobs::{BlobError, BlobStore, LocalBlobs, conformance};
use kinora_contract::TaskId;
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
        LocalBlobs::open(root.path().join(number.to_string())).expect("an empty store")
    })
    .await;
}

#[tokio::test]
async fn crash_leftovers_go_and_published_blobs_stay() {
    let root = folder();
    let blobs = LocalBlobs::open(root.path()).unwrap();
    blobs
        .put_bytes("kept/one", Bytes::from_static(b"kept"))
        .await
        .unwrap();
    // A crash between the two names of a file: linked, and not yet gone from staging.
    fs::hard_link(
        root.path().join("objects/kept/one"),
        blobs.staging_dir().join("half"),
    )
    .unwrap();
    fs::create_dir(blobs.staging_dir().join("task")).unwrap();
    fs::write(blobs.staging_dir().join("task/frame"), b"half").unwrap();
    drop(blobs);

    let blobs = LocalBlobs::open(root.path()).unwrap();
    assert_eq!(fs::read_dir(blobs.staging_dir()).unwrap().count(), 0);
    assert_eq!(blobs.head("kept/one").await.unwrap(), Some(4));
    assert_eq!(
        fs::read(root.path().join("objects/kept/one")).unwrap(),
        b"kept"
    );
}

/// As a cleaner of temporary files does it, under a running service.
#[tokio::test]
async fn folders_that_are_removed_are_made_again() {
    let root = folder();
    let results = root.path().join("results");
    let blobs = LocalBlobs::open(&results).unwrap();
    for gone in ["staging", "objects", ""] {
        let gone = results.join(gone);
        fs::remove_dir_all(&gone).unwrap();
        let put = blobs.put_bytes("a/b", Bytes::from_static(b"x")).await;
        assert_eq!(put.unwrap().bytes, 1);
        blobs.delete("a/b").await.unwrap();

        fs::remove_dir_all(&gone).unwrap();
        blobs.probe().await.unwrap();
        let from = blobs.staging_dir().join("file");
        fs::write(&from, b"xy").unwrap();
        assert_eq!(blobs.put_file("a/b", &from).await.unwrap().bytes, 2);
        blobs.delete("a/b").await.unwrap();

        // A file that was lost with its folder cannot be put, the next one can.
        fs::remove_dir_all(&gone).unwrap();
        assert!(blobs.put_file("a/c", &from).await.is_err());
        fs::write(&from, b"xyz").unwrap();
        assert_eq!(blobs.put_file("a/c", &from).await.unwrap().bytes, 3);
        blobs.delete("a/c").await.unwrap();
    }
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
    // What a crash left.
    fs::write(root.path().join("objects/.probe"), b"half").unwrap();
    // Of one that is in use nothing is touched.
    LocalBlobs::open(root.path()).unwrap_err();
    assert!(root.path().join("objects/.probe").exists());
    drop(blobs);
    drop(LocalBlobs::open(root.path()).unwrap());
    assert!(!root.path().join("objects/.probe").exists());
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
    // A file where a folder is needed refuses whoever runs this, root included.
    fs::write(root.path().join("objects/taken"), b"x").unwrap();
    let put = blobs
        .put_bytes("taken/by/file", Bytes::from_static(b"y"))
        .await;
    assert!(matches!(put, Err(BlobError::Exists(_))), "{put:?}");
    fs::remove_dir_all(blobs.staging_dir()).unwrap();
    fs::write(blobs.staging_dir(), b"x").unwrap();
    let put = blobs.put_bytes("fresh", Bytes::from_static(b"y")).await;
    assert!(matches!(put, Err(BlobError::Unavailable(_))), "{put:?}");
    assert_eq!(blobs.head("fresh").await.unwrap(), None);
}

const NOW_S: u64 = 1_760_000_000;

fn task(number: u8) -> TaskId {
    TaskId::from_parts(NOW_S * 1000, [number; 10])
}

fn signer(byte: u8) -> Signer {
    Signer::new(Secret::new([byte; 32]), None)
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
    let (old, new) = (Secret::new([1; 32]), Secret::new([2; 32]));
    let before = Signer::new(old.clone(), None).sign(task(1), "video", NOW_S + 60);
    let rotated = Signer::new(new.clone(), Some(old));
    assert_eq!(rotated.verify(task(1), "video", &before, NOW_S), Ok(()));
    let after = rotated.sign(task(1), "video", NOW_S + 60);
    assert_ne!(before, after);
    let gone = Signer::new(new, None);
    assert_eq!(gone.verify(task(1), "video", &after, NOW_S), Ok(()));
    assert_eq!(
        gone.verify(task(1), "video", &before, NOW_S),
        Err(SignatureError::Wrong)
    );
}

#[test]
fn a_secret_is_made_once_and_is_private() {
    let root = folder();
    let path = root.path().join("secret");
    let made: Vec<Secret> = std::thread::scope(|scope| {
        let load = || Secret::load_or_create(&path).unwrap();
        let threads: Vec<_> = (0..8).map(|_| scope.spawn(load)).collect();
        threads
            .into_iter()
            .map(|thread| thread.join().unwrap())
            .collect()
    });
    assert!(
        made.windows(2).all(|pair| pair[0] == pair[1]),
        "one secret for all"
    );
    assert_eq!(Secret::load_or_create(&path).unwrap(), made[0]);
    assert_eq!(
        fs::metadata(&path).unwrap().permissions().mode() & 0o777,
        0o600
    );
    assert_eq!(
        fs::read_dir(root.path()).unwrap().count(),
        1,
        "nothing else is left"
    );
    assert_eq!(format!("{:?}", made[0]), "Secret(..)");
}

#[test]
fn a_damaged_secret_is_refused_and_kept() {
    let root = folder();
    let path = root.path().join("secret");
    for damaged in ["", "00", &"g".repeat(64), &"0".repeat(65)] {
        fs::write(&path, damaged).unwrap();
        assert!(Secret::load_or_create(&path).is_err(), "{damaged:?}");
        assert_eq!(fs::read_to_string(&path).unwrap(), damaged);
    }
    assert!(Secret::load_or_create(Path::new("/no/such/folder/secret")).is_err());
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
