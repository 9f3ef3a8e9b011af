//! The schedule of a clip: turns spec and materials into consecutive takes and the text lines over
//! them. It draws nothing.

use kinora_contract::Inputs;

use super::edit::Ground;
use super::script::{Shot, dissolve_frames, merged, shots};
use kinora_engine::Job;

/// The content of a take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Show {
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
pub(crate) struct Take {
    pub(crate) shot: Shot,
    pub(crate) show: Show,
}

/// The plan of a clip.
#[derive(Debug)]
pub(crate) struct Reel {
    /// Without gaps; never empty.
    pub(crate) takes: Vec<Take>,
    /// The text lines, with the reading of each.
    pub(crate) lines: Vec<Shot>,
}

impl Reel {
    /// The reel of `job` over what it edits.
    pub(crate) fn new(job: &Job<'_>, ground: &Ground<'_>) -> Self {
        let (spec, clip) = (job.spec, job.clip);
        let whole = [clip.frames];
        let ends = match ground {
            Ground::Seen(rhythm) => rhythm.ends.as_slice(),
            Ground::None | Ground::Remade(_) => &whole[..],
        };
        let avoid = spec.negative_prompt.as_deref().unwrap_or_default();
        let told = shots(&spec.prompt, avoid, ends, clip.fps);
        let images = job.materials.images.len();
        let show = |show: Show| move |shot: Shot| Take { shot, show };
        let takes = match &spec.inputs {
            Inputs::Frames { .. } => vec![show(Show::Frames)(Shot {
                end: clip.frames,
                ..told[0].clone()
            })],
            Inputs::References { .. } if images > 0 => pictures(&told, images, clip.fps),
            _ => match ground {
                Ground::None => told.iter().cloned().map(show(Show::Painted)).collect(),
                Ground::Seen(_) => told.iter().cloned().map(show(Show::Source)).collect(),
                Ground::Remade(remake) => {
                    let shots = remake.shots.iter().cloned();
                    shots.map(show(Show::Source)).collect()
                }
            },
        };
        Self {
            takes,
            lines: merged(told),
        }
    }
}

impl Reel {
    /// The shots for the sound: the painted ones, otherwise the text lines.
    pub(crate) fn heard(&self) -> Vec<Shot> {
        let painted = self.takes.iter().all(|take| take.show == Show::Painted);
        if painted {
            self.takes.iter().map(|take| take.shot.clone()).collect()
        } else {
            self.lines.clone()
        }
    }
}

/// The images over the shots that the words ask for; where there are more images than shots,
/// the longest shots are parted until every image has one.
fn pictures(told: &[Shot], images: usize, fps: u32) -> Vec<Take> {
    let mut parts: Vec<Shot> = told.to_vec();
    while parts.len() < images {
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
    level(&mut parts, told.len() < images);
    let count = parts.len();
    let mut takes: Vec<Take> = Vec::new();
    for (nth, mut shot) in parts.into_iter().enumerate() {
        let image = nth * images / count;
        let again = takes.iter().filter(|take| take.show_is(image)).count();
        // A short take is seen more than it is dissolved.
        let before = takes
            .last()
            .map_or(0, |take| take.shot.end - take.shot.start);
        shot.dissolve = shot.dissolve.min(before / 3).min(shot.start);
        takes.push(Take {
            shot,
            show: Show::Image(image, again as u32),
        });
    }
    takes
}

/// Spreads parts evenly when they were parted for the images: no image waits for a long line.
fn level(parts: &mut [Shot], even: bool) {
    let (count, frames) = (parts.len() as u32, parts.last().map_or(0, |last| last.end));
    let cut = parts.iter().skip(1).any(|part| part.dissolve == 0);
    if !even || cut {
        return;
    }
    for (part, nth) in parts.iter_mut().zip(0..) {
        part.start = frames * nth / count;
        part.end = frames * (nth + 1) / count;
    }
}

impl Take {
    fn show_is(&self, image: usize) -> bool {
        matches!(self.show, Show::Image(one, _) if one == image)
    }
}
