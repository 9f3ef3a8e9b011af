//! Secrets that all processes share.

use std::collections::HashSet;

use super::Harness;
use crate::SecretKey;

/// The first offered key wins.
pub async fn two_handles_share_one_signing_key(harness: &impl Harness) {
    let sites = harness.open_both("store").await;
    let asks = (0..16).zip(sites.iter().cycle().cloned());
    let asks = asks.map(|(number, site)| {
        let offered = SecretKey([number; 32]);
        tokio::spawn(async move { site.secrets.store_signing_key(offered).await.unwrap().0 })
    });
    let mut keys = HashSet::new();
    for ask in asks.collect::<Vec<_>>() {
        keys.insert(ask.await.unwrap());
    }
    assert_eq!(keys.len(), 1, "{keys:?}");
    for site in &sites {
        let kept = site.secrets.signing_key().await.unwrap();
        assert_eq!(kept.map(|key| key.0), keys.iter().next().copied());
    }
}

/// The first offer is kept, and no later one replaces it; another store has its own.
pub async fn a_signing_key_outlives_a_restart(harness: &impl Harness) {
    let ask = async |name: &str, byte| {
        let site = harness.open(name).await;
        let before = site.secrets.signing_key().await.unwrap();
        let kept = site.secrets.store_signing_key(SecretKey([byte; 32])).await;
        let kept = kept.unwrap();
        assert!(before.is_none_or(|before| before == kept));
        assert_eq!(site.secrets.signing_key().await.unwrap(), Some(kept));
        kept
    };
    assert_eq!(ask("store", 1).await, SecretKey([1; 32]));
    assert_eq!(ask("store", 2).await, SecretKey([1; 32]));
    let another = harness.open("another").await;
    assert_eq!(another.secrets.signing_key().await.unwrap(), None);
    drop(another);
    assert_eq!(ask("another", 3).await, SecretKey([3; 32]));
}

/// Every handle sees the new key, also after a restart.
pub async fn a_replaced_signing_key_is_seen_on_every_handle(harness: &impl Harness) {
    let [site, other] = harness.open_both("store").await;
    let first = site.secrets.store_signing_key(SecretKey([1; 32])).await;
    assert_eq!(first.unwrap(), SecretKey([1; 32]));
    let new = SecretKey([2; 32]);
    other.keys.replace_signing_key(new).await.unwrap();
    for handle in [&site, &other] {
        assert_eq!(handle.secrets.signing_key().await.unwrap(), Some(new));
        let kept = handle.secrets.store_signing_key(SecretKey([3; 32])).await;
        assert_eq!(kept.unwrap(), new);
    }
    drop((site, other));
    let site = harness.open("store").await;
    assert_eq!(site.secrets.signing_key().await.unwrap(), Some(new));
}
