//! How many frames per second the storyboard makes, without an encoder, and the longest wait
//! between two frames, which bounds how late a cancel is obeyed: a markdown table of medians.
//! Run it with `--release` on an idle machine; `-- --fast` makes one round.
#![allow(clippy::print_stdout)]

use std::sync::Arc;
use std::time::Instant;

use kinora_contract::id::TaskId;
use kinora_contract::{Edit, FrameSize, Inputs, Seconds, Size, VideoSpec};
use kinora_engine::{
    Control, Engine, EngineError, Footage, Job, Materials, Picture, Planner, Playback, Sink,
};
use kinora_storyboard::Storyboard;

const ROUNDS: usize = 5;
const SECONDS: u32 = 5;
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

/// Takes everything and keeps nothing but times.
struct Nowhere {
    before: Instant,
    first_ms: Option<u128>,
    wait_ms: u128,
}

impl Nowhere {
    fn new() -> Self {
        Self {
            before: Instant::now(),
            first_ms: None,
            wait_ms: 0,
        }
    }
}

impl Sink for Nowhere {
    fn frame(&mut self, _: &[u8]) -> Result<(), EngineError> {
        let waited_ms = self.before.elapsed().as_millis();
        self.first_ms.get_or_insert(waited_ms);
        self.wait_ms = self.wait_ms.max(waited_ms);
        self.before = Instant::now();
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

/// A source video: one picture that slides.
#[derive(Clone, Debug)]
struct Sliding {
    picture: Arc<Picture>,
    at: u32,
}

impl Footage for Sliding {
    fn size(&self) -> Size {
        self.picture.size
    }

    fn fps(&self) -> u32 {
        24
    }

    fn frames(&self) -> u32 {
        SECONDS * 24
    }

    fn play(&self) -> Result<Box<dyn Playback>, EngineError> {
        Ok(Box::new(self.clone()))
    }
}

impl Playback for Sliding {
    fn next_frame(&mut self) -> Result<Option<Vec<u8>>, EngineError> {
        self.at += 1;
        let mut rgb = self.picture.rgb.clone();
        rgb.rotate_left(self.at as usize * 3);
        Ok(Some(rgb))
    }
}

/// One row of the table.
struct Case {
    name: &'static str,
    spec: VideoSpec,
    materials: Materials,
}

fn spec(prompt: &str, inputs: Inputs, size: Size) -> VideoSpec {
    VideoSpec {
        version: 1,
        model: "storyboard".to_owned(),
        prompt: prompt.to_owned(),
        negative_prompt: None,
        seconds: Seconds::Fixed(SECONDS),
        frame: FrameSize::Fixed(size),
        seed: 42,
        generate_audio: true,
        inputs,
        draft: false,
        final_of: None,
        edit: None,
    }
}

fn drafted(case: &Case) -> Case {
    Case {
        name: "its draft",
        spec: VideoSpec {
            draft: true,
            ..case.spec.clone()
        },
        materials: case.materials.clone(),
    }
}

/// Clips that are painted from words, each with its draft.
fn painted(size: Size) -> Vec<Case> {
    let case = |(name, prompt)| Case {
        name,
        spec: spec(prompt, Inputs::Text, size),
        materials: Materials::default(),
    };
    PROMPTS
        .map(case)
        .into_iter()
        .flat_map(|case| {
            let draft = drafted(&case);
            [case, draft]
        })
        .collect()
}

/// Clips from pictures and from a video.
fn pictured(size: Size) -> Vec<Case> {
    let url = || "https://example.com/a.png".to_owned();
    let case = |name, inputs, materials| Case {
        name,
        spec: spec(PROMPTS[0].1, inputs, size),
        materials,
    };
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
    let images = |count: u32, width: u32, height: u32| {
        let all = (0..count).map(|nth| picture(width, height + nth * 200, nth * 50));
        let materials = Materials {
            images: all.collect(),
            ..Materials::default()
        };
        let inputs = Inputs::References {
            images: vec![url(); count as usize],
            audios: Vec::new(),
        };
        (inputs, materials)
    };
    let (four, large) = (images(4, 1400, 1000), images(2, 5800, 5600));
    let mut edit = case("edit", Inputs::Text, Materials::default());
    edit.spec.edit = Some(Edit {
        task_id: TaskId::from_parts(1, [1; 10]),
        strength: 0.6,
    });
    edit.materials.source = Some(Arc::new(Sliding {
        picture: Arc::new(picture(size.width, size.height, 0)),
        at: 0,
    }));
    let four = case("4 images", four.0, four.1);
    let draft = drafted(&four);
    vec![
        case("first frame", frames(false), first),
        case("first and last frame", frames(true), both),
        four,
        draft,
        case("2 images of 33 megapixels", large.0, large.1),
        edit,
    ]
}

fn measure(case: &Case, rounds: usize) -> Result<(), EngineError> {
    let engine = Storyboard::default();
    let Case {
        name,
        spec,
        materials,
    } = case;
    let clip = engine.plan(spec, materials)?;
    let (mut took_ms, mut first_ms, mut wait_ms) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..rounds {
        let (start, mut sink) = (Instant::now(), Nowhere::new());
        let job = Job {
            spec,
            materials,
            clip,
        };
        engine.generate(&job, &mut sink, &Control::default())?;
        took_ms.push(start.elapsed().as_millis());
        first_ms.extend(sink.first_ms);
        wait_ms.push(sink.wait_ms);
    }
    let [took_ms, first_ms, wait_ms] = [took_ms, first_ms, wait_ms].map(|mut times| {
        times.sort_unstable();
        times[times.len() / 2]
    });
    let (size, rate) = (clip.size, u128::from(clip.frames) * 1_000 / took_ms.max(1));
    println!("| {name} | {size} | {rate} | {took_ms} ms | {first_ms} ms | {wait_ms} ms |");
    Ok(())
}

fn main() -> Result<(), EngineError> {
    let fast = std::env::args().any(|word| word == "--fast");
    let rounds = if fast { 1 } else { ROUNDS };
    println!("| clip | size | frames/s (median of {rounds}) | time | first frame | longest wait |");
    println!("|---|---|---|---|---|---|");
    for size in [Size::new(1280, 720), Size::new(1920, 1080)] {
        for case in painted(size).iter().chain(&pictured(size)) {
            measure(case, rounds)?;
        }
    }
    Ok(())
}
