//! The key that signs result URLs. It is in the store, so all processes of the service share it. A
//! key file of the operator takes precedence; a file of an earlier version is imported into the
//! store.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use kinora_api::Api;
use kinora_blobs::sign::{SigningSecret, UrlSigner};
use kinora_store::{KeyStore, SecretKey, SecretStore, StoreContents, StoreError};

use crate::config::Config;
use crate::damage::WAY_ON;
use crate::failure::Failure;
use crate::{folder, system};

/// Interval of checks whether the store's key was replaced.
const FOLLOW_EVERY: Duration = Duration::from_secs(1);

/// The file in which earlier versions kept the key.
pub(crate) fn legacy_key_file(data: &Path) -> PathBuf {
    data.join("signing.key")
}

/// Returns a signer with the operator's key, or else with the store's, which also accepts URLs
/// signed with the other one; and the store's key.
pub(crate) async fn signer(
    config: &Config,
    secrets: &dyn SecretStore,
    holds: &StoreContents,
) -> Result<(UrlSigner, SecretKey), Failure> {
    let stored = load_or_create(config, secrets, holds).await?;
    let key = SecretKey(stored.bytes());
    let file = &config.results.signing_key_file;
    if !file.as_os_str().is_empty() {
        let own = read(file)?.ok_or_else(|| {
            Failure::new(format!(
                "The file {} in results.signing_key_file does not exist.",
                file.display()
            ))
        })?;
        // The store's key still verifies: URLs that were handed out before the operator set a key
        // file stay valid.
        return Ok((UrlSigner::new(own, Some(stored)), key));
    }
    let earlier = legacy_key_file(&config.data);
    // Belongs to a process that had its own store before it joined this one.
    let other = match read(&earlier) {
        Ok(found) => found.filter(|found| *found != stored),
        Err(failure) => {
            tracing::warn!(%failure, "file of an earlier version ignored; the store has the key");
            None
        }
    };
    if other.is_some() {
        let path = earlier.display();
        tracing::warn!(%path, "signing key in this file differs from the store's; URLs signed with it work only in this process");
    }
    Ok((UrlSigner::new(stored, other), key))
}

/// Follows replacements of the store's key, and drops cached task objects that were signed with the old one.
pub(crate) async fn follow_key(api: Api, mut known: SecretKey, secrets: Arc<dyn SecretStore>) {
    loop {
        // While the store is away, the key stays.
        if let Ok(Some(key)) = secrets.signing_key().await
            && key != known
        {
            known = key;
            api.signer.replace(&SigningSecret::new(key.0));
            // Cached task objects contain result URLs that were signed with the old key.
            api.rendered.clear();
            tracing::warn!("signing key replaced; earlier result addresses have expired");
        }
        tokio::time::sleep(FOLLOW_EVERY).await;
    }
}

/// Replaces the store's key, so that result addresses of before expire.
pub(crate) async fn expire_addresses(config: &Config, keys: &dyn KeyStore) -> Result<(), Failure> {
    let own = &config.results.signing_key_file;
    if !own.as_os_str().is_empty() {
        return Err(Failure::new(format!(
            "Result addresses are signed with the key in {}, of results.signing_key_file: to expire them, put another \
             key into it and restart every process.",
            own.display()
        )));
    }
    let new = keys.replace_signing_key(SecretKey(system::random()?)).await;
    new.map_err(|error| Failure::because("The signing key is not replaced", error))?;
    let earlier = legacy_key_file(&config.data);
    // Signatures by its key are accepted as long as it is there.
    folder::remove_if_present(&earlier).map_err(|error| {
        let what = format!(
            "The old signing key in {} is not removed",
            earlier.display()
        );
        Failure::because(what, error)
    })
}

/// Returns the store's key. A store without one gets that of an earlier version, or a new one.
async fn load_or_create(
    config: &Config,
    secrets: &dyn SecretStore,
    holds: &StoreContents,
) -> Result<SigningSecret, Failure> {
    if let Some(kept) = secrets.signing_key().await.map_err(unreadable)? {
        return Ok(SigningSecret::new(kept.0));
    }
    let path = legacy_key_file(&config.data);
    let earlier = read(&path)?;
    if earlier.is_none() {
        refuse_loss(config, holds)?;
    }
    let offered = match &earlier {
        Some(earlier) => earlier.bytes(),
        None => system::random()?,
    };
    // Several processes may start at once on an empty store, each with a key of its own to offer.
    // The first offer wins, and every process signs with the key that the store returns, not with
    // the one that it offered.
    let kept = secrets.store_signing_key(SecretKey(offered)).await;
    let kept = SigningSecret::new(kept.map_err(unreadable)?.0);
    if earlier.is_some() {
        let path = path.display();
        tracing::info!(%path, "signing key imported into the store; the file is no longer needed");
    }
    Ok(kept)
}

fn unreadable(error: StoreError) -> Failure {
    Failure::because("The signing key cannot be read", error)
}

/// Refuses a new key if tasks have URLs signed with an old one that neither the store nor a file
/// contains.
fn refuse_loss(config: &Config, holds: &StoreContents) -> Result<(), Failure> {
    if !holds.tasks {
        return Ok(());
    }
    let path = legacy_key_file(&config.data);
    let path = path.display();
    if config.accept_loss {
        tracing::warn!(%path, "loss accepted; URLs signed with the missing key no longer work");
        return Ok(());
    }
    Err(Failure::new(format!(
        "The signing key is missing, in the store and in {path}, although the store has tasks: with a new one all \
         result addresses that were handed out would be refused. {WAY_ON}"
    )))
}

fn read(path: &Path) -> Result<Option<SigningSecret>, Failure> {
    SigningSecret::load(path).map_err(|error| {
        Failure::because(
            format!("The signing key in {} cannot be read", path.display()),
            error,
        )
    })
}

#[cfg(test)]
mod tests {
    use kinora_contract::{ManualClock, TaskId};
    use kinora_store::EmbeddedStore;

    use super::*;

    struct SigningFixture {
        store: Arc<EmbeddedStore>,
        config: Config,
        _folder: tempfile::TempDir,
    }

    impl SigningFixture {
        fn new() -> Self {
            let folder = tempfile::tempdir().unwrap();
            let mut config = Config::defaults();
            config.data = folder.path().to_owned();
            Self {
                store: Arc::new(EmbeddedStore::open(Arc::new(ManualClock::at(0)))),
                config,
                _folder: folder,
            }
        }

        async fn signer(&self, tasks: bool) -> Result<UrlSigner, String> {
            let holds = StoreContents {
                tasks,
                ..StoreContents::default()
            };
            let signer = signer(&self.config, &*self.store.stores.secrets, &holds).await;
            signer
                .map(|(signer, _)| signer)
                .map_err(|failure| failure.to_string())
        }

        fn write(&self, byte: &str) {
            std::fs::write(legacy_key_file(&self.config.data), byte.repeat(32)).unwrap();
        }
    }

    fn opens(signer: &UrlSigner, by: &UrlSigner) -> bool {
        let task = TaskId::from_parts(1, [0; 10]);
        let query = by.sign(task, "video", 100);
        signer.verify(task, "video", &query, 0).is_ok()
    }

    #[tokio::test]
    async fn two_processes_sign_alike_and_no_file_is_made() {
        let (one, mut other) = (SigningFixture::new(), SigningFixture::new());
        other.store = one.store.clone();
        let (first, second) = (
            one.signer(false).await.unwrap(),
            other.signer(true).await.unwrap(),
        );
        assert!(opens(&first, &second) && opens(&second, &first));
        assert!(!legacy_key_file(&one.config.data).exists());
        let stranger = SigningFixture::new().signer(false).await.unwrap();
        assert!(!opens(&first, &stranger));
    }

    #[tokio::test]
    async fn the_key_of_an_earlier_version_goes_on_signing_also_without_its_file() {
        let service = SigningFixture::new();
        service.write("07");
        let before = UrlSigner::new(SigningSecret::new([7; 32]), None);
        let signer = service.signer(true).await.unwrap();
        assert!(opens(&before, &signer) && opens(&signer, &before));
        std::fs::remove_file(legacy_key_file(&service.config.data)).unwrap();
        let signer = service.signer(true).await.unwrap();
        assert!(opens(&before, &signer));
    }

    #[tokio::test]
    async fn addresses_of_a_file_that_came_too_late_open_and_none_is_signed_by_it() {
        let service = SigningFixture::new();
        let stored = service.signer(false).await.unwrap();
        service.write("08");
        let late = UrlSigner::new(SigningSecret::new([8; 32]), None);
        let signer = service.signer(true).await.unwrap();
        assert!(opens(&signer, &late) && opens(&stored, &signer) && !opens(&late, &signer));
        // Damaged, it is of no account: the store has the key.
        service.write("no");
        assert!(opens(&stored, &service.signer(true).await.unwrap()));
    }

    #[tokio::test]
    async fn addresses_that_were_expired_open_nothing_also_after_a_restart() {
        let mut service = SigningFixture::new();
        service.write("07");
        let before = service.signer(true).await.unwrap();
        expire_addresses(&service.config, &*service.store.stores.keys)
            .await
            .unwrap();
        let after = service.signer(true).await.unwrap();
        assert!(!opens(&after, &before) && !opens(&before, &after));
        service.config.results.signing_key_file = "own".into();
        let refused = expire_addresses(&service.config, &*service.store.stores.keys).await;
        let refused = refused.unwrap_err().to_string();
        assert!(refused.contains("signing_key_file"), "{refused}");
    }

    #[tokio::test]
    async fn the_operator_s_key_signs_before_the_store_s() {
        let mut service = SigningFixture::new();
        let stored = service.signer(false).await.unwrap();
        let file = service.config.data.join("own");
        service.config.results.signing_key_file.clone_from(&file);
        let missing = service.signer(true).await.unwrap_err();
        assert!(missing.contains("signing_key_file"), "{missing}");
        std::fs::write(&file, "09".repeat(32)).unwrap();
        let own = UrlSigner::new(SigningSecret::new([9; 32]), None);
        let signer = service.signer(true).await.unwrap();
        assert!(opens(&own, &signer) && opens(&signer, &stored));
    }

    #[tokio::test]
    async fn a_key_that_is_missing_beside_tasks_or_damaged_is_refused_and_not_replaced() {
        let mut service = SigningFixture::new();
        let missing = service.signer(true).await.unwrap_err();
        assert!(missing.contains("--accept-loss"), "{missing}");
        service.write("no");
        assert!(service.signer(true).await.is_err());
        assert_eq!(
            service.store.stores.secrets.signing_key().await.unwrap(),
            None
        );
        std::fs::remove_file(legacy_key_file(&service.config.data)).unwrap();
        service.config.accept_loss = true;
        service.signer(true).await.unwrap();
    }
}
