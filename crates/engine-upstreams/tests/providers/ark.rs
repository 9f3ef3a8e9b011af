//! Volcengine Ark.

use kinora_testkit::providers::{Ark, Fate, TestProvider};

use crate::case::{Case, Input};

const LINE: &str = "POST /api/v3/contents/generations/tasks";

pub(crate) const CASE: Case = Case {
    dialect: "ark",
    start: |key| TestProvider::start(Ark, key),
    key: "ark-marked",
    secret: "ark-marked",
    model: "doubao-seedance-2-0-260128",
    size: (1280, 720),
    seconds: 5,
    sound: true,
    cancels: Some(Fate::Waiting),
    admits_forgetting: true,
    requests: &[
        (
            Input::Text,
            LINE,
            r#"{
                "model": "doubao-seedance-2-0-260128",
                "content": [{"type": "text", "text": "A boat \"on\" a lake"}],
                "resolution": "720p", "ratio": "16:9", "duration": 5, "seed": 7,
                "generate_audio": true
            }"#,
        ),
        (
            Input::FirstFrame,
            LINE,
            r#"{
                "model": "doubao-seedance-2-0-260128",
                "content": [
                    {"type": "text", "text": "A boat \"on\" a lake"},
                    {"type": "image_url", "image_url": {"url": "https://e.org/1.png"}, "role": "first_frame"}
                ],
                "resolution": "720p", "ratio": "16:9", "duration": 5, "seed": 7,
                "generate_audio": true
            }"#,
        ),
        (
            Input::UploadedFrame,
            LINE,
            r#"{
                "model": "doubao-seedance-2-0-260128",
                "content": [
                    {"type": "text", "text": "A boat \"on\" a lake"},
                    {"type": "image_url", "image_url": {"url": "data:image/png;base64,cG5n"}, "role": "first_frame"}
                ],
                "resolution": "720p", "ratio": "16:9", "duration": 5, "seed": 7,
                "generate_audio": true
            }"#,
        ),
        (
            Input::Frames,
            LINE,
            r#"{
                "model": "doubao-seedance-2-0-260128",
                "content": [
                    {"type": "text", "text": "A boat \"on\" a lake"},
                    {"type": "image_url", "image_url": {"url": "https://e.org/1.png"}, "role": "first_frame"},
                    {"type": "image_url", "image_url": {"url": "https://e.org/2.png"}, "role": "last_frame"}
                ],
                "resolution": "720p", "ratio": "16:9", "duration": 5, "seed": 7,
                "generate_audio": true
            }"#,
        ),
        (
            Input::Images,
            LINE,
            r#"{
                "model": "doubao-seedance-2-0-260128",
                "content": [
                    {"type": "text", "text": "A boat \"on\" a lake"},
                    {"type": "image_url", "image_url": {"url": "https://e.org/1.png"}, "role": "reference_image"},
                    {"type": "image_url", "image_url": {"url": "https://e.org/2.png"}, "role": "reference_image"}
                ],
                "resolution": "720p", "ratio": "16:9", "duration": 5, "seed": 7,
                "generate_audio": true
            }"#,
        ),
        (
            Input::Sound,
            LINE,
            r#"{
                "model": "doubao-seedance-2-0-260128",
                "content": [
                    {"type": "text", "text": "A boat \"on\" a lake"},
                    {"type": "image_url", "image_url": {"url": "https://e.org/1.png"}, "role": "reference_image"},
                    {"type": "audio_url", "audio_url": {"url": "https://e.org/3.mp3"}, "role": "reference_audio"}
                ],
                "resolution": "720p", "ratio": "16:9", "duration": 5, "seed": 7,
                "generate_audio": true
            }"#,
        ),
    ],
};
