//! A tape that records what the engine gives, and measures of what is on it.

use std::num::NonZeroUsize;

use kinora_contract::{FrameSize, Inputs, Seconds, Size, VideoSpec};
use kinora_engine::storyboard::{Options, Storyboard};
use kinora_engine::{Control, Engine, EngineError, Job, Sink};

pub(crate) const SMALL: Size = Size::new(320, 180);

pub(crate) fn spec(prompt: &str, size: Size, seconds: u32, seed: u32) -> VideoSpec {
    VideoSpec {
        version: 1,
        model: "storyboard".to_owned(),
        prompt: prompt.to_owned(),
        negative_prompt: None,
        seconds: Seconds::Fixed(seconds),
        frame: FrameSize::Fixed(size),
        seed,
        generate_audio: true,
        inputs: Inputs::Text,
        draft: false,
        final_of: None,
        edit: None,
    }
}

/// Keeps frames (up to `limit`, then stops the engine) and all sound.
pub(crate) struct Tape {
    pub(crate) frames: Vec<Vec<u8>>,
    pub(crate) pcm: Vec<f32>,
    pub(crate) limit: usize,
}

impl Sink for Tape {
    fn frame(&mut self, rgb: &[u8]) -> Result<(), EngineError> {
        if self.frames.len() == self.limit {
            return Err(EngineError::Cancelled);
        }
        self.frames.push(rgb.to_vec());
        Ok(())
    }

    fn audio(&mut self, pcm: &[f32]) -> Result<(), EngineError> {
        self.pcm.extend_from_slice(pcm);
        Ok(())
    }
}

pub(crate) fn engine(threads: usize) -> Storyboard {
    Storyboard::new(Options {
        threads: NonZeroUsize::new(threads),
    })
}

pub(crate) fn tape(spec: &VideoSpec, threads: usize, limit: usize) -> Tape {
    let engine = engine(threads);
    let clip = engine.plan(spec).unwrap();
    let mut tape = Tape {
        frames: Vec::new(),
        pcm: Vec::new(),
        limit,
    };
    match engine.generate(&Job { spec, clip }, &mut tape, &Control::default()) {
        Ok(()) => assert_eq!(tape.frames.len(), clip.frames as usize),
        Err(EngineError::Cancelled) if tape.frames.len() == limit => {}
        Err(error) => panic!("{error}"),
    }
    tape
}

pub(crate) fn whole(spec: &VideoSpec) -> Tape {
    tape(spec, 2, usize::MAX)
}

/// Mean of each component over the part of a frame that lies within the given shares.
pub(crate) fn mean(rgb: &[u8], size: Size, across: (f64, f64), down: (f64, f64)) -> [f64; 3] {
    let (width, height) = (size.width as usize, size.height as usize);
    let part = |share: (f64, f64), length: usize| {
        (share.0 * length as f64) as usize..(share.1 * length as f64) as usize
    };
    let mut sum = [0.0; 3];
    let mut count = 0.0;
    for y in part(down, height) {
        for x in part(across, width) {
            for (sum, byte) in sum.iter_mut().zip(&rgb[(y * width + x) * 3..]) {
                *sum += f64::from(*byte);
            }
            count += 1.0;
        }
    }
    sum.map(|sum| sum / count)
}

pub(crate) fn change(a: &[u8], b: &[u8]) -> f64 {
    let sum: u64 = a
        .iter()
        .zip(b)
        .map(|(a, b)| u64::from(a.abs_diff(*b)))
        .sum();
    sum as f64 / a.len() as f64
}
