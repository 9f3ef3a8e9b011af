//! Our recorder against `ffmpeg -c:v libx264 -preset veryfast` on the same frames: rounds are
//! interleaved, medians are printed as a Markdown table. Needs ffmpeg; Linux only (CPU times).
//! `cargo run --release -p kinora-media --example encode_bench [width height frames rounds]`

#![allow(
    clippy::disallowed_methods,
    reason = "measurements are made in real time"
)]
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stdout,
    reason = "a benchmark for people to read"
)]

mod measure;

use std::fs::File;
use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};

use kinora_media::{ClipFormat, Recorder, RecorderOptions, video_encoder_variant};
use measure::{Sample, median, peak_memory_mib};

const FPS: u32 = 24;
fn main() {
    let arguments: Vec<u32> = std::env::args()
        .skip(1)
        .map(|a| a.parse().unwrap())
        .collect();
    let [width, height, frames, rounds] = match arguments[..] {
        [] => [1280, 720, 120, 7],
        [width, height, frames, rounds] => [width, height, frames, rounds],
        _ => panic!("width height frames rounds"),
    };
    let format = ClipFormat {
        width,
        height,
        fps: FPS,
        frames,
        audio: None,
    };
    let folder = tempfile::tempdir().unwrap();
    let raw = folder.path().join("clip.rgb");
    let clip: Vec<Vec<u8>> = (0..frames).map(|index| render(&format, index)).collect();
    let mut raw_file = File::create(&raw).unwrap();
    clip.iter().for_each(|rgb| raw_file.write_all(rgb).unwrap());
    drop(raw_file);

    let (ours, theirs) = (
        folder.path().join("ours.mp4"),
        folder.path().join("x264.mp4"),
    );
    let (mut our_samples, mut their_samples) = (Vec::new(), Vec::new());
    for _ in 0..rounds {
        our_samples.push(record(&ours, &format, &clip));
        their_samples.push(x264(&theirs, &format, &clip));
    }
    let (our, their) = (median(&our_samples), median(&their_samples));
    println!(
        "{width}x{height}, {frames} frames at {FPS}/s, median of {rounds} interleaved rounds, {}\n",
        video_encoder_variant()
    );
    println!("| encoder | frames/s (wall) | frames/s (CPU) | file bytes | PSNR-Y |");
    println!("|---|---|---|---|---|");
    let rows = [
        ("kinora-media, with stills", our, &ours),
        ("x264 veryfast", their, &theirs),
    ];
    for (name, sample, path) in rows {
        let n = f64::from(frames);
        let psnr = psnr_luma(path, &raw, &format);
        let (wall, cpu, bytes) = (n / sample.wall, n / sample.cpu, sample.bytes);
        println!("| {name} | {wall:.0} | {cpu:.0} | {bytes:.0} | {psnr} |");
    }
    let (wall, cpu) = (their.wall / our.wall, their.cpu / our.cpu);
    let size = our.bytes / their.bytes;
    println!("| ratio | {wall:.2} | {cpu:.2} | {size:.2} | |");
    if let Some(peak) = peak_memory_mib() {
        // The clip itself is held in memory here; a service renders frame by frame.
        let own = (clip.len() * format.frame_bytes()) >> 20;
        println!("\nPeak memory {peak} MiB, of which {own} MiB are the benchmark's own frames.");
    }
}

/// `[height][width][3] u8`: fractal texture under pan and zoom, gradients, light and mild grain.
fn render(format: &ClipFormat, index: u32) -> Vec<u8> {
    let time = index as f32 / FPS as f32;
    let zoom = 1.0 + 0.05 * time;
    let mut rgb = Vec::with_capacity(format.frame_bytes());
    let mut grain = index.wrapping_mul(2_654_435_761) | 1;
    for y in 0..format.height {
        for x in 0..format.width {
            let (u, v) = (x as f32 / zoom + 40.0 * time, y as f32 / zoom + 8.0 * time);
            let texture = (0..4).fold(0.0, |sum, octave| {
                let scale = 0.012 * (1 << octave) as f32;
                sum + noise(u * scale, v * scale) / (1 << octave) as f32
            });
            let light = 0.75 + 0.25 * (x as f32 * 0.004 - time).sin();
            grain = grain.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            let mild = (grain >> 30) as f32 - 1.5;
            let sky = y as f32 / format.height as f32;
            let colour = [90.0 + 60.0 * sky, 110.0, 170.0 - 70.0 * sky];
            rgb.extend(colour.map(|base| ((base + 70.0 * (texture - 0.9)) * light + mild) as u8));
        }
    }
    rgb
}

/// Value noise in 0 to 1, smooth between hashed lattice points.
fn noise(x: f32, y: f32) -> f32 {
    let hash = |x: i32, y: i32| {
        let mut h = (x as u32).wrapping_mul(0x9e37_79b1) ^ (y as u32).wrapping_mul(0x85eb_ca77);
        h = (h ^ (h >> 15)).wrapping_mul(0x2c1b_3c6d);
        (h >> 8) as f32 / (1 << 24) as f32
    };
    let (left, top) = (x.floor(), y.floor());
    let smooth = |t: f32| t * t * (3.0 - 2.0 * t);
    let (s, t) = (smooth(x - left), smooth(y - top));
    let (i, j) = (left as i32, top as i32);
    let upper = hash(i, j) * (1.0 - s) + hash(i + 1, j) * s;
    let lower = hash(i, j + 1) * (1.0 - s) + hash(i + 1, j + 1) * s;
    upper * (1.0 - t) + lower * t
}

fn record(path: &Path, format: &ClipFormat, clip: &[Vec<u8>]) -> Sample {
    encode(path, || {
        let mut recorder = Recorder::create(path, *format, RecorderOptions::default()).unwrap();
        clip.iter()
            .for_each(|rgb| recorder.push_frame(rgb).unwrap());
        recorder.finish().unwrap();
    })
}

/// What an encode that writes to `path` takes.
fn encode(path: &Path, run: impl FnOnce()) -> Sample {
    let mut sample = measure::measure(run);
    sample.bytes = path.metadata().unwrap().len() as f64;
    sample
}

/// The same frames through a pipe, as a service would call ffmpeg.
fn x264(path: &Path, format: &ClipFormat, clip: &[Vec<u8>]) -> Sample {
    let size = format!("{}x{}", format.width, format.height);
    let rate = FPS.to_string();
    encode(path, || {
        let mut ffmpeg = Command::new("ffmpeg")
            .args([
                "-v", "error", "-y", "-f", "rawvideo", "-pix_fmt", "rgb24", "-s", &size,
            ])
            .args([
                "-r",
                &rate,
                "-i",
                "-",
                "-vf",
                "scale=out_color_matrix=bt709",
            ])
            .args([
                "-c:v", "libx264", "-preset", "veryfast", "-pix_fmt", "yuv420p",
            ])
            .args(["-movflags", "faststart"])
            .arg(path)
            .stdin(Stdio::piped())
            .spawn()
            .unwrap();
        let mut pipe = ffmpeg.stdin.take().unwrap();
        clip.iter().for_each(|rgb| pipe.write_all(rgb).unwrap());
        drop(pipe);
        assert!(ffmpeg.wait().unwrap().success());
    })
}

/// ffmpeg's own mean luma PSNR of the file against the raw frames.
fn psnr_luma(path: &Path, raw: &Path, format: &ClipFormat) -> String {
    let size = format!("{}x{}", format.width, format.height);
    let graph = "[1:v]scale=out_color_matrix=bt709:out_range=tv:flags=accurate_rnd,\
                 format=yuv420p[raw];[0:v][raw]psnr";
    let output = Command::new("ffmpeg")
        .args(["-hide_banner", "-i"])
        .arg(path)
        .args([
            "-f",
            "rawvideo",
            "-pix_fmt",
            "rgb24",
            "-s",
            &size,
            "-r",
            &FPS.to_string(),
            "-i",
        ])
        .arg(raw)
        .args(["-lavfi", graph, "-f", "null", "-"])
        .output()
        .unwrap();
    let log = String::from_utf8_lossy(&output.stderr);
    let line = log
        .lines()
        .rfind(|line| line.contains("PSNR y:"))
        .unwrap_or_default();
    line.split("y:")
        .nth(1)
        .and_then(|rest| rest.split(' ').next())
        .unwrap_or("?")
        .to_owned()
}
