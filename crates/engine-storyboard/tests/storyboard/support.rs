//! A tape that records what the engine gives, and measures of what is on it.

use std::num::NonZeroUsize;
use std::sync::Arc;

use kinora_contract::{FrameSize, Size, VideoInputs, VideoLength, VideoSpec};
use kinora_engine::{
    ClipPlanner, ClipSink, Engine, EngineError, FrameJob, JobControl, JobMaterials, RgbPicture,
    SourceVideo, VideoPlayback,
};
use kinora_engine_storyboard::{Storyboard, StoryboardKind};

pub(crate) const SMALL: Size = Size::new(320, 180);

/// For what is made from words alone.
pub(crate) static NONE: JobMaterials = JobMaterials {
    first_frame: None,
    last_frame: None,
    images: Vec::new(),
    audios: Vec::new(),
    source: None,
    script: Vec::new(),
};

pub(crate) fn spec(prompt: &str, size: Size, seconds: u32, seed: u32) -> VideoSpec {
    VideoSpec {
        version: 1,
        model: "storyboard".to_owned(),
        prompt: prompt.to_owned(),
        negative_prompt: None,
        seconds: VideoLength::Fixed(seconds),
        frame: FrameSize::Fixed(size),
        seed,
        generate_audio: true,
        inputs: VideoInputs::Text,
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

impl ClipSink for Tape {
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
    Storyboard::new(StoryboardKind {
        threads: NonZeroUsize::new(threads),
        ..StoryboardKind::default()
    })
}

pub(crate) fn tape(spec: &VideoSpec, threads: usize, limit: usize) -> Tape {
    tape_of(spec, &NONE, threads, limit)
}

pub(crate) fn tape_of(
    spec: &VideoSpec,
    materials: &JobMaterials,
    threads: usize,
    limit: usize,
) -> Tape {
    tape_by(&engine(threads), spec, materials, limit)
}

/// As [`tape_of`], by an engine of any options.
pub(crate) fn tape_by(
    engine: &Storyboard,
    spec: &VideoSpec,
    materials: &JobMaterials,
    limit: usize,
) -> Tape {
    let (tape, result) = generate(engine, spec, materials, limit, &JobControl::default());
    match result {
        Ok(()) => {
            let clip = engine.plan(spec, materials).unwrap();
            assert_eq!(tape.frames.len(), clip.frames as usize);
        }
        Err(EngineError::Cancelled) if tape.frames.len() == limit => {}
        Err(error) => panic!("{error}"),
    }
    tape
}

/// What the engine gave, and how it ended.
pub(crate) fn generate(
    engine: &Storyboard,
    spec: &VideoSpec,
    materials: &JobMaterials,
    limit: usize,
    control: &JobControl,
) -> (Tape, Result<(), EngineError>) {
    let mut tape = Tape {
        frames: Vec::new(),
        pcm: Vec::new(),
        limit,
    };
    let job = FrameJob {
        spec,
        materials,
        clip: engine.plan(spec, materials).unwrap(),
        preset: None,
    };
    let result = engine.generate(&job, &mut tape, control);
    (tape, result)
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

pub(crate) fn whole_of(spec: &VideoSpec, materials: &JobMaterials) -> Tape {
    tape_of(spec, materials, 2, usize::MAX)
}

/// A picture of hills, discs and stripes in colours of `hue` (0.0 to 1.0), fine and coarse.
pub(crate) fn picture(size: Size, hue: f64) -> RgbPicture {
    let mut rgb = Vec::with_capacity(size.pixels() as usize * 3);
    for index in 0..size.pixels() {
        let x = (index % u64::from(size.width)) as f64 / f64::from(size.width);
        let y = (index / u64::from(size.width)) as f64 / f64::from(size.height);
        let hill = f64::from(u8::from(y > 0.6 + 0.1 * (x * 9.0 + hue * 7.0).sin()));
        let disc = 1.0 / (1.0 + (((x - 0.3).hypot(y - 0.35) - 0.15) * 90.0).exp());
        let fine = 0.12 * (x * 60.0).sin() * (y * 44.0).sin();
        for part in 0..3 {
            let own = ((hue + f64::from(part) / 3.0) * std::f64::consts::TAU).cos();
            let value = 0.5 + 0.3 * own - 0.2 * hill + 0.2 * disc + fine + 0.1 * (0.5 - y);
            rgb.push((value.clamp(0.0, 1.0) * 255.0) as u8);
        }
    }
    RgbPicture { size, rgb }
}

/// `picture` scaled and cut to cover `size`: the mean of 8 x 8 linear samples for each pixel.
pub(crate) fn covering(picture: &RgbPicture, size: Size) -> Vec<u8> {
    let sides = |size: Size| (f64::from(size.width), f64::from(size.height));
    let ((across, down), (width, height)) = (sides(picture.size), sides(size));
    let step = (across / width).min(down / height);
    let (left, top) = ((across - width * step) * 0.5, (down - height * step) * 0.5);
    let at = |x: usize, y: usize, part: usize| {
        f64::from(picture.rgb[(y * picture.size.width as usize + x) * 3 + part])
    };
    let sample = |x: f64, y: f64, part: usize| {
        let (x, y) = (
            (x - 0.5).clamp(0.0, across - 1.001),
            (y - 0.5).clamp(0.0, down - 1.001),
        );
        let (i, j) = (x as usize, y as usize);
        let (u, v) = (x.fract(), y.fract());
        let upper = at(i, j, part) * (1.0 - u) + at(i + 1, j, part) * u;
        let lower = at(i, j + 1, part) * (1.0 - u) + at(i + 1, j + 1, part) * u;
        upper * (1.0 - v) + lower * v
    };
    let mut rgb = Vec::new();
    for (y, x) in (0..size.height).flat_map(|y| (0..size.width).map(move |x| (y, x))) {
        for part in 0..3 {
            let spots = (0..64).map(|n| (f64::from(n % 8), f64::from(n / 8)));
            let sum: f64 = spots
                .map(|(i, j)| {
                    let (u, v) = ((i + 0.5) / 8.0, (j + 0.5) / 8.0);
                    sample(
                        left + (f64::from(x) + u) * step,
                        top + (f64::from(y) + v) * step,
                        part,
                    )
                })
                .sum();
            rgb.push((sum / 64.0).round() as u8);
        }
    }
    rgb
}

/// A frame of `from` scaled down to `to`: the mean of the pixels whose centres fall together.
pub(crate) fn reduced(rgb: &[u8], from: Size, to: Size) -> Vec<u8> {
    let mut sums = vec![[0_u32; 4]; to.pixels() as usize];
    for (index, pixel) in (0..from.pixels()).zip(rgb.chunks_exact(3)) {
        let (x, y) = (index % u64::from(from.width), index / u64::from(from.width));
        let x = x * u64::from(to.width) / u64::from(from.width);
        let y = y * u64::from(to.height) / u64::from(from.height);
        let sum = &mut sums[(y * u64::from(to.width) + x) as usize];
        for (sum, part) in sum.iter_mut().zip([pixel[0], pixel[1], pixel[2], 1]) {
            *sum += u32::from(part);
        }
    }
    let mean = |sum: [u32; 4]| [0, 1, 2].map(|part: usize| (sum[part] / sum[3].max(1)) as u8);
    sums.into_iter().flat_map(mean).collect()
}

/// A frame of `from` scaled up to `to`, linearly between the centres of its pixels.
pub(crate) fn enlarged(rgb: &[u8], from: Size, to: Size) -> Vec<u8> {
    let taps = |from: u32, to: u32| {
        let tap = move |at: u32| {
            let place = (f64::from(at) + 0.5) * f64::from(from) / f64::from(to) - 0.5;
            let place = place.clamp(0.0, f64::from(from - 1));
            let near = (place as usize).min(from as usize - 2);
            (near, place - near as f64)
        };
        (0..to).map(tap).collect::<Vec<_>>()
    };
    let (columns, rows) = (taps(from.width, to.width), taps(from.height, to.height));
    let stride = from.width as usize * 3;
    let mut out = Vec::with_capacity(to.pixels() as usize * 3);
    for (y, down) in &rows {
        for (x, across) in &columns {
            for part in 0..3 {
                let at = |x: usize, y: usize| f64::from(rgb[y * stride + x * 3 + part]);
                let upper = at(*x, *y) * (1.0 - across) + at(x + 1, *y) * across;
                let lower = at(*x, y + 1) * (1.0 - across) + at(x + 1, y + 1) * across;
                out.push((upper * (1.0 - down) + lower * down + 0.5) as u8);
            }
        }
    }
    out
}

/// Root mean square of samples.
pub(crate) fn loudness(pcm: &[f32]) -> f64 {
    let power: f64 = pcm.iter().map(|one| f64::from(*one).powi(2)).sum();
    (power / pcm.len().max(1) as f64).sqrt()
}

/// Peak signal-to-noise ratio in decibels.
pub(crate) fn psnr(a: &[u8], b: &[u8]) -> f64 {
    assert_eq!(a.len(), b.len());
    let sum: f64 = a
        .iter()
        .zip(b)
        .map(|(a, b)| f64::from(a.abs_diff(*b)).powi(2))
        .sum();
    10.0 * (255.0_f64.powi(2) * a.len() as f64 / sum.max(1e-9)).log10()
}

fn luma(rgb: &[u8]) -> Vec<f64> {
    rgb.chunks_exact(3)
        .map(|p| 0.299 * f64::from(p[0]) + 0.587 * f64::from(p[1]) + 0.114 * f64::from(p[2]))
        .collect()
}

/// Structural similarity of luma, the mean over 8 x 8 windows every 4 pixels (Wang, Bovik,
/// Sheikh and Simoncelli, "Image quality assessment", 2004, with a flat window).
pub(crate) fn ssim(a: &[u8], b: &[u8], size: Size) -> f64 {
    let (a, b) = (luma(a), luma(b));
    let (width, height) = (size.width as usize, size.height as usize);
    let (mut sum, mut count) = (0.0, 0.0);
    for top in (0..height - 7).step_by(4) {
        for left in (0..width - 7).step_by(4) {
            let (mut sa, mut sb, mut aa, mut bb, mut ab) = (0.0, 0.0, 0.0, 0.0, 0.0);
            for at in (0..64).map(|n| (top + n / 8) * width + left + n % 8) {
                let (x, y) = (a[at], b[at]);
                sa += x;
                sb += y;
                aa += x * x;
                bb += y * y;
                ab += x * y;
            }
            let (ma, mb) = (sa / 64.0, sb / 64.0);
            let (va, vb, cov) = (
                aa / 64.0 - ma * ma,
                bb / 64.0 - mb * mb,
                ab / 64.0 - ma * mb,
            );
            let (c1, c2) = (6.5025, 58.5225);
            sum += (2.0 * ma * mb + c1) * (2.0 * cov + c2)
                / ((ma * ma + mb * mb + c1) * (va + vb + c2));
            count += 1.0;
        }
    }
    sum / count
}

/// Linear (Pearson) correlation.
pub(crate) fn correlation(a: &[f64], b: &[f64]) -> f64 {
    let mean = |values: &[f64]| values.iter().sum::<f64>() / values.len() as f64;
    let (ma, mb) = (mean(a), mean(b));
    let (mut ab, mut aa, mut bb) = (0.0, 0.0, 0.0);
    for (a, b) in a.iter().zip(b) {
        ab += (a - ma) * (b - mb);
        aa += (a - ma).powi(2);
        bb += (b - mb).powi(2);
    }
    ab / (aa * bb).sqrt().max(1e-12)
}

/// Frames in memory as footage.
#[derive(Debug)]
pub(crate) struct Memory {
    pub(crate) size: Size,
    pub(crate) fps: u32,
    pub(crate) frames: Arc<Vec<Vec<u8>>>,
    /// How many frames it claims to have.
    pub(crate) claims: u32,
}

impl Memory {
    pub(crate) fn new(size: Size, fps: u32, frames: Vec<Vec<u8>>) -> Self {
        let claims = frames.len() as u32;
        Self {
            size,
            fps,
            frames: Arc::new(frames),
            claims,
        }
    }
}

impl SourceVideo for Memory {
    fn size(&self) -> Size {
        self.size
    }

    fn fps(&self) -> u32 {
        self.fps
    }

    fn frames(&self) -> u32 {
        self.claims
    }

    fn play(&self) -> Result<Box<dyn VideoPlayback>, EngineError> {
        Ok(Box::new(Playing(Arc::clone(&self.frames), 0)))
    }
}

struct Playing(Arc<Vec<Vec<u8>>>, usize);

impl VideoPlayback for Playing {
    fn next_frame(&mut self) -> Result<Option<Vec<u8>>, EngineError> {
        self.1 += 1;
        Ok(self.0.get(self.1 - 1).cloned())
    }
}

/// Writes twelve of `frames` as a contact sheet `name.png` into the folder that the variable
/// `STORYBOARD_SHEETS` names, for the eye; nothing without it.
pub(crate) fn sheet(name: &str, frames: &[Vec<u8>], size: Size) {
    let Some(folder) = std::env::var_os("STORYBOARD_SHEETS") else {
        return;
    };
    let (width, height, count) = (size.width as usize, size.height as usize, 12);
    let columns = if width > height { 3 } else { 6 };
    let rows = count / columns;
    let mut page = vec![0; columns * width * rows * height * 3];
    for nth in 0..count {
        let frame = &frames[(frames.len() - 1) * nth / (count - 1)];
        let (left, top) = (nth % columns * width, nth / columns * height);
        for (y, line) in frame.chunks_exact(width * 3).enumerate() {
            let at = ((top + y) * columns * width + left) * 3;
            page[at..at + width * 3].copy_from_slice(line);
        }
    }
    let path = std::path::Path::new(&folder).join(format!("{name}.png"));
    let file = std::fs::File::create(path).unwrap();
    let mut encoder = png::Encoder::new(file, (columns * width) as u32, (rows * height) as u32);
    encoder.set_color(png::ColorType::Rgb);
    let mut writer = encoder.write_header().unwrap();
    writer.write_image_data(&page).unwrap();
}
