//! How numbers and phases are written in a database, of whatever kind.

use kinora_contract::{Artifact, Phase, TraceContext};

/// Integers of SQL are signed; a time past the year 292 million is the end of time.
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

/// A stored trace context. One that cannot be read is none: only the trace is less for it.
pub(crate) fn trace(text: Option<&str>) -> Option<TraceContext> {
    text.and_then(|text| text.parse().ok())
}

/// The blob keys of a stored artifact; none when it cannot be read, which the sweep of orphans
/// makes good.
pub(crate) fn files(artifact: Option<&str>) -> Vec<String> {
    let Some(text) = artifact else {
        return Vec::new();
    };
    match serde_json::from_str::<Artifact>(text) {
        Ok(artifact) => artifact.files().map(|file| file.key.clone()).into(),
        Err(error) => {
            tracing::error!(%error, "a stored artifact cannot be read; its files are left");
            Vec::new()
        }
    }
}
