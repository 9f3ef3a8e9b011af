//! How many frames per second the storyboard makes, without an encoder, the longest wait between
//! two frames, processor time and memory: a markdown table of medians. Every run is a process of its
//! own. With `--baseline`, runs of another build of this bench alternate with those of this one.
//!
//! ```sh
//! cargo run --release -p kinora-engine-storyboard --example render_bench -- [--rounds 5] \
//!     [--size 1280x720] [--only sea] [--baseline other/render_bench] [--lines figures.tsv]
//! ```
#![allow(
    clippy::disallowed_methods,
    reason = "measurements are made in real time"
)]
#![allow(clippy::print_stdout)]

mod cases;
mod run;

use std::error::Error;
use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::process::Command;

use kinora_contract::Size;
use run::Figures;

const SIZES: [Size; 2] = [Size::new(1280, 720), Size::new(1920, 1080)];

fn argument(name: &str) -> Option<String> {
    let words: Vec<String> = std::env::args().collect();
    let named = |pair: &&[String]| pair[0].strip_prefix("--") == Some(name);
    words.windows(2).find(named).map(|pair| pair[1].clone())
}

/// Runs one case in a process of `build`.
fn run_in(build: &Path, name: &str, size: Size) -> Result<Figures, Box<dyn Error>> {
    let size = size.to_string();
    let output = Command::new(build)
        .args(["--one", name, "--size", &size])
        .output()?;
    let text = String::from_utf8_lossy(&output.stdout);
    let figures = text.lines().find_map(Figures::read);
    figures.ok_or_else(|| format!("{} has no figures for {name}", build.display()).into())
}

/// The median of each figure.
fn median(runs: &[Figures]) -> Figures {
    let of = |pick: fn(&Figures) -> u64| {
        let mut values: Vec<u64> = runs.iter().map(pick).collect();
        values.sort_unstable();
        values.get(values.len() / 2).copied().unwrap_or_default()
    };
    Figures {
        frames: of(|run| run.frames),
        took_us: of(|run| run.took_us),
        first_us: of(|run| run.first_us),
        wait_us: of(|run| run.wait_us),
        cpu_ms: of(|run| run.cpu_ms),
        peak_kib: of(|run| run.peak_kib),
    }
}

fn row(name: &str, size: Size, own: &Figures, other: Option<&Figures>) -> String {
    let ms = |us: u64| us / 1_000;
    let mut row = format!(
        "| {name} | {size} | {:.0} | {} ms | {} ms | {} ms | {} ms | {} MiB |",
        own.rate(),
        ms(own.took_us),
        own.cpu_ms,
        ms(own.first_us),
        ms(own.wait_us),
        own.peak_kib / 1024
    );
    if let Some(other) = other {
        let time = own.took_us as f64 / other.took_us.max(1) as f64;
        let cpu = own.cpu_ms as f64 / other.cpu_ms.max(1) as f64;
        let peak = other.peak_kib / 1024;
        // Writing to a string cannot fail.
        let _ = write!(
            row,
            " {:.0} | {time:.2} | {cpu:.2} | {peak} MiB |",
            other.rate()
        );
    }
    row
}

/// One run for a process that asked for it.
fn one(name: &str, size: Size) -> Result<(), Box<dyn Error>> {
    let case = cases::case(name, size).ok_or_else(|| format!("there is no case {name:?}"))?;
    println!("{}", run::once(&case)?.line(name, size));
    Ok(())
}

/// The medians of this build and of the baseline, which take turns at being first: neither always
/// finds the machine warm.
fn paired(
    name: &str,
    size: Size,
    rounds: usize,
    baseline: Option<&Path>,
) -> Result<(Figures, Option<Figures>), Box<dyn Error>> {
    let own = std::env::current_exe()?;
    let (mut runs, mut others) = (Vec::new(), Vec::new());
    for round in 0..rounds {
        if round % 2 == 0 {
            runs.push(run_in(&own, name, size)?);
        }
        if let Some(baseline) = baseline {
            others.push(run_in(baseline, name, size)?);
        }
        if round % 2 == 1 {
            runs.push(run_in(&own, name, size)?);
        }
    }
    Ok((median(&runs), baseline.map(|_| median(&others))))
}

fn main() -> Result<(), Box<dyn Error>> {
    let size = argument("size").map(|size| size.parse()).transpose()?;
    if let Some(name) = argument("one") {
        return one(&name, size.unwrap_or(SIZES[0]));
    }
    let rounds = argument("rounds").unwrap_or("5".to_owned()).parse()?;
    let baseline = argument("baseline").map(PathBuf::from);
    let only = argument("only");
    let (more, rule) = match baseline {
        Some(_) => (
            " baseline frames/s | time ratio | processor ratio | its peak |",
            "---|---|---|---|",
        ),
        None => ("", ""),
    };
    let times = "time | processor time | first frame | longest wait";
    println!("| clip | size | frames/s (median of {rounds}) | {times} | peak memory |{more}");
    println!("|---|---|---|---|---|---|---|---|{rule}");
    let mut lines = String::new();
    for size in size.map_or(SIZES.to_vec(), |size| vec![size]) {
        let wanted = |name: &&str| only.as_ref().is_none_or(|only| only == name);
        for name in cases::names().filter(wanted) {
            let (own, other) = paired(name, size, rounds, baseline.as_deref())?;
            println!("{}", row(name, size, &own, other.as_ref()));
            lines += &(own.line(name, size) + "\n");
        }
    }
    argument("lines").map_or(Ok(()), |path| std::fs::write(path, lines))?;
    Ok(())
}
