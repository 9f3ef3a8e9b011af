//! What an engine is given of an earlier video: an edit's source always, a draft's video where it
//! makes finals from it; and what becomes of a task whose earlier video is gone.

use std::sync::Arc;

use kinora_contract::{Artifact, Edit, FailureCode, TaskId, VideoSpec};

use crate::bench::{Bench, Running, spec};
use crate::engines::{Act, Puppet};

/// The models of engines that make a final from its draft's video, and from the spec alone.
const FROM_VIDEO: &str = "from video";
const FROM_SPEC: &str = "from spec";
/// What tells the first video from all later ones.
const FIRST_FRAMES: u32 = 7;

struct Studio {
    bench: Bench,
    from_video: Arc<Puppet>,
    from_spec: Arc<Puppet>,
}

impl Studio {
    fn new() -> Self {
        Self {
            bench: Bench::new(),
            from_video: Arc::new(Puppet::new(Act::Good).making_finals_from_videos()),
            from_spec: Arc::new(Puppet::new(Act::Good)),
        }
    }

    fn open(&self) -> Running {
        let engines = [(FROM_VIDEO, &self.from_video), (FROM_SPEC, &self.from_spec)];
        Running::start(self.bench.worker_of(engines))
    }

    /// A completed task whose video is known by its length.
    async fn first(&self) -> (TaskId, Artifact) {
        let engine = Arc::new(Puppet::new(Act::Good).with_frames(FIRST_FRAMES));
        let running = Running::start(self.bench.worker(&engine));
        let id = self.bench.submit().await;
        let artifact = self.bench.completes(id).await;
        running.drained().await;
        assert_eq!(artifact.frames, FIRST_FRAMES);
        (id, artifact)
    }
}

fn final_of(draft: TaskId, model: &str) -> VideoSpec {
    VideoSpec {
        final_of: Some(draft),
        ..spec(model)
    }
}

fn edit_of(task_id: TaskId, model: &str) -> VideoSpec {
    let edit = Edit {
        task_id,
        strength: 0.5,
    };
    VideoSpec {
        edit: Some(edit),
        ..spec(model)
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_final_is_given_its_drafts_video_where_the_engine_makes_it_from_that() {
    let studio = Studio::new();
    let (draft, artifact) = studio.first().await;
    let running = studio.open();
    let mut artifacts = vec![artifact];
    for model in [FROM_VIDEO, FROM_SPEC] {
        let id = studio.bench.submit_spec(final_of(draft, model)).await;
        artifacts.push(studio.bench.completes(id).await);
    }
    assert_eq!(studio.from_video.sources(), [Some(FIRST_FRAMES)]);
    assert_eq!(studio.from_spec.sources(), [None]);
    running.drained().await;
    studio.bench.holds_only(&artifacts).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_edit_is_given_its_source_and_a_new_video_none() {
    let studio = Studio::new();
    let (source, artifact) = studio.first().await;
    let running = studio.open();
    let mut artifacts = vec![artifact];
    for model in [FROM_VIDEO, FROM_SPEC] {
        for spec in [edit_of(source, model), spec(model)] {
            let id = studio.bench.submit_spec(spec).await;
            artifacts.push(studio.bench.completes(id).await);
        }
    }
    for engine in [&studio.from_video, &studio.from_spec] {
        assert_eq!(engine.sources(), [Some(FIRST_FRAMES), None]);
    }
    running.drained().await;
    studio.bench.holds_only(&artifacts).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_starts_from_a_video_that_is_deleted_before_the_run_fails_and_nothing_else_does() {
    let studio = Studio::new();
    let (first, _) = studio.first().await;
    let gone = [
        studio.bench.submit_spec(final_of(first, FROM_VIDEO)).await,
        studio.bench.submit_spec(edit_of(first, FROM_SPEC)).await,
    ];
    let alone = studio.bench.submit_spec(final_of(first, FROM_SPEC)).await;
    studio.bench.delete(first).await;
    let running = studio.open();
    for id in gone {
        let (code, message) = studio.bench.fails(id).await;
        assert_eq!(code, FailureCode::GenerationFailed.as_str());
        assert!(message.contains("deleted"), "{message}");
        assert_eq!(studio.bench.task(id).await.attempt, 1, "it is final");
    }
    let artifact = studio.bench.completes(alone).await;
    assert!(studio.from_video.sources().is_empty());
    assert_eq!(studio.from_spec.sources(), [None]);
    running.drained().await;
    studio.bench.holds_only(&[artifact]).await;
}
