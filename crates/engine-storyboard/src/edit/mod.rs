//! The source of an edit: the script that made it, or else its cuts and its light over time, and
//! its frames one by one. It keeps numbers only, never a clip.

pub(crate) mod remake;
pub(crate) mod restyle;

use kinora_engine::{EngineError, FrameJob, JobControl, SourceVideo, VideoPlayback, WorkStage};
use remake::Remake;

/// Cells of the coarse picture in which changes are looked for.
const COLUMNS: usize = 24;
const ROWS: usize = 14;
/// A cut changes a cell by more than this on average, of 255.
const CUT_MIN: f32 = 12.0;
/// Minimum ratio of the change at a cut to the changes of the frames around it.
const CUT_RATIO: f32 = 4.0;
/// Shortest stretch between cuts, seconds.
const STRETCH_S_MIN: f32 = 0.25;

/// The source material under a clip.
#[derive(Debug)]
pub(crate) enum EditSource<'a> {
    /// The clip is no edit.
    None,
    /// A source that can be made again.
    Remade(Remake<'a>),
    /// A source of which only the frames are known.
    Observed(SourceRhythm),
}

impl<'a> EditSource<'a> {
    /// The source material of `job`. Plays the source once if only its frames are known.
    pub(crate) fn open(job: &FrameJob<'a>, control: &JobControl) -> Result<Self, EngineError> {
        // A source that can be made again is never played: its script says all that its frames
        // could.
        if let Some(remake) = Remake::from_job(job) {
            return Ok(Self::Remade(remake));
        }
        let source = job.spec.edit.as_ref().and(job.materials.source.as_deref());
        source.map_or(Ok(Self::None), |source| {
            analyse_source(source, job.clip.frames, control).map(Self::Observed)
        })
    }
}

/// Findings of the first pass over a source.
#[derive(Debug)]
pub(crate) struct SourceRhythm {
    /// The frames at which uncut stretches end; the last is the number of frames.
    pub(crate) ends: Vec<u32>,
    /// Mean light of each uncut stretch, 0.0 to 1.0.
    means: Vec<f32>,
}

impl SourceRhythm {
    /// Averages the light of each frame over every stretch.
    fn new(ends: Vec<u32>, light: &[f32]) -> Self {
        let starts = std::iter::once(0).chain(ends.iter().copied());
        let means = starts
            .zip(&ends)
            .map(|(start, end)| {
                let part = &light[start as usize..*end as usize];
                part.iter().sum::<f32>() / part.len().max(1) as f32
            })
            .collect();
        Self { ends, means }
    }

    /// The mean light of the stretch that holds `frame`.
    pub(crate) fn mean(&self, frame: u32) -> f32 {
        let stretch = self.ends.partition_point(|end| *end <= frame);
        self.means.get(stretch).copied().unwrap_or(1.0)
    }
}

type CellMeans = Vec<[f32; 3]>;

/// Plays `source` once and returns its rhythm.
fn analyse_source(
    source: &dyn SourceVideo,
    frames: u32,
    control: &JobControl,
) -> Result<SourceRhythm, EngineError> {
    let mut reel = SourceFrames::new(source)?;
    let mut changes = Vec::new();
    let mut light = Vec::new();
    let mut before: Option<CellMeans> = None;
    for frame in 0..frames {
        control.report(WorkStage::Preparing, f64::from(frame) / f64::from(frames))?;
        let rgb = reel.next()?;
        let cells = cell_means(&rgb, source.size().width as usize);
        let all: f32 = cells.iter().flatten().sum();
        light.push(all / (cells.len() * 3) as f32 / 255.0);
        let change = before.map_or(0.0, |before| {
            let apart = before.iter().flatten().zip(cells.iter().flatten());
            apart.map(|(a, b)| (a - b).abs()).sum::<f32>() / (cells.len() * 3) as f32
        });
        changes.push(change);
        before = Some(cells);
    }
    let least = ((source.fps() as f32 * STRETCH_S_MIN) as u32).max(2);
    Ok(SourceRhythm::new(stretch_ends(&changes, least), &light))
}

/// Means of the cells of a frame, from every third pixel of every third row.
fn cell_means(rgb: &[u8], width: usize) -> CellMeans {
    let height = rgb.len() / (width * 3);
    let mut sums = vec![[0.0_f32; 3]; COLUMNS * ROWS];
    let mut counts = vec![0.0_f32; COLUMNS * ROWS];
    for (y, row) in rgb.chunks_exact(width * 3).enumerate().step_by(3) {
        let line = y * ROWS / height * COLUMNS;
        // One pixel in nine: at 720p still some 300 for each cell, for a ninth of the work.
        for (x, pixel) in row.chunks_exact(3).enumerate().step_by(3) {
            let cell = line + x * COLUMNS / width;
            for (sum, part) in sums[cell].iter_mut().zip(pixel) {
                *sum += f32::from(*part);
            }
            counts[cell] += 1.0;
        }
    }
    for (sum, count) in sums.iter_mut().zip(counts) {
        *sum = sum.map(|sum| sum / count.max(1.0));
    }
    sums
}

/// Ends of the uncut stretches, from the difference of each frame to the one before it.
fn stretch_ends(changes: &[f32], least: u32) -> Vec<u32> {
    let count = changes.len();
    let mut ends: Vec<u32> = Vec::new();
    for at in 1..count {
        // A cut stands out from the six changes on either side of it; a fast pan changes all of
        // them alike. Frame 0 has no change and is left out.
        let (from, to) = (at.saturating_sub(6).max(1), (at + 7).min(count));
        let others = (from..to).filter(|other| *other != at);
        let around =
            others.clone().map(|other| changes[other]).sum::<f32>() / (to - from - 1).max(1) as f32;
        let begins = ends.last().copied().unwrap_or(0);
        let room = at as u32 - begins >= least && count as u32 - at as u32 >= least;
        if room && changes[at] > CUT_MIN && changes[at] > CUT_RATIO * around {
            ends.push(at as u32);
        }
    }
    ends.push(count as u32);
    ends
}

/// Footage being played, its frames checked.
pub(crate) struct SourceFrames {
    playback: Box<dyn VideoPlayback>,
    frame_bytes: usize,
}

impl SourceFrames {
    pub(crate) fn new(source: &dyn SourceVideo) -> Result<Self, EngineError> {
        Ok(Self {
            playback: source.play()?,
            frame_bytes: source.size().pixels() as usize * 3,
        })
    }

    /// Next frame.
    pub(crate) fn next(&mut self) -> Result<Vec<u8>, EngineError> {
        let rgb = self
            .playback
            .next_frame()?
            .ok_or_else(|| source_error("ended early"))?;
        if rgb.len() == self.frame_bytes {
            Ok(rgb)
        } else {
            Err(source_error("changed its size"))
        }
    }
}

/// Error about the source video.
fn source_error(what: &str) -> EngineError {
    EngineError::Failed(format!("the source video {what}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_jump_among_small_changes_is_a_cut_and_fast_motion_is_none() {
        let mut changes = vec![1.5; 60];
        changes[20] = 40.0;
        changes[23] = 40.0;
        assert_eq!(stretch_ends(&changes, 6), [20, 60]);
        assert_eq!(stretch_ends(&[20.0; 60], 6), [60]);
        assert_eq!(stretch_ends(&[0.0], 6), [1]);
    }

    #[test]
    fn every_stretch_has_its_light() {
        let light = [vec![0.2, 0.6], vec![0.4; 18], vec![0.05; 20]].concat();
        let rhythm = SourceRhythm::new(vec![20, 40], &light);
        for (frame, mean) in [(0, 0.4), (19, 0.4), (20, 0.05), (39, 0.05)] {
            assert!((rhythm.mean(frame) - mean).abs() < 1e-5, "{frame}");
        }
    }
}
