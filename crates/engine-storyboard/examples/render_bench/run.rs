//! One run of one clip, timed, and the line that carries its figures from process to process.

use std::time::Instant;

use kinora_contract::Size;
use kinora_engine::{ClipPlanner, ClipSink, Engine, EngineError, FrameJob, JobControl};
use kinora_engine_storyboard::Storyboard;

use crate::cases::Case;

/// First word of a line of figures.
pub(crate) const MARK: &str = "render";

/// What one run took.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Figures {
    pub(crate) frames: u64,
    pub(crate) took_us: u64,
    /// From the order to the first frame.
    pub(crate) first_us: u64,
    /// The longest wait between two frames, which bounds how late a cancel is obeyed.
    pub(crate) wait_us: u64,
    /// Processor time of all threads (Linux's `utime` and `stime`, in steps of 10 ms); unlike
    /// the rest it hardly grows when the machine is busy. 0 where no one tells.
    pub(crate) cpu_ms: u64,
    /// The most memory that the process ever held (Linux's `VmHWM`); 0 where no one tells.
    pub(crate) peak_kib: u64,
}

impl Figures {
    pub(crate) fn rate(&self) -> f64 {
        self.frames as f64 * 1e6 / self.took_us.max(1) as f64
    }

    /// As one line, with tabs.
    pub(crate) fn line(&self, name: &str, size: Size) -> String {
        let Self {
            frames,
            took_us,
            first_us,
            wait_us,
            cpu_ms,
            peak_kib,
        } = self;
        let times = format!("{took_us}\t{first_us}\t{wait_us}\t{cpu_ms}");
        format!("{MARK}\t{name}\t{size}\t{frames}\t{times}\t{peak_kib}")
    }

    /// From such a line.
    pub(crate) fn read(line: &str) -> Option<Self> {
        let mut cells = line.strip_prefix(MARK)?.trim().split('\t').skip(2);
        let mut next = || cells.next()?.parse().ok();
        Some(Self {
            frames: next()?,
            took_us: next()?,
            first_us: next()?,
            wait_us: next()?,
            cpu_ms: next()?,
            peak_kib: next()?,
        })
    }
}

/// Takes everything and keeps nothing but times.
struct Nowhere {
    before: Instant,
    first_us: Option<u64>,
    wait_us: u64,
}

impl ClipSink for Nowhere {
    fn frame(&mut self, _: &[u8]) -> Result<(), EngineError> {
        let waited_us = self.before.elapsed().as_micros() as u64;
        self.first_us.get_or_insert(waited_us);
        self.wait_us = self.wait_us.max(waited_us);
        self.before = Instant::now();
        Ok(())
    }

    fn audio(&mut self, _: &[f32]) -> Result<(), EngineError> {
        Ok(())
    }
}

fn peak_kib() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix("VmHWM:"))?;
    line.trim().trim_end_matches(" kB").parse().ok()
}

fn cpu_ms() -> Option<u64> {
    let stat = std::fs::read_to_string("/proc/self/stat").ok()?;
    // The name of the program, in brackets, may hold spaces; `utime` is the 12th word after it.
    let (_, words) = stat.rsplit_once(')')?;
    let mut words = words.split_whitespace().skip(11);
    let mut ticks = || words.next()?.parse::<u64>().ok();
    Some((ticks()? + ticks()?) * 10)
}

/// Renders `case` once.
pub(crate) fn once(case: &Case) -> Result<Figures, EngineError> {
    let engine = Storyboard::default();
    let (start, cpu_before_ms) = (Instant::now(), cpu_ms().unwrap_or_default());
    let mut sink = Nowhere {
        before: start,
        first_us: None,
        wait_us: 0,
    };
    let clip = engine.plan(&case.spec, &case.materials)?;
    let job = FrameJob {
        spec: &case.spec,
        materials: &case.materials,
        clip,
        preset: None,
    };
    engine.generate(&job, &mut sink, &JobControl::default())?;
    Ok(Figures {
        frames: u64::from(clip.frames),
        took_us: start.elapsed().as_micros() as u64,
        first_us: sink.first_us.unwrap_or_default(),
        wait_us: sink.wait_us,
        cpu_ms: cpu_ms().unwrap_or_default() - cpu_before_ms,
        peak_kib: peak_kib().unwrap_or_default(),
    })
}
