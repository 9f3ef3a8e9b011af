//! A subject in a scene: where it is at a time, and its drawing onto the frame. Subjects are
//! drawn anew for every frame, so that wings beat and legs walk without any stored frames.

use tiny_skia::Transform;

use super::art::{self, Look};
use super::canvas::{Canvas, lay_over};
use super::lexicon::Subject;
use super::pen::Pen;
use super::view::View;

/// A subject and its motion. Places in stage pixels, speeds per second.
#[derive(Clone, Debug)]
pub(super) struct Actor {
    pub(super) subject: Subject,
    /// Where the foot (or, of a flyer, the middle) is at the start of the shot.
    pub(super) x: f32,
    pub(super) y: f32,
    /// Side of the square that it is drawn in.
    pub(super) size: f32,
    pub(super) depth: f32,
    pub(super) speed: (f32, f32),
    /// Rise and fall in place, pixels.
    pub(super) bob: f32,
    /// Rocking, degrees.
    pub(super) rock: f32,
    pub(super) phase: f32,
    /// How lively it moves its own parts, 1.0 as usual.
    pub(super) pace: f32,
    pub(super) faces_left: bool,
    pub(super) look: Look,
    /// Opacity of its mirror image in the water under its foot.
    pub(super) mirrored: f32,
}

impl Actor {
    pub(super) fn lay(&self, view: &View, canvas: &mut Canvas) {
        let map = view.map(self.depth);
        let t = view.time_s;
        let swing = (t * 1.1 + self.phase).sin();
        let x = map.x(self.x + self.speed.0 * t);
        let y = map.y(self.y + self.speed.1 * t + self.bob * swing);
        let side = self.size * map.scale;
        let tilt = self.rock * (t * 0.83 + self.phase * 1.7).sin();
        if self.mirrored > 0.0 {
            self.stamp(canvas, (x, y), (side, -side), -tilt, t, self.mirrored);
        }
        self.stamp(canvas, (x, y), (side, side), tilt, t, 1.0);
    }

    /// Draws the subject with its anchor at a point of the frame.
    fn stamp(
        &self,
        canvas: &mut Canvas,
        at: (f32, f32),
        side: (f32, f32),
        tilt: f32,
        t: f32,
        alpha: f32,
    ) {
        let anchor = art::anchor(self.subject);
        let reach = art::reach(self.subject) * side.0;
        let left = (at.0 - reach).floor().max(0.0) as usize;
        let top = (at.1 - reach).floor().max(0.0) as usize;
        let right = ((at.0 + reach).ceil().max(0.0) as usize).min(canvas.width);
        let bottom = ((at.1 + reach).ceil().max(0.0) as usize).min(canvas.height);
        if left >= right || top >= bottom {
            return;
        }
        let across = if self.faces_left { -side.0 } else { side.0 };
        let onto = Transform::from_translate(at.0 - left as f32, at.1 - top as f32)
            .pre_concat(Transform::from_rotate(tilt))
            .pre_scale(across / 100.0, side.1 / 100.0)
            .pre_translate(-50.0, -anchor);
        let Some(mut pen) = Pen::new((right - left) as u32, (bottom - top) as u32, onto) else {
            return;
        };
        art::draw(
            &mut pen,
            self.subject,
            &self.look,
            t * self.pace + self.phase,
        );
        let gain = (alpha * 128.0) as u16;
        let width = right - left;
        let mut line = vec![0_u16; width * 4];
        for (row, y) in pen.pixmap.data().chunks_exact(width * 4).zip(top..bottom) {
            if row.iter().all(|byte| *byte == 0) {
                continue;
            }
            for (out, byte) in line.iter_mut().zip(row) {
                *out = u16::from(*byte) * gain;
            }
            lay_over(&mut canvas.row(y)[left * 4..right * 4], &line);
        }
    }
}
