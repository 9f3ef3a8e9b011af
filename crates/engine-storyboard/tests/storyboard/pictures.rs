//! What is to be seen: colours, light, captions, calm.

use kinora_contract::Size;

use super::support::*;

#[test]
fn colours_follow_the_prompt() {
    let count = |prompt: &str, like: fn(i32, i32, i32) -> bool| {
        let frame = tape(&spec(prompt, SMALL, 2, 5), 2, 25).frames.remove(24);
        let pixels = frame.chunks_exact(3);
        pixels
            .filter(|p| like(i32::from(p[0]), i32::from(p[1]), i32::from(p[2])))
            .count()
    };
    let red: fn(i32, i32, i32) -> bool = |r, g, b| r > 90 && r > g + 60 && r > b + 60;
    let green: fn(i32, i32, i32) -> bool = |r, g, b| g > 60 && g > r + 25 && g > b + 15;
    let (with, without) = (
        "a red balloon over a meadow on a clear day",
        "a yellow balloon over a meadow on a clear day",
    );
    assert!(count(with, red) > count(without, red) + 400);
    let (with, without) = (
        "a green balloon in the desert at golden hour",
        "a red balloon in the desert at golden hour",
    );
    assert!(count(with, green) > count(without, green) + 400);
    let (with, without) = (
        "a red sky above the sea at dusk",
        "a green sky above the sea at dusk",
    );
    assert!(count(with, red) > count(without, red) + 4_000);
    assert!(count(without, green) > count(with, green) + 4_000);
}

#[test]
fn night_is_darker_than_noon() {
    for place in [
        "the sea",
        "a city street",
        "mountains",
        "a forest",
        "a desert",
        "a meadow",
    ] {
        let light = |hour: &str| {
            let spec = spec(&format!("{place} at {hour}"), SMALL, 2, 11);
            let frame = tape(&spec, 2, 25).frames.remove(24);
            mean(&frame, SMALL, (0.0, 1.0), (0.0, 0.8))
                .iter()
                .sum::<f64>()
        };
        assert!(light("night") < 0.6 * light("noon"), "{place}");
    }
}

/// Relative luminance (WCAG 2.2) of an sRGB byte triple.
fn luminance(pixel: &[u8]) -> f64 {
    let linear = |byte: u8| {
        let value = f64::from(byte) / 255.0;
        if value <= 0.04045 {
            value / 12.92
        } else {
            ((value + 0.055) / 1.055).powf(2.4)
        }
    };
    0.2126 * linear(pixel[0]) + 0.7152 * linear(pixel[1]) + 0.0722 * linear(pixel[2])
}

#[test]
fn the_caption_is_legible_and_inside_the_title_safe_area() {
    let size = Size::new(854, 480);
    let prompts = [
        "a white desert at noon, white sky",
        "an orange sunset at the beach",
        "夜晚的城市",
    ];
    for prompt in prompts {
        let frame = tape(&spec(prompt, size, 3, 8), 2, 37).frames.remove(36);
        let width = size.width as usize;
        let letter = |p: &[u8]| p.iter().all(|byte| *byte > 200);
        let mut around = Vec::new();
        let mut letters = 0;
        for y in (size.height as usize * 4 / 5)..size.height as usize {
            for x in 0..width {
                let at = (y * width + x) * 3;
                if !letter(&frame[at..at + 3]) {
                    continue;
                }
                letters += 1;
                assert!(
                    x > width / 20 && x < width * 19 / 20,
                    "{prompt}: letter at column {x}"
                );
                assert!(
                    y < size.height as usize * 95 / 100,
                    "{prompt}: letter at row {y}"
                );
                // Four pixels away sideways the outline has ended and the band is left.
                let beside = at + 3 * 4;
                if !letter(&frame[beside..beside + 3]) {
                    around.push(luminance(&frame[beside..beside + 3]));
                }
            }
        }
        assert!(letters > 120, "{prompt}: {letters} letter pixels");
        around.sort_by(f64::total_cmp);
        let behind = around[around.len() / 2];
        let contrast = (luminance(&[200, 200, 200]) + 0.05) / (behind + 0.05);
        assert!(contrast >= 4.5, "{prompt}: contrast {contrast:.1}");
    }
}

#[test]
fn nothing_flickers() {
    for prompt in [
        "the sea at golden hour",
        "a neon city in the rain",
        "a forest in fog",
        "a whale",
    ] {
        let tape = whole(&spec(prompt, SMALL, 4, 21));
        // Away from both ends.
        let steps: Vec<f64> = tape.frames[10..86]
            .windows(2)
            .map(|pair| change(&pair[0], &pair[1]))
            .collect();
        let mut sorted = steps.clone();
        sorted.sort_by(f64::total_cmp);
        let (middle, most) = (sorted[sorted.len() / 2], sorted[sorted.len() - 1]);
        assert!(
            most < middle * 1.8 + 0.4,
            "{prompt}: usually {middle:.2}, once {most:.2}"
        );
        let light: Vec<f64> = tape.frames[10..86]
            .iter()
            .map(|frame| {
                mean(frame, SMALL, (0.0, 1.0), (0.0, 1.0))
                    .iter()
                    .sum::<f64>()
                    / 3.0
            })
            .collect();
        let jump = light
            .windows(2)
            .map(|two| (two[1] - two[0]).abs())
            .fold(0.0, f64::max);
        assert!(jump < 0.6, "{prompt}: the light jumps by {jump:.2}");
    }
}

#[test]
fn a_negative_prompt_takes_things_away() {
    let sky = |avoid: Option<&str>| {
        let mut spec = spec("a red balloon over a meadow at noon", SMALL, 2, 5);
        spec.negative_prompt = avoid.map(str::to_owned);
        tape(&spec, 2, 25).frames.remove(24)
    };
    let red = |frame: &[u8]| {
        let deep = |p: &&[u8]| p[0] > 110 && u16::from(p[0]) > u16::from(p[1]) + 70;
        frame.chunks_exact(3).filter(deep).count()
    };
    let (with, without) = (red(&sky(None)), red(&sky(Some("balloons, rain"))));
    assert!(
        with > without + 400,
        "{with} red pixels with, {without} without"
    );
}
