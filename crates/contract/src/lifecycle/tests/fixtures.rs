//! A task in each of its states, and short names for events.

use std::collections::BTreeMap;

use super::super::*;
use crate::error::FailureCode;
use crate::spec::{FrameSize, Inputs, SPEC_VERSION, Seconds, VideoSpec};
use crate::task::Priority;
use crate::task::{Artifact, State, StoredFile, Task};
use crate::{Failure, Size, TaskId};

pub(super) const NOW: u64 = 1_000_000;
pub(super) const KEPT_MS: u64 = 500;
pub(super) const TOKEN: u64 = 7;
pub(super) const FETCH: u64 = 3;

pub(super) fn task(images: usize) -> Task {
    let inputs = match images {
        0 => Inputs::Text,
        _ => Inputs::References {
            images: vec!["https://example.org/i".to_owned(); images],
            audios: Vec::new(),
        },
    };
    Task {
        id: TaskId::from_parts(NOW, [1; 10]),
        project: "one".to_owned(),
        spec: VideoSpec {
            version: SPEC_VERSION,
            model: "model".to_owned(),
            prompt: "a boat".to_owned(),
            negative_prompt: Some("rain".to_owned()),
            seconds: Seconds::Fixed(5),
            frame: FrameSize::Fixed(Size::new(64, 64)),
            seed: 1,
            generate_audio: true,
            inputs,
            draft: false,
            final_of: None,
            edit: None,
        },
        metadata: BTreeMap::new(),
        priority: Priority::Normal,
        state: State::Waiting,
        progress: 0,
        created_at_ms: NOW,
        started_at_ms: None,
        finished_at_ms: None,
        expires_at_ms: None,
        attempt: 0,
        engine: None,
        warnings: Vec::new(),
        trace: None,
    }
}

pub(super) fn artifact() -> Artifact {
    let file = |name: &str| StoredFile {
        key: format!("made/{name}"),
        bytes: 10,
        sha256: String::new(),
    };
    Artifact {
        video: file("video"),
        thumbnail: file("thumbnail"),
        spritesheet: file("sheet"),
        duration_seconds: 5.0,
        fps: 24.0,
        frames: 120,
        width: 64,
        height: 64,
        has_audio: true,
    }
}

pub(super) fn failure() -> Failure {
    FailureCode::GenerationFailed.into()
}

pub(super) fn waiting(images: usize) -> Record {
    Record::accepted(1, task(images))
}

pub(super) fn held(token: u64) -> Held {
    Held {
        token,
        until_ms: NOW + 30,
        ends_ms: 30,
        worker: "worker".to_owned(),
    }
}

pub(super) fn claim(token: u64) -> Event {
    Event::Claimed {
        held: held(token),
        now_ms: NOW,
    }
}

pub(super) fn finish(token: u64, outcome: Outcome) -> Event {
    Event::Finished {
        token,
        outcome,
        now_ms: NOW,
        retention_ms: KEPT_MS,
    }
}

pub(super) fn cancel() -> Event {
    Event::Cancelled {
        failure: FailureCode::Cancelled.into(),
        now_ms: NOW,
        retention_ms: KEPT_MS,
    }
}

pub(super) fn deleted() -> Event {
    Event::Deleted { now_ms: NOW }
}

pub(super) fn fetch_ended(token: u64, outcome: FetchOutcome) -> Event {
    Event::FetchEnded { token, outcome }
}

pub(super) fn fetch_failed(token: u64) -> Event {
    fetch_ended(
        token,
        FetchOutcome::Failed {
            failure: failure(),
            now_ms: NOW,
            retention_ms: KEPT_MS,
        },
    )
}

/// Applies the events, each of which must be allowed.
pub(super) fn after(record: Record, events: impl IntoIterator<Item = Event>) -> Record {
    events.into_iter().fold(record, |record, event| {
        let shown = format!("{event:?}");
        let transition = record.apply(event);
        let transition = transition.unwrap_or_else(|refused| panic!("{shown}: {refused}"));
        transition.after.expect("it is there")
    })
}

pub(super) fn running() -> Record {
    after(waiting(0), [claim(TOKEN)])
}

/// A named record in each state.
pub(super) fn records() -> Vec<(&'static str, Record)> {
    let begun = Event::FetchBegun {
        token: FETCH,
        until_ms: 30,
    };
    let back = fetch_ended(FETCH, FetchOutcome::Back { not_before_ms: 9 });
    vec![
        ("ready", waiting(0)),
        ("wanted", waiting(2)),
        ("fetching", after(waiting(2), [begun.clone()])),
        ("paused", after(waiting(2), [begun, back])),
        ("running", running()),
        ("again", after(running(), [released(Attempt::Counts)])),
        (
            "completed",
            after(running(), [finish(TOKEN, Ok(artifact()))]),
        ),
        ("failed", after(running(), [finish(TOKEN, Err(failure()))])),
        ("cancelled", after(running(), [cancel()])),
        (
            "expired",
            after(
                running(),
                [
                    finish(TOKEN, Ok(artifact())),
                    Event::Expired { now_ms: NOW },
                ],
            ),
        ),
    ]
}

pub(super) fn released(attempt: Attempt) -> Event {
    Event::Released {
        token: TOKEN,
        attempt,
    }
}

pub(super) fn lost(verdict: Verdict) -> Event {
    Event::WorkerLost {
        verdict,
        now_ms: NOW,
        retention_ms: KEPT_MS,
    }
}

pub(super) fn renewed(token: u64) -> Event {
    Event::Renewed {
        token,
        until_ms: NOW + 60,
        ends_ms: 60,
        renewal: Renewal::default(),
    }
}
