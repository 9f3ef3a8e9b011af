//! The sources of takes: a painted scene, given pictures, the source of an edit, or a mix of two of
//! them. It draws single moments and chooses no shots.

use kinora_contract::VideoSpec;
use kinora_engine::ClipPlan;

use super::photo::{Photo, PhotoMorph};
use crate::caption::faces;
use crate::edit::restyle::Restyle;
use crate::raster::canvas::Canvas;
use crate::raster::colour::smooth;
use crate::raster::resample::RowScratch;
use crate::scene::Scene;
use crate::scene::camera::FramePulse;
use crate::script::Shot;

/// Darkness of the corners of given pictures, 0.0 to 1.0.
const PICTURE_VIGNETTE: f32 = 0.12;

/// The source of a take's pictures.
#[derive(Debug)]
pub(crate) enum FrameSource {
    Painted(Box<Scene>),
    Photo(Photo),
    Morph(PhotoMorph),
    /// The source of an edit.
    Edited(Box<Restyle>),
    Mixed(Box<SourceMix>),
}

/// Two sets and how much of the second one shows.
#[derive(Debug)]
pub(crate) struct SourceMix {
    from: FrameSource,
    to: FrameSource,
    course: MixCourse,
}

/// The share of the second set over the length of a take.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct MixCourse {
    /// The share at the end, 0.0 to 1.0.
    strength: f32,
    /// The part of the take in which it grows from nothing, in shares of its length; `None`: it
    /// is the same all the time.
    turn: Option<(f32, f32)>,
}

/// An instant of a take.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TakeMoment<'a> {
    /// Share of the take that has passed, 0.0 to 1.0.
    pub(crate) share: f32,
    /// Seconds since the take began to show.
    pub(crate) time_s: f32,
    /// Strength of the hour's colour on given pictures, 0.0 to 1.0.
    pub(crate) grade: f32,
    pub(crate) pulse: FramePulse,
    /// The frame of an edit's source, by number and as `[height][width][3] u8`, where it is needed.
    pub(crate) source: Option<(u32, &'a [u8])>,
}

/// One painter's working memory: sets borrow what they need and give it back.
#[derive(Debug, Default)]
pub(crate) struct CanvasPool {
    scratch: RowScratch,
    spares: Vec<Canvas>,
}

impl MixCourse {
    /// A constant share.
    pub(crate) const fn still(strength: f32) -> Self {
        let turn = None;
        Self { strength, turn }
    }

    /// Grows from 0.0 to `strength` between `begins` and `ends`, both shares of the take.
    pub(crate) const fn turning(strength: f32, begins: f32, ends: f32) -> Self {
        let turn = Some((begins, ends));
        Self { strength, turn }
    }

    /// The share when `share` of the take has passed.
    fn at(self, share: f32) -> f32 {
        let grown = self.turn.map_or(1.0, |(from, to)| smooth(from, to, share));
        (self.strength * grown).clamp(0.0, 1.0)
    }
}

impl CanvasPool {
    /// A canvas as large as `like`, with anything on it.
    fn take_canvas(&mut self, like: &Canvas) -> Canvas {
        // A mix needs a canvas more for each level, and one of 1080p has 16 MB: they are used
        // again.
        let spare = self.spares.pop();
        spare.unwrap_or_else(|| Canvas::new(like.width, like.height))
    }
}

impl FrameSource {
    /// `shot`, painted as prompt and seed of `spec` ask.
    pub(crate) fn painted(shot: &Shot, spec: &VideoSpec, clip: ClipPlan) -> Self {
        let scene = Scene::paint(shot, &spec.prompt, spec.seed, clip.size, clip.fps);
        Self::Painted(Box::new(scene))
    }

    /// The source of an edit under `restyle`.
    pub(crate) fn edited(restyle: Restyle) -> Self {
        Self::Edited(Box::new(restyle))
    }

    /// `from` with a share of `to` that follows `course`.
    pub(crate) fn mixed(from: Self, to: Self, course: MixCourse) -> Self {
        Self::Mixed(Box::new(SourceMix { from, to, course }))
    }

    /// Whether all of it is painted by this engine.
    pub(crate) fn is_painted(&self) -> bool {
        match self {
            Self::Painted(_) => true,
            Self::Mixed(between) => between.from.is_painted() && between.to.is_painted(),
            Self::Photo(_) | Self::Morph(_) | Self::Edited(_) => false,
        }
    }

    /// Boxes that captions must not cover at `moment`, as shares of the frame: painted heads, and what may
    /// be a face in given pictures. `canvas` is working memory.
    pub(crate) fn faces(
        &self,
        moment: TakeMoment<'_>,
        canvas: &mut Canvas,
        desk: &mut CanvasPool,
    ) -> Vec<[f32; 4]> {
        match self {
            Self::Painted(scene) => scene.heads(moment.time_s),
            Self::Photo(_) | Self::Morph(_) => {
                self.draw(moment, canvas, desk);
                // Found in the picture as the camera shows it at this moment, not in the whole of
                // it.
                faces::likely(canvas)
            }
            // Its frames are not here yet.
            Self::Edited(_) => Vec::new(),
            Self::Mixed(between) => {
                let mut boxes = between.from.faces(moment, canvas, desk);
                boxes.extend(between.to.faces(moment, canvas, desk));
                boxes
            }
        }
    }

    /// Draws `moment` over all of `canvas`; returns the darkness of its corners, 0.0 to 1.0.
    pub(crate) fn draw(
        &self,
        moment: TakeMoment<'_>,
        canvas: &mut Canvas,
        desk: &mut CanvasPool,
    ) -> f32 {
        let TakeMoment {
            share,
            time_s,
            grade,
            pulse,
            source,
        } = moment;
        match self {
            Self::Painted(scene) => {
                scene.draw(time_s, pulse, canvas, &mut desk.scratch);
                return scene.vignette();
            }
            Self::Photo(photo) => photo.draw(share, grade, pulse, canvas),
            Self::Morph(morph) => {
                let mut second = desk.take_canvas(canvas);
                morph.draw(share, grade, pulse, canvas, &mut second);
                desk.spares.push(second);
            }
            Self::Edited(restyle) => {
                let mut second = desk.take_canvas(canvas);
                let scratch = &mut desk.scratch;
                let frame = source.unwrap_or_default();
                restyle.draw(frame, time_s, canvas, &mut second, scratch);
                desk.spares.push(second);
                return 0.0;
            }
            Self::Mixed(between) => return between.draw(moment, canvas, desk),
        }
        PICTURE_VIGNETTE
    }
}

impl SourceMix {
    fn draw(&self, moment: TakeMoment<'_>, canvas: &mut Canvas, desk: &mut CanvasPool) -> f32 {
        let share = self.course.at(moment.share);
        // At either end a single set is drawn: half the work, and its exact pixels.
        if share <= 0.0 {
            return self.from.draw(moment, canvas, desk);
        }
        if share >= 1.0 {
            return self.to.draw(moment, canvas, desk);
        }
        let before = self.from.draw(moment, canvas, desk);
        let mut second = desk.take_canvas(canvas);
        let after = self.to.draw(moment, &mut second, desk);
        canvas.dissolve(&second, share);
        desk.spares.push(second);
        before + (after - before) * share
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_course_is_still_or_turns_once() {
        assert_eq!(
            [0.0, 0.5, 1.0].map(|at| MixCourse::still(0.4).at(at)),
            [0.4; 3]
        );
        let turn = MixCourse::turning(0.8, 0.25, 0.75);
        assert_eq!([0.0, 0.25].map(|at| turn.at(at)), [0.0; 2]);
        assert_eq!([0.75, 1.0].map(|at| turn.at(at)), [0.8; 2]);
        assert!((turn.at(0.5) - 0.4).abs() < 1e-6);
        let shares: Vec<f32> = (0..=20).map(|n| turn.at(n as f32 / 20.0)).collect();
        assert!(shares.is_sorted());
    }
}
