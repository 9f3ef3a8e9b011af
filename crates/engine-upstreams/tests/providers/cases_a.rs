//! Ark, DashScope, Gemini Omni, Kling, MiniMax and Veo.

use kinora_contract::{FrameSize, Size, VideoInputs, VideoLength};
use kinora_testkit::providers::{Ark, DashScope, GeminiOmni, Kling, MiniMax, TestProvider, Veo};
use serde_json::{Value, json};

use crate::common::{PROMPT, frames, references};
use crate::support::{FACE, FIRST, LAST, PLACE, ProviderCase, Requests, VOICE, and};

pub(crate) const ALL: &[ProviderCase] = &[
    ProviderCase {
        name: "ark",
        engine: "seedance",
        start: |key| TestProvider::start(Ark, key),
        fit: |_| {},
        requests: ark,
        cancels: (true, false),
        reports_progress: false,
        moderates_submits: true,
        tells_wrong_keys: true,
        takes_data: true,
        links_films: true,
    },
    ProviderCase {
        name: "dashscope",
        engine: "wan",
        start: |key| TestProvider::start(DashScope, key),
        fit: |_| {},
        requests: dashscope,
        cancels: (true, false),
        reports_progress: false,
        moderates_submits: true,
        tells_wrong_keys: true,
        takes_data: true,
        links_films: true,
    },
    ProviderCase {
        name: "gemini-omni",
        engine: "omni",
        start: |key| TestProvider::start(GeminiOmni, key),
        fit: |_| {},
        requests: gemini_omni,
        cancels: (true, true),
        reports_progress: false,
        moderates_submits: true,
        // 400, as for any other wrong request.
        tells_wrong_keys: false,
        takes_data: true,
        links_films: true,
    },
    ProviderCase {
        name: "kling",
        engine: "kling",
        start: |key| TestProvider::start(Kling, key),
        fit: |_| {},
        requests: kling,
        cancels: (false, false),
        reports_progress: false,
        moderates_submits: true,
        tells_wrong_keys: true,
        takes_data: true,
        links_films: true,
    },
    ProviderCase {
        name: "minimax",
        engine: "minimax",
        start: |key| TestProvider::start(MiniMax, key),
        fit: |spec| spec.frame = FrameSize::Fixed(Size::new(1344, 768)),
        requests: minimax,
        cancels: (true, false),
        reports_progress: false,
        moderates_submits: true,
        tells_wrong_keys: true,
        takes_data: true,
        links_films: true,
    },
    ProviderCase {
        name: "veo",
        engine: "veo",
        start: |key| TestProvider::start(Veo, key),
        fit: |spec| spec.seconds = VideoLength::Fixed(8),
        requests: veo,
        cancels: (false, false),
        reports_progress: false,
        moderates_submits: true,
        // 400, as for any other wrong request.
        tells_wrong_keys: false,
        takes_data: true,
        links_films: true,
    },
];

/// An item of a list of content with roles.
fn item(kind: &str, url: &str, role: &str) -> Value {
    json!({"type": kind, kind: {"url": url}, "role": role})
}

/// The same list of content with roles, at Ark and at MiniMax, with the fields of `base`.
fn with_content(base: &Value, line: &'static str) -> Requests {
    let text = json!({"type": "text", "text": PROMPT});
    let first = item("image_url", FIRST, "first_frame");
    let last = item("image_url", LAST, "last_frame");
    let shown = [FACE, PLACE].map(|url| item("image_url", url, "reference_image"));
    let heard = item("audio_url", VOICE, "reference_audio");
    let body = |content: Value| and(base, json!({ "content": content }));
    vec![
        (VideoInputs::Text, line, body(json!([text]))),
        (frames(FIRST, None), line, body(json!([text, first]))),
        (
            frames(FIRST, Some(LAST)),
            line,
            body(json!([text, first, last])),
        ),
        (
            references(&[FACE, PLACE], &[VOICE]),
            line,
            body(json!([text, shown[0], shown[1], heard])),
        ),
    ]
}

fn ark() -> Requests {
    let base = json!({
        "model": "doubao-seedance-2-0-260128", "resolution": "720p", "ratio": "16:9", "duration": 5,
        "seed": 7, "generate_audio": false,
    });
    with_content(&base, "POST /api/v3/contents/generations/tasks")
}

fn minimax() -> Requests {
    let base = json!({
        "model": "MiniMax-H3", "resolution": "768P", "ratio": "16:9", "duration": 5,
    });
    with_content(&base, "POST /v2/video_generation")
}

fn dashscope() -> Requests {
    let line = "POST /api/v1/services/aigc/video-generation/video-synthesis";
    let parameters = json!({"resolution": "720P", "ratio": "16:9", "duration": 5, "seed": 7});
    let body = |more: Value| {
        let input = and(&json!({"prompt": PROMPT}), more);
        json!({"model": "wan3.0-video", "input": input, "parameters": parameters})
    };
    let medium = |kind: &str, url: &str| json!({"type": kind, "url": url});
    let media = |media: Value| body(json!({ "media": media }));
    let first = medium("first_frame", FIRST);
    let shown = [FACE, PLACE].map(|url| medium("reference_image", url));
    vec![
        (VideoInputs::Text, line, body(json!({}))),
        (frames(FIRST, None), line, media(json!([first]))),
        (
            frames(FIRST, Some(LAST)),
            line,
            media(json!([first, medium("last_frame", LAST)])),
        ),
        (
            references(&[FACE, PLACE], &[VOICE]),
            line,
            media(json!([
                shown[0],
                shown[1],
                medium("reference_audio", VOICE)
            ])),
        ),
    ]
}

/// The bytes of every reference, in base64.
const BYTES: &str = "ZmFjZQ==";

fn gemini_omni() -> Requests {
    let line = "POST /v1beta/interactions";
    let base = json!({
        "model": "gemini-omni-1.1-flash", "background": true,
        "response_format": {
            "type": "video", "delivery": "uri", "aspect_ratio": "16:9", "resolution": "720p",
            "duration": "5s",
        },
    });
    let image = json!({"type": "image", "data": BYTES, "mime_type": "image/png"});
    let text = json!({"type": "text", "text": PROMPT});
    let body = |task: &str, input: Value| {
        let config = json!({"video_config": {"task": task}});
        and(&base, json!({"input": input, "generation_config": config}))
    };
    vec![
        (
            VideoInputs::Text,
            line,
            and(&base, json!({"input": PROMPT})),
        ),
        (
            frames(FIRST, None),
            line,
            body("image_to_video", json!([image, text])),
        ),
        (
            references(&[FACE, PLACE], &[]),
            line,
            body("reference_to_video", json!([image, image, text])),
        ),
    ]
}

fn kling() -> Requests {
    let base = json!({
        "model_name": "kling-v2-6", "prompt": PROMPT, "mode": "std", "duration": "5",
        "external_task_id": "video_0001", "sound": "off",
    });
    let framed = and(&base, json!({"image": BYTES}));
    let image = "POST /v1/videos/image2video";
    vec![
        (
            VideoInputs::Text,
            "POST /v1/videos/text2video",
            and(&base, json!({"aspect_ratio": "16:9"})),
        ),
        (frames(FIRST, None), image, framed.clone()),
        (
            frames(FIRST, Some(LAST)),
            image,
            and(&framed, json!({"image_tail": BYTES})),
        ),
    ]
}

fn veo() -> Requests {
    let line = "POST /v1beta/models/veo-3.1-generate-001:predictLongRunning";
    let body = |more: Value| {
        let instance = and(&json!({"prompt": PROMPT}), more);
        let parameters = json!({"aspectRatio": "16:9", "resolution": "720p", "durationSeconds": 8});
        json!({"instances": [instance], "parameters": parameters})
    };
    let image = json!({"bytesBase64Encoded": BYTES, "mimeType": "image/png"});
    let shown = json!({"image": image, "referenceType": "ASSET"});
    vec![
        (VideoInputs::Text, line, body(json!({}))),
        (frames(FIRST, None), line, body(json!({"image": image}))),
        (
            frames(FIRST, Some(LAST)),
            line,
            body(json!({"image": image, "lastFrame": image})),
        ),
        (
            references(&[FACE, PLACE], &[]),
            line,
            body(json!({"referenceImages": [shown, shown]})),
        ),
    ]
}
