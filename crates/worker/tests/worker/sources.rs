//! What an engine is given of an earlier video: an edit's source always, a draft's video where it
//! makes finals from it; and what becomes of a task whose earlier video is gone.

use std::sync::Arc;

use kinora_contract::{Artifact, EditSpec, FailureCode, TaskId, TaskPhase, VideoSpec};
use kinora_engine::SCRIPT_LINKS_MAX;

use crate::bench::{Bench, MODEL, RETENTION_MS, Running, spec};
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
    let edit = EditSpec {
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

/// The model of another version of the engine.
const OLD: &str = "old";

/// Makes one video after the other, the first from scratch and each further one as an edit of the
/// one before, with the models `of` and seeds that count from 0; answers their identifiers.
#[tokio::test(flavor = "multi_thread")]
async fn a_source_that_goes_after_it_was_found_was_deleted() {
    let studio = Studio::new();
    let (first, _) = studio.first().await;
    let edit = studio.bench.submit_spec(edit_of(first, FROM_SPEC)).await;
    studio.bench.held.remove_before_read();
    let running = studio.open();
    let (code, message) = studio.bench.fails(edit).await;
    assert_eq!(code, FailureCode::GenerationFailed.as_str());
    assert!(message.contains("deleted"), "{message}");
    running.drained().await;
}

async fn chain(bench: &Bench, of: &[&str]) -> Vec<TaskId> {
    let mut made: Vec<TaskId> = Vec::new();
    for (model, seed) in of.iter().zip(0..) {
        let spec = match made.last() {
            Some(before) => edit_of(*before, model),
            None => spec(model),
        };
        let id = bench.submit_spec(VideoSpec { seed, ..spec }).await;
        bench.completes(id).await;
        made.push(id);
    }
    made
}

/// The seeds of the links that the engine was told for the last video.
fn last_script(engine: &Puppet) -> Vec<u32> {
    let scripts = engine.scripts();
    scripts
        .last()
        .unwrap()
        .iter()
        .map(|link| link.seed)
        .collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn p19_an_edit_is_told_how_its_source_was_made_from_the_very_beginning() {
    let (bench, engine) = (Bench::new(), Arc::new(Puppet::new(Act::Good)));
    let running = Running::start(bench.worker(&engine));
    let made = chain(&bench, &[MODEL; 4]).await;
    let told: Vec<usize> = engine.scripts().iter().map(Vec::len).collect();
    assert_eq!(told, [0, 1, 2, 3]);
    assert_eq!(last_script(&engine), [0, 1, 2]);
    let link = |nth: usize| {
        engine.scripts()[3][nth]
            .edit
            .as_ref()
            .map(|edit| edit.task_id)
    };
    assert_eq!(
        [link(0), link(1), link(2)],
        [None, Some(made[0]), Some(made[1])]
    );
    // Without its beginning the rest says nothing.
    bench.delete(made[0]).await;
    let id = bench.submit_spec(edit_of(made[3], MODEL)).await;
    bench.completes(id).await;
    assert!(last_script(&engine).is_empty());
    assert_eq!(engine.sources().last(), Some(&Some(4)));
    running.drained().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn p19_an_expired_beginning_has_lost_its_words_and_ends_the_script() {
    let (bench, engine) = (Bench::new(), Arc::new(Puppet::new(Act::Good)));
    let running = Running::start(bench.worker(&engine));
    let first = chain(&bench, &[MODEL]).await[0];
    bench.clock.advance(RETENTION_MS / 2);
    let second = bench.submit_spec(edit_of(first, MODEL)).await;
    bench.completes(second).await;
    bench.clock.advance(RETENTION_MS / 2 + 1);
    bench.reaches(first, TaskPhase::Expired).await;
    let third = bench.submit_spec(edit_of(second, MODEL)).await;
    bench.completes(third).await;
    assert!(last_script(&engine).is_empty());
    // It is given the frames.
    assert!(engine.sources().last().unwrap().is_some());
    running.drained().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_another_engine_or_version_made_has_no_script() {
    let bench = Bench::new();
    let (own, old) = (
        Puppet::new(Act::Good),
        Puppet::new(Act::Good).of_version("1.1"),
    );
    let (own, old) = (Arc::new(own), Arc::new(old));
    let running = Running::start(bench.worker_of([(MODEL, &own), (OLD, &old)]));
    for (of, expected) in [
        (&[OLD, MODEL][..], &[][..]),
        (&[OLD, MODEL, MODEL][..], &[][..]),
        (&[MODEL, OLD, MODEL][..], &[][..]),
        (&[MODEL, MODEL][..], &[0][..]),
    ] {
        chain(&bench, of).await;
        assert_eq!(last_script(&own), expected, "{of:?}");
    }
    running.drained().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_script_has_a_longest_length() {
    let (bench, engine) = (Bench::new(), Arc::new(Puppet::new(Act::Good)));
    let running = Running::start(bench.worker(&engine));
    chain(&bench, &[MODEL; SCRIPT_LINKS_MAX + 2]).await;
    let told: Vec<usize> = engine.scripts().iter().map(Vec::len).collect();
    assert_eq!(told[SCRIPT_LINKS_MAX..], [SCRIPT_LINKS_MAX, 0]);
    running.drained().await;
}
