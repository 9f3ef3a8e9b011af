//! Where a task's job is: kept before the server hears of the job, so that a later attempt asks there
//! first.

use serde::{Deserialize, Serialize};

/// A job at a server.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Ticket {
    /// The configured base URL of the server.
    pub comfyui: String,
    /// The job's `prompt_id` there.
    pub prompt_id: String,
}

impl Ticket {
    /// The ticket of an earlier attempt, unless another kind of engine made it.
    pub(crate) fn read(text: &str) -> Option<Self> {
        let ticket = serde_json::from_str(text);
        if let Err(error) = &ticket {
            tracing::warn!(%error, "unreadable ticket of an earlier attempt; submitting again");
        }
        ticket.ok()
    }

    pub(crate) fn text(&self) -> String {
        serde_json::json!({"comfyui": self.comfyui, "prompt_id": self.prompt_id}).to_string()
    }
}
