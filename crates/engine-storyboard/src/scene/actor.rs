//! A subject in a scene: its position at a time, and its drawing onto the frame. Subjects are drawn
//! anew for every frame, so that wings beat and legs walk without any stored frames.

use tiny_skia::Transform;

use super::camera::CameraView;
use crate::art::{self, ActMoment, SubjectColours};
use crate::raster::canvas::{Canvas, pixel_range};
use crate::raster::pen::Pen;
use crate::subject::{Act, Subject};

/// A subject and its motion. Places in stage pixels, speeds per second.
#[derive(Clone, Debug)]
pub(crate) struct Actor {
    pub(crate) subject: Subject,
    pub(crate) act: Act,
    /// Number among the figures of its kind.
    pub(crate) nth: u8,
    /// The subject that holds it, if any.
    pub(crate) holder: Option<Subject>,
    /// Position at the start of the shot: of the foot, or of a flier's middle.
    pub(crate) x: f32,
    pub(crate) y: f32,
    /// Side of the square that it is drawn in.
    pub(crate) size: f32,
    pub(crate) depth: f32,
    pub(crate) speed: (f32, f32),
    /// Height of its hops, pixels.
    pub(crate) hop: f32,
    /// Length of the shot.
    pub(crate) seconds: f32,
    /// Rise and fall in place, pixels.
    pub(crate) bob: f32,
    /// Rocking, degrees.
    pub(crate) rock: f32,
    pub(crate) phase: f32,
    /// Speed at which it moves its own parts; 1.0 is usual.
    pub(crate) pace: f32,
    pub(crate) faces_left: bool,
    pub(crate) look: SubjectColours,
    /// Opacity of its mirror image in the water under its foot.
    pub(crate) mirrored: f32,
    /// The stage row below which water hides it.
    pub(crate) floor: Option<f32>,
    /// Half of the width of its shadow on the ground, pixels; 0.0: none.
    pub(crate) shadow: f32,
}

/// Position of a subject in the frame, pixels.
#[derive(Clone, Copy, Debug)]
struct ActorSpot {
    /// Its anchor.
    at: (f32, f32),
    /// The row of the ground under it.
    foot: f32,
    /// Side of its square.
    side: f32,
    /// Height of its hop at this moment, in its own sizes.
    hop: f32,
}

impl Actor {
    /// Height of its hop at `t`, stage pixels.
    fn hop(&self, t: f32) -> f32 {
        if self.hop <= 0.0 {
            return 0.0;
        }
        // The drawing crouches and stretches by the same clock.
        let turn = ((t * self.pace + self.phase) * art::HOPS_HZ).fract();
        // A parabola, with a rest on the ground between two hops.
        let air = (turn / 0.7).min(1.0);
        4.0 * air * (1.0 - air) * self.hop
    }

    /// Distance that it has come down at `t`, stage pixels.
    fn fallen(&self, t: f32) -> f32 {
        let share = (t / self.seconds.max(0.1)).min(1.0);
        match self.act {
            // Comes down fast and settles.
            Act::Land => {
                let left = 1.0 - share;
                self.speed.1 * self.seconds * (1.0 - left * left)
            }
            // Leaves slowly and gathers speed.
            Act::Rise => self.speed.1 * self.seconds * share * (0.5 + 0.5 * share),
            _ => self.speed.1 * t,
        }
    }

    fn spot(&self, view: &CameraView) -> ActorSpot {
        let (map, t) = (view.map(self.depth), view.time_s);
        let swing = (t * 1.1 + self.phase).sin();
        let (hop, down) = (self.hop(t), self.fallen(t));
        let side = self.size * map.scale;
        ActorSpot {
            at: (
                map.x(self.x + self.speed.0 * t),
                map.y(self.y + down - hop + self.bob * swing),
            ),
            // `cast` lowers figures by a hundredth of their size, so that soles do not hover; the
            // shadow stays on the ground itself.
            foot: map.y(self.y + down) - 0.01 * side,
            side,
            hop: hop / self.size.max(1.0),
        }
    }

    fn moment(&self, t: f32) -> ActMoment {
        ActMoment {
            act: self.act,
            t: t * self.pace + self.phase,
            gone: (self.speed.0 * t).abs() / self.size.max(1.0),
            share: (t / self.seconds.max(0.1)).min(1.0),
            nth: self.nth,
            holder: self.holder,
        }
    }

    /// The box of its square in the frame: left, top, right, bottom, pixels.
    pub(crate) fn square(&self, view: &CameraView) -> [f32; 4] {
        let ActorSpot { at, side, .. } = self.spot(view);
        let top = at.1 - art::anchor(self.subject) / 100.0 * side;
        [at.0 - side * 0.5, top, at.0 + side * 0.5, top + side]
    }

    /// The box of its head in the frame, if it has one that captions must not cover.
    pub(crate) fn head(&self, view: &CameraView) -> Option<[f32; 4]> {
        let [left, top, right, bottom] = art::head(self.subject, &self.moment(view.time_s))?;
        let [x, y, end, _] = self.square(view);
        let scale = (end - x) / 100.0;
        let (left, right) = if self.faces_left {
            (100.0 - right, 100.0 - left)
        } else {
            (left, right)
        };
        Some([
            x + left * scale,
            y + top * scale,
            x + right * scale,
            y + bottom * scale,
        ])
    }

    pub(crate) fn draw(&self, view: &CameraView, canvas: &mut Canvas) {
        let (map, t) = (view.map(self.depth), view.time_s);
        let spot = self.spot(view);
        let bottom = self.floor.map_or(canvas.height, |row| {
            (map.y(row).max(0.0) as usize).min(canvas.height)
        });
        if self.shadow > 0.0 {
            // Off the ground the shadow is smaller and fainter.
            let near = 1.0 - 0.55 * (spot.hop * 2.0).min(1.0);
            let half = self.shadow * map.scale * near;
            draw_shadow(canvas, (spot.at.0, spot.foot), half, near);
        }
        // The rates of bobbing and rocking have no common period: together they never settle into a
        // visible loop.
        let tilt = self.rock * (t * 0.83 + self.phase * 1.7).sin();
        let (at, side) = (spot.at, spot.side);
        if self.mirrored > 0.0 {
            // Upside down about the same anchor, and first: the figure covers its own mirror image
            // at the waterline.
            let mirror = (side, -side);
            self.stamp(canvas, at, mirror, (-tilt, bottom), t, self.mirrored);
        }
        self.stamp(canvas, at, (side, side), (tilt, bottom), t, 1.0);
    }

    /// Draws the subject with its anchor at a point of the frame.
    fn stamp(
        &self,
        canvas: &mut Canvas,
        at: (f32, f32),
        side: (f32, f32),
        (tilt, bottom): (f32, usize),
        t: f32,
        alpha: f32,
    ) {
        let anchor = art::anchor(self.subject);
        let reach = art::reach(self.subject) * side.0;
        // Only the box that the drawing can reach is rasterised: a pixmap of the whole frame for
        // each figure would cost far more than the figure.
        let columns = pixel_range(at.0 - reach, at.0 + reach, canvas.width);
        let rows = pixel_range(at.1 - reach, at.1 + reach, bottom);
        if columns.is_empty() || rows.is_empty() {
            return;
        }
        let across = if self.faces_left { -side.0 } else { side.0 };
        let onto = Transform::from_translate(at.0 - columns.start as f32, at.1 - rows.start as f32)
            .pre_concat(Transform::from_rotate(tilt))
            .pre_scale(across / 100.0, side.1 / 100.0)
            .pre_translate(-50.0, -anchor);
        let Some(mut pen) = Pen::new(columns.len() as u32, rows.len() as u32, onto) else {
            return;
        };
        let moment = self.moment(t);
        art::draw(&mut pen, self.subject, &self.look, &moment);
        pen.stamp(canvas, (columns.start, rows.start), alpha);
    }
}

/// Darkness of the middle of a shadow.
const SHADOW: f32 = 0.34;
/// Height of a shadow as a share of its width.
const FLAT: f32 = 0.15;

/// Draws a soft flat shadow under a foot at `at`; `half` is half of its width.
fn draw_shadow(canvas: &mut Canvas, at: (f32, f32), half: f32, strength: f32) {
    let half = half.max(1.0);
    let tall = (half * FLAT).max(1.0);
    let columns = pixel_range(at.0 - half, at.0 + half, canvas.width);
    for y in pixel_range(at.1 - tall, at.1 + tall, canvas.height) {
        let v = (y as f32 + 0.5 - at.1) / tall;
        for (pixel, x) in canvas.run(y, &columns).iter_mut().zip(columns.clone()) {
            let u = (x as f32 + 0.5 - at.0) / half;
            // Half an ellipsoid of darkness: soft at its rim, and cheaper than an exponential.
            let share = (1.0 - u * u - v * v).max(0.0).sqrt() * SHADOW * strength;
            let keep = ((1.0 - share) * 32_768.0) as u32;
            for lane in &mut pixel[..3] {
                *lane = ((u32::from(*lane) * keep) >> 15) as u16;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shadow_is_soft_flat_and_only_under_the_foot() {
        let mut canvas = Canvas::new(60, 40);
        canvas.pixels.fill(20_000);
        draw_shadow(&mut canvas, (30.0, 20.0), 20.0, 1.0);
        let at = |x: usize, y: usize| canvas.pixels[(y * 60 + x) * 4];
        assert!(at(30, 20) < 14_000, "{}", at(30, 20));
        assert!(at(45, 20) > at(30, 20) && at(45, 20) < 20_000);
        assert_eq!(
            (at(30, 12), at(5, 20), at(55, 20)),
            (20_000, 20_000, 20_000)
        );
        // Beyond the frame's edges it is cut.
        draw_shadow(&mut canvas, (-5.0, 39.5), 20.0, 1.0);
        draw_shadow(&mut canvas, (500.0, -90.0), 20.0, 1.0);
    }
}
