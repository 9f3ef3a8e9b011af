//! How many frames per second the storyboard makes, without an encoder: a markdown table,
//! the median of several rounds. Run it with `--release` on an idle machine.
#![allow(clippy::print_stdout)]

use std::time::Instant;

use kinora_contract::{FrameSize, Inputs, Seconds, Size, VideoSpec};
use kinora_engine::storyboard::Storyboard;
use kinora_engine::{Control, Engine, EngineError, Job, Materials, Picture, Sink};

const ROUNDS: usize = 5;
const PROMPTS: [(&str, &str); 4] = [
    (
        "sea",
        "a sailboat drifts on the sea at golden hour, gulls overhead",
    ),
    (
        "city",
        "a neon city street in the rain, a woman with a red umbrella",
    ),
    ("hills", "a red hot-air balloon rises over green hills"),
    ("mountains", "snowy mountains at dawn, a hiker walks"),
];

/// Takes everything and keeps nothing.
#[derive(Default)]
struct Nowhere {
    first: Option<Instant>,
}

impl Sink for Nowhere {
    fn frame(&mut self, _: &[u8]) -> Result<(), EngineError> {
        self.first.get_or_insert_with(Instant::now);
        Ok(())
    }

    fn audio(&mut self, _: &[f32]) -> Result<(), EngineError> {
        Ok(())
    }
}

/// A picture of `width` by `height` with fine and coarse detail.
fn picture(width: u32, height: u32, phase: u32) -> Picture {
    let texel = |index: u32| {
        let (x, y) = (index % width, index / width);
        [
            x * 255 / width,
            y * 255 / height,
            (x * y / 37 + phase) & 255,
        ]
        .map(|part| part as u8)
    };
    Picture {
        size: Size::new(width, height),
        rgb: (0..width * height).flat_map(texel).collect(),
    }
}

/// What clips from pictures work from: by name, inputs and materials.
fn pictured() -> Vec<(&'static str, Inputs, Materials)> {
    let url = || "https://example.com/a.png".to_owned();
    let frames = |last: bool| Inputs::Frames {
        first: url(),
        last: last.then(url),
    };
    let first = Materials {
        first_frame: Some(picture(1600, 1200, 0)),
        ..Materials::default()
    };
    let both = Materials {
        last_frame: Some(picture(1200, 1600, 90)),
        ..first.clone()
    };
    let images = Materials {
        images: (0..3)
            .map(|nth| picture(1400, 1000 + nth * 400, nth * 50))
            .collect(),
        ..Materials::default()
    };
    let references = Inputs::References {
        images: vec![url(); 3],
        audios: Vec::new(),
    };
    vec![
        ("first frame", frames(false), first),
        ("first and last", frames(true), both),
        ("3 images", references, images),
    ]
}

fn spec(prompt: &str, inputs: &Inputs, size: Size) -> VideoSpec {
    VideoSpec {
        version: 1,
        model: "storyboard".to_owned(),
        prompt: prompt.to_owned(),
        negative_prompt: None,
        seconds: Seconds::Fixed(5),
        frame: FrameSize::Fixed(size),
        seed: 42,
        generate_audio: true,
        inputs: inputs.clone(),
        draft: false,
        final_of: None,
        edit: None,
    }
}

fn main() -> Result<(), EngineError> {
    let (engine, materials) = (Storyboard::default(), Materials::default());
    println!("| scene | size | frames/s (median of {ROUNDS}) | lowest | highest | first frame |");
    println!("|---|---|---|---|---|---|");
    for size in [Size::new(1280, 720), Size::new(1920, 1080)] {
        let painted = PROMPTS.map(|(name, prompt)| (name, prompt, Inputs::Text, materials.clone()));
        let shown = pictured()
            .into_iter()
            .map(|(name, inputs, materials)| (name, PROMPTS[0].1, inputs, materials));
        for (name, prompt, inputs, materials) in painted.into_iter().chain(shown) {
            let spec = spec(prompt, &inputs, size);
            let clip = engine.plan(&spec, &materials)?;
            let (mut rates, mut first_ms) = (Vec::new(), Vec::new());
            for _ in 0..ROUNDS {
                let mut sink = Nowhere::default();
                let start = Instant::now();
                let job = Job {
                    spec: &spec,
                    materials: &materials,
                    clip,
                };
                engine.generate(&job, &mut sink, &Control::default())?;
                rates.push(f64::from(clip.frames) / start.elapsed().as_secs_f64());
                first_ms.extend(sink.first.map(|first| (first - start).as_millis()));
            }
            rates.sort_by(f64::total_cmp);
            first_ms.sort_unstable();
            let (low, middle, high) = (rates[0], rates[ROUNDS / 2], rates[ROUNDS - 1]);
            let first_ms = first_ms[ROUNDS / 2];
            println!("| {name} | {size} | {middle:.0} | {low:.0} | {high:.0} | {first_ms} ms |");
        }
    }
    Ok(())
}
