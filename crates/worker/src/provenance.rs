//! The provenance of a result, as its files state it: a function of the task and its engine, so all
//! attempts at a task state the same.

use std::sync::Arc;

use kinora_contract::{Task, VideoSpec, iso_date};
use kinora_engine::Description;
use kinora_media::{DigitalSource, Origin, Provenance};

/// The name of the program in files.
const TOOL: &str = concat!("Kinora ", env!("CARGO_PKG_VERSION"));

/// The provenance of the task's result by `engine`. `script` is that of the source video, if there
/// is one ([`kinora_engine::Materials::script`]).
pub(crate) fn provenance(
    task: &Task,
    engine: &Description,
    script: Option<&[Arc<VideoSpec>]>,
) -> Provenance {
    let spec = &task.spec;
    let edited = spec.edit.as_ref().map(|edit| edit.task_id);
    let origin = edited.map(|id| Origin::Edited(id.to_string()));
    Provenance {
        source: digital_source(engine, edited.is_some().then(|| script.unwrap_or_default())),
        tool: TOOL.to_owned(),
        // The start of the first attempt.
        created: iso_date(task.started_at_ms.unwrap_or(task.created_at_ms)),
        model: spec.model.clone(),
        engine: engine.full_name(),
        id: task.id.to_string(),
        derived_from: origin.or_else(|| spec.final_of.map(|id| Origin::Draft(id.to_string()))),
    }
}

/// `edited` is the script of the edited video.
fn digital_source(engine: &Description, edited: Option<&[Arc<VideoSpec>]>) -> DigitalSource {
    match edited {
        None if engine.is_trained => DigitalSource::TrainedAlgorithmicMedia,
        None => DigitalSource::AlgorithmicMedia,
        // The script shows that an untrained engine made every version of it.
        Some([_, ..]) if !engine.is_trained => DigitalSource::AlgorithmicMedia,
        // The engine is trained, or the source may involve a trained one.
        Some(_) => DigitalSource::CompositeWithTrainedAlgorithmicMedia,
    }
}

#[cfg(test)]
mod tests {
    use kinora_contract::{Edit, FrameSize, Inputs, SPEC_VERSION, Seconds, Size, State, TaskId};
    use kinora_engine::Features;

    use super::*;

    fn engine(is_trained: bool) -> Description {
        Description {
            name: "house".to_owned(),
            version: "7".to_owned(),
            features: Features::ALL,
            is_trained,
            final_from_video: false,
        }
    }

    fn task() -> Task {
        Task {
            id: TaskId::from_parts(1, [7; 10]),
            project: "p".to_owned(),
            spec: VideoSpec {
                version: SPEC_VERSION,
                model: "house-1".to_owned(),
                prompt: "a secret".to_owned(),
                negative_prompt: None,
                seconds: Seconds::Fixed(2),
                frame: FrameSize::Fixed(Size::new(480, 480)),
                seed: 1,
                generate_audio: false,
                inputs: Inputs::Text,
                draft: false,
                final_of: None,
                edit: None,
            },
            metadata: [("note".to_owned(), "a secret".to_owned())].into(),
            priority: kinora_contract::Priority::Normal,
            state: State::Running,
            progress: 0,
            created_at_ms: 1_795_319_101_000,
            started_at_ms: Some(1_795_319_102_000),
            finished_at_ms: None,
            expires_at_ms: None,
            attempt: 2,
            engine: None,
            warnings: Vec::new(),
            trace: None,
        }
    }

    #[test]
    fn the_source_is_that_of_the_engine_and_of_what_it_edits() {
        use DigitalSource::{
            AlgorithmicMedia, CompositeWithTrainedAlgorithmicMedia, TrainedAlgorithmicMedia,
        };
        let known = [Arc::new(task().spec)];
        for (is_trained, edited, expected) in [
            (true, None, TrainedAlgorithmicMedia),
            (false, None, AlgorithmicMedia),
            (true, Some(&known[..]), CompositeWithTrainedAlgorithmicMedia),
            (true, Some(&[][..]), CompositeWithTrainedAlgorithmicMedia),
            (false, Some(&known[..]), AlgorithmicMedia),
            (false, Some(&[][..]), CompositeWithTrainedAlgorithmicMedia),
        ] {
            assert_eq!(digital_source(&engine(is_trained), edited), expected);
        }
    }

    #[test]
    fn every_attempt_states_the_same_and_nothing_of_the_request() {
        let first = provenance(&task(), &engine(true), None);
        assert_eq!(first.created, "2026-11-22T03:45:02Z");
        let again = Task {
            attempt: 3,
            ..task()
        };
        assert_eq!(provenance(&again, &engine(true), None), first);
        assert!(!first.packet().contains("secret"));
    }

    #[test]
    fn finals_and_edits_name_their_source() {
        let id = TaskId::from_parts(0, [3; 10]);
        let mut task = task();
        assert_eq!(provenance(&task, &engine(true), None).derived_from, None);
        task.spec.final_of = Some(id);
        let of_draft = provenance(&task, &engine(true), None);
        assert_eq!(of_draft.derived_from, Some(Origin::Draft(id.to_string())));
        assert_eq!(of_draft.source, DigitalSource::TrainedAlgorithmicMedia);
        task.spec.final_of = None;
        task.spec.edit = Some(Edit {
            task_id: id,
            strength: 0.5,
        });
        let edited = provenance(&task, &engine(true), Some(&[]));
        assert_eq!(edited.derived_from, Some(Origin::Edited(id.to_string())));
        let composite = DigitalSource::CompositeWithTrainedAlgorithmicMedia;
        assert_eq!(edited.source, composite);
    }
}
