//! Every figure that a prompt asks for is drawn or reported: none is lost in silence.

use std::collections::BTreeMap;

use kinora_contract::VideoSpec;
use kinora_engine::ClipPlanner;
use kinora_engine_storyboard::{Storyboard, figures_in_frame, nouns};
use proptest::prelude::*;

use super::support::*;

/// Nouns that the property leaves out: some share a figure with another noun (an umbrella and its holder, an
/// instrument and its player, a table and the things on it), others are read as a colour, a camera or a view.
const LEFT_OUT: [&str; 10] = [
    "umbrella", "guitar", "piano", "table", "book", "balloon", "drone", "pine", "camera", "orange",
];

const PLACES: [&str; 13] = [
    "",
    " on a hill",
    " in the city",
    " over the sea",
    " on a lake",
    " in a forest",
    " in the desert",
    " in the mountains",
    " in a room",
    " on a table",
    " in space",
    " under water",
    " in the sky",
];

/// The figures that the warnings of `spec` name as left out, by word; `None` for a word without any drawing.
fn reported(spec: &VideoSpec) -> BTreeMap<String, Option<usize>> {
    let warnings = Storyboard::default().warnings(spec, &NONE);
    let message: String = warnings.into_iter().map(|one| one.message).collect();
    let part = |from: &str| message.split_once(from).map_or("", |(_, rest)| rest);
    let until = |text: &str| text.split("\".").next().unwrap_or_default().to_owned();
    let missed = until(part("drew nothing for: "));
    let short = until(part("fewer figures than the prompt asks for: "));
    let bare = |word: &str| word.trim_matches('"').to_owned();
    let missed = missed.split(", ").filter(|word| !word.is_empty());
    let short = short.split(", ").filter(|word| !word.is_empty());
    let counted = |one: &str| {
        let (counts, word) = one.split_once(" \"").unwrap();
        let (drawn, asked) = counts.split_once(" of ").unwrap();
        let left = asked.parse::<usize>().unwrap() - drawn.parse::<usize>().unwrap();
        (bare(word), Some(left))
    };
    missed
        .map(|word| (bare(word), None))
        .chain(short.map(counted))
        .collect()
}

/// The most figures of each noun that one moment of the clip of `spec` shows.
fn drawn(spec: &VideoSpec, seconds: u32) -> BTreeMap<&'static str, usize> {
    let mut most = BTreeMap::new();
    // No shot is shorter than two seconds.
    for frame in (23..seconds * 24).step_by(48) {
        let mut now = BTreeMap::new();
        for one in figures_in_frame(spec, frame).unwrap() {
            *now.entry(one.name).or_insert(0) += 1;
        }
        for (name, count) in now {
            let before = most.entry(name).or_insert(0);
            *before = count.max(*before);
        }
    }
    most
}

/// The figures of `wanted` that the clip of `prompt` neither shows nor reports.
fn lost(prompt: &str, wanted: &[(usize, &str)], seconds: u32, seed: u32) -> Vec<String> {
    let spec = spec(prompt, SMALL, seconds, seed);
    let (drawn, reported) = (drawn(&spec, seconds), reported(&spec));
    let wrong = |(asked, noun): &(usize, &str)| {
        let drawn = drawn.get(noun).copied().unwrap_or_default();
        let left = match reported.get(*noun) {
            Some(left) => left.unwrap_or(*asked),
            None => 0,
        };
        (drawn + left != *asked).then(|| format!("{asked} {noun}: {drawn} drawn, {left} reported"))
    };
    wanted.iter().filter_map(wrong).collect()
}

#[test]
fn large_groups_are_drawn_in_rows() {
    for (prompt, wanted) in [
        ("12 sheep and 12 dogs", &[(12, "sheep"), (12, "dog")][..]),
        (
            "12 cats and 12 mice in a room",
            &[(12, "cat"), (12, "mouse")],
        ),
        (
            "12 boats and 12 ducks on a lake",
            &[(12, "boat"), (12, "duck")],
        ),
        (
            "12 birds and 12 kites over the sea",
            &[(12, "bird"), (12, "kite")],
        ),
    ] {
        let spec = spec(prompt, SMALL, 2, 1);
        assert_eq!(reported(&spec), BTreeMap::new(), "{prompt}");
        let drawn = drawn(&spec, 2);
        for (count, noun) in wanted {
            assert_eq!(drawn.get(noun), Some(count), "{prompt}: {noun}");
        }
    }
}

#[test]
fn figures_beyond_the_bounds_are_reported() {
    for (prompt, message) in [
        (
            "40 sheep",
            "The storyboard engine drew fewer figures than the prompt asks for: 12 of 40 \"sheep\".",
        ),
        (
            "1000 Schafe auf einer Wiese",
            "The storyboard engine drew fewer figures than the prompt asks for: 12 of 1000 \"Schafe\".",
        ),
        (
            "20 glimworfles and 20 sheep",
            "The storyboard engine drew nothing for: \"glimworfles\". It drew fewer figures than the prompt asks \
             for: 12 of 20 \"sheep\".",
        ),
        (
            "10 dogs, 10 cats, 10 cows and 10 horses",
            "The storyboard engine drew fewer figures than the prompt asks for: 6 of 10 \"horses\".",
        ),
        (
            "twenty sheep on a hill",
            "The storyboard engine drew fewer figures than the prompt asks for: 12 of 20 \"sheep\".",
        ),
        (
            "ten dogs, ten cats, ten cows, ten horses and a picnic",
            "The storyboard engine drew nothing for: \"picnic\". It drew fewer figures than the prompt asks for: 6 of \
             10 \"horses\".",
        ),
        (
            "two moons over the sea",
            "The storyboard engine drew fewer figures than the prompt asks for: 1 of 2 \"moons\".",
        ),
    ] {
        let warnings = Storyboard::default().warnings(&spec(prompt, SMALL, 2, 1), &NONE);
        let messages: Vec<String> = warnings.into_iter().map(|one| one.message).collect();
        assert_eq!(messages, [message], "{prompt}");
    }
}

/// Sentences that a short clip joins into one shot have one shot's room.
#[test]
fn figures_are_counted_in_the_shots_that_are_drawn() {
    let wanted = [
        (9, "dog"),
        (9, "cat"),
        (9, "cow"),
        (9, "horse"),
        (9, "sheep"),
        (9, "goat"),
        (9, "pig"),
        (9, "fox"),
    ];
    let sentences = wanted.map(|(count, noun)| format!("{count} {noun} on a hill."));
    let prompt = sentences.join(" ");
    for seconds in [2, 4, 8, 16] {
        assert_eq!(lost(&prompt, &wanted, seconds, 1), [""; 0], "{seconds} s");
    }
}

#[test]
fn two_words_with_one_drawing_are_counted_together() {
    for (prompt, noun, count) in [
        ("two doctors and two nurses", "doctor", 4),
        ("two doctors, three nurses and a cat", "doctor", 5),
        ("a doctor and a nurse", "doctor", 2),
        ("a dog runs, the dog sleeps", "dog", 1),
        ("a hot-air balloon and five balloons", "balloon", 5),
    ] {
        assert_eq!(
            drawn(&spec(prompt, SMALL, 2, 1), 1).get(noun),
            Some(&count),
            "{prompt}"
        );
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]

    #[test]
    fn every_figure_is_drawn_or_reported(
        nouns in proptest::sample::subsequence(
            nouns().into_iter().filter(|noun| !LEFT_OUT.contains(noun)).collect::<Vec<_>>(),
            1..9,
        ).prop_shuffle(),
        counts in proptest::collection::vec(1..30_usize, 9),
        stops in proptest::collection::vec(0..4_usize, 9),
        place in 0..PLACES.len(),
        seconds in 2..9_u32,
        seed in 0..99_u32,
    ) {
        let wanted: Vec<(usize, &str)> = counts.into_iter().zip(nouns).collect();
        let mut prompt = String::new();
        for ((count, noun), stop) in wanted.iter().zip(stops) {
            let stop = if stop == 0 { ". " } else { ", " };
            prompt.push_str(&format!("{count} {noun}{}{stop}", PLACES[place]));
        }
        prop_assert_eq!(lost(&prompt, &wanted, seconds, seed), [""; 0], "{}", prompt);
    }
}
