//! The log of changes of API keys: who has created, rotated and revoked which key, and when. An entry is stored with the
//! change itself, and never holds a secret.

use kinora_contract::UnixMs;
use serde::{Deserialize, Serialize};

/// Who changes keys: the user of a command, or the service at its first start.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Actor {
    /// Name of the system's user.
    pub user: String,
    /// Name of the machine.
    pub host: String,
}

/// An entry of the log.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct KeyAction {
    /// When, by the clock of whoever did it.
    pub at_ms: UnixMs,
    /// What was done.
    pub kind: KeyActionKind,
    /// Id of the key.
    pub key: String,
    /// The key's name.
    pub name: String,
    /// The key's project.
    pub project: String,
    /// Id of the key that takes its place.
    pub successor: Option<String>,
    /// Who did it.
    pub by: Actor,
}

/// What is done to a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum KeyActionKind {
    /// It was added.
    Created,
    /// Another took its place.
    Rotated,
    /// It was ended.
    Revoked,
}

impl KeyActionKind {
    /// The name for people, programs and databases.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Created => "created",
            Self::Rotated => "rotated",
            Self::Revoked => "revoked",
        }
    }

    /// The kind with this name.
    pub(crate) fn from_name(name: &str) -> Option<Self> {
        [Self::Created, Self::Rotated, Self::Revoked]
            .into_iter()
            .find(|one| one.name() == name)
    }
}
