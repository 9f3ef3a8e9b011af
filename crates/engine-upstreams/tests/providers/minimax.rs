//! MiniMax.

use kinora_testkit::providers::{Fate, MiniMax, TestProvider};

use crate::case::{Case, Input};

const LINE: &str = "POST /v2/video_generation";

pub(crate) const CASE: Case = Case {
    dialect: "minimax",
    start: |key| TestProvider::start(MiniMax, key),
    key: "sk-marked",
    secret: "sk-marked",
    model: "MiniMax-H3",
    size: (1344, 768),
    seconds: 5,
    sound: false,
    cancels: Some(Fate::Waiting),
    admits_forgetting: true,
    requests: &[
        (
            Input::Text,
            LINE,
            r#"{
                "model": "MiniMax-H3",
                "content": [{"type": "text", "text": "A boat \"on\" a lake"}],
                "resolution": "768P", "ratio": "16:9", "duration": 5
            }"#,
        ),
        (
            Input::FirstFrame,
            LINE,
            r#"{
                "model": "MiniMax-H3",
                "content": [
                    {"type": "text", "text": "A boat \"on\" a lake"},
                    {"type": "image_url", "image_url": {"url": "https://e.org/1.png"}, "role": "first_frame"}
                ],
                "resolution": "768P", "ratio": "16:9", "duration": 5
            }"#,
        ),
        (
            Input::UploadedFrame,
            LINE,
            r#"{
                "model": "MiniMax-H3",
                "content": [
                    {"type": "text", "text": "A boat \"on\" a lake"},
                    {"type": "image_url", "image_url": {"url": "data:image/png;base64,cG5n"}, "role": "first_frame"}
                ],
                "resolution": "768P", "ratio": "16:9", "duration": 5
            }"#,
        ),
        (
            Input::Frames,
            LINE,
            r#"{
                "model": "MiniMax-H3",
                "content": [
                    {"type": "text", "text": "A boat \"on\" a lake"},
                    {"type": "image_url", "image_url": {"url": "https://e.org/1.png"}, "role": "first_frame"},
                    {"type": "image_url", "image_url": {"url": "https://e.org/2.png"}, "role": "last_frame"}
                ],
                "resolution": "768P", "ratio": "16:9", "duration": 5
            }"#,
        ),
        (
            Input::Images,
            LINE,
            r#"{
                "model": "MiniMax-H3",
                "content": [
                    {"type": "text", "text": "A boat \"on\" a lake"},
                    {"type": "image_url", "image_url": {"url": "https://e.org/1.png"}, "role": "reference_image"},
                    {"type": "image_url", "image_url": {"url": "https://e.org/2.png"}, "role": "reference_image"}
                ],
                "resolution": "768P", "ratio": "16:9", "duration": 5
            }"#,
        ),
        (
            Input::Sound,
            LINE,
            r#"{
                "model": "MiniMax-H3",
                "content": [
                    {"type": "text", "text": "A boat \"on\" a lake"},
                    {"type": "image_url", "image_url": {"url": "https://e.org/1.png"}, "role": "reference_image"},
                    {"type": "audio_url", "audio_url": {"url": "https://e.org/3.mp3"}, "role": "reference_audio"}
                ],
                "resolution": "768P", "ratio": "16:9", "duration": 5
            }"#,
        ),
    ],
};
