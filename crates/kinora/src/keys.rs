//! `kinora keys`: create, list, rotate, revoke, and the log of these. Works directly on the store,
//! beside a running service, and never creates a store.

mod listing;
mod new_key;

use std::sync::Arc;

use kinora_contract::Clock;
use kinora_store::{ApiKey, KeyRotation, KeyStore, OpenError};

use crate::cli::{CreateArgs, HomeArgs, KeysCommand, ListArgs, RotateArgs};
use crate::config::Config;
use crate::failure::Failure;
use crate::output::print;
use crate::system::{SystemClock, current_actor};
use crate::{shell_hint, signing, store_access};
pub(crate) use new_key::NewKeyParts;

const HOUR_MS: u64 = 60 * 60 * 1000;

/// Runs a key command.
pub(crate) fn run(command: &KeysCommand) -> Result<(), Failure> {
    let runtime = store_access::runtime()?;
    match command {
        KeysCommand::Create(args) => runtime.block_on(create(args)),
        KeysCommand::List(args) => runtime.block_on(list(args)),
        KeysCommand::Log(args) => runtime.block_on(listing::show_log(args)),
        KeysCommand::Rotate(args) => runtime.block_on(rotate(args)),
        KeysCommand::Revoke {
            key,
            expire_addresses,
            home,
        } => runtime.block_on(revoke(key, *expire_addresses, home)),
    }
}

fn open(config: &Config, home: &HomeArgs) -> Result<Arc<dyn KeyStore>, Failure> {
    let opened = kinora_store::open_keys(&config.store_url());
    opened.map_err(|error| match error {
        OpenError::Missing(path) => Failure::new(format!(
            "There is no store at {}. Name the data folder of your service with --data, or its \
             configuration file with --config; or make a store here by `{}`, which also makes a \
             first key.",
            path.display(),
            shell_hint::command("serve", home)
        )),
        error => Failure::because("The store cannot be opened", error),
    })
}

async fn create(args: &CreateArgs) -> Result<(), Failure> {
    let config = store_access::config(&args.home)?;
    let parts = NewKeyParts::from_args(args, &config)?;
    let store = open(&config, &args.home)?;
    let now_ms = SystemClock.now_ms();
    // Only this look keeps names unique. Two `kinora keys create` at the same moment can make
    // twins, and `find_key` then asks for an id.
    let existing = store.list_keys().await?;
    if let Some(twin) = usable_keys_named(&existing, parts.name(), now_ms).first() {
        return Err(Failure::new(format!(
            "There is a usable key of this name, {}. Choose another name, or replace that key with \
             `{}`.",
            twin.key.id,
            shell_hint::command(&format!("keys rotate {}", twin.key.id), &args.home)
        )));
    }
    let (text, key) = parts.generate(now_ms)?;
    store.add_key(key, &current_actor()).await?;
    print(&format!("{}\n", text.reveal()));
    Ok(())
}

async fn list(args: &ListArgs) -> Result<(), Failure> {
    let config = store_access::config(&args.home)?;
    let store = open(&config, &args.home)?;
    let keys = store.list_keys().await?;
    let now_ms = SystemClock.now_ms();
    if args.json {
        print(&listing::json(&keys, now_ms));
    } else {
        print(&listing::table(&keys, now_ms));
    }
    Ok(())
}

async fn rotate(args: &RotateArgs) -> Result<(), Failure> {
    let config = store_access::config(&args.home)?;
    let store = open(&config, &args.home)?;
    let now_ms = SystemClock.now_ms();
    let keys = store.list_keys().await?;
    let old = find_key(&keys, &args.key, now_ms)?;
    if !old.is_usable(now_ms) {
        return Err(Failure::new(format!(
            "The key {} is revoked or expired, so that there is nothing to rotate; make a new one \
             with `keys create`.",
            old.key.id
        )));
    }
    let (text, new) = NewKeyParts::from_key(old).generate(now_ms)?;
    let rotation = KeyRotation {
        old: old.key.id.clone(),
        new,
        now_ms,
        grace_ms: u64::from(args.grace) * HOUR_MS,
    };
    if store
        .rotate_key(rotation, &current_actor())
        .await?
        .is_none()
    {
        return Err(unknown_key(&args.key));
    }
    print(&format!("{}\n", text.reveal()));
    Ok(())
}

async fn revoke(key: &str, expire_addresses: bool, home: &HomeArgs) -> Result<(), Failure> {
    let config = store_access::config(home)?;
    let store = open(&config, home)?;
    let now_ms = SystemClock.now_ms();
    let keys = store.list_keys().await?;
    let id = &find_key(&keys, key, now_ms)?.key.id;
    if !store.revoke_key(id, now_ms, &current_actor()).await? {
        return Err(unknown_key(key));
    }
    print(&format!(
        "{id} is revoked; a running service refuses it within a second.\n"
    ));
    if expire_addresses {
        signing::expire_addresses(&config, &*store).await?;
        print(
            "All result addresses that were handed out have expired; a running service follows within two seconds.\n",
        );
    } else {
        print(
            "Result addresses that were handed out open until their tasks expire; --expire-addresses ends all of them.\n",
        );
    }
    Ok(())
}

/// The key with this id, or the one usable key with this name.
fn find_key<'k>(keys: &'k [ApiKey], wanted: &str, now_ms: u64) -> Result<&'k ApiKey, Failure> {
    if let Some(key) = keys.iter().find(|one| one.key.id == wanted) {
        return Ok(key);
    }
    match usable_keys_named(keys, wanted, now_ms).as_slice() {
        [only] => Ok(*only),
        [] => Err(unknown_key(wanted)),
        several => {
            let ids: Vec<&str> = several.iter().map(|one| one.key.id.as_str()).collect();
            Err(Failure::new(format!(
                "Several usable keys have the name '{}'; give the id of one: {}.",
                wanted.escape_debug(),
                ids.join(", ")
            )))
        }
    }
}

/// The usable keys with this name.
fn usable_keys_named<'k>(keys: &'k [ApiKey], name: &str, now_ms: u64) -> Vec<&'k ApiKey> {
    keys.iter()
        .filter(|one| one.key.name == name && one.is_usable(now_ms))
        .collect()
}

fn unknown_key(key: &str) -> Failure {
    Failure::new(format!(
        "There is no key with the id {0}, and no usable key with that name; `kinora keys list` shows \
         all.",
        key.escape_debug()
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use kinora_store::NewKey;

    fn key(id: &str, name: &str, expires_at_ms: Option<u64>) -> ApiKey {
        let (_, made) = NewKeyParts::for_first_start().generate(0).unwrap();
        ApiKey {
            key: NewKey {
                id: id.to_owned(),
                name: name.to_owned(),
                expires_at_ms,
                ..made
            },
            revoked_at_ms: None,
            last_used_at_ms: None,
        }
    }

    #[test]
    fn a_key_is_found_by_its_id_or_the_name_of_one_usable_key() {
        let keys = [
            key("key_a", "web", Some(100)),
            key("key_b", "web", None),
            key("key_c", "cron", None),
            key("key_d", "key_c", None),
        ];
        let found = |wanted, now_ms| {
            find_key(&keys, wanted, now_ms)
                .map(|key| key.key.id.as_str())
                .map_err(|failure| failure.to_string())
        };
        assert_eq!(found("key_a", 200), Ok("key_a"));
        assert_eq!(found("cron", 0), Ok("key_c"));
        assert_eq!(found("key_c", 0), Ok("key_c"));
        assert_eq!(found("web", 200), Ok("key_b"));
        let both = found("web", 0).unwrap_err();
        assert!(both.contains("key_a, key_b"), "{both}");
        assert!(found("nobody", 0).unwrap_err().contains("nobody"));
    }
}
