//! The table of the two models, cell by cell: what a model can do is done and found in the file,
//! what it cannot do is refused by name, by JSON and by form.

use kinora_test_e2e::compare::{Frame, share_at, sound_of};
use kinora_test_e2e::{Client, Form, Host, Video, compare, media, studio};
use serde_json::{Value, json};

use crate::support::{Download, fetching, quick};
use kinora_test_e2e::compare::{COVER, given};

const A: &str = "kinora-a1";
const B: &str = "kinora-b1";

/// A finished clip.
struct Made {
    video: Video,
    file: Download,
}

/// Makes the quick clip of `model` with `more` fields.
fn make(model: &str, more: Value) -> Made {
    let client = fetching().newcomer();
    let video = client.submit(&with(model, more));
    let video = client.wait_completed(video.id());
    let file = Download::of(&client, &video.content());
    media::assert_decodes(&file.path());
    Made { video, file }
}

fn with(model: &str, more: Value) -> Value {
    let mut body = quick(model);
    let Value::Object(more) = more else {
        panic!("no object: {more}");
    };
    body.as_object_mut().unwrap().extend(more);
    body
}

impl Made {
    fn frames(&self) -> Vec<Frame> {
        Frame::all_of(&self.file.path(), COVER)
    }

    /// Asserts length to the frame, and whether there is sound.
    fn assert_is(&self, frames: u64, sound: bool) {
        let probe = media::probe(&self.file.path());
        assert_eq!(probe.video["nb_read_frames"], frames.to_string());
        assert_eq!(probe.audio.is_some(), sound);
        assert_eq!(self.video["frames"], frames);
        assert_eq!(self.video["has_audio"], sound);
        assert_eq!(self.video["duration"], frames as f64 / 24.0);
    }
}

/// Asserts that `model` refuses the quick request with `more`, by name.
fn assert_refused(model: &str, more: Value, code: &str, param: &str) {
    let client = fetching().newcomer();
    let body = with(model, more);
    for reply in [client.submit_json(&body), client.submit_form(&form(&body))] {
        let error = reply.refused(400, code);
        assert_eq!(error["param"], param, "{error:#}");
        let message = error["message"].as_str().unwrap();
        assert!(message.contains("not supported"), "{message}");
    }
    assert!(client.get("/v1/videos").list().1.is_empty());
}

/// The same request as a form.
pub(crate) fn form(body: &Value) -> Form {
    let mut form = Form::default();
    for (name, value) in body.as_object().unwrap() {
        match value {
            Value::Array(items) => {
                for item in items {
                    form = form.text(&format!("{name}[]"), item.as_str().unwrap());
                }
            }
            Value::String(text) => form = form.text(name, text),
            other => form = form.text(name, &other.to_string()),
        }
    }
    form
}

/// The test of a cell, for each model that has it.
macro_rules! cells {
    ($check:ident: $($name:ident => $model:expr),+ $(,)?) => {
        $(#[test]
        fn $name() {
            $check($model);
        })+
    };
}

cells!(text_to_video: a_makes_video_from_text => A, b_makes_video_from_text => B);

fn text_to_video(model: &str) {
    make(model, json!({})).assert_is(48, model == A);
}

cells!(first_frame: a_starts_with_the_first_frame => A, b_starts_with_the_first_frame => B);

fn first_frame(model: &str) {
    let host = Host::start();
    let picture = studio::landscape("first.png", (1000, 700));
    let given = given(&picture, "first.png");
    for name in ["first_frame", "input_reference"] {
        let made = make(
            model,
            json!({name: host.serve("first.png", picture.clone())}),
        );
        made.assert_is(48, model == A);
        let psnr_db = made.frames()[0].psnr_db(&given);
        assert!(psnr_db > 30.0, "{name}: {psnr_db:.1} dB");
    }
}

cells!(first_and_last_frame: a_ends_with_the_last_frame => A, b_ends_with_the_last_frame => B);

fn first_and_last_frame(model: &str) {
    let host = Host::start();
    let first = studio::landscape("first.jpg", (854, 480));
    let last = studio::picture("last.webp", (1280, 720), "teal");
    let made = make(
        model,
        json!({
            "first_frame": host.serve("first.jpg", first.clone()),
            "last_frame": host.serve("last.webp", last.clone()),
        }),
    );
    made.assert_is(48, model == A);
    let frames = made.frames();
    for (frame, given) in [
        (&frames[0], given(&first, "first.jpg")),
        (frames.last().unwrap(), given(&last, "last.webp")),
    ] {
        let psnr_db = frame.psnr_db(&given);
        assert!(psnr_db > 30.0, "{psnr_db:.1} dB");
    }
}

const COLOURS: [&str; 9] = [
    "red", "lime", "blue", "yellow", "magenta", "cyan", "orange", "purple", "navy",
];

cells!(reference_images: a_shows_nine_reference_images => A, b_shows_four_reference_images => B);

fn reference_images(model: &str) {
    let host = Host::start();
    let colours = &COLOURS[..if model == A { 9 } else { 4 }];
    let serve = |colour: &&str| {
        let name = format!("{colour}.png");
        host.serve(&name, studio::picture(&name, (640, 480), colour))
    };
    let urls: Vec<String> = colours.iter().map(serve).collect();
    let made = make(model, json!({"reference_images": urls, "seconds": 6}));
    made.assert_is(144, model == A);
    let frames = made.frames();
    let mut from = 0;
    for colour in colours {
        let name = format!("{colour}.png");
        let target = given(&studio::picture(&name, (640, 480), colour), &name).middle_colour();
        let near = |frame: &Frame| {
            let found = frame.middle_colour();
            (0..3).all(|channel| (found[channel] - target[channel]).abs() < 40.0)
        };
        let found = frames[from..].iter().position(near);
        from += found.unwrap_or_else(|| panic!("{colour} is not shown after frame {from}"));
    }
    let further = [urls.clone(), vec![host.url("more.png")]].concat();
    let client = fetching().newcomer();
    let reply = client.submit_json(&with(model, json!({"reference_images": further})));
    reply.refused_for(400, "invalid_value", Some("reference_images"));
}

#[test]
fn a_plays_reference_audio_in_order() {
    let host = Host::start();
    let urls: Vec<String> = [("one.wav", 700), ("two.mp3", 1500), ("three.m4a", 2300)]
        .into_iter()
        .map(|(name, hz)| host.serve(name, studio::tone(name, hz, 1.0)))
        .collect();
    let image = host.serve("red.png", studio::picture("red.png", (640, 480), "red"));
    let made = make(
        A,
        json!({"reference_images": [image], "reference_audios": urls, "seconds": 3}),
    );
    made.assert_is(72, true);
    let sound = sound_of(&made.file.path());
    for (second, hz) in [700.0, 1500.0, 2300.0].into_iter().enumerate() {
        // Joins and the fade at the end belong to both neighbours.
        let at = second * 8000;
        let heard = share_at(&sound[at + 1000..at + 6000], hz);
        assert!(heard > 0.8, "{hz} Hz in second {second}: {heard:.2}");
    }
    let four = json!({"reference_images": ["https://example.com/a.png"],
                      "reference_audios": vec!["https://example.com/a.wav"; 4]});
    let reply = fetching().newcomer().submit_json(&with(A, four));
    reply.refused_for(400, "invalid_value", Some("reference_audios"));
}

#[test]
fn b_refuses_reference_audio() {
    let more = json!({"reference_images": ["https://example.com/a.png"],
                      "reference_audios": ["https://example.com/a.wav"]});
    assert_refused(B, more, "unsupported_parameter", "reference_audios");
}

cells!(reference_video: a_refuses_reference_video => A, b_refuses_reference_video => B);

fn reference_video(model: &str) {
    for name in ["video", "video_url", "reference_videos"] {
        let value = match name {
            "reference_videos" => json!(["https://example.com/a.mp4"]),
            _ => json!("https://example.com/a.mp4"),
        };
        assert_refused(model, json!({name: value}), "unsupported_parameter", name);
    }
}

#[test]
fn a_makes_a_silent_file_on_demand() {
    make(A, json!({"generate_audio": true})).assert_is(48, true);
    make(A, json!({"generate_audio": false})).assert_is(48, false);
}

#[test]
fn b_refuses_a_sound_track() {
    for asked in [true, false] {
        let more = json!({"generate_audio": asked});
        assert_refused(B, more, "unsupported_parameter", "generate_audio");
    }
}

#[test]
fn a_refuses_automatic_duration() {
    for auto in [json!("auto"), json!(-1)] {
        assert_refused(A, json!({"seconds": auto}), "unsupported_value", "seconds");
    }
}

#[test]
fn b_chooses_the_duration() {
    // Its longer clip is one that other tests want to be slow.
    let server = crate::setup().set("LONG_CLIP_FRAME_MS", 0).start();
    let client = server.client();
    let prompts = [
        "A cat.",
        "Shot 1: a cat wakes. Shot 2: it stretches. Shot 3: it walks to the window. Shot 4: rain \
         runs down the glass. Shot 5: the cat yawns. Shot 6: it sleeps again.",
    ];
    let chosen = |seconds: Value, prompt: &str| {
        let body = with(B, json!({"seconds": seconds, "prompt": prompt}));
        let submitted = client.submit(&body);
        assert_eq!(submitted.text("seconds"), "auto");
        let video = client.wait_completed(submitted.id());
        let seconds: u64 = video.text("seconds").parse().unwrap();
        assert_eq!(video["frames"], seconds * 24);
        assert!((2..=15).contains(&seconds));
        seconds
    };
    let lengths = prompts.map(|prompt| chosen(json!("auto"), prompt));
    let again = chosen(json!(-1), prompts[0]);
    assert_eq!(again, lengths[0], "the same request, another length");
    assert!(lengths[0] < lengths[1], "{lengths:?}");
}

cells!(continuation: a_refuses_continuation => A, b_refuses_continuation => B);

fn continuation(model: &str) {
    for name in [
        "extend",
        "extend_task_id",
        "source_task_id",
        "parent_task_id",
    ] {
        let more = json!({name: "video_01k3v8r2n8p5c1w9g7d4x6m2ta"});
        assert_refused(model, more, "unsupported_parameter", name);
    }
}

#[test]
fn b_refuses_drafts() {
    for asked in [true, false] {
        assert_refused(B, json!({"draft": asked}), "unsupported_parameter", "draft");
    }
    let client = fetching().newcomer();
    let body = json!({"model": B, "draft_task_id": kinora_test_e2e::routes::NO_TASK});
    for reply in [client.submit_json(&body), client.submit_form(&form(&body))] {
        reply.refused_for(400, "unsupported_parameter", Some("draft_task_id"));
    }
}

#[test]
fn a_refuses_edits() {
    let edit =
        json!({"model": A, "prompt": "snow", "edit_task_id": kinora_test_e2e::routes::NO_TASK});
    let client = fetching().newcomer();
    for reply in [client.submit_json(&edit), client.submit_form(&form(&edit))] {
        reply.refused_for(400, "unsupported_parameter", Some("edit_task_id"));
    }
    let strength = json!({"edit_strength": 0.5});
    assert_refused(A, strength, "unsupported_parameter", "edit_strength");
}

cells!(adaptive: a_follows_the_shape_of_the_first_image => A, b_follows_the_shape_of_the_first_image => B);

fn adaptive(model: &str) {
    let host = Host::start();
    let client = fetching().newcomer();
    for (name, size, follows) in [
        ("tall.jpg", (500, 1000), "480x854"),
        ("square.gif", (600, 600), "480x480"),
        ("wide.png", (1200, 500), "1120x480"),
    ] {
        let picture = host.serve(name, studio::picture(name, size, "teal"));
        let more = json!({"first_frame": picture, "aspect_ratio": "adaptive"});
        let submitted = client.submit(&with(model, more));
        assert_eq!(submitted.text("size"), "adaptive");
        let video = client.wait_completed(submitted.id());
        assert_eq!(video.text("size"), follows);
        let probe = media::probe(&Download::of(&client, &video.content()).path());
        let (width, height) = (&probe.video["width"], &probe.video["height"]);
        assert_eq!(format!("{width}x{height}"), follows);
    }
}

/// A service whose model A is served under a second identifier too.
pub(crate) fn with_a_second_a() -> (kinora_test_e2e::Server, Client) {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("kinora.toml");
    let models: String = [(A, A), (A, "kinora-a2"), (B, B)]
        .into_iter()
        .map(|(card, id)| {
            format!("[[models]]\ncard = \"{card}\"\nid = \"{id}\"\nengine = \"storyboard\"\n")
        })
        .collect();
    std::fs::write(&file, models).unwrap();
    let server = crate::setup().set("KINORA_CONFIG", file.display()).start();
    let client = server.client();
    (server, client)
}

/// Mean structural similarity of two files, frame by frame, at one size.
pub(crate) fn likeness(one: &Download, other: &Download) -> f64 {
    let [one, other] = [one, other].map(|file| compare::Frame::all_of(&file.path(), COVER));
    assert_eq!(one.len(), other.len());
    let each = one.iter().zip(&other).map(|(a, b)| a.ssim(b));
    each.sum::<f64>() / one.len() as f64
}
