//! What the benchmarks have in common: wall and CPU time, medians, peak memory. Linux only.

#![allow(
    clippy::disallowed_methods,
    reason = "measurements are made in real time"
)]
#![allow(dead_code, reason = "each benchmark uses a part of it")]

use std::time::Instant;

/// Of the kernel's CPU accounting in `/proc/self/stat`, the same on all usual machines.
const TICKS_PER_SECOND: f64 = 100.0;

/// One run: seconds, CPU seconds and bytes of its result, if it has one.
#[derive(Clone, Copy)]
pub(crate) struct Sample {
    pub(crate) wall: f64,
    pub(crate) cpu: f64,
    pub(crate) bytes: f64,
}

pub(crate) fn measure(run: impl FnOnce()) -> Sample {
    let (cpu, start) = (cpu_seconds(), Instant::now());
    run();
    let wall = start.elapsed().as_secs_f64();
    Sample {
        wall,
        cpu: cpu_seconds() - cpu,
        bytes: 0.0,
    }
}

/// User and system time of this process and of the children that it has waited for.
fn cpu_seconds() -> f64 {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap();
    let after_name = stat.rsplit_once(')').unwrap().1;
    let ticks = after_name
        .split_whitespace()
        .skip(11)
        .take(4)
        .map(|t| t.parse::<f64>().unwrap());
    ticks.sum::<f64>() / TICKS_PER_SECOND
}

/// The most memory that this process has had resident.
pub(crate) fn peak_memory_mib() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find(|line| line.starts_with("VmHWM:"))?;
    Some(line.split_whitespace().nth(1)?.parse::<u64>().ok()? / 1024)
}

pub(crate) fn median(samples: &[Sample]) -> Sample {
    let middle = |field: fn(&Sample) -> f64| {
        let mut values: Vec<f64> = samples.iter().map(field).collect();
        values.sort_by(f64::total_cmp);
        values[values.len() / 2]
    };
    Sample {
        wall: middle(|s| s.wall),
        cpu: middle(|s| s.cpu),
        bytes: middle(|s| s.bytes),
    }
}
