//! A draft is the final, smaller and with a third of the work.

use kinora_contract::id::TaskId;
use kinora_contract::{Size, VideoSpec};
use kinora_engine::{ClipPlanner, JobMaterials, conformance};

use super::references;
use super::support::*;

const FULL: Size = Size::new(1280, 720);
const COMMON: Size = Size::new(426, 240);

fn pair(spec: &VideoSpec) -> (VideoSpec, VideoSpec) {
    let draft = VideoSpec {
        draft: true,
        ..spec.clone()
    };
    let last = VideoSpec {
        final_of: Some(TaskId::from_parts(1, [7; 10])),
        ..spec.clone()
    };
    (draft, last)
}

/// Every eighth frame of the clip, scaled to one small size.
fn few(spec: &VideoSpec, materials: &JobMaterials) -> Vec<Vec<u8>> {
    let size = engine(2).plan(spec, materials).unwrap().size;
    let frames = whole_of(spec, materials).frames;
    let some = frames.iter().step_by(8);
    some.map(|rgb| reduced(rgb, size, COMMON)).collect()
}

fn agree(name: &str, spec: &VideoSpec, materials: &JobMaterials) {
    let (draft, last) = pair(spec);
    assert_eq!(
        engine(2).plan(&draft, materials).unwrap().size,
        Size::new(854, 480)
    );
    let (draft, last) = (few(&draft, materials), few(&last, materials));
    let both: Vec<Vec<u8>> = draft.iter().chain(&last).cloned().collect();
    sheet(&format!("draft_{name}"), &both, COMMON);
    let like: Vec<f64> = draft
        .iter()
        .zip(&last)
        .map(|(a, b)| ssim(a, b, COMMON))
        .collect();
    let all = like.iter().sum::<f64>() / like.len() as f64;
    assert!(all > 0.85, "{name}: {all:.3} {like:.2?}");
}

#[test]
fn draft_and_final_agree_on_land_and_sea() {
    let words = [
        (
            "sea",
            "a sailboat on the sea at golden hour, gulls overhead. Then a neon city street in the rain",
        ),
        (
            "forest",
            "a fox in a misty forest at dawn. Then snow falls on mountains at night",
        ),
    ];
    for (name, prompt) in words {
        agree(name, &spec(prompt, FULL, 4, 11), &NONE);
    }
}

#[test]
fn draft_and_final_agree_in_rooms_and_dreams() {
    let words = [
        (
            "room",
            "a cat in a room by the window at dusk. Then a camel in the desert",
        ),
        (
            "whale",
            "a whale under water. Then a meadow with a red balloon",
        ),
        (
            "space",
            "a rocket among the stars of space. Then an abstract dream of teal and orange",
        ),
    ];
    for (name, prompt) in words {
        agree(name, &spec(prompt, FULL, 4, 12), &NONE);
    }
}

#[test]
fn draft_and_final_agree_on_references() {
    let images = vec![
        picture(Size::new(900, 700), 0.2),
        picture(Size::new(400, 900), 0.7),
    ];
    let (mut spec, materials) = references::job(
        3,
        "A long story about the two of them, told twice.",
        images,
        Vec::new(),
    );
    spec.frame = kinora_contract::FrameSize::Fixed(FULL);
    agree("references", &spec, &materials);
}

/// The frame that a draft paints for its `nth` three, of which the last is none.
fn painted(nth: usize) -> usize {
    nth * 3 + usize::from(nth > 0)
}

/// Likeness of draft and final at the final's size, at times that the draft paints.
fn likeness(prompt: &str, seed: u32) -> Vec<f64> {
    let (draft, last) = pair(&spec(prompt, FULL, 2, seed));
    let small = engine(2).plan(&draft, &NONE).unwrap().size;
    let draft = tape(&draft, 2, 16).frames;
    let last = tape(&last, 2, 17).frames;
    let times = [0, 5];
    times
        .map(|nth| {
            let shown = enlarged(&draft[nth * 3], small, FULL);
            ssim(&shown, &last[painted(nth)], FULL)
        })
        .to_vec()
}

#[test]
fn weather_and_strokes_scale_with_the_frame() {
    for (seed, prompt, like_min) in [
        (3, "heavy rain over a city street at night", 0.91),
        (4, "snow falls on a forest", 0.95),
        (5, "a storm at sea", 0.95),
        (6, "grass on a green meadow in the wind", 0.97),
        (7, "a starry night over the city", 0.95),
    ] {
        let like = likeness(prompt, seed);
        let least = like.iter().copied().fold(1.0, f64::min);
        assert!(least > like_min, "{prompt}: {like:.3?}");
    }
}

#[test]
fn a_draft_paints_a_third_of_the_frames() {
    let (draft, _) = pair(&spec("clouds race over the sea in a storm", SMALL, 3, 5));
    let frames = whole(&draft).frames;
    assert_eq!(frames.len(), 72);
    let painted = 1 + frames.windows(2).filter(|two| two[0] != two[1]).count();
    assert!((20..=24).contains(&painted), "{painted} of 72 are painted");
}

#[test]
fn drafts_and_finals_conform() {
    let (draft, last) = pair(&spec("a boat at sea. Then a fox.", SMALL, 4, 5));
    conformance::check(&engine(2), &draft, &NONE).unwrap();
    conformance::check(&engine(2), &last, &NONE).unwrap();
}
