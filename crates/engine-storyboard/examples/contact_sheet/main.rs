//! Renders a prompt and writes a contact sheet of its frames as PNG; on demand also the raw
//! frames and sound, for ffmpeg. It measures nothing.
//!
//! ```sh
//! cargo run --release -p kinora-engine-storyboard --example contact_sheet -- \
//!     --size 1280x720 --seconds 5 --seed 42 --prompt "a red balloon over green hills" \
//!     --out sheet.png [--count 6] [--columns 2] [--raw clip.rgb] [--pcm clip.f32] \
//!     [--first-frame a.png [--last-frame b.png]] [--image a.png …] [--audio a.f32 …] \
//!     [--draft true] [--source clip.rgb --strength 0.6] \
//!     [--made-from "the prompt of a source" --made-from "of an edit of it" …]
//! ```
#![allow(
    clippy::disallowed_methods,
    reason = "measurements are made in real time"
)]
#![allow(clippy::print_stdout)]

mod given;

use std::error::Error;
use std::fs::File;
use std::io::{BufWriter, Write};

use given::argument;
use kinora_contract::Size;
use kinora_engine::{ClipPlanner, ClipSink, Engine, EngineError, FrameJob, JobControl};
use kinora_engine_storyboard::Storyboard;

/// Keeps chosen frames, reduced, and passes everything on to files.
struct Sheet {
    size: Size,
    wanted: Vec<u32>,
    step: usize,
    at: u32,
    kept: Vec<Vec<u8>>,
    before: Vec<u8>,
    changes: Vec<f64>,
    raw: Option<BufWriter<File>>,
    pcm: Option<BufWriter<File>>,
}

fn sink_error(error: std::io::Error) -> EngineError {
    EngineError::Sink(Box::new(error))
}

impl ClipSink for Sheet {
    fn frame(&mut self, rgb: &[u8]) -> Result<(), EngineError> {
        if self.wanted.contains(&self.at) {
            let width = self.size.width as usize;
            let (w, h) = (width / self.step, self.size.height as usize / self.step);
            let mut small = Vec::with_capacity(w * h * 3);
            for index in 0..w * h * 3 {
                let (c, x, y) = (index % 3, index / 3 % w, index / 3 / w);
                let spots = (0..self.step * self.step).map(|n| (n % self.step, n / self.step));
                let sum: usize = spots
                    .map(|(i, j)| ((y * self.step + j) * width + x * self.step + i) * 3 + c)
                    .map(|at| usize::from(rgb[at]))
                    .sum();
                small.push((sum / (self.step * self.step)) as u8);
            }
            self.kept.push(small);
        }
        if self.before.len() == rgb.len() {
            let sum: u64 = self
                .before
                .iter()
                .zip(rgb)
                .map(|(a, b)| u64::from(a.abs_diff(*b)))
                .sum();
            self.changes.push(sum as f64 / rgb.len() as f64);
        }
        self.before.clear();
        self.before.extend_from_slice(rgb);
        if let Some(raw) = &mut self.raw {
            raw.write_all(rgb).map_err(sink_error)?;
        }
        self.at += 1;
        Ok(())
    }

    fn audio(&mut self, pcm: &[f32]) -> Result<(), EngineError> {
        if let Some(file) = &mut self.pcm {
            for sample in pcm {
                file.write_all(&sample.to_le_bytes()).map_err(sink_error)?;
            }
        }
        Ok(())
    }
}

fn file(name: &str) -> Result<Option<BufWriter<File>>, Box<dyn Error>> {
    Ok(argument(name)
        .map(File::create)
        .transpose()?
        .map(BufWriter::new))
}

fn main() -> Result<(), Box<dyn Error>> {
    let size: Size = argument("size").unwrap_or("1280x720".to_owned()).parse()?;
    let count: u32 = argument("count").unwrap_or("6".to_owned()).parse()?;
    let materials = given::materials(size)?;
    let spec = given::spec(size, &materials)?;
    let engine = Storyboard::default();
    let clip = engine.plan(&spec, &materials)?;
    let wanted = (0..count)
        .map(|n| (clip.frames - 1) * n / (count - 1).max(1))
        .collect();
    let step: usize = argument("reduce").unwrap_or("2".to_owned()).parse()?;
    let mut sheet = Sheet {
        size: clip.size,
        wanted,
        step,
        at: 0,
        kept: Vec::new(),
        before: Vec::new(),
        changes: Vec::new(),
        raw: file("raw")?,
        pcm: file("pcm")?,
    };
    let start = std::time::Instant::now();
    let job = FrameJob {
        spec: &spec,
        materials: &materials,
        clip,
        preset: None,
    };
    engine.generate(&job, &mut sheet, &JobControl::default())?;
    let took = start.elapsed().as_secs_f64();
    let (mut low, mut high) = (f64::MAX, 0.0_f64);
    for change in &sheet.changes {
        low = low.min(*change);
        high = high.max(*change);
    }
    println!(
        "{} frames in {took:.2} s: {:.0}/s; change per frame {low:.2} to {high:.2}",
        clip.frames,
        f64::from(clip.frames) / took
    );
    write_sheet(&sheet, &argument("out").unwrap_or("sheet.png".to_owned()))
}

fn write_sheet(sheet: &Sheet, path: &str) -> Result<(), Box<dyn Error>> {
    let (w, h) = (
        sheet.size.width as usize / sheet.step,
        sheet.size.height as usize / sheet.step,
    );
    let columns = match argument("columns") {
        Some(columns) => columns.parse::<usize>()?,
        None if w > h => 2,
        None => 3,
    }
    .clamp(1, sheet.kept.len().max(1));
    let rows = sheet.kept.len().div_ceil(columns);
    let mut page = vec![0_u8; columns * w * rows * h * 3];
    for (index, small) in sheet.kept.iter().enumerate() {
        let (left, top) = (index % columns * w, index / columns * h);
        for (row, line) in small.chunks_exact(w * 3).enumerate() {
            let at = ((top + row) * columns * w + left) * 3;
            page[at..at + w * 3].copy_from_slice(line);
        }
    }
    let writer = BufWriter::new(File::create(path)?);
    let mut encoder = png::Encoder::new(writer, (columns * w) as u32, (rows * h) as u32);
    encoder.set_color(png::ColorType::Rgb);
    encoder.write_header()?.write_image_data(&page)?;
    Ok(())
}
