//! Small tasks, keys and results for the cases, and short names for what they do most.

use std::collections::BTreeMap;

use kinora_contract::spec::SPEC_VERSION;
use kinora_contract::{
    Artifact, Failure, FailureCode, FrameSize, Inputs, Seconds, Size, StoredFile, TaskId, VideoSpec,
};

use crate::{
    Claim, ClaimRequest, Fetch, FetchRequest, Fetched, Insertion, NewTask, QueueBounds, Renewed,
    StoreError, Stores, SweepRequest, Swept, TaskView, WaitingFrom,
};

/// The moment in which the cases begin.
pub const NOW: u64 = 1_760_000_000_000;
/// Length of the leases that [`Bench::claim`] takes.
pub const LEASE_MS: u64 = 30_000;
/// When finished tasks expire.
pub const EXPIRY: u64 = NOW + 1_000_000;
/// The models of the cases.
pub const MODELS: [&str; 2] = ["kinora-a1", "kinora-b1"];

/// An id that carries the moment `NOW + number`; equal numbers give equal ids.
pub fn id(number: u64) -> TaskId {
    let mut random = [0; 10];
    random[2..].copy_from_slice(&number.wrapping_mul(0x9e37_79b9_7f4a_7c15).to_be_bytes());
    TaskId::from_parts(NOW + number, random)
}

/// A task with room for any other.
pub fn task(number: u64, project: &str) -> NewTask {
    NewTask {
        id: id(number),
        project: project.to_owned(),
        spec: spec(MODELS[0]),
        metadata: BTreeMap::from([("number".to_owned(), number.to_string())]),
        now_ms: NOW,
        idempotency: None,
        bounds: QueueBounds::NONE,
    }
}

/// A small spec.
pub fn spec(model: &str) -> VideoSpec {
    VideoSpec {
        version: SPEC_VERSION,
        model: model.to_owned(),
        prompt: "a boat at dawn, \"quoted\", \u{1f30a}".to_owned(),
        negative_prompt: Some("rain".to_owned()),
        seconds: Seconds::Fixed(5),
        frame: FrameSize::Fixed(Size::new(1280, 720)),
        seed: u32::MAX,
        generate_audio: true,
        inputs: Inputs::Text,
        draft: false,
        final_of: None,
        edit: None,
    }
}

/// A task with so many reference images.
pub fn with_images(number: u64, project: &str, count: usize) -> NewTask {
    let mut new = task(number, project);
    new.spec.inputs = Inputs::References {
        images: vec!["https://example.org/i".to_owned(); count],
        audios: Vec::new(),
    };
    new
}

/// A result whose three files have keys that begin with `name`.
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
    artifact(name).files().map(|file| file.key.clone()).into()
}

/// A failure by the client's wish.
pub fn cancelled() -> Failure {
    FailureCode::Cancelled.into()
}

/// The usual sweep at `now_ms`, by both clocks, by a wall clock that is trusted.
pub const fn sweep_at(now_ms: u64) -> SweepRequest {
    SweepRequest {
        now_ms,
        steady_ms: now_ms,
        trusts_wall: true,
        keys_kept_ms: 0,
        waiting_from: WaitingFrom {
            created_before_ms: 0,
            from_ms: 0,
        },
        attempts_max: 3,
        spares_leases: false,
        waiting_ms_max: None,
        retention_ms: 500,
        tombstone_ms: 10_000,
        batch: 100,
    }
}

/// A renewal of the usual length.
pub fn renewed(progress: u8) -> Renewed {
    Renewed {
        progress,
        engine: None,
        until_ms: NOW + 2 * LEASE_MS,
        until_steady_ms: NOW + 2 * LEASE_MS,
        decided: None,
        kept: None,
        warnings: None,
        preview: None,
    }
}

/// Shorthand for the cases.
#[allow(async_fn_in_trait, reason = "for the cases alone")]
pub trait Bench {
    /// Inserts a task that must be taken.
    async fn submit(&self, number: u64, project: &str) -> TaskView;
    /// Claims up to `count` tasks of any model at [`NOW`].
    async fn claim(&self, count: usize) -> Vec<Claim>;
    /// Takes fetches of any model at [`NOW`], up to two of one project.
    async fn take(&self, count: usize) -> Vec<Fetch>;
    /// Brings every reference that is wanted.
    async fn fetch_all(&self);
    /// Claims the one task that must be there.
    async fn claim_one(&self) -> Claim;
    /// The task, which must be there.
    async fn view(&self, project: &str, number: u64) -> TaskView;
    /// Finishes well, at [`NOW`], until [`EXPIRY`], with files named after the token.
    async fn complete(&self, claim: &Claim) -> Result<(), StoreError>;
    /// Sweeps as usual at `now_ms`.
    async fn sweep(&self, now_ms: u64) -> Swept;
}

impl Bench for Stores {
    async fn submit(&self, number: u64, project: &str) -> TaskView {
        match self.tasks.insert(task(number, project)).await.unwrap() {
            Insertion::Inserted(view) => view,
            other => panic!("not inserted: {other:?}"),
        }
    }

    async fn claim(&self, count: usize) -> Vec<Claim> {
        let request = ClaimRequest {
            worker: "worker".to_owned(),
            models: MODELS.map(str::to_owned).into(),
            count,
            slots: usize::MAX,
            project_slots_max: 0,
            attempts_max: 3,
            now_ms: NOW,
            steady_ms: NOW,
            lease_ms: LEASE_MS,
        };
        self.tasks.claim(request).await.unwrap()
    }

    async fn take(&self, count: usize) -> Vec<Fetch> {
        let request = FetchRequest {
            models: MODELS.map(str::to_owned).into(),
            count,
            project_max: 2,
            steady_ms: NOW,
            lease_ms: LEASE_MS,
        };
        self.tasks.take_fetches(request).await.unwrap()
    }

    async fn fetch_all(&self) {
        loop {
            let fetches = self.take(100).await;
            if fetches.is_empty() {
                return;
            }
            for fetch in fetches {
                let settled = self.tasks.settle_fetch(&fetch, Fetched::AtHand);
                settled.await.unwrap();
            }
        }
    }

    async fn claim_one(&self) -> Claim {
        self.claim(1).await.pop().expect("a task to claim")
    }

    async fn view(&self, project: &str, number: u64) -> TaskView {
        self.tasks
            .get(project, id(number))
            .await
            .unwrap()
            .expect("the task is there")
    }

    async fn complete(&self, claim: &Claim) -> Result<(), StoreError> {
        let result = artifact(&format!("token-{}", claim.lease.token));
        self.tasks
            .finish(&claim.lease, Ok(result), NOW, EXPIRY)
            .await
    }

    async fn sweep(&self, now_ms: u64) -> Swept {
        self.tasks.sweep(sweep_at(now_ms)).await.unwrap()
    }
}
