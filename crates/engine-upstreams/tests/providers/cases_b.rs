//! Runway, Luma, Vidu, Replicate, fal, OpenRouter and xAI.

use kinora_contract::VideoInputs;
use kinora_testkit::providers::{
    Fal, Luma, OpenRouter, Replicate, Runway, TestProvider, Vidu, Xai,
};
use serde_json::{Value, json};

use crate::common::{PROMPT, frames, references};
use crate::support::{FACE, FIRST, LAST, PLACE, ProviderCase, Requests, VOICE, and};

pub(crate) const ALL: &[ProviderCase] = &[
    ProviderCase {
        name: "runway",
        engine: "seedance2",
        start: |key| TestProvider::start(Runway, key),
        fit: |_| {},
        requests: runway,
        cancels: (true, true),
        reports_progress: true,
        moderates_submits: false,
        tells_wrong_keys: true,
        takes_data: true,
        links_films: true,
    },
    ProviderCase {
        name: "luma",
        engine: "ray-2",
        start: |key| TestProvider::start(Luma, key),
        fit: |_| {},
        requests: luma,
        cancels: (true, true),
        reports_progress: false,
        moderates_submits: false,
        tells_wrong_keys: true,
        takes_data: false,
        links_films: true,
    },
    ProviderCase {
        name: "vidu",
        engine: "viduq3-turbo",
        start: |key| TestProvider::start(Vidu, key),
        fit: |_| {},
        requests: vidu,
        cancels: (true, false),
        reports_progress: false,
        moderates_submits: true,
        tells_wrong_keys: true,
        takes_data: true,
        links_films: true,
    },
    ProviderCase {
        name: "replicate",
        engine: "seedance-1-lite",
        start: |key| TestProvider::start(Replicate, key),
        fit: |_| {},
        requests: replicate,
        cancels: (true, true),
        reports_progress: false,
        moderates_submits: false,
        tells_wrong_keys: true,
        takes_data: true,
        links_films: true,
    },
    ProviderCase {
        name: "fal",
        engine: "seedance-2",
        start: |key| TestProvider::start(Fal, key),
        fit: |_| {},
        requests: fal,
        cancels: (true, true),
        reports_progress: false,
        moderates_submits: false,
        tells_wrong_keys: true,
        takes_data: true,
        links_films: true,
    },
    ProviderCase {
        name: "openrouter",
        engine: "seedance-2",
        start: |key| TestProvider::start(OpenRouter, key),
        fit: |_| {},
        requests: openrouter,
        cancels: (false, false),
        reports_progress: false,
        moderates_submits: true,
        tells_wrong_keys: true,
        takes_data: true,
        links_films: false,
    },
    ProviderCase {
        name: "xai",
        engine: "grok-imagine-1.5",
        start: |key| TestProvider::start(Xai, key),
        fit: |_| {},
        requests: xai,
        cancels: (false, false),
        reports_progress: true,
        moderates_submits: true,
        tells_wrong_keys: false,
        takes_data: true,
        links_films: true,
    },
];

fn xai() -> Requests {
    let base = json!({
        "model": "grok-imagine-video-1.5", "prompt": PROMPT, "duration": 5, "aspect_ratio": "16:9",
        "resolution": "720p", "generate_audio": false,
    });
    let line = "POST /v1/videos/generations";
    let shown = json!({
        "reference_images": [{"url": FACE}, {"url": PLACE}], "reference_audios": [{"url": VOICE}],
    });
    vec![
        (VideoInputs::Text, line, base.clone()),
        (
            frames(FIRST, None),
            line,
            and(&base, json!({"image": {"url": FIRST}})),
        ),
        (
            frames(FIRST, Some(LAST)),
            line,
            and(
                &base,
                json!({"image": {"url": FIRST}, "last_frame": {"url": LAST}}),
            ),
        ),
        (
            references(&[FACE, PLACE], &[VOICE]),
            line,
            and(&base, shown),
        ),
    ]
}

fn runway() -> Requests {
    let base = json!({
        "model": "seedance2", "promptText": PROMPT, "ratio": "1280:720", "duration": 5, "seed": 7,
        "audio": false,
    });
    let first = json!({"uri": FIRST, "position": "first"});
    let last = json!({"uri": LAST, "position": "last"});
    let shown = json!({
        "references": [{"uri": FACE}, {"uri": PLACE}],
        "referenceAudio": [{"type": "audio", "uri": VOICE}],
    });
    let (text, image) = ("POST /v1/text_to_video", "POST /v1/image_to_video");
    vec![
        (VideoInputs::Text, text, base.clone()),
        (
            frames(FIRST, None),
            image,
            and(&base, json!({"promptImage": [first]})),
        ),
        (
            frames(FIRST, Some(LAST)),
            image,
            and(&base, json!({"promptImage": [first, last]})),
        ),
        (
            references(&[FACE, PLACE], &[VOICE]),
            text,
            and(&base, shown),
        ),
    ]
}

fn luma() -> Requests {
    let base = json!({
        "model": "ray-2", "prompt": PROMPT, "aspect_ratio": "16:9", "resolution": "720p",
        "duration": "5s",
    });
    let first = json!({"type": "image", "url": FIRST});
    let last = json!({"type": "image", "url": LAST});
    let line = "POST /dream-machine/v1/generations/video";
    let keyframes = |frames: Value| and(&base, json!({ "keyframes": frames }));
    vec![
        (VideoInputs::Text, line, base.clone()),
        (
            frames(FIRST, None),
            line,
            keyframes(json!({"frame0": first})),
        ),
        (
            frames(FIRST, Some(LAST)),
            line,
            keyframes(json!({"frame0": first, "frame1": last})),
        ),
    ]
}

fn vidu() -> Requests {
    let base = json!({
        "model": "viduq3-turbo", "prompt": PROMPT, "duration": 5, "seed": 7, "resolution": "720p",
        "audio": false,
    });
    let images = |urls: &[&str]| and(&base, json!({ "images": urls }));
    let shape = json!({"aspect_ratio": "16:9"});
    let shown = and(&images(&[FACE, PLACE]), shape.clone());
    vec![
        (
            VideoInputs::Text,
            "POST /ent/v2/text2video",
            and(&base, shape),
        ),
        (
            frames(FIRST, None),
            "POST /ent/v2/img2video",
            images(&[FIRST]),
        ),
        (
            frames(FIRST, Some(LAST)),
            "POST /ent/v2/start-end2video",
            images(&[FIRST, LAST]),
        ),
        (
            references(&[FACE, PLACE], &[]),
            "POST /ent/v2/reference2video",
            shown,
        ),
    ]
}

fn replicate() -> Requests {
    let base = json!({
        "prompt": PROMPT, "duration": 5, "resolution": "720p", "aspect_ratio": "16:9", "seed": 7,
    });
    let line = "POST /v1/models/bytedance/seedance-1-lite/predictions";
    let input = |more: Value| json!({"input": and(&base, more)});
    vec![
        (VideoInputs::Text, line, input(json!({}))),
        (frames(FIRST, None), line, input(json!({"image": FIRST}))),
        (
            frames(FIRST, Some(LAST)),
            line,
            input(json!({"image": FIRST, "last_frame_image": LAST})),
        ),
        (
            references(&[FACE, PLACE], &[]),
            line,
            input(json!({"reference_images": [FACE, PLACE]})),
        ),
    ]
}

fn fal() -> Requests {
    let base = json!({
        "prompt": PROMPT, "duration": "5", "resolution": "720p", "aspect_ratio": "16:9",
        "generate_audio": false, "seed": 7,
    });
    let image = "POST /bytedance/seedance-2.0/image-to-video";
    vec![
        (
            VideoInputs::Text,
            "POST /bytedance/seedance-2.0/text-to-video",
            base.clone(),
        ),
        (
            frames(FIRST, None),
            image,
            and(&base, json!({"image_url": FIRST})),
        ),
        (
            frames(FIRST, Some(LAST)),
            image,
            and(&base, json!({"image_url": FIRST, "end_image_url": LAST})),
        ),
        (
            references(&[FACE, PLACE], &[VOICE]),
            "POST /bytedance/seedance-2.0/reference-to-video",
            and(
                &base,
                json!({"image_urls": [FACE, PLACE], "audio_urls": [VOICE]}),
            ),
        ),
    ]
}

fn openrouter() -> Requests {
    let base = json!({
        "model": "bytedance/seedance-2.0", "prompt": PROMPT, "duration": 5, "size": "1280x720",
        "seed": 7, "generate_audio": false,
    });
    let picture = |url: &str| json!({"type": "image_url", "image_url": {"url": url}});
    let first = and(&picture(FIRST), json!({"frame_type": "first_frame"}));
    let last = and(&picture(LAST), json!({"frame_type": "last_frame"}));
    let voice = json!({"type": "audio_url", "audio_url": {"url": VOICE}});
    let line = "POST /api/v1/videos";
    let shown = json!({"input_references": [picture(FACE), picture(PLACE), voice]});
    vec![
        (VideoInputs::Text, line, base.clone()),
        (
            frames(FIRST, None),
            line,
            and(&base, json!({"frame_images": [first]})),
        ),
        (
            frames(FIRST, Some(LAST)),
            line,
            and(&base, json!({"frame_images": [first, last]})),
        ),
        (
            references(&[FACE, PLACE], &[VOICE]),
            line,
            and(&base, shown),
        ),
    ]
}
