//! Small tasks, keys and results for the cases.

use std::collections::BTreeMap;

use kinora_contract::spec::SPEC_VERSION;
use kinora_contract::{
    Artifact, Failure, FailureCode, FrameSize, Priority, Size, StoredFile, TaskId, VideoInputs,
    VideoLength, VideoSpec,
};

use crate::{
    ClaimRequest, FetchRequest, KeyActor, LeaseRenewal, NewTask, Pauses, QueueBounds,
    SubmitBudgets, SweepRequest, WaitingFrom,
};

/// The time at which the cases begin.
pub const NOW: u64 = 1_760_000_000_000;
/// Length of leases in the cases.
pub const LEASE_MS: u64 = 30_000;
/// How long finished tasks are kept.
pub const RETENTION_MS: u64 = 1_000_000;
/// Expiry of tasks that finish at [`NOW`].
pub const EXPIRY: u64 = NOW + RETENTION_MS;
/// The models of the cases.
pub const MODELS: [&str; 2] = ["kinora-a1", "kinora-b1"];

/// An id with the creation time `NOW + number`; equal numbers give equal ids.
pub fn id(number: u64) -> TaskId {
    let mut random = [0; 10];
    random[2..].copy_from_slice(&number.wrapping_mul(0x9e37_79b9_7f4a_7c15).to_be_bytes());
    TaskId::from_parts(NOW + number, random)
}

/// A task without limits.
pub fn task(number: u64, project: &str) -> NewTask {
    NewTask {
        id: id(number),
        project: project.to_owned(),
        spec: spec(MODELS[0]),
        metadata: BTreeMap::from([("number".to_owned(), number.to_string())]),
        priority: Priority::Normal,
        idempotency: None,
        callback: None,
        files: Vec::new(),
        trace: None,
        bounds: QueueBounds::NONE,
        cost: None,
        budgets: SubmitBudgets::default(),
    }
}

/// A small spec.
pub fn spec(model: &str) -> VideoSpec {
    VideoSpec {
        version: SPEC_VERSION,
        model: model.to_owned(),
        prompt: "a boat at dawn, \"quoted\", \u{1f30a}".to_owned(),
        negative_prompt: Some("rain".to_owned()),
        seconds: VideoLength::Fixed(5),
        frame: FrameSize::Fixed(Size::new(1280, 720)),
        seed: u32::MAX,
        generate_audio: true,
        inputs: VideoInputs::Text,
        draft: false,
        final_of: None,
        edit: None,
    }
}

/// A task with `count` reference images.
pub fn with_images(number: u64, project: &str, count: usize) -> NewTask {
    let mut new = task(number, project);
    new.spec.inputs = VideoInputs::References {
        images: vec!["https://example.org/i".to_owned(); count],
        audios: Vec::new(),
    };
    new
}

/// A task of this model.
pub fn of_model(number: u64, project: &str, model: &str) -> NewTask {
    NewTask {
        spec: spec(model),
        ..task(number, project)
    }
}

/// A result whose five files have keys that begin with `name`.
pub fn artifact(name: &str) -> Artifact {
    let file = |kind: &str| StoredFile {
        key: format!("{name}/{kind}"),
        bytes: 12,
        sha256: "0".repeat(64),
    };
    Artifact {
        video: file("video"),
        thumbnail: file("thumbnail"),
        spritesheet: file("spritesheet"),
        first_frame: Some(file("first_frame")),
        last_frame: Some(file("last_frame")),
        duration_seconds: 5.0,
        fps: 24.0,
        frames: 120,
        width: 1280,
        height: 720,
        has_audio: true,
    }
}

/// The keys of that result's files.
pub fn files(name: &str) -> Vec<String> {
    let artifact = artifact(name);
    artifact.files().map(|file| file.key.clone()).collect()
}

/// The failure of a cancelled task.
pub fn cancelled() -> Failure {
    FailureCode::Cancelled.into()
}

/// A claim of up to `count` tasks of any model, by a worker with a slot for each.
pub fn claiming(count: usize) -> ClaimRequest {
    ClaimRequest {
        worker: "worker".to_owned(),
        models: MODELS.map(str::to_owned).into(),
        paused: Pauses::default(),
        count,
        slots: usize::MAX,
        project_slots_max: 0,
        long_tasks: None,
        attempts_max: 3,
        is_settled: true,
        lease_ms: LEASE_MS,
    }
}

/// Takes up to `count` fetches of any model, up to two of one project.
pub fn fetching(count: usize) -> FetchRequest {
    FetchRequest {
        models: MODELS.map(str::to_owned).into(),
        count,
        project_max: 2,
        lease_ms: LEASE_MS,
    }
}

/// The usual sweep, by a trusted wall clock that shows `now_ms`.
pub const fn sweep_at(now_ms: u64) -> SweepRequest {
    SweepRequest {
        due_ms: Some(now_ms),
        keys_kept_ms: 0,
        waiting_from: WaitingFrom {
            created_before_ms: 0,
            from_ms: 0,
        },
        attempts_max: 3,
        lease_ms: LEASE_MS,
        spares_leases: false,
        waiting_ms_max: None,
        retention_ms: 500,
        unreadable_ms: 500,
        tombstone_ms: 10_000,
        batch: 100,
    }
}

/// A user who changes keys.
pub fn actor(user: &str) -> KeyActor {
    KeyActor {
        user: user.to_owned(),
        host: "host".to_owned(),
    }
}

/// A renewal that only reports this progress.
pub fn renewal(progress: u8) -> LeaseRenewal {
    LeaseRenewal {
        progress,
        ..LeaseRenewal::default()
    }
}
