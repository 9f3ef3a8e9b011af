//! Veo of the Gemini API.

use kinora_testkit::providers::{TestProvider, Veo};

use crate::case::{Case, Input};

const LINE: &str = "POST /v1beta/models/veo-3.1-generate-001:predictLongRunning";

pub(crate) const CASE: Case = Case {
    dialect: "veo",
    start: |key| TestProvider::start(Veo, key),
    key: "AIza-marked",
    secret: "AIza-marked",
    model: "veo-3.1-generate-001",
    size: (1280, 720),
    seconds: 8,
    sound: false,
    cancels: None,
    admits_forgetting: true,
    requests: &[
        (
            Input::Text,
            LINE,
            r#"{
                "instances": [{"prompt": "A boat \"on\" a lake"}],
                "parameters": {
                    "negativePrompt": "rain", "aspectRatio": "16:9", "resolution": "720p",
                    "durationSeconds": 8
                }
            }"#,
        ),
        (Input::FirstFrame, LINE, FIRST_FRAME),
        (Input::UploadedFrame, LINE, FIRST_FRAME),
        (
            Input::Frames,
            LINE,
            r#"{
                "instances": [{
                    "prompt": "A boat \"on\" a lake",
                    "image": {"bytesBase64Encoded": "cG5n", "mimeType": "image/png"},
                    "lastFrame": {"bytesBase64Encoded": "cG5n", "mimeType": "image/png"}
                }],
                "parameters": {
                    "negativePrompt": "rain", "aspectRatio": "16:9", "resolution": "720p",
                    "durationSeconds": 8
                }
            }"#,
        ),
        (
            Input::Images,
            LINE,
            r#"{
                "instances": [{
                    "prompt": "A boat \"on\" a lake",
                    "referenceImages": [
                        {
                            "image": {"bytesBase64Encoded": "cG5n", "mimeType": "image/png"},
                            "referenceType": "asset"
                        },
                        {
                            "image": {"bytesBase64Encoded": "cG5n", "mimeType": "image/png"},
                            "referenceType": "asset"
                        }
                    ]
                }],
                "parameters": {
                    "negativePrompt": "rain", "aspectRatio": "16:9", "resolution": "720p",
                    "durationSeconds": 8
                }
            }"#,
        ),
    ],
};

/// The provider reads no URLs.
const FIRST_FRAME: &str = r#"{
    "instances": [{
        "prompt": "A boat \"on\" a lake",
        "image": {"bytesBase64Encoded": "cG5n", "mimeType": "image/png"}
    }],
    "parameters": {
        "negativePrompt": "rain", "aspectRatio": "16:9", "resolution": "720p", "durationSeconds": 8
    }
}"#;
