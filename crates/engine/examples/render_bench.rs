//! How many frames per second the storyboard makes, without an encoder: a markdown table,
//! the median of several rounds. Run it with `--release` on an idle machine.
#![allow(clippy::print_stdout)]

use std::time::Instant;

use kinora_contract::{FrameSize, Inputs, Seconds, Size, VideoSpec};
use kinora_engine::storyboard::Storyboard;
use kinora_engine::{Control, Engine, EngineError, Job, Sink};

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

fn spec(prompt: &str, size: Size, seconds: u32) -> VideoSpec {
    VideoSpec {
        version: 1,
        model: "storyboard".to_owned(),
        prompt: prompt.to_owned(),
        negative_prompt: None,
        seconds: Seconds::Fixed(seconds),
        frame: FrameSize::Fixed(size),
        seed: 42,
        generate_audio: true,
        inputs: Inputs::Text,
        draft: false,
        final_of: None,
        edit: None,
    }
}

fn main() -> Result<(), EngineError> {
    let engine = Storyboard::default();
    println!("| scene | size | frames/s (median of {ROUNDS}) | lowest | highest | first frame |");
    println!("|---|---|---|---|---|---|");
    for size in [Size::new(1280, 720), Size::new(1920, 1080)] {
        for (name, prompt) in PROMPTS {
            let spec = spec(prompt, size, 5);
            let clip = engine.plan(&spec)?;
            let (mut rates, mut first_ms) = (Vec::new(), Vec::new());
            for _ in 0..ROUNDS {
                let mut sink = Nowhere::default();
                let start = Instant::now();
                engine.generate(&Job { spec: &spec, clip }, &mut sink, &Control::default())?;
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
