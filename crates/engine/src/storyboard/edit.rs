//! An edit: what the source does over time, and how far its frames give way to new ones. It
//! reads footage frame by frame and keeps numbers only, never a clip.

use super::canvas::{Canvas, FULL};
use super::colour::Rgb;
use super::palette::Palette;
use crate::{Control, EngineError, Footage, Playback, Stage};

/// Cells of the coarse picture in which changes are looked for.
const COLUMNS: usize = 24;
const ROWS: usize = 14;
/// A cut changes a cell by more than this on average, of 255.
const CUT_MIN: f32 = 12.0;
/// And by so many times what the frames around it change.
const CUT_RATIO: f32 = 4.0;
/// Shortest stretch between cuts, seconds.
const STRETCH_S_MIN: f32 = 0.25;

/// What the first pass over a source found.
#[derive(Debug)]
pub(super) struct Rhythm {
    /// The frames at which uncut stretches end; the last is the number of frames.
    pub(super) ends: Vec<u32>,
    /// Mean light of each frame, 0.0 to 1.0.
    pub(super) light: Vec<f32>,
}

type Cells = Vec<[f32; 3]>;

/// Plays `source` once and answers its rhythm.
pub(super) fn survey(
    source: &dyn Footage,
    frames: u32,
    control: &Control,
) -> Result<Rhythm, EngineError> {
    let mut reel = Reel::new(source)?;
    let mut changes = Vec::new();
    let mut light = Vec::new();
    let mut before: Option<Cells> = None;
    for frame in 0..frames {
        control.report(Stage::Preparing, f64::from(frame) / f64::from(frames))?;
        let rgb = reel.next()?;
        let cells = reduce(&rgb, source.size().width as usize);
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
    Ok(Rhythm {
        ends: ends(&changes, least),
        light,
    })
}

/// Means of the cells of a frame, from every third pixel of every third row.
fn reduce(rgb: &[u8], width: usize) -> Cells {
    let height = rgb.len() / (width * 3);
    let mut sums = vec![[0.0_f32; 3]; COLUMNS * ROWS];
    let mut counts = vec![0.0_f32; COLUMNS * ROWS];
    for (y, row) in rgb.chunks_exact(width * 3).enumerate().step_by(3) {
        let line = y * ROWS / height * COLUMNS;
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

/// Where stretches end, given by how much each frame differs from the one before it.
fn ends(changes: &[f32], least: u32) -> Vec<u32> {
    let count = changes.len();
    let mut ends: Vec<u32> = Vec::new();
    for at in 1..count {
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
pub(super) struct Reel {
    playback: Box<dyn Playback>,
    frame_bytes: usize,
}

impl Reel {
    pub(super) fn new(source: &dyn Footage) -> Result<Self, EngineError> {
        Ok(Self {
            playback: source.play()?,
            frame_bytes: source.size().pixels() as usize * 3,
        })
    }

    /// The next frame, which must be there and whole.
    pub(super) fn next(&mut self) -> Result<Vec<u8>, EngineError> {
        let failed = |what: &str| EngineError::Failed(format!("the source video {what}"));
        let rgb = self
            .playback
            .next_frame()?
            .ok_or_else(|| failed("ended early"))?;
        if rgb.len() == self.frame_bytes {
            Ok(rgb)
        } else {
            Err(failed("changed its size"))
        }
    }
}

/// The colour for each level of light, 15 bits: dark, middle and bright of a palette.
#[derive(Debug)]
pub(super) struct Grade(Vec<[u16; 4]>);

impl Grade {
    pub(super) fn new(palette: &Palette) -> Self {
        let dark = palette.sky_top.mix(Rgb::BLACK, 0.62);
        let middle = palette.haze.mix(palette.ground, 0.35);
        let bright = palette.sky_low.mix(Rgb::WHITE, 0.45);
        let level = |level: i32| {
            let share = level as f32 / 255.0;
            let own = Rgb {
                r: share,
                g: share,
                b: share,
            };
            let hue = if share < 0.5 {
                dark.mix(middle, share * 2.0)
            } else {
                middle.mix(bright, share * 2.0 - 1.0)
            };
            // Light stays what it was; the hue is the palette's.
            own.tinted(hue, 0.9).fixed()
        };
        Self((0..256).map(level).collect())
    }

    /// Blends the source's frame into a new one on `canvas`: `strength` 0.0 leaves the source
    /// alone, 1.0 the new frame. Between, the source also takes on the palette:
    /// `(1 - s) source + s ((1 - s) graded + s new)`.
    pub(super) fn blend(&self, source: &[u8], strength: f32, canvas: &mut Canvas) {
        let s = strength.clamp(0.0, 1.0);
        let [own, graded, new] =
            [1.0 - s, s * (1.0 - s), s * s].map(|share| (share * 32_768.0).round() as u32);
        let pixels = canvas.pixels.as_chunks_mut::<4>().0.iter_mut();
        for (out, rgb) in pixels.zip(source.as_chunks::<3>().0) {
            // Rec. 709 luma in 256ths.
            let luma =
                (u32::from(rgb[0]) * 54 + u32::from(rgb[1]) * 183 + u32::from(rgb[2]) * 19) >> 8;
            let tone = self.0.get(luma as usize).copied().unwrap_or_default();
            for lane in 0..3 {
                let sum = u32::from(rgb[lane]) * 128 * own
                    + u32::from(tone[lane]) * graded
                    + u32::from(out[lane]) * new;
                out[lane] = (sum >> 15).min(u32::from(FULL)) as u16;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_jump_among_small_changes_is_a_cut_and_fast_motion_is_none() {
        let mut changes = vec![1.5; 60];
        changes[20] = 40.0;
        changes[23] = 40.0;
        assert_eq!(ends(&changes, 6), [20, 60]);
        assert_eq!(ends(&[20.0; 60], 6), [60]);
        assert_eq!(ends(&[0.0], 6), [1]);
    }
}
