//! API keys: found by hash, listed, revoked once, judged by time.

use std::time::Duration;

use super::bench::Bench;
use super::fixtures::{NOW, actor};
use super::{Harness, Site};
use crate::{KeyRotation, KeyScope, NewKey};

/// Only a failing case waits this long.
const PATIENCE: Duration = Duration::from_secs(60);

/// A key of the project `one`.
pub(super) fn key(number: u8) -> NewKey {
    NewKey {
        id: format!("key_{number:012}"),
        sha256: [number; 32],
        name: format!("key {number}, \"quoted\""),
        project: "one".to_owned(),
        scopes: KeyScope::VIDEOS.into(),
        models: None,
        requests_per_minute: None,
        unfinished_max: None,
        budget: crate::Budget::default(),
        created_at_ms: NOW + u64::from(number),
        expires_at_ms: None,
    }
}

async fn usable(stores: &Site, number: u8, now_ms: u64) -> bool {
    let found = stores.keys.find_key(&[number; 32], now_ms).await.unwrap();
    found.expect("the key is known").is_usable(now_ms)
}

/// Unchanged, with all of its restrictions, even after a restart.
pub async fn a_key_is_found_by_its_hash_only(harness: &impl Harness) {
    let restricted = NewKey {
        scopes: vec![KeyScope::Read, KeyScope::Operations],
        models: Some(vec!["kinora-a1".to_owned()]),
        requests_per_minute: Some(60),
        unfinished_max: Some(u32::MAX),
        budget: crate::Budget::default(),
        expires_at_ms: Some(NOW + 10),
        ..key(2)
    };
    let stores = harness.open("store").await;
    stores.keys.add_key(key(1), &actor("one")).await.unwrap();
    stores
        .keys
        .add_key(restricted.clone(), &actor("one"))
        .await
        .unwrap();
    assert!(
        stores
            .keys
            .add_key(
                NewKey {
                    id: "other".to_owned(),
                    ..key(1)
                },
                &actor("one")
            )
            .await
            .is_err()
    );
    drop(stores);
    let stores = harness.open("store").await;
    for _ in 0..2 {
        let found = stores.keys.find_key(&[2; 32], NOW).await.unwrap().unwrap();
        assert_eq!(format!("{:?}", found.key), format!("{restricted:?}"));
        assert!(found.is_usable(NOW + 9) && !found.is_usable(NOW + 10));
        assert!(stores.keys.find_key(&[3; 32], NOW).await.unwrap().is_none());
    }
    for bit in 0..256 {
        let mut near = [2; 32];
        near[bit / 8] ^= 1 << (bit % 8);
        let found = stores.keys.find_key(&near, NOW).await.unwrap();
        assert!(found.is_none(), "found by another hash: bit {bit}");
    }
    stores.keys.add_key(key(3), &actor("one")).await.unwrap();
    assert!(
        stores.keys.find_key(&[3; 32], NOW).await.unwrap().is_some(),
        "a miss is not remembered"
    );
}

/// Any handle may try. None succeeds once the store has had a key, even a revoked one.
pub async fn of_many_first_keys_one_is_added(harness: &impl Harness) {
    let sites = harness.open_both("store").await;
    let adds = (1..=16).zip(sites.iter().cycle().cloned());
    let adds = adds.map(|(number, site)| {
        tokio::spawn(async move {
            let by = actor("one");
            site.keys.add_first_key(key(number), &by).await.unwrap()
        })
    });
    let mut added = 0;
    for add in adds.collect::<Vec<_>>() {
        added += u32::from(add.await.unwrap());
    }
    let listed = sites[1].keys.list_keys().await.unwrap();
    assert_eq!((added, listed.len()), (1, 1));
    sites[0]
        .keys
        .revoke_key(&listed[0].key.id, NOW, &actor("one"))
        .await
        .unwrap();
    assert!(
        !sites[1]
            .keys
            .add_first_key(key(17), &actor("one"))
            .await
            .unwrap()
    );
    assert_eq!(sites[0].keys.list_keys().await.unwrap().len(), 1);
}

/// Including revoked ones.
pub async fn keys_are_listed_newest_first(harness: &impl Harness) {
    let stores = harness.open("store").await;
    for number in [2, 1, 3] {
        stores
            .keys
            .add_key(key(number), &actor("one"))
            .await
            .unwrap();
    }
    stores
        .keys
        .revoke_key("key_000000000003", NOW, &actor("one"))
        .await
        .unwrap();
    let listed = stores.keys.list_keys().await.unwrap();
    let order: Vec<_> = listed.iter().map(|one| one.key.sha256[0]).collect();
    assert_eq!(order, [3, 2, 1]);
    let revoked: Vec<_> = listed.iter().map(|one| one.revoked_at_ms).collect();
    assert_eq!(revoked, [Some(NOW), None, None]);
}

/// The next lookup sees it; a second revocation keeps the first time.
pub async fn a_key_is_revoked_once_and_at_once(harness: &impl Harness) {
    let stores = harness.open("store").await;
    for number in [1, 2] {
        stores
            .keys
            .add_key(key(number), &actor("one"))
            .await
            .unwrap();
        assert!(usable(&stores, number, NOW).await);
    }
    assert!(
        stores
            .keys
            .revoke_key("key_000000000001", NOW + 5, &actor("one"))
            .await
            .unwrap()
    );
    assert!(!usable(&stores, 1, NOW).await);
    assert!(usable(&stores, 2, NOW).await);
    assert!(
        stores
            .keys
            .revoke_key("key_000000000001", NOW + 9, &actor("one"))
            .await
            .unwrap()
    );
    let found = stores.keys.find_key(&[1; 32], NOW).await.unwrap().unwrap();
    assert_eq!(found.revoked_at_ms, Some(NOW + 5));
    assert!(
        !stores
            .keys
            .revoke_key("key_unknown", NOW, &actor("one"))
            .await
            .unwrap()
    );
}

/// The new key and the end of the old one are one step, with grace and without.
pub async fn a_key_is_rotated_in_one_step(harness: &impl Harness) {
    let stores = harness.open("store").await;
    for number in [1, 2] {
        stores
            .keys
            .add_key(key(number), &actor("one"))
            .await
            .unwrap();
    }
    let rotate = async |old: &str, number, grace_ms| {
        let rotation = KeyRotation {
            old: old.to_owned(),
            new: key(number),
            now_ms: NOW,
            grace_ms,
        };
        let by = actor("one");
        let rotated = stores.keys.rotate_key(rotation, &by).await;
        rotated.map(|added| added.map(|one| one.key.id))
    };
    let added = rotate("key_000000000001", 3, 0).await.unwrap();
    assert_eq!(added.as_deref(), Some("key_000000000003"));
    assert!(!usable(&stores, 1, NOW).await && usable(&stores, 3, NOW).await);

    rotate("key_000000000002", 4, 1000).await.unwrap().unwrap();
    assert!(usable(&stores, 2, NOW + 999).await && usable(&stores, 4, NOW).await);
    assert!(!usable(&stores, 2, NOW + 1000).await);
    // A longer grace period does not extend a key's life.
    rotate("key_000000000002", 5, 9000).await.unwrap().unwrap();
    assert!(!usable(&stores, 2, NOW + 1000).await);

    assert!(rotate("key_unknown", 6, 0).await.unwrap().is_none());
    assert!(stores.keys.find_key(&[6; 32], NOW).await.unwrap().is_none());
    // The new key cannot be added: the old one stays valid.
    assert!(rotate("key_000000000003", 4, 0).await.is_err());
    assert!(usable(&stores, 3, NOW).await);
}

/// To about a minute, through the sweep, and only for successful uses.
pub async fn the_last_use_of_a_key_is_kept(harness: &impl Harness) {
    let stores = harness.open("store").await;
    for number in [1, 2] {
        stores
            .keys
            .add_key(key(number), &actor("one"))
            .await
            .unwrap();
    }
    stores
        .keys
        .revoke_key("key_000000000002", NOW, &actor("one"))
        .await
        .unwrap();
    let used = async |stores: &Site| -> Vec<_> {
        let listed = stores.keys.list_keys().await.unwrap();
        listed.iter().map(|one| one.last_used_at_ms).collect()
    };
    // Some stores note it a moment after the sweep.
    let noted = async |stores: &Site, at_ms: u64| {
        let wait = async {
            while used(stores).await != [None, Some(at_ms)] {
                tokio::task::yield_now().await;
            }
        };
        let noted = tokio::time::timeout(PATIENCE, wait).await;
        noted.expect("the use is noted");
    };
    let sweep = async || stores.sweep(NOW).await;
    assert_eq!(used(&stores).await, [None, None]);
    for number in [1, 2] {
        usable(&stores, number, NOW).await;
    }
    sweep().await;
    noted(&stores, NOW).await;
    usable(&stores, 1, NOW + 59_999).await;
    sweep().await;
    assert_eq!(used(&stores).await, [None, Some(NOW)]);
    usable(&stores, 1, NOW + 60_000).await;
    sweep().await;
    drop(stores);
    let stores = harness.open("store").await;
    noted(&stores, NOW + 60_000).await;
}
