//! An edit of a clip that this engine made is that clip under other words: where everything
//! stands, when it cuts and how it sounds come from the source's script, and no pixel from its
//! file.

use std::sync::Arc;

use kinora_contract::id::TaskId;
use kinora_contract::{EditSpec, Size, VideoInputs, VideoSpec};
use kinora_engine::{EngineError, JobMaterials, SourceVideo, VideoPlayback, conformance};
use proptest::prelude::*;

use super::any_prompt::WORDS;
use super::support::*;

/// A source that nobody may look at.
#[derive(Debug)]
struct Unseen(u32);

impl SourceVideo for Unseen {
    fn size(&self) -> Size {
        SMALL
    }

    fn fps(&self) -> u32 {
        24
    }

    fn frames(&self) -> u32 {
        self.0
    }

    fn play(&self) -> Result<Box<dyn VideoPlayback>, EngineError> {
        Err(EngineError::Failed("it was looked at".to_owned()))
    }
}

const SECONDS: u32 = 2;

fn made(prompt: &str, seconds: u32) -> VideoSpec {
    VideoSpec {
        generate_audio: false,
        ..spec(prompt, SMALL, seconds, 3)
    }
}

fn edit(prompt: &str, strength: f64) -> VideoSpec {
    let task_id = TaskId::from_parts(1, [3; 10]);
    VideoSpec {
        // Of another seed: where things stand is the source's.
        seed: 99,
        edit: Some(EditSpec { task_id, strength }),
        ..made(prompt, SECONDS)
    }
}

/// What an edit of the last of `script` is made from, whose file is `source`.
fn over(script: &[VideoSpec], source: Arc<dyn SourceVideo>) -> JobMaterials {
    JobMaterials {
        source: Some(source),
        script: script.iter().cloned().map(Arc::new).collect(),
        ..NONE.clone()
    }
}

fn remade(script: &[VideoSpec], prompt: &str, strength: f64) -> Tape {
    let frames = match script[0].seconds {
        kinora_contract::VideoLength::Fixed(seconds) => seconds * 24,
        kinora_contract::VideoLength::Auto => panic!("a fixed length"),
    };
    let materials = over(script, Arc::new(Unseen(frames)));
    let tape = whole_of(&edit(prompt, strength), &materials);
    sheet(&format!("remake_{prompt}_{strength}"), &tape.frames, SMALL);
    tape
}

/// The part of a frame between the slate and the shade on which captions stand.
fn middle(rgb: &[u8]) -> &[u8] {
    // Below the mark, which names the seed, and above the caption.
    rows(rgb, 30, 108)
}

fn rows(rgb: &[u8], from: usize, to: usize) -> &[u8] {
    let row = SMALL.width as usize * 3;
    &rgb[row * from..row * to]
}

/// Mean difference of two clips there, frame by frame.
fn apart(a: &[Vec<u8>], b: &[Vec<u8>]) -> f64 {
    assert_eq!(a.len(), b.len());
    let sum: f64 = a
        .iter()
        .zip(b)
        .map(|(a, b)| change(middle(a), middle(b)))
        .sum();
    sum / a.len() as f64
}

fn brightness(rgb: &[u8]) -> f64 {
    let all = mean(rgb, SMALL, (0.0, 1.0), (0.1, 0.7));
    all.iter().sum::<f64>() / 3.0
}

/// The share of a frame that differs above the letters of its caption, and that of the box around
/// all that does.
fn changed(a: &[u8], b: &[u8]) -> (f64, f64) {
    let width = SMALL.width as usize;
    let (a, b) = (rows(a, 18, 145), rows(b, 18, 145));
    let pixels = a.chunks_exact(3).zip(b.chunks_exact(3));
    let differ: Vec<(usize, usize)> = pixels
        .enumerate()
        .filter(|(_, (a, b))| a.iter().zip(*b).any(|(a, b)| a.abs_diff(*b) > 3))
        .map(|(at, _)| (at % width, at / width))
        .collect();
    let all = (a.len() / 3) as f64;
    let span = |values: Vec<usize>| {
        let (least, most) = (values.iter().min(), values.iter().max());
        least.zip(most).map_or(0, |(least, most)| most - least + 1)
    };
    let wide = span(differ.iter().map(|at| at.0).collect());
    let high = span(differ.iter().map(|at| at.1).collect());
    (differ.len() as f64 / all, (wide * high) as f64 / all)
}

/// How many bright spots of some size there are in the upper half.
fn discs(rgb: &[u8]) -> usize {
    let (width, height) = (SMALL.width as usize, SMALL.height as usize / 2);
    let bright = |at: usize| rgb[at * 3..][..3].iter().all(|part| *part > 170);
    let mut left: Vec<bool> = (0..width * height).map(bright).collect();
    let mut found = 0;
    while let Some(first) = left.iter().position(|is| *is) {
        let (mut open, mut size) = (vec![first], 0);
        left[first] = false;
        while let Some(at) = open.pop() {
            size += 1;
            for next in [
                at.wrapping_sub(1),
                at + 1,
                at.wrapping_sub(width),
                at + width,
            ] {
                if left.get(next) == Some(&true) {
                    left[next] = false;
                    open.push(next);
                }
            }
        }
        found += usize::from(size > 30);
    }
    found
}

#[test]
fn night_falls_over_the_same_picture_and_there_is_one_moon() {
    let source = [made(
        "the sun over a red boat on a calm sea at dawn",
        SECONDS,
    )];
    let day = whole(&source[0]).frames;
    let night = remade(&source, "the same at night, moonlight", 1.0).frames;
    assert!(brightness(&night[24]) < 0.5 * brightness(&day[24]));
    assert_eq!(discs(&night[24]), 1);
    // The boat is where it was: it is the reddest thing of both.
    let reddest = |rgb: &[u8]| {
        let red = |p: &[u8]| i32::from(p[0]) - i32::from(p[1]).max(i32::from(p[2]));
        let reds: Vec<i32> = middle(rgb).chunks_exact(3).map(red).collect();
        let most = reds.iter().max().unwrap() * 4 / 5;
        let places = (0..reds.len()).filter(|at| reds[*at] >= most);
        let places: Vec<usize> = places.map(|at| at % SMALL.width as usize).collect();
        places.iter().sum::<usize>() as f64 / places.len() as f64
    };
    let (before, after) = (reddest(&day[24]), reddest(&night[24]));
    assert!((before - after).abs() < 12.0, "{before} {after}");
}

#[test]
fn what_comes_or_goes_changes_nothing_else() {
    for (source, words) in [
        ("a dog and a house on green hills at noon", "remove the dog"),
        ("a red boat on a lake at noon", "without the boat"),
        ("green hills at noon", "add a dog"),
        ("a lake at noon, clear", "add a boat"),
        ("a red boat on a lake at noon", "make the boat blue"),
    ] {
        let script = [made(source, SECONDS)];
        let before = whole(&script[0]).frames;
        let after = remade(&script, words, 1.0).frames;
        let (share, around) = changed(&before[30], &after[30]);
        assert!(
            share > 0.002 && around < 0.4,
            "{words}: {share:.3} in {around:.3}"
        );
    }
}

#[test]
fn words_that_say_nothing_leave_the_film_and_take_its_caption() {
    let source = [made("a red boat on a lake at noon", SECONDS)];
    let before = whole(&source[0]).frames;
    let after = remade(&source, "once more", 1.0).frames;
    for (before, after) in before.iter().zip(&after) {
        assert!(middle(before) == middle(after));
    }
    let letters = |rgb: &[u8]| rgb[SMALL.width as usize * 3 * 130..].to_vec();
    assert!(change(&letters(&before[30]), &letters(&after[30])) > 0.5);
}

#[test]
fn strength_is_even() {
    let source = [made("a red boat on the sea at noon, then a forest", 4)];
    let before = whole(&source[0]).frames;
    let apart_at = |strength| {
        apart(
            &remade(&source, "at night, snow falls", strength).frames,
            &before,
        )
    };
    let all = apart_at(1.0);
    assert!(all > 20.0, "{all}");
    for share in [0.02, 0.25, 0.5, 0.75] {
        let part = apart_at(share) / all;
        assert!((part - share).abs() < 0.03, "{share}: {part:.3}");
    }
}

#[test]
fn nothing_of_an_edit_of_no_strength_differs_from_its_source() {
    let first = VideoSpec {
        generate_audio: true,
        ..made("a red boat on a lake at noon", SECONDS)
    };
    let before = whole(&first);
    let file = Memory::new(SMALL, 24, before.frames.clone());
    let none = VideoSpec {
        generate_audio: true,
        ..edit("a city at night", 0.0)
    };
    let after = whole_of(&none, &over(&[first], Arc::new(file)));
    assert!(after.frames == before.frames);
    assert!(after.pcm == before.pcm);
}

#[test]
fn an_edit_sounds_like_its_source_under_the_new_words() {
    let first = VideoSpec {
        generate_audio: true,
        ..made("a lake at noon", SECONDS)
    };
    let before = whole(&first).pcm;
    let pcm = |words: &str, strength| {
        let spec = VideoSpec {
            generate_audio: true,
            ..edit(words, strength)
        };
        let materials = over(std::slice::from_ref(&first), Arc::new(Unseen(SECONDS * 24)));
        whole_of(&spec, &materials).pcm
    };
    assert!(pcm("once more", 1.0) == before);
    let (rain, half) = (pcm("in the rain", 1.0), pcm("in the rain", 0.5));
    assert!(rain != before);
    for ((half, rain), before) in half.iter().zip(&rain).zip(&before) {
        assert!((half - 0.5 * (rain + before)).abs() < 1e-4);
    }
}

#[test]
fn cuts_stay_where_the_source_has_them() {
    let source = [made("a desert at noon, cut to a city street at noon", 4)];
    let cut = |frames: &[Vec<u8>]| {
        let steps = frames
            .windows(2)
            .map(|two| change(middle(&two[0]), middle(&two[1])));
        let steps: Vec<f64> = steps.collect();
        (1..frames.len()).max_by(|a, b| steps[*a - 1].total_cmp(&steps[*b - 1]))
    };
    let before = cut(&whole(&source[0]).frames);
    assert_eq!(
        cut(&remade(&source, "one more word. And others. At night.", 1.0).frames),
        before
    );
}

#[test]
fn an_edit_of_an_edit_knows_what_both_said() {
    let first = made("a red boat on a lake at noon", SECONDS);
    let at_once = remade(
        std::slice::from_ref(&first),
        "at night, without the boat",
        1.0,
    )
    .frames;
    let in_turn = remade(
        &[first.clone(), edit("at night", 1.0)],
        "without the boat",
        1.0,
    )
    .frames;
    assert!(apart(&at_once, &in_turn) < 1e-9);
    // What was changed by half stays changed by half.
    let half = remade(std::slice::from_ref(&first), "at night", 0.5).frames;
    let again = remade(&[first, edit("at night", 0.5)], "once more", 1.0).frames;
    let off = apart(&half, &again);
    assert!(off < 1e-9, "{off}");
}

#[test]
fn remakes_conform() {
    let materials = over(
        &[made("a red boat on a lake at noon", SECONDS)],
        Arc::new(Unseen(SECONDS * 24)),
    );
    for strength in [0.3, 1.0] {
        let spec = edit("at night, without the boat", strength);
        conformance::check(&engine(2), &spec, &materials).unwrap();
        let (one, three) = (1, 3);
        let tapes = [one, three].map(|threads| tape_of(&spec, &materials, threads, 6).frames);
        assert!(tapes[0] == tapes[1], "{strength}");
    }
}

/// A script that gives other frames than the source has is none of its.
#[test]
fn what_cannot_be_made_again_is_only_seen() {
    let first = made("a red boat on a lake at noon", SECONDS);
    let pictures = VideoSpec {
        inputs: VideoInputs::References {
            images: vec![String::new()],
            audios: Vec::new(),
        },
        ..first.clone()
    };
    let longer = made("a red boat on a lake at noon", SECONDS + 1);
    let larger = spec(
        "a red boat on a lake at noon",
        Size::new(640, 360),
        SECONDS,
        3,
    );
    for script in [
        vec![pictures.clone()],
        vec![longer],
        vec![larger],
        vec![edit("at night", 1.0)],
        vec![first.clone(), first.clone()],
        vec![
            first,
            VideoSpec {
                edit: edit("", 1.0).edit,
                ..pictures
            },
        ],
    ] {
        let grey = vec![vec![90; SMALL.pixels() as usize * 3]; 48];
        let file = Arc::new(Memory::new(SMALL, 24, grey));
        let tape = whole_of(&edit("once more", 1.0), &over(&script, file));
        let off = middle(&tape.frames[20]).iter().filter(|part| **part != 90);
        assert_eq!(off.count(), 0, "{:?}", script.len());
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, ..ProptestConfig::default() })]

    #[test]
    fn any_edit_of_anything_gives_frames(
        texts in prop::collection::vec(
            prop::collection::vec(prop::sample::select(WORDS), 1..12), 2..4,
        ),
        strength in 0.01..=1.0,
    ) {
        let texts: Vec<String> = texts.iter().map(|words| words.join(" ")).collect();
        let (last, before) = texts.split_last().unwrap();
        let mut script = vec![made(&before[0], SECONDS)];
        script.extend(before[1..].iter().map(|text| edit(text, 1.0)));
        let tape = remade(&script, last, strength);
        prop_assert_eq!(tape.frames.len() as u32, SECONDS * 24);
    }
}
