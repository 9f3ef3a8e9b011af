//! The schedule of a clip: spec and materials become consecutive takes with the text lines over them; at both ends the
//! camera rests on frames of the caller's, and lines fade where the words ask for it. It draws nothing.

use kinora_contract::VideoInputs;
use kinora_engine::{ClipPlan, FrameJob, JobMaterials};

use crate::edit::EditSource;
use crate::raster::colour::smooth;
use crate::script::{Shot, avoided, dissolve_frames, merge_lines, shots};

/// The content of a take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TakeContent {
    /// A scene painted from the words.
    Painted,
    /// The source of an edit under its words.
    Source,
    /// A reference image, by place; and how often it was shown before.
    Image(usize, u32),
    /// The first frame, and on to the last where there is one.
    Frames,
}

/// A stretch of the clip.
#[derive(Clone, Debug)]
pub(crate) struct ClipTake {
    pub(crate) shot: Shot,
    pub(crate) show: TakeContent,
}

/// The plan of a clip.
#[derive(Debug)]
pub(crate) struct ClipSchedule {
    /// Without gaps; never empty.
    pub(crate) takes: Vec<ClipTake>,
    /// The text lines, with the reading of each.
    pub(crate) lines: Vec<Shot>,
}

impl ClipSchedule {
    /// The reel of `job` over what it edits.
    pub(crate) fn new(job: &FrameJob<'_>, ground: &EditSource<'_>) -> Self {
        let (spec, clip) = (job.spec, job.clip);
        let whole = [clip.frames];
        let ends = match ground {
            EditSource::Observed(rhythm) => rhythm.ends.as_slice(),
            EditSource::None | EditSource::Remade(_) => &whole[..],
        };
        let told = shots(&spec.prompt, avoided(spec), ends, clip.fps);
        let images = job.materials.images.len();
        let takes = match &spec.inputs {
            // One take for the whole clip: the way from the first frame to the last has no cuts,
            // whatever the lines say.
            VideoInputs::Frames { .. } => vec![ClipTake {
                shot: Shot {
                    end: clip.frames,
                    ..told[0].clone()
                },
                show: TakeContent::Frames,
            }],
            VideoInputs::References { .. } if images > 0 => image_takes(&told, images, clip.fps),
            _ => {
                let (shots, show) = match ground {
                    EditSource::None => (&told, TakeContent::Painted),
                    EditSource::Observed(_) => (&told, TakeContent::Source),
                    EditSource::Remade(remake) => (&remake.shots, TakeContent::Source),
                };
                let shots = shots.iter().cloned();
                shots.map(|shot| ClipTake { shot, show }).collect()
            }
        };
        Self {
            takes,
            lines: merge_lines(told),
        }
    }

    /// The shots for the sound: the painted ones, otherwise the text lines.
    pub(crate) fn sound_shots(&self) -> Vec<Shot> {
        let painted = self
            .takes
            .iter()
            .all(|take| take.show == TakeContent::Painted);
        if painted {
            self.takes.iter().map(|take| take.shot.clone()).collect()
        } else {
            self.lines.clone()
        }
    }
}

/// The images over the shots that the words ask for; where there are more images than shots,
/// the longest shots are parted until every image has one.
fn image_takes(told: &[Shot], images: usize, fps: u32) -> Vec<ClipTake> {
    let mut parts: Vec<Shot> = told.to_vec();
    while parts.len() < images {
        // The first of equally long ones: `max_by_key` alone would take the last.
        let longest = (0..parts.len()).max_by_key(|at| {
            let long = parts[*at].end - parts[*at].start;
            (long, std::cmp::Reverse(*at))
        });
        let Some(at) = longest.filter(|at| parts[*at].end - parts[*at].start >= 2) else {
            break;
        };
        let mut second = parts[at].clone();
        second.start = u32::midpoint(parts[at].start, second.end);
        second.dissolve = dissolve_frames(fps);
        parts[at].end = second.start;
        parts.insert(at + 1, second);
    }
    spread_evenly(&mut parts, told.len() < images);
    let count = parts.len();
    let mut takes: Vec<ClipTake> = Vec::new();
    for (nth, mut shot) in parts.into_iter().enumerate() {
        // More shots than images: each image keeps the next shots in turn. Five shots of two images
        // show 0, 0, 0, 1, 1.
        let image = nth * images / count;
        let again = takes.iter().filter(|take| take.shows_image(image)).count();
        // A short take is seen more than it is dissolved.
        let before = takes
            .last()
            .map_or(0, |take| take.shot.end - take.shot.start);
        shot.dissolve = shot.dissolve.min(before / 3).min(shot.start);
        takes.push(ClipTake {
            shot,
            show: TakeContent::Image(image, again as u32),
        });
    }
    takes
}

/// Spreads parts evenly when they were parted for the images: no image waits for a long line.
fn spread_evenly(parts: &mut [Shot], even: bool) {
    let (count, frames) = (parts.len() as u32, parts.last().map_or(0, |last| last.end));
    // Cuts that the words ask for stay where they are; then nothing is spread.
    let cut = parts.iter().skip(1).any(|part| part.dissolve == 0);
    if !even || cut {
        return;
    }
    for (part, nth) in parts.iter_mut().zip(0..) {
        part.start = frames * nth / count;
        part.end = frames * (nth + 1) / count;
    }
}

impl ClipTake {
    fn shows_image(&self, image: usize) -> bool {
        matches!(self.show, TakeContent::Image(one, _) if one == image)
    }
}

/// Time for which a frame of the caller's stays untouched, seconds, and the largest part of the
/// clip, as its reciprocal.
const STAY_S: f32 = 0.5;
const STAY_PART: u32 = 5;
/// The part of its way in which a camera comes up to its pace.
const START: f32 = 0.3;
/// Length of a fade from or to black, seconds, and the most of its line that it may take.
const FADE_S: f32 = 1.0;
const FADE_MOST: f32 = 0.4;

/// The beginning and the end of a clip.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ClipEnds {
    /// Whether the caller gave the first and the last frame.
    first: bool,
    last: bool,
    frames: u32,
    fps: u32,
}

impl ClipEnds {
    pub(crate) fn new(materials: &JobMaterials, clip: ClipPlan) -> Self {
        Self {
            first: materials.first_frame.is_some(),
            last: materials.last_frame.is_some(),
            frames: clip.frames,
            fps: clip.fps,
        }
    }

    /// Number of frames for which a frame of the caller's stays untouched.
    fn hold_frames(self) -> u32 {
        let whole = (STAY_S * self.fps as f32) as u32;
        whole.min(self.frames / STAY_PART)
    }

    /// Progress of a take's camera at frame `at` of `long`, 0.0 to 1.0. It rests on frames of the
    /// caller's and starts softly from them.
    pub(crate) fn camera_progress(self, at: u32, long: u32) -> f32 {
        let last = long.saturating_sub(1).max(1);
        let from = if self.first { self.hold_frames() } else { 0 };
        let to = if self.last {
            last.saturating_sub(self.hold_frames()).max(1)
        } else {
            last
        };
        let share = at.saturating_sub(from) as f32 / to.saturating_sub(from).max(1) as f32;
        let share = share.min(1.0);
        // From a frame that stands still the camera accelerates. Without one it runs evenly from
        // edge to edge, so that clips join and loop in motion.
        match (self.first, self.last) {
            (false, false) => at as f32 / last as f32,
            (true, true) => eased(share),
            (true, false) => eased_in(share),
            (false, true) => 1.0 - eased_in(1.0 - share),
        }
    }

    /// 0.0 while a frame of the caller's stays, and 1.0 from `seconds` after it on.
    pub(crate) fn appearance(self, frame: u32, seconds: f32) -> f32 {
        [(self.first, frame), (self.last, self.frames - 1 - frame)]
            .into_iter()
            .filter(|(given, _)| *given)
            .map(|(_, frames)| frames.saturating_sub(self.hold_frames()))
            .map(|frames| smooth(0.0, seconds, frames as f32 / self.fps as f32))
            .fold(1.0, f32::min)
    }

    /// Brightness at `frame` after the fades that `lines` ask for, 0.0 black to 1.0.
    /// Frames that the caller gave do not fade.
    pub(crate) fn fade_light(self, lines: &[Shot], frame: u32) -> f32 {
        lines
            .iter()
            .filter(|line| (line.start..line.end).contains(&frame))
            .fold(1.0, |light, line| {
                let fades = line.reading.fades;
                // Two fades of one line leave a fifth of it fully lit.
                let most = (line.end - line.start) as f32 * FADE_MOST;
                let long = (FADE_S * self.fps as f32).min(most).max(1.0);
                let opens = fades.from_black && !(self.first && line.start == 0);
                let closes = fades.to_black && !(self.last && line.end == self.frames);
                [(opens, frame - line.start), (closes, line.end - 1 - frame)]
                    .into_iter()
                    .filter(|(asked, _)| *asked)
                    .fold(light, |light, (_, frames)| {
                        light * smooth(0.0, long, frames as f32)
                    })
            })
    }
}

/// Eases from rest to an even pace within [`START`] of the way. Both values are shares of 1.0.
fn eased_in(share: f32) -> f32 {
    // Even acceleration up to START, then an even pace. `whole` is the area under that pace, so
    // that the way ends at 1.0; the first part is its integral.
    let whole = 1.0 - START * 0.5;
    if share < START {
        share * share / (2.0 * START * whole)
    } else {
        (share - START * 0.5) / whole
    }
}

/// Eases from rest to an even pace and back to rest.
fn eased(share: f32) -> f32 {
    let half = eased_in((share.min(1.0 - share) * 2.0).max(0.0)) * 0.5;
    if share < 0.5 { half } else { 1.0 - half }
}
