//! The log of changes of API keys: who created, rotated and revoked which key, and when. An entry
//! is stored together with its change, and never contains a secret.

use kinora_contract::UnixMs;
use serde::{Deserialize, Serialize};

/// The author of a change of keys: the user of a command, or the service at its first start.
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
    /// Time of the change, by the clock of its author.
    pub at_ms: UnixMs,
    /// Kind of the change.
    pub kind: KeyActionKind,
    /// Id of the key.
    pub key: String,
    /// The key's name.
    pub name: String,
    /// The key's project.
    pub project: String,
    /// Id of the key that replaces it.
    pub successor: Option<String>,
    /// The author.
    pub by: Actor,
}

/// The kinds of changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum KeyActionKind {
    /// The key was added.
    Created,
    /// Another key replaced it.
    Rotated,
    /// The key was revoked.
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
