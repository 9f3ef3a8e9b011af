//! The data that moves from one store to another, in an independent format: no store's rows, and
//! texts as they are stored, so that even those of a newer version arrive unchanged. Leases and
//! fetches are left behind: a running task waits again.

use kinora_contract::lifecycle::{Record, References, kept_reference_keys};
use kinora_contract::spec::SPEC_VERSION;
use kinora_contract::{Priority, State, StoredFile, Task, TaskId, UnixMs};
use serde::{Deserialize, Serialize};
use serde_json::{Value, from_str, from_value};

use crate::{ApiKey, Gap, Hex, KeyAction, MovedDelivery, MovedWebhook, NewKey, Scope, TallyRow};

/// A task with all its stored data.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MovedTask {
    /// Order of acceptance.
    pub seq: u64,
    /// Its identifier.
    pub id: TaskId,
    /// The project that owns it.
    pub project: String,
    /// Its phase.
    pub phase: MovedPhase,
    /// 0 to 100.
    pub progress: u8,
    /// Number of claims, including that of a worker that held it when it was read.
    pub attempt: u32,
    /// Number of deaths of its workers.
    pub deaths: u32,
    /// The engine, as `name/version`.
    pub engine: Option<String>,
    /// Time of acceptance.
    pub created_at_ms: UnixMs,
    /// Time of the first claim.
    pub started_at_ms: Option<UnixMs>,
    /// Time of the end.
    pub finished_at_ms: Option<UnixMs>,
    /// Time when its files expire.
    pub expires_at_ms: Option<UnixMs>,
    /// JSON, of a completed task.
    pub artifact: Option<String>,
    /// JSON, of a failed task.
    pub failure: Option<String>,
    /// JSON; absent if there are none.
    pub warnings: Option<String>,
    /// The engine's own text for a later attempt.
    pub ticket: Option<String>,
    /// Version of the spec.
    pub spec_version: u32,
    /// JSON.
    pub spec: String,
    /// JSON.
    pub metadata: String,
    /// Priority within its project.
    #[serde(default, skip_serializing_if = "Priority::is_normal")]
    pub priority: Priority,
    /// Bytes of its references.
    pub reference_bytes: u64,
    /// Bytes charged to its project.
    pub charged_bytes: u64,
    /// Whether all references are stored.
    pub references_ready: bool,
    /// Idempotency keys bound to it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub idempotency: Vec<MovedBinding>,
}

/// Phases of a task outside of a store, where no task runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum MovedPhase {
    /// Waits for a worker, for the first time or again.
    Waiting,
    /// Has a result.
    Completed,
    /// Has none.
    Failed,
    /// Its files have expired.
    Expired,
}

impl MovedPhase {
    /// The phase with this name in a database.
    pub(crate) fn of(name: &str) -> Option<Self> {
        match name {
            "waiting" | "running" => Some(Self::Waiting),
            "completed" => Some(Self::Completed),
            "failed" => Some(Self::Failed),
            "expired" => Some(Self::Expired),
            _ => None,
        }
    }

    /// Its name in a database.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Waiting => "waiting",
            Self::Completed => "completed",
            Self::Failed => "failed",
            Self::Expired => "expired",
        }
    }
}

/// An idempotency key of a task's project.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MovedBinding {
    /// As sent.
    pub key: String,
    /// SHA-256 of the request, in hexadecimal.
    pub fingerprint: Hex,
    /// When the key becomes free.
    pub expires_at_ms: UnixMs,
}

impl MovedTask {
    /// Fills derived fields, and refuses invalid data.
    pub(crate) fn checked(mut self) -> Result<Self, String> {
        let wrong = |error: String| format!("{}: {error}", self.id);
        if let Some(record) = self.record().map_err(wrong)? {
            self.references_ready = record.references == References::AtHand;
        }
        Ok(self)
    }

    /// Its record in a store; `None` for a newer version of the spec, which only a newer program
    /// can read.
    ///
    /// # Errors
    /// The reason why the data is invalid.
    pub(crate) fn record(&self) -> Result<Option<Record>, String> {
        if self.spec_version > SPEC_VERSION {
            return Ok(None);
        }
        let wrong = |error: serde_json::Error| error.to_string();
        let state = match (self.phase, &self.artifact, &self.failure) {
            (MovedPhase::Waiting, None, None) => State::Waiting,
            (MovedPhase::Completed, Some(artifact), None) => {
                State::Completed(from_str(artifact).map_err(wrong)?)
            }
            (MovedPhase::Failed, None, Some(failure)) => {
                State::Failed(from_str(failure).map_err(wrong)?)
            }
            (MovedPhase::Expired, None, None) => State::Expired,
            _ => return Err("its phase and its fields do not agree".to_owned()),
        };
        let warnings = self.warnings.as_deref().map(from_str).transpose();
        let task = Task {
            id: self.id,
            project: self.project.clone(),
            spec: from_str(&self.spec).map_err(wrong)?,
            metadata: from_str(&self.metadata).map_err(wrong)?,
            priority: self.priority,
            state,
            progress: self.progress,
            created_at_ms: self.created_at_ms,
            started_at_ms: self.started_at_ms,
            finished_at_ms: self.finished_at_ms,
            expires_at_ms: self.expires_at_ms,
            attempt: self.attempt,
            engine: self.engine.clone(),
            warnings: warnings.map_err(wrong)?.unwrap_or_default(),
            trace: None,
        };
        Ok(Some(Record {
            seq: self.seq,
            references: References::stored(self.references_ready, &task),
            task: task.into(),
            lease: None,
            ticket: self.ticket.as_deref().map(Into::into),
            reference_bytes: self.reference_bytes,
            charged_bytes: self.charged_bytes,
            deaths: self.deaths,
        }))
    }

    /// The model, even for a newer version of the spec; empty if that has none.
    pub(crate) fn model(&self) -> String {
        let spec: Value = from_str(&self.spec).unwrap_or_default();
        spec["model"].as_str().unwrap_or_default().to_owned()
    }

    /// Video, thumbnail and spritesheet of a completed task, with their lengths and hashes.
    #[must_use]
    pub fn results(&self) -> Vec<StoredFile> {
        let artifact = self.artifact.as_deref().map(from_str::<Value>);
        let Some(Ok(Value::Object(fields))) = artifact else {
            return Vec::new();
        };
        let files = fields.into_iter().map(|(_, field)| field);
        files.filter_map(|field| from_value(field).ok()).collect()
    }

    /// Keys of the references kept for it: while it is unfinished, and for a draft's final. Some
    /// may not exist. Empty for a newer version, whose task fetches them again.
    #[must_use]
    pub fn references(&self) -> Vec<String> {
        match self.record() {
            Ok(Some(record)) => kept_reference_keys(&record.task),
            _ => Vec::new(),
        }
    }

    /// Whether it waits for a worker.
    #[must_use]
    pub fn is_unfinished(&self) -> bool {
        self.phase == MovedPhase::Waiting
    }
}

/// The data of a store besides tasks, keys and chores.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MovedStore {
    /// The store's own number, which its mark beside the results contains.
    pub identity: u64,
    /// The largest fencing token issued: keys of results contain tokens.
    pub token: u64,
    /// Creation time of the newest task ever accepted.
    pub newest_ms: UnixMs,
    /// Periods that tasks of other copies may belong to.
    pub gaps: Vec<Gap>,
    /// The key that signs result URLs.
    pub signing_key: Option<Hex>,
    /// Sums over ended tasks, by day, project and model.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tallies: Vec<TallyRow>,
    /// Changes of API keys, oldest first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub key_log: Vec<KeyAction>,
    /// Receivers of events, in the order of their creation.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub webhooks: Vec<MovedWebhook>,
    /// Deliveries that are still due, oldest first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub deliveries: Vec<MovedDelivery>,
}

/// An API key, with the hash of its secret.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MovedKey {
    id: String,
    sha256: Hex,
    name: String,
    project: String,
    scopes: Vec<String>,
    models: Option<Vec<String>>,
    requests_per_minute: Option<u32>,
    unfinished_max: Option<u32>,
    created_at_ms: UnixMs,
    expires_at_ms: Option<UnixMs>,
    revoked_at_ms: Option<UnixMs>,
    last_used_at_ms: Option<UnixMs>,
}

impl From<ApiKey> for MovedKey {
    fn from(stored: ApiKey) -> Self {
        let ApiKey {
            key,
            revoked_at_ms,
            last_used_at_ms,
        } = stored;
        Self {
            id: key.id,
            sha256: Hex(key.sha256),
            name: key.name,
            project: key.project,
            scopes: key
                .scopes
                .iter()
                .map(|scope| scope.name().to_owned())
                .collect(),
            models: key.models,
            requests_per_minute: key.requests_per_minute,
            unfinished_max: key.unfinished_max,
            created_at_ms: key.created_at_ms,
            expires_at_ms: key.expires_at_ms,
            revoked_at_ms,
            last_used_at_ms,
        }
    }
}

impl TryFrom<&MovedKey> for ApiKey {
    type Error = String;

    fn try_from(moved: &MovedKey) -> Result<Self, String> {
        let scope = |name: &String| {
            Scope::from_name(name).ok_or_else(|| format!("{}: unknown scope {name:?}", moved.id))
        };
        let moved = moved.clone();
        Ok(Self {
            key: NewKey {
                scopes: moved.scopes.iter().map(scope).collect::<Result<_, _>>()?,
                id: moved.id.clone(),
                sha256: moved.sha256.0,
                name: moved.name,
                project: moved.project,
                models: moved.models,
                requests_per_minute: moved.requests_per_minute,
                unfinished_max: moved.unfinished_max,
                created_at_ms: moved.created_at_ms,
                expires_at_ms: moved.expires_at_ms,
            },
            revoked_at_ms: moved.revoked_at_ms,
            last_used_at_ms: moved.last_used_at_ms,
        })
    }
}

/// Work to do outside of the store: a file to remove, or an upstream job to cancel.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MovedChore {
    /// Its name in a database.
    pub kind: String,
    /// Blob key or task id.
    pub subject: String,
    /// Of an upstream job.
    pub model: Option<String>,
    /// Name of the job at the upstream.
    pub ticket: Option<String>,
}
