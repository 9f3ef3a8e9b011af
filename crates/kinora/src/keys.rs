//! `kinora keys`: create, list, revoke. Works on the store itself, beside a running service.

use kinora_contract::{Clock, Entropy, KeyText};
use kinora_store::{ApiKey, KeyStore, NewKey, OpenOptions, Scope, StoreError};

use crate::cli::{CreateArgs, KeysArgs, KeysCommand, PlaceArgs};
use crate::config::Config;
use crate::failure::Failure;
use crate::system::{SystemClock, SystemEntropy};
use crate::{folder, print};

const DAY_MS: u64 = 24 * 60 * 60 * 1000;

/// Runs a key command.
pub(crate) fn run(args: &KeysArgs) -> Result<(), Failure> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| Failure::because("The command could not start", error))?;
    match &args.command {
        KeysCommand::Create(args) => runtime.block_on(create(args)),
        KeysCommand::List(place) => runtime.block_on(list(place)),
        KeysCommand::Revoke { id, place } => runtime.block_on(revoke(id, place)),
    }
}

fn open(place: &PlaceArgs) -> Result<std::sync::Arc<dyn KeyStore>, Failure> {
    let config = Config::load(place)?;
    folder::prepare(&config.data)?;
    kinora_store::open_keys(&config.store_url(), &OpenOptions::default())
        .map_err(|error| Failure::because("The store cannot be opened", error))
}

fn failed(error: StoreError) -> Failure {
    Failure::because("The store did not answer", error)
}

async fn create(args: &CreateArgs) -> Result<(), Failure> {
    let store = open(&args.place)?;
    let now_ms = SystemClock.now_ms();
    let (text, key) = NewKeyParts::of(args)?.make(now_ms)?;
    store.add_key(key).await.map_err(failed)?;
    print(&format!("{}\n", text.reveal()));
    Ok(())
}

async fn list(place: &PlaceArgs) -> Result<(), Failure> {
    let keys = open(place)?.list_keys().await.map_err(failed)?;
    let now_ms = SystemClock.now_ms();
    let mut rows = vec![["ID", "NAME", "PROJECT", "SCOPES", "MODELS", "STATE"].map(str::to_owned)];
    rows.extend(keys.iter().map(|key| row(key, now_ms)));
    print(&table(&rows));
    Ok(())
}

fn row(key: &ApiKey, now_ms: u64) -> [String; 6] {
    let state = match key {
        ApiKey {
            revoked_at_ms: Some(_),
            ..
        } => "revoked",
        key if key.is_usable(now_ms) => "usable",
        _ => "expired",
    };
    let key = &key.key;
    let scopes: Vec<&str> = key.scopes.iter().map(|scope| scope.name()).collect();
    let models = key
        .models
        .as_ref()
        .map_or_else(|| "all".to_owned(), |all| all.join(","));
    [
        key.id.clone(),
        key.name.clone(),
        key.project.clone(),
        scopes.join(","),
        models,
        state.to_owned(),
    ]
}

/// Columns as wide as their widest cell.
fn table(rows: &[[String; 6]]) -> String {
    let widths: [usize; 6] = std::array::from_fn(|column| {
        rows.iter()
            .map(|row| row[column].chars().count())
            .max()
            .unwrap_or(0)
    });
    rows.iter()
        .map(|row| {
            let cells = row
                .iter()
                .zip(widths)
                .map(|(cell, width)| format!("{cell:<width$}"));
            format!("{}\n", cells.collect::<Vec<_>>().join("  ").trim_end())
        })
        .collect()
}

async fn revoke(id: &str, place: &PlaceArgs) -> Result<(), Failure> {
    let found = open(place)?
        .revoke_key(id, SystemClock.now_ms())
        .await
        .map_err(failed)?;
    if !found {
        return Err(Failure::new(format!(
            "There is no key {id}; see `kinora keys list`."
        )));
    }
    print(&format!(
        "{id} is revoked; a running service refuses it within a second.\n"
    ));
    Ok(())
}

/// What a new key is to be, judged.
pub(crate) struct NewKeyParts {
    name: String,
    project: String,
    scopes: Vec<Scope>,
    models: Option<Vec<String>>,
    expires_in_days: Option<u32>,
    requests_per_minute: Option<u32>,
    unfinished_max: Option<u32>,
}

impl NewKeyParts {
    /// The key that a first start makes.
    pub(crate) fn first() -> Self {
        Self {
            name: "first".to_owned(),
            project: "default".to_owned(),
            scopes: Scope::ALL.to_vec(),
            models: None,
            expires_in_days: None,
            requests_per_minute: None,
            unfinished_max: None,
        }
    }

    fn of(args: &CreateArgs) -> Result<Self, Failure> {
        if args.name.trim().is_empty() || args.project.trim().is_empty() {
            return Err(Failure::new("A key needs a name and a project."));
        }
        let scopes: Vec<Scope> = if args.scopes.is_empty() {
            Scope::ALL.to_vec()
        } else {
            let read = |name: &String| {
                Scope::from_name(name).ok_or_else(|| {
                    Failure::new(format!(
                        "There is no scope '{name}': videos:write, videos:read."
                    ))
                })
            };
            args.scopes.iter().map(read).collect::<Result<_, _>>()?
        };
        Ok(Self {
            name: args.name.trim().to_owned(),
            project: args.project.trim().to_owned(),
            scopes,
            models: (!args.models.is_empty()).then(|| args.models.clone()),
            expires_in_days: args.expires_in_days,
            requests_per_minute: args.requests_per_minute,
            unfinished_max: args.unfinished_max,
        })
    }

    /// The key's text, and what is stored of it.
    pub(crate) fn make(self, now_ms: u64) -> Result<(KeyText, NewKey), Failure> {
        let text = KeyText::from_random(&random()?)
            .ok_or_else(|| Failure::new("The random bytes were unusable; try again."))?;
        let id: String = random::<12>()?
            .iter()
            .map(|byte| char::from(b'a' + byte % 26))
            .collect();
        let key = NewKey {
            id: format!("key_{id}"),
            sha256: text.sha256(),
            name: self.name,
            project: self.project,
            scopes: self.scopes,
            models: self.models,
            requests_per_minute: self.requests_per_minute,
            unfinished_max: self.unfinished_max,
            created_at_ms: now_ms,
            expires_at_ms: self
                .expires_in_days
                .map(|days| now_ms + u64::from(days) * DAY_MS),
        };
        Ok((text, key))
    }
}

/// Random bytes of the machine.
pub(crate) fn random<const N: usize>() -> Result<[u8; N], Failure> {
    let mut bytes = [0; N];
    SystemEntropy::default()
        .fill(&mut bytes)
        .map_err(|error| Failure::because("The machine gave no random bytes", error))?;
    Ok(bytes)
}
