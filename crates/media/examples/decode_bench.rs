//! Our reader against `ffmpeg -threads 1` on the same file: rounds are interleaved, medians are
//! printed as a Markdown table. Needs ffmpeg; Linux only (CPU times and memory).
//! `cargo run --release -p kinora-media --example decode_bench -- FILE.mp4 [rounds]`

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::print_stdout,
    reason = "a benchmark for people to read"
)]

mod measure;

use std::path::Path;
use std::process::Command;

use kinora_media::{VideoReader, probe};
use measure::{measure, median, peak_memory_mib};

fn main() {
    let mut arguments = std::env::args().skip(1);
    let file = arguments.next().expect("FILE.mp4 [rounds]");
    let rounds: usize = arguments.next().map_or(7, |rounds| rounds.parse().unwrap());
    let path = Path::new(&file);
    let info = probe(path).unwrap();
    let before_mib = peak_memory_mib();
    let mut samples: [Vec<_>; 3] = Default::default();
    for _ in 0..rounds {
        samples[0].push(measure(|| read(path, info.frames)));
        samples[1].push(measure(|| ffmpeg(path, &["-pix_fmt", "rgb24"])));
        samples[2].push(measure(|| ffmpeg(path, &[])));
    }
    println!(
        "{}x{}, {} frames, {} bytes, median of {rounds} interleaved rounds\n",
        info.width, info.height, info.frames, info.file_bytes
    );
    println!("| decoder | frames/s (wall) | frames/s (CPU) |");
    println!("|---|---|---|");
    let names = [
        "kinora-media, to RGB",
        "ffmpeg, to RGB",
        "ffmpeg, decoding only",
    ];
    for (name, samples) in names.into_iter().zip(&samples) {
        let (sample, frames) = (median(samples), f64::from(info.frames));
        let (wall, cpu) = (frames / sample.wall, frames / sample.cpu);
        println!("| {name} | {wall:.0} | {cpu:.0} |");
    }
    if let (Some(before), Some(peak)) = (before_mib, peak_memory_mib()) {
        let own = peak - before;
        println!("\nPeak memory {peak} MiB, of which reading took {own} MiB.");
    }
}

/// Every frame, one after the other.
fn read(path: &Path, frames: u32) {
    let mut reader = VideoReader::open(path).unwrap();
    let count = std::iter::from_fn(|| reader.next_frame().unwrap()).count();
    assert_eq!(count, frames as usize);
}

fn ffmpeg(path: &Path, output: &[&str]) {
    let mut command = Command::new("ffmpeg");
    command.args(["-v", "error", "-threads", "1", "-i"]);
    command.arg(path).args(["-an", "-filter_threads", "1"]);
    let run = command.args(output).args(["-f", "null", "-"]).status();
    assert!(run.unwrap().success());
}
