//! The representation of numbers and phases in a database of any kind.

use kinora_contract::{Artifact, Phase, TraceContext};

/// SQL integers are signed; a time after the year 292 million becomes the end of time.
pub(crate) fn int(value: u64) -> i64 {
    i64::try_from(value).unwrap_or(i64::MAX)
}

/// The name of a phase in the database.
pub(crate) const fn phase_name(phase: Phase) -> &'static str {
    match phase {
        Phase::Waiting => "waiting",
        Phase::Running => "running",
        Phase::Completed => "completed",
        Phase::Failed => "failed",
        Phase::Expired => "expired",
    }
}

/// Parses a stored trace context. An unreadable one counts as absent: only the trace suffers.
pub(crate) fn trace(text: Option<&str>) -> Option<TraceContext> {
    text.and_then(|text| text.parse().ok())
}

/// The blob keys of a stored artifact; empty if it cannot be read, in which case the sweep of
/// orphans removes the files.
pub(crate) fn files(artifact: Option<&str>) -> Vec<String> {
    let Some(text) = artifact else {
        return Vec::new();
    };
    match serde_json::from_str::<Artifact>(text) {
        Ok(artifact) => artifact.files().map(|file| file.key.clone()).into(),
        Err(error) => {
            tracing::error!(%error, "stored artifact unreadable; its files are left");
            Vec::new()
        }
    }
}
