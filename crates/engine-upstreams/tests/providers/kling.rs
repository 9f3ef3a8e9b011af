//! Kling.

use kinora_testkit::providers::{Kling, TestProvider};

use crate::case::{Case, Input};

const FRAMES: &str = "POST /v1/videos/image2video";

pub(crate) const CASE: Case = Case {
    dialect: "kling",
    start: |key| TestProvider::start(Kling, key),
    key: "access:secret-marked",
    secret: "secret-marked",
    model: "kling-v2-6",
    size: (1280, 720),
    seconds: 5,
    sound: true,
    cancels: None,
    admits_forgetting: true,
    requests: &[
        (
            Input::Text,
            "POST /v1/videos/text2video",
            r#"{
                "model_name": "kling-v2-6", "prompt": "A boat \"on\" a lake",
                "negative_prompt": "rain", "mode": "std", "aspect_ratio": "16:9", "duration": "5",
                "sound": "on", "external_task_id": "video_0001"
            }"#,
        ),
        (Input::FirstFrame, FRAMES, FIRST_FRAME),
        (Input::UploadedFrame, FRAMES, FIRST_FRAME),
        (
            Input::Frames,
            FRAMES,
            r#"{
                "model_name": "kling-v2-6", "image": "cG5n", "image_tail": "cG5n",
                "prompt": "A boat \"on\" a lake", "negative_prompt": "rain", "mode": "std",
                "duration": "5", "sound": "on", "external_task_id": "video_0001"
            }"#,
        ),
        (
            Input::Images,
            "POST /v1/videos/multi-image2video",
            r#"{
                "model_name": "kling-v2-6", "image_list": [{"image": "cG5n"}, {"image": "cG5n"}],
                "prompt": "A boat \"on\" a lake", "negative_prompt": "rain", "mode": "std",
                "aspect_ratio": "16:9", "duration": "5", "external_task_id": "video_0001"
            }"#,
        ),
    ],
};

const FIRST_FRAME: &str = r#"{
    "model_name": "kling-v2-6", "image": "cG5n", "prompt": "A boat \"on\" a lake",
    "negative_prompt": "rain", "mode": "std", "duration": "5", "sound": "on",
    "external_task_id": "video_0001"
}"#;
