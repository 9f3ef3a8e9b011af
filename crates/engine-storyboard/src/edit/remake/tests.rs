//! What an edit mixes, and where it leaves the figures.

use std::sync::Arc;

use super::*;
use crate::lexicon::read;
use crate::scene::Scene;
use crate::subject::Subject;
use kinora_contract::id::TaskId;
use kinora_contract::{EditSpec, FrameSize, Size};
use kinora_engine::JobMaterials;

const SIZE: Size = Size::new(64, 36);

fn spec(prompt: &str, strength: Option<f64>) -> VideoSpec {
    VideoSpec {
        version: 1,
        model: "storyboard".to_owned(),
        prompt: prompt.to_owned(),
        negative_prompt: None,
        seconds: VideoLength::Fixed(2),
        frame: FrameSize::Fixed(SIZE),
        seed: 3,
        generate_audio: false,
        inputs: VideoInputs::Text,
        draft: false,
        final_of: None,
        edit: strength.map(|strength| EditSpec {
            task_id: TaskId::from_parts(1, [3; 10]),
            strength,
        }),
    }
}

/// What the only shot is mixed from after `edits`, the last of them at work.
fn mixed(first: &str, edits: &[(&str, f64)]) -> Vec<(Shot, f32)> {
    let edits = edits
        .iter()
        .map(|(text, strength)| spec(text, Some(*strength)));
    let mut specs: Vec<VideoSpec> = edits.collect();
    let last = specs.pop().unwrap();
    let first = spec(first, None);
    let script = std::iter::once(first).chain(specs);
    let materials = JobMaterials {
        script: script.map(Arc::new).collect(),
        ..JobMaterials::default()
    };
    let clip = ClipPlan {
        size: SIZE,
        fps: FPS,
        frames: 48,
        audio: false,
    };
    let (spec, materials) = (&last, &materials);
    let job = FrameJob {
        spec,
        materials,
        clip,
        preset: None,
    };
    Remake::from_job(&job).unwrap().mix(0)
}

#[test]
fn an_edit_shows_what_its_source_would_show_with_these_words() {
    for (words, equal) in [
        ("make it night", "a red boat on a lake at night"),
        ("without the boat", "a lake at noon"),
        ("turn the boat blue", "a blue boat on a lake at noon"),
    ] {
        let mix = mixed("a red boat on a lake at noon", &[(words, 1.0)]);
        assert_eq!(mix.len(), 1, "{words}");
        let (shot, share) = &mix[0];
        let mut reading = shot.reading.clone();
        // What was taken away leaves an empty place.
        reading.roles.retain(|role| role.count > 0);
        reading.past.clear();
        // The words are others, and only the scene is the same.
        let mut same = read(equal, "");
        (reading.lost, same.lost) = Default::default();
        assert_eq!(reading, same, "{words}");
        assert_eq!(
            (shot.text.as_str(), *share),
            ("a red boat on a lake at noon", 1.0)
        );
    }
}

#[test]
fn halves_of_halves_are_few_and_whole_together() {
    let edits = [
        "at night",
        "snow falls",
        "add a dog",
        "a blue boat",
        "in a forest",
    ];
    let edits = edits.map(|words| (words, 0.6));
    for count in 1..=edits.len() {
        let mix = mixed("a red boat on a lake at noon", &edits[..count]);
        assert_eq!(mix.len(), (1 << count).min(VERSIONS_MAX));
        let all: f32 = mix.iter().map(|(_, share)| share).sum();
        assert!((all - 1.0).abs() < 1e-5);
    }
}

/// Where every figure of the source is after `edits`: its subject and its box.
fn figures(first: &str, edits: &[&str], seed: u32) -> Vec<(Subject, [f32; 4])> {
    let edits: Vec<(&str, f64)> = edits.iter().map(|words| (*words, 1.0)).collect();
    let shot = match edits.is_empty() {
        true => mixed(first, &[("once more", 1.0)]).remove(0).0,
        false => mixed(first, &edits).remove(0).0,
    };
    Scene::paint(&shot, first, seed, Size::new(640, 360), FPS).figures(0.0)
}

#[test]
fn who_is_not_named_stays_where_it_is() {
    let lake = "a red boat and a dog on a lake at noon";
    let meadow = "a dog and a house on a meadow at noon";
    let mut wrong = Vec::new();
    for (source, edits) in [
        (lake, &["remove the dog"][..]),
        (lake, &["a huge dog"]),
        (lake, &["make the boat blue"]),
        (lake, &["add a cat"]),
        (lake, &["add two ducks"]),
        (lake, &["replace the dog with a horse"]),
        (lake, &["add a bird"]),
        (lake, &["remove the dog", "add a cat", "add a boy"]),
        (lake, &["it snows", "make it night"]),
        (meadow, &["add a horse"]),
        (meadow, &["three dogs"]),
        (meadow, &["a huge dog"]),
        (meadow, &["a tiny house"]),
        (meadow, &["add two cows", "remove the house", "add a tree"]),
        ("three birds over the sea", &["add a dog", "add a boat"]),
        ("a boat and a ship on the sea", &["remove the ship"]),
        ("a car on a street in the city", &["add a man", "add a bus"]),
        ("a cat and a dog in a room", &["add a woman"]),
        ("a whale and a shark under water", &["remove the shark"]),
    ] {
        for seed in 1..6 {
            let (before, after) = (figures(source, &[], seed), figures(source, edits, seed));
            let named = edits.join(" ");
            for (subject, [left, top, right, bottom]) in &before {
                let noun = subject.facts().noun;
                if named.contains(noun) {
                    continue;
                }
                let stays = |(one, at): &&(Subject, [f32; 4])| {
                    let middle = (at[0] + at[2] - left - right).abs() * 0.5;
                    let foot = (at[3] - bottom).abs();
                    let size = (at[3] - at[1] - bottom + top).abs();
                    one == subject && middle < 0.01 && foot < 0.01 && size < 0.01
                };
                if !after.iter().any(|one| stays(&one)) {
                    wrong.push(format!("{source}, {edits:?} (seed {seed}): {noun}"));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "\n{}", wrong.join("\n"));
}

#[test]
fn who_is_new_takes_a_free_place() {
    let source = "a dog and a house on a meadow at noon";
    for seed in 1..6 {
        let after = figures(source, &["add a cat", "add a horse"], seed);
        for (nth, (one, a)) in after.iter().enumerate() {
            for (other, b) in &after[..nth] {
                let middles = |at: &[f32; 4]| f32::midpoint(at[0], at[2]);
                let apart = (middles(a) - middles(b)).abs();
                assert!(apart > 0.08, "{one:?} {other:?} {apart} (seed {seed})");
            }
        }
        let replaced = figures(source, &["replace the dog with a horse"], seed);
        let of = |all: &[(Subject, [f32; 4])], wanted| {
            let found = all.iter().find(|(one, _)| *one == wanted).unwrap().1;
            f32::midpoint(found[0], found[2])
        };
        let dog = of(&figures(source, &[], seed), Subject::Dog);
        let horse = of(&replaced, Subject::Horse);
        assert!((dog - horse).abs() < 0.1, "{dog} {horse} (seed {seed})");
    }
}
