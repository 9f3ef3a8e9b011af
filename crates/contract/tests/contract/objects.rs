//! What a client may ever see of a task: for every record that a store could hold, only the
//! documented fields, each only in the states that it belongs to.

use kinora_contract::error::{Failure, FailureCode};
use kinora_contract::{
    Amount, Artifact, Currency, EditSpec, Priority, ResultLinks, StoredFile, SubmitIntent,
    SubmitRequest, Task, TaskCost, TaskState, VideoObject, VideoSpec, Warning, WarningCode,
    validate,
};
use proptest::collection::vec;
use proptest::option::of;
use proptest::prelude::*;
use proptest::sample::select;
use serde_json::{Map, Value};

use crate::strategies::{catalog, new_body, task_id};

const ALWAYS: [&str; 12] = [
    "id",
    "object",
    "model",
    "status",
    "progress",
    "created_at",
    "prompt",
    "seconds",
    "size",
    "seed",
    "metadata",
    "polling_url",
];
const WHEN_COMPLETED: [&str; 8] = [
    "result_url",
    "url",
    "unsigned_urls",
    "thumbnail_url",
    "duration",
    "fps",
    "frames",
    "has_audio",
];
const WHEN_FAILED: [&str; 2] = ["error", "fail_reason"];
const FRAMES: [&str; 2] = ["first_frame_url", "last_frame_url"];
const WHERE_THEY_APPLY: [&str; 12] = [
    "priority",
    "started_at",
    "completed_at",
    "expires_at",
    "queue_position",
    "draft",
    "draft_task_id",
    "edit_task_id",
    "remixed_from_video_id",
    "engine",
    "warnings",
    "cost",
];

const ADDRESS: &str = "https://videos.example/v1/videos/video_1";

fn spec() -> impl Strategy<Value = VideoSpec> {
    let lineage = (of(task_id()), of(task_id()));
    (new_body(), any::<u32>(), lineage).prop_map(|(body, seed, (final_of, edited))| {
        let request = SubmitRequest::from_fields(body).unwrap();
        let SubmitIntent::New(spec) = validate(&request, &catalog(), seed).unwrap().intent else {
            panic!("a new video was asked for");
        };
        VideoSpec {
            final_of,
            edit: edited.map(|task_id| EditSpec {
                task_id,
                strength: 0.6,
            }),
            ..*spec
        }
    })
}

fn state() -> impl Strategy<Value = TaskState> {
    let file = |name: &str| StoredFile {
        key: format!("results/{name}"),
        bytes: 1,
        sha256: "0".repeat(64),
    };
    let (video, thumbnail, spritesheet) = (file("v.mp4"), file("p.webp"), file("s.jpg"));
    let (first, last) = (file("f.jpg"), file("l.jpg"));
    let properties = (0.04_f64..16.0, any::<bool>(), any::<[bool; 2]>());
    let completed = properties.prop_map(move |(seconds, has_audio, has_frames)| {
        TaskState::Completed(Box::new(Artifact {
            video: video.clone(),
            thumbnail: thumbnail.clone(),
            spritesheet: spritesheet.clone(),
            first_frame: has_frames[0].then(|| first.clone()),
            last_frame: has_frames[1].then(|| last.clone()),
            duration_seconds: seconds,
            fps: 24.0,
            frames: (seconds * 24.0) as u32,
            width: 1280,
            height: 720,
            has_audio,
        }))
    });
    let codes = select(FailureCode::ALL);
    let failed = (codes, of("reference_images\\[[0-9]\\]")).prop_map(|(code, param)| {
        let failure = Failure::from(code);
        TaskState::Failed(match param {
            Some(param) => failure.with_param(param),
            None => failure,
        })
    });
    prop_oneof![
        Just(TaskState::Waiting),
        Just(TaskState::Running),
        completed,
        failed,
        Just(TaskState::Expired)
    ]
}

fn cost((micros, is_estimated): (u64, bool)) -> TaskCost {
    TaskCost {
        amount: Amount::from_micros(micros),
        currency: Currency::USD,
        is_estimated,
        fixed: Amount::ZERO,
        per_second: Amount::ZERO,
        charged: None,
        charged_before: Amount::ZERO,
        reserved: None,
    }
}

/// Any record, also one that breaks its own rules on progress and times: nothing of that may show.
fn task() -> impl Strategy<Value = Task> {
    let times = (
        any::<u64>(),
        of(any::<u64>()),
        of(any::<u64>()),
        of(any::<u64>()),
    );
    let warnings = vec(Just(Warning::from(WarningCode::SeedIgnored)), 0..3);
    let rest = (
        any::<u8>(),
        any::<u32>(),
        of("[a-z]{1,9}/[0-9.]{1,5}"),
        warnings,
        select(Priority::ALL.to_vec()),
        of(any::<(u64, bool)>().prop_map(cost)),
    );
    (task_id(), spec(), state(), times, rest).prop_map(|(id, spec, state, times, rest)| Task {
        id,
        project: "PROJECT".to_owned(),
        spec,
        metadata: [("code".to_owned(), "mine".to_owned())].into(),
        priority: rest.4,
        state,
        progress: rest.0,
        created_at_ms: times.0,
        started_at_ms: times.1,
        finished_at_ms: times.2,
        expires_at_ms: times.3,
        attempt: rest.1,
        engine: rest.2,
        warnings: rest.3,
        trace: None,
        cost: rest.5,
    })
}

fn links(_: &Task) -> ResultLinks {
    ResultLinks {
        video: "https://videos.example/v.mp4".to_owned(),
        thumbnail: "https://videos.example/p.webp".to_owned(),
        first_frame: "https://videos.example/f.jpg".to_owned(),
        last_frame: "https://videos.example/l.jpg".to_owned(),
    }
}

fn object(task: &Task, queue_position: Option<u64>) -> Option<Map<String, Value>> {
    let object = VideoObject::from_task(task, queue_position, ADDRESS.to_owned(), links)?;
    let Value::Object(fields) = serde_json::to_value(object).unwrap() else {
        panic!("a task object is an object");
    };
    Some(fields)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1024, failure_persistence: None, ..Default::default() })]

    #[test]
    fn only_documented_fields_in_their_states(task in task(), position in of(any::<u64>())) {
        let Some(fields) = object(&task, position) else {
            prop_assert_eq!(&task.state, &TaskState::Expired);
            return Ok(());
        };
        let status = fields["status"].as_str().unwrap();
        prop_assert!(["queued", "in_progress", "completed", "failed"].contains(&status));
        for name in ["code", "data", "works"] {
            prop_assert!(!fields.contains_key(name));
        }
        for name in fields.keys().map(String::as_str) {
            let documented = ALWAYS.contains(&name)
                || WHERE_THEY_APPLY.contains(&name)
                || WHEN_COMPLETED.contains(&name) && status == "completed"
                || FRAMES.contains(&name) && status == "completed"
                || WHEN_FAILED.contains(&name) && status == "failed";
            prop_assert!(documented, "{name} when {status}");
        }
        prop_assert!(fields.values().all(|value| !value.is_null()));
        prop_assert!(ALWAYS.iter().all(|name| fields.contains_key(*name)));
        let whole = |names: &[&str]| names.iter().all(|name| fields.contains_key(*name));
        prop_assert_eq!(whole(&WHEN_COMPLETED), status == "completed");
        prop_assert_eq!(whole(&WHEN_FAILED), status == "failed");
        if let TaskState::Completed(artifact) = &task.state {
            let made = [&artifact.first_frame, &artifact.last_frame].map(Option::is_some);
            prop_assert_eq!(FRAMES.map(|name| fields.contains_key(name)), made);
        }
        prop_assert_eq!(fields.contains_key("queue_position"), status == "queued" && position.is_some());
        let progress = fields["progress"].as_u64().unwrap();
        prop_assert!(progress <= 100);
        prop_assert_eq!(progress == 100, status == "completed");
    }

    #[test]
    fn the_status_follows_the_state_and_a_rescued_task_does_not_fall_back(task in task()) {
        let expected = match (&task.state, task.started_at_ms) {
            (TaskState::Waiting, None) => Some("queued"),
            (TaskState::Waiting, Some(_)) | (TaskState::Running, _) => Some("in_progress"),
            (TaskState::Completed(_), _) => Some("completed"),
            (TaskState::Failed(_), _) => Some("failed"),
            (TaskState::Expired, _) => None,
        };
        let fields = object(&task, None);
        let status = fields.as_ref().and_then(|fields| fields["status"].as_str());
        prop_assert_eq!(status, expected);
    }

    #[test]
    fn twins_say_the_same_and_types_are_as_documented(task in task()) {
        let Some(fields) = object(&task, None) else { return Ok(()) };
        prop_assert_eq!(fields.get("url"), fields.get("result_url"));
        let listed = fields.get("unsigned_urls").map(|urls| &urls[0]);
        prop_assert_eq!(listed, fields.get("result_url"));
        prop_assert_eq!(fields.get("remixed_from_video_id"), fields.get("edit_task_id"));
        let message = fields.get("error").map(|error| &error["message"]);
        prop_assert_eq!(fields.get("fail_reason"), message);
        prop_assert_eq!(&fields["object"], "video");
        for name in ["id", "seconds", "size", "prompt", "model", "polling_url"] {
            prop_assert!(fields[name].is_string(), "{name}");
        }
        prop_assert!(fields["metadata"].is_object() && fields["seed"].is_u64());
        if let TaskState::Failed(failure) = &task.state {
            let error = &fields["error"];
            prop_assert_eq!(error.as_object().unwrap().len(), 2 + usize::from(failure.param.is_some()));
            prop_assert_eq!(error.get("param").and_then(Value::as_str), failure.param.as_deref());
        }
        let warnings = fields.get("warnings").map_or(0, |all| all.as_array().unwrap().len());
        prop_assert_eq!(warnings, task.warnings.len());
        prop_assert_eq!(fields.contains_key("warnings"), warnings > 0);
        prop_assert_ne!(fields.get("draft"), Some(&Value::Bool(false)));
        let priority = fields.get("priority").map_or("normal", |name| name.as_str().unwrap());
        prop_assert_eq!(priority, task.priority.name());
        prop_assert_eq!(fields.contains_key("priority"), task.priority != Priority::Normal);
    }

    #[test]
    fn nothing_private_shows(task in task()) {
        let Some(fields) = object(&task, Some(3)) else { return Ok(()) };
        let text = Value::Object(fields).to_string();
        for private in ["PROJECT", "results/", "attempt", "sha256"] {
            prop_assert!(!text.contains(private), "{private}");
        }
    }
}

proptest! {
    #[test]
    fn addresses_are_asked_for_only_when_completed(task in task()) {
        let mut asked = 0;
        let made = VideoObject::from_task(&task, None, ADDRESS.to_owned(), |task| {
            asked += 1;
            links(task)
        });
        let completed = matches!(task.state, TaskState::Completed(_));
        prop_assert_eq!(asked, u32::from(completed));
        prop_assert_eq!(made.is_none(), task.state == TaskState::Expired);
    }
}
