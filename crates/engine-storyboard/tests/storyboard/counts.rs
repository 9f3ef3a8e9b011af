//! As many things are drawn as the words ask for, no more and no fewer.

use kinora_engine_storyboard::{DrawnFigure, figures_in_frame};

use super::support::*;

/// What is seen of `name` at the middle of the clip of `prompt`.
fn shown(prompt: &str, name: &str, seed: u32) -> Vec<DrawnFigure> {
    let all = figures_in_frame(&spec(prompt, SMALL, 2, seed), 24).unwrap();
    all.into_iter().filter(|one| one.name == name).collect()
}

/// Whether most of a thing lies in the frame, above the captions' last line.
fn in_frame(one: &DrawnFigure) -> bool {
    let [left, top, right, bottom] = one.bounds;
    let (x, y) = (f32::midpoint(left, right), f32::midpoint(top, bottom));
    (0.0..1.0).contains(&x) && (0.0..0.9).contains(&y)
}

/// The share of the smaller of two boxes that lies in the other.
fn overlap(a: &DrawnFigure, b: &DrawnFigure) -> f32 {
    let length = |low: usize, high: usize| {
        let (from, to) = (
            a.bounds[low].max(b.bounds[low]),
            a.bounds[high].min(b.bounds[high]),
        );
        (to - from).max(0.0)
    };
    let area = |one: &DrawnFigure| {
        let [left, top, right, bottom] = one.bounds;
        (right - left) * (bottom - top)
    };
    length(0, 2) * length(1, 3) / area(a).min(area(b)).max(1e-6)
}

#[test]
fn a_number_is_counted_out() {
    let mut wrong = Vec::new();
    for (prompt, name, count) in [
        ("two cats", "cat", 2),
        ("three boats on a lake", "boat", 3),
        ("five birds in the sky", "bird", 5),
        ("four trees on a hill", "tree", 4),
        ("a dog on a meadow", "dog", 1),
        ("a pair of horses", "horse", 2),
        ("a dozen birds over the sea", "bird", 12),
        ("dos gatos en la ventana", "cat", 2),
        ("trois bateaux sur la mer", "boat", 3),
        ("vier Bäume auf einer Wiese", "tree", 4),
        ("tre cani nel parco", "dog", 3),
        ("dois cavalos no campo", "horse", 2),
        ("три лодки на озере", "boat", 3),
        ("两只猫", "cat", 2),
        ("三匹の犬", "dog", 3),
        ("고양이 두 마리", "cat", 2),
        ("ثلاثة قوارب في البحر", "boat", 3),
        ("दो बिल्लियाँ", "cat", 2),
    ] {
        for seed in [1, 2] {
            let found = shown(prompt, name, seed);
            let inside = found.iter().filter(|one| in_frame(one)).count();
            if inside != count || found.len() != count {
                wrong.push(format!(
                    "{prompt} (seed {seed}): {} drawn, {inside} of them in the frame",
                    found.len()
                ));
            }
        }
    }
    assert!(wrong.is_empty(), "\n{}", wrong.join("\n"));
}

#[test]
fn a_plural_without_a_number_is_more_than_one() {
    for prompt in ["cats on a meadow", "boats on a lake", "trees on a hill"] {
        let name = prompt.split_once('s').unwrap().0;
        let count = shown(prompt, name, 1).len();
        assert!((2..=7).contains(&count), "{prompt}: {count}");
    }
}

#[test]
fn things_that_are_counted_do_not_hide_each_other() {
    for (prompt, name) in [
        ("two cats", "cat"),
        ("three boats on a lake", "boat"),
        ("four trees on a hill", "tree"),
    ] {
        for seed in [1, 2, 3] {
            let found = shown(prompt, name, seed);
            for (nth, a) in found.iter().enumerate() {
                for b in &found[nth + 1..] {
                    let share = overlap(a, b);
                    assert!(share < 0.5, "{prompt} (seed {seed}): {share:.2} covered");
                }
            }
        }
    }
}

#[test]
fn sizes_are_kept_in_relation() {
    let height = |prompt: &str, name: &str| {
        let found = shown(prompt, name, 1);
        let first = found
            .first()
            .unwrap_or_else(|| panic!("{prompt}: no {name}"));
        first.bounds[3] - first.bounds[1]
    };
    let plain = height("a dog on a meadow", "dog");
    assert!(height("a huge dog on a meadow", "dog") > plain * 1.3);
    assert!(height("a tiny dog on a meadow", "dog") < plain * 0.75);
}

#[test]
fn what_is_denied_is_not_drawn() {
    for (prompt, name) in [
        ("a city street without cars", "car"),
        ("una playa sin personas", "person"),
        ("une rue sans voitures", "car"),
        ("eine Wiese ohne Bäume", "tree"),
        ("没有人的街道", "person"),
    ] {
        assert_eq!(shown(prompt, name, 1), [], "{prompt}");
    }
}

#[test]
fn two_things_stand_at_the_sides_that_the_words_say() {
    let middle = |one: &DrawnFigure| f32::midpoint(one.bounds[0], one.bounds[2]);
    let mut wrong = Vec::new();
    for (prompt, left, right) in [
        ("a bear on the left of a zebra", "bear", "zebra"),
        (
            "a bear on the right of a zebra, front view",
            "zebra",
            "bear",
        ),
        ("a bird on the left of a cat", "bird", "cat"),
        ("a cat on the right of a bird", "bird", "cat"),
        ("a car to the left of a bicycle", "car", "bicycle"),
        ("ein Hund links neben einem Pferd", "dog", "horse"),
        ("un perro a la derecha de un caballo", "horse", "dog"),
        ("一只猫在一条狗的右边", "dog", "cat"),
    ] {
        for seed in 1..9 {
            let at = |name: &str| shown(prompt, name, seed).first().map(middle);
            let (from, to) = (at(left), at(right));
            if from.is_none() || from >= to {
                wrong.push(format!("{prompt}, seed {seed}: {from:?}, {to:?}"));
            }
        }
    }
    assert!(wrong.is_empty(), "\n{}", wrong.join("\n"));
}
