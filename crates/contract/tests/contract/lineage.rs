//! The final of a draft and the edit of a video: which earlier tasks serve, and what is
//! carried over from them.

use kinora_contract::derived_spec::{edit_spec, final_spec};
use kinora_contract::error::FailureCode;
use kinora_contract::validate::EditRequest;
use kinora_contract::{
    Artifact, EditSpec, ErrorCode, FrameSize, Priority, RequestRefusal, Resolution, Size,
    StoredFile, SubmitIntent, SubmitRequest, Task, TaskId, TaskState, VideoInputs, VideoLength,
    VideoSpec, validate,
};
use serde_json::{Value, json};

use crate::strategies::catalog;

const NOW_MS: u64 = 1_760_000_000_000;
const EXPIRES_MS: u64 = NOW_MS + 1000;

fn spec(body: Value) -> VideoSpec {
    let request = SubmitRequest::from_fields(body.as_object().unwrap().clone()).unwrap();
    match validate(&request, &catalog(), 11).unwrap().intent {
        SubmitIntent::New(spec) => *spec,
        other => panic!("{other:?}"),
    }
}

fn completed() -> TaskState {
    let file = StoredFile {
        key: "k".to_owned(),
        bytes: 1,
        sha256: "0".repeat(64),
    };
    TaskState::Completed(Box::new(Artifact {
        video: file.clone(),
        thumbnail: file.clone(),
        spritesheet: file,
        first_frame: None,
        last_frame: None,
        duration_seconds: 7.04,
        fps: 24.0,
        frames: 169,
        width: 640,
        height: 480,
        has_audio: true,
    }))
}

fn task(spec: VideoSpec, state: TaskState) -> Task {
    Task {
        id: TaskId::from_parts(NOW_MS - 60_000, [3; 10]),
        project: "p".to_owned(),
        spec,
        metadata: [("take".to_owned(), "1".to_owned())].into(),
        priority: Priority::High,
        state,
        progress: 100,
        created_at_ms: NOW_MS - 60_000,
        started_at_ms: Some(NOW_MS - 50_000),
        finished_at_ms: Some(NOW_MS - 40_000),
        expires_at_ms: Some(EXPIRES_MS),
        attempt: 1,
        engine: Some("e/1".to_owned()),
        warnings: Vec::new(),
        trace: None,
        cost: None,
    }
}

fn draft() -> Task {
    let body = json!({
        "model": "kinora-a1", "prompt": "a fox", "negative_prompt": "rain", "seconds": 9,
        "resolution": "1080p", "aspect_ratio": "4:3", "seed": 42, "generate_audio": false,
        "draft": true, "reference_images": ["https://example.com/fox.png"],
        "reference_audios": ["https://example.com/fox.wav"],
    });
    task(spec(body), completed())
}

fn edit() -> EditRequest {
    EditRequest {
        model: "kinora-b1".to_owned(),
        source: TaskId::from_parts(NOW_MS - 60_000, [3; 10]),
        prompt: "a fox in snow".to_owned(),
        negative_prompt: Some("fog".to_owned()),
        strength: 0.25,
        reference_images: Vec::new(),
        seed: 5,
    }
}

fn unfinished_states() -> [TaskState; 3] {
    [
        TaskState::Waiting,
        TaskState::Running,
        TaskState::Failed(FailureCode::Cancelled.into()),
    ]
}

fn assert_refused(outcome: Result<VideoSpec, RequestRefusal>, code: ErrorCode, param: &str) {
    let refusal = outcome.unwrap_err();
    assert_eq!(refusal.code, code);
    assert_eq!(refusal.param.as_deref(), Some(param));
}

fn assert_no_final(draft: Option<&Task>, model: &str, now_ms: u64) {
    let outcome = final_spec(draft, model, now_ms);
    assert_refused(outcome, ErrorCode::DraftNotUsable, "draft_task_id");
}

fn assert_no_edit(source: Option<&Task>, now_ms: u64) {
    let outcome = edit_spec(source, edit(), now_ms);
    assert_refused(outcome, ErrorCode::EditSourceNotUsable, "edit_task_id");
}

#[test]
fn a_final_takes_everything_from_its_draft_and_renders_at_full_size() {
    let draft = draft();
    let made = final_spec(Some(&draft), "kinora-a1", NOW_MS).unwrap();
    assert_eq!(draft.spec.render_size(), Some(Size::new(640, 480)));
    assert_eq!(made.render_size(), Some(Size::new(1440, 1080)));
    let expected = VideoSpec {
        draft: false,
        final_of: Some(draft.id),
        ..draft.spec
    };
    assert_eq!(made, expected);
    assert_eq!((made.seed, made.seconds), (42, VideoLength::Fixed(9)));
}

#[test]
fn a_final_of_an_adaptive_draft_stays_adaptive() {
    let body = json!({
        "model": "kinora-a1", "prompt": "x", "draft": true, "aspect_ratio": "adaptive",
        "resolution": "1080p", "first_frame": "https://example.com/a.png",
    });
    let made = final_spec(Some(&task(spec(body), completed())), "kinora-a1", NOW_MS).unwrap();
    assert_eq!(made.frame, FrameSize::Adaptive(Resolution::P1080));
}

#[test]
fn a_draft_serves_until_its_last_millisecond() {
    let draft = draft();
    assert!(final_spec(Some(&draft), "kinora-a1", EXPIRES_MS - 1).is_ok());
    for now_ms in [EXPIRES_MS, u64::MAX] {
        assert_no_final(Some(&draft), "kinora-a1", now_ms);
    }
}

#[test]
fn only_a_completed_draft_of_the_same_model_can_be_made_final() {
    let mut usable = draft();
    assert!(final_spec(Some(&usable), "kinora-a1", NOW_MS).is_ok());
    assert_no_final(None, "kinora-a1", NOW_MS);
    assert_no_final(Some(&usable), "kinora-a2", NOW_MS);
    for state in unfinished_states().into_iter().chain([TaskState::Expired]) {
        usable.state = state;
        usable.expires_at_ms = None;
        assert_no_final(Some(&usable), "kinora-a1", NOW_MS);
    }
    let mut no_draft = draft();
    no_draft.spec.draft = false;
    assert_no_final(Some(&no_draft), "kinora-a1", NOW_MS);
}

#[test]
fn a_final_is_no_draft_of_another_final() {
    let draft = draft();
    let made = final_spec(Some(&draft), "kinora-a1", NOW_MS).unwrap();
    assert_no_final(Some(&task(made, completed())), "kinora-a1", NOW_MS);
}

#[test]
fn an_edit_takes_length_and_size_as_measured_and_the_rest_from_its_request() {
    let source = draft();
    let made = edit_spec(Some(&source), edit(), NOW_MS).unwrap();
    assert_eq!(made.seconds, VideoLength::Fixed(7));
    assert_eq!(made.frame, FrameSize::Fixed(Size::new(640, 480)));
    assert_eq!(made.render_size(), Some(Size::new(640, 480)));
    assert_eq!((made.model.as_str(), made.seed), ("kinora-b1", 5));
    assert_eq!(made.prompt, "a fox in snow");
    assert_eq!(made.negative_prompt.as_deref(), Some("fog"));
    assert_eq!(made.inputs, VideoInputs::Text);
    assert_eq!(
        (made.draft, made.final_of, made.generate_audio),
        (false, None, false)
    );
    let expected = EditSpec {
        task_id: source.id,
        strength: 0.25,
    };
    assert_eq!(made.edit, Some(expected));
}

#[test]
fn an_edit_shows_the_images_of_its_own_request() {
    let images = vec!["https://example.com/snow.png".to_owned()];
    let request = EditRequest {
        reference_images: images.clone(),
        ..edit()
    };
    let made = edit_spec(Some(&draft()), request, NOW_MS).unwrap();
    let audios = Vec::new();
    assert_eq!(made.inputs, VideoInputs::References { images, audios });
}

#[test]
fn only_a_completed_video_can_be_edited_until_its_last_millisecond() {
    let mut source = draft();
    assert!(edit_spec(Some(&source), edit(), EXPIRES_MS - 1).is_ok());
    assert_no_edit(None, NOW_MS);
    assert_no_edit(Some(&source), EXPIRES_MS);
    for state in unfinished_states().into_iter().chain([TaskState::Expired]) {
        source.state = state;
        source.expires_at_ms = None;
        assert_no_edit(Some(&source), NOW_MS);
    }
}

#[test]
fn specs_of_finals_and_edits_survive_being_written_down() {
    let source = draft();
    for made in [
        final_spec(Some(&source), "kinora-a1", NOW_MS).unwrap(),
        edit_spec(Some(&source), edit(), NOW_MS).unwrap(),
    ] {
        let text = serde_json::to_string(&made).unwrap();
        assert_eq!(serde_json::from_str::<VideoSpec>(&text).unwrap(), made);
    }
}

#[test]
fn a_spec_with_an_unknown_field_is_not_read() {
    let mut written = serde_json::to_value(draft().spec).unwrap();
    written["upscale"] = json!(true);
    assert!(serde_json::from_value::<VideoSpec>(written).is_err());
}
