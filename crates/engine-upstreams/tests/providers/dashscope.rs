//! DashScope.

use kinora_testkit::providers::{DashScope, Fate, TestProvider};

use crate::case::{Case, Input};

const LINE: &str = "POST /api/v1/services/aigc/video-generation/video-synthesis";

pub(crate) const CASE: Case = Case {
    dialect: "dashscope",
    start: |key| TestProvider::start(DashScope, key),
    key: "sk-marked",
    secret: "sk-marked",
    model: "wan3.0-video",
    size: (1280, 720),
    seconds: 5,
    sound: false,
    cancels: Some(Fate::Waiting),
    admits_forgetting: true,
    requests: &[
        (
            Input::Text,
            LINE,
            r#"{
                "model": "wan3.0-video",
                "input": {"prompt": "A boat \"on\" a lake", "negative_prompt": "rain"},
                "parameters": {"resolution": "720P", "ratio": "16:9", "duration": 5, "seed": 7}
            }"#,
        ),
        (
            Input::FirstFrame,
            LINE,
            r#"{
                "model": "wan3.0-video",
                "input": {
                    "prompt": "A boat \"on\" a lake", "negative_prompt": "rain",
                    "media": [{"type": "first_frame", "url": "https://e.org/1.png"}]
                },
                "parameters": {"resolution": "720P", "ratio": "16:9", "duration": 5, "seed": 7}
            }"#,
        ),
        (
            Input::UploadedFrame,
            LINE,
            r#"{
                "model": "wan3.0-video",
                "input": {
                    "prompt": "A boat \"on\" a lake", "negative_prompt": "rain",
                    "media": [{"type": "first_frame", "url": "data:image/png;base64,cG5n"}]
                },
                "parameters": {"resolution": "720P", "ratio": "16:9", "duration": 5, "seed": 7}
            }"#,
        ),
        (
            Input::Frames,
            LINE,
            r#"{
                "model": "wan3.0-video",
                "input": {
                    "prompt": "A boat \"on\" a lake", "negative_prompt": "rain",
                    "media": [
                        {"type": "first_frame", "url": "https://e.org/1.png"},
                        {"type": "last_frame", "url": "https://e.org/2.png"}
                    ]
                },
                "parameters": {"resolution": "720P", "ratio": "16:9", "duration": 5, "seed": 7}
            }"#,
        ),
        (
            Input::Images,
            LINE,
            r#"{
                "model": "wan3.0-video",
                "input": {
                    "prompt": "A boat \"on\" a lake", "negative_prompt": "rain",
                    "media": [
                        {"type": "reference_image", "url": "https://e.org/1.png"},
                        {"type": "reference_image", "url": "https://e.org/2.png"}
                    ]
                },
                "parameters": {"resolution": "720P", "ratio": "16:9", "duration": 5, "seed": 7}
            }"#,
        ),
        (
            Input::Sound,
            LINE,
            r#"{
                "model": "wan3.0-video",
                "input": {
                    "prompt": "A boat \"on\" a lake", "negative_prompt": "rain",
                    "media": [
                        {"type": "reference_image", "url": "https://e.org/1.png"},
                        {"type": "reference_audio", "url": "https://e.org/3.mp3"}
                    ]
                },
                "parameters": {"resolution": "720P", "ratio": "16:9", "duration": 5, "seed": 7}
            }"#,
        ),
    ],
};
