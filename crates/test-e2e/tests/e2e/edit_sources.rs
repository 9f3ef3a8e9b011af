//! Edits of what the storyboard made, for each kind of input: the picture, the sound's film, the final and the words
//! that were to be left out are still there after the source's task has ended.

use kinora_test_e2e::compare::{COVER, Frame};
use kinora_test_e2e::{Client, Host, Server, Video, studio};
use serde_json::{Value, json};

use crate::support::{Download, reaching_from};

/// Likeness in dB from which on two frames are the same picture, coded twice.
const SAME_DB: f64 = 30.0;

/// Coloured bars would not tell.
fn painting() -> Server {
    reaching_from(crate::setup().painted()).start()
}

fn completed(client: &Client, body: &Value) -> Video {
    let video = client.submit(body);
    client.wait_completed(video.id())
}

fn frames(client: &Client, video: &Video) -> Vec<Frame> {
    Frame::all_of(&Download::of(client, &video.content()).path(), COVER)
}

fn edit(client: &Client, source: &Video, prompt: &str) -> Video {
    let body =
        json!({"model": "kinora-b1", "prompt": prompt, "seed": 9, "edit_task_id": source.id()});
    completed(client, &body)
}

/// Correlation of the samples, -1 to 1: the same shapes in other light have nearly 1.
fn correlation(one: &Frame, other: &Frame) -> f64 {
    let mean = |frame: &Frame| {
        let sum: f64 = frame.rgb.iter().copied().map(f64::from).sum();
        sum / frame.rgb.len() as f64
    };
    let (m, n) = (mean(one), mean(other));
    let pairs = one.rgb.iter().zip(&other.rgb);
    let apart = pairs.map(|(a, b)| (f64::from(*a) - m, f64::from(*b) - n));
    let [both, first, second] = apart.fold([0.0; 3], |[both, first, second], (a, b)| {
        [both + a * b, first + a * a, second + b * b]
    });
    both / (first * second).sqrt()
}

/// Asserts that an edit of `source` shows what the source showed, in another light.
fn assert_kept(kind: &str, client: &Client, source: &Video) {
    let original = frames(client, source);
    let night = frames(client, &edit(client, source, "at night"));
    for at in [0, night.len() / 2, night.len() - 1] {
        let shapes = correlation(&original[at], &night[at]);
        assert!(shapes > 0.8, "{kind}, frame {at}: {shapes:.2}");
    }
    let likeness = original[0].psnr_db(&night[0]);
    assert!(likeness < SAME_DB, "{kind}: {likeness:.1} dB at night");
}

fn clip(model: &str, more: &Value) -> Value {
    let mut body = json!({"model": model, "prompt": "a slow walk", "seconds": 2, "resolution": "480p", "seed": 4});
    let body_fields = body.as_object_mut().unwrap();
    body_fields.extend(more.as_object().unwrap().clone());
    body
}

#[test]
fn p19_an_edit_keeps_the_pictures_that_its_source_was_made_from() {
    let (host, server) = (Host::start(), painting());
    let client = server.client();
    let land = host.serve("land.png", studio::landscape("land.png", (854, 480)));
    let red = host.serve("red.png", studio::picture("red.png", (854, 480), "red"));
    let tone = host.serve("tone.wav", studio::tone("tone.wav", 440, 2.0));
    let frame = json!({"first_frame": land});
    for (kind, source) in [
        ("first frame", clip("kinora-a1", &frame)),
        ("first frame of model B", clip("kinora-b1", &frame)),
        (
            "first and last frame",
            clip(
                "kinora-a1",
                &json!({"first_frame": land, "last_frame": red}),
            ),
        ),
        (
            "reference pictures",
            clip("kinora-b1", &json!({"reference_images": [land, red]})),
        ),
        (
            "pictures and sound",
            clip(
                "kinora-a1",
                &json!({"reference_images": [land], "reference_audios": [tone]}),
            ),
        ),
    ] {
        assert_kept(kind, &client, &completed(&client, &source));
    }
}

#[test]
fn p19_an_edit_of_a_final_keeps_the_picture_of_its_draft() {
    let (host, server) = (Host::start(), painting());
    let client = server.client();
    let land = host.serve("land.png", studio::landscape("land.png", (854, 480)));
    let draft = completed(
        &client,
        &clip("kinora-a1", &json!({"first_frame": land, "draft": true})),
    );
    let last = completed(
        &client,
        &json!({"model": "kinora-a1", "draft_task_id": draft.id()}),
    );
    assert_kept("final", &client, &last);
    let once = edit(&client, &last, "in autumn");
    assert_kept("edit", &client, &once);
}

#[test]
fn p19_an_edit_that_was_given_a_picture_keeps_it_in_the_next_edit() {
    let (host, server) = (Host::start(), painting());
    let client = server.client();
    let land = host.serve("land.png", studio::landscape("land.png", (854, 480)));
    let source = completed(
        &client,
        &clip("kinora-b1", &json!({"prompt": "a boat on a lake"})),
    );
    let body = json!({"model": "kinora-b1", "prompt": "in this place", "seed": 9, "edit_task_id": source.id(),
        "edit_strength": 1.0, "reference_images": [land]});
    assert_kept("edit with a picture", &client, &completed(&client, &body));
}

#[test]
fn p19_an_edit_brings_nothing_back_that_its_source_was_to_leave_out() {
    let server = painting();
    let client = server.client();
    let words = json!({"prompt": "a dog and a cat on a hill", "negative_prompt": "dog"});
    let source = completed(&client, &clip("kinora-b1", &words));
    let both = completed(
        &client,
        &clip("kinora-b1", &json!({"prompt": words["prompt"]})),
    );
    let [cat, cat_and_dog] =
        [source, both].map(|source| frames(&client, &edit(&client, &source, "at night")).remove(0));
    let likeness = cat.psnr_db(&cat_and_dog);
    // The dog is a fiftieth of the frame.
    assert!(likeness < 40.0, "{likeness:.1} dB with the dog");
}
