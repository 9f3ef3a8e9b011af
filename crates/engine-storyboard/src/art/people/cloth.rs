//! Skirts, robes and coat tails: cloth that hangs from the waist and follows the legs. It is the only garment without
//! a drawing, because its outline changes with every step.

use tiny_skia::{Path, PathBuilder};

use super::skeleton::{Bone, Skeleton};
use crate::art::SubjectColours;
use crate::raster::colour::Rgb;
use crate::raster::pen::{Ink, Pen};

/// A garment from the waist down.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Skirt {
    /// Share of the leg that it covers, 0.0 to 1.0.
    pub(super) length: f32,
    /// Distance from the legs at its hem, in the square's units.
    pub(super) flare: f32,
    /// Whether it has a hem of the second colour.
    pub(super) hem: bool,
}

/// The point of a leg at `share` of its length, `off` to its front.
fn beside(leg: &[Bone; 3], share: f32, off: f32) -> (f32, f32) {
    let (bone, from, to, along) = if share < 0.5 {
        (leg[0], leg[0].at, leg[1].at, share * 2.0)
    } else {
        (leg[1], leg[1].at, leg[2].at, share * 2.0 - 1.0)
    };
    let (sin, cos) = bone.degrees.to_radians().sin_cos();
    (
        from.0 + (to.0 - from.0) * along + cos * off,
        from.1 + (to.1 - from.1) * along + sin * off,
    )
}

/// The lower end of the cloth.
#[derive(Clone, Copy, Debug)]
struct SkirtOutline {
    waist: [(f32, f32); 2],
    /// Down the front from the hip to the hem, and up the back from the hem to the hip.
    front: [(f32, f32); 5],
    back: [(f32, f32); 5],
    /// The middle of the hem.
    between: (f32, f32),
}

fn mix(a: (f32, f32), b: (f32, f32), share: f32) -> (f32, f32) {
    (a.0 + (b.0 - a.0) * share, a.1 + (b.1 - a.1) * share)
}

/// A smooth path along `points` (a quadratic B-spline) to the last of them.
fn flow(path: &mut PathBuilder, points: &[(f32, f32); 5]) {
    for pair in points.windows(2) {
        if let [by, next] = pair {
            let to = mix(*by, *next, 0.5);
            path.quad_to(by.0, by.1, to.0, to.1);
        }
    }
    let [.., end] = points;
    path.line_to(end.0, end.1);
}

impl SkirtOutline {
    fn path(&self) -> Option<Path> {
        let [left, right] = self.waist;
        let mut path = PathBuilder::new();
        path.move_to(left.0, left.1);
        path.line_to(right.0, right.1);
        flow(&mut path, &self.front);
        let [hem, ..] = self.back;
        path.quad_to(self.between.0, self.between.1, hem.0, hem.1);
        flow(&mut path, &self.back);
        path.close();
        path.finish()
    }

    /// Ends of the hem, front and back.
    fn hem(&self) -> [(f32, f32); 2] {
        let ([.., front], [back, ..]) = (self.front, self.back);
        [front, back]
    }

    fn hem_line(&self) -> Option<Path> {
        let [front, back] = self.hem();
        let mut path = PathBuilder::new();
        path.move_to(front.0, front.1);
        path.quad_to(self.between.0, self.between.1, back.0, back.1);
        path.finish()
    }
}

impl Skirt {
    /// The outline: down the front of the leading leg, and up the back of the other.
    fn outline(&self, bones: &Skeleton, swing: f32) -> SkirtOutline {
        let [near, far] = &bones.legs;
        // The cloth hangs around both legs: its front edge follows the leg that is ahead, its back
        // edge the other.
        let (front, back) = if leg_advance(near) > leg_advance(far) {
            (near, far)
        } else {
            (far, near)
        };
        let [front, back] = [(front, 1.0), (back, -1.0)].map(|(leg, side)| {
            [0.25, 0.5, 0.75, 1.0].map(|share| {
                let off = side * (4.4 + self.flare * share) + swing * share * share;
                beside(leg, self.length * share, off)
            })
        });
        let (x, y) = mix(front[3], back[3], 0.5);
        let [front_hip, back_hip] = [59.0, 41.2].map(|x| bones.torso.point(x, 61.0));
        SkirtOutline {
            waist: [bones.torso.point(42.6, 56.0), bones.torso.point(57.4, 56.0)],
            front: [front_hip, front[0], front[1], front[2], front[3]],
            back: [back[3], back[2], back[1], back[0], back_hip],
            between: (x, y + 1.6),
        }
    }

    /// Cloth over a leg that leaves the outline: a lifted knee, a heel behind.
    fn cover(&self, pen: &mut Pen, look: &SubjectColours, leg: &[Bone; 3]) {
        let radius = 3.4 + self.flare * 0.2;
        // A leg is some 34 units long, and the line has round ends.
        let end = self.length - radius / 34.0;
        if end < 0.2 {
            return;
        }
        let mut points = vec![leg[0].at];
        if end > 0.5 {
            points.push(leg[1].at);
        }
        points.push(beside(leg, end, 0.0));
        pen.stroke(&points, radius * 2.0, look.main);
    }

    pub(super) fn draw(&self, pen: &mut Pen, look: &SubjectColours, bones: &Skeleton, swing: f32) {
        let outline = self.outline(bones, swing);
        for leg in bones.legs.iter().rev() {
            self.cover(pen, look, leg);
        }
        let [hem_front, hem_back] = outline.hem();
        let ([_, _, front, ..], [_, _, back, ..]) = (outline.front, outline.back);
        pen.fill(outline.path(), look.main);
        let edge = hem_front.0.max(outline.waist[1].0);
        pen.fill(
            outline.path(),
            Ink::Line([
                (edge, front.1, Rgb::BLACK, 0.2),
                (hem_back.0, back.1, Rgb::BLACK, 0.0),
            ]),
        );
        if self.length > 0.4 {
            for share in [0.34, 0.66] {
                let fold = [
                    mix(back, front, share),
                    mix(hem_back, hem_front, share * 0.9 + 0.05),
                ];
                pen.stroke(&fold, 0.9, Ink::Flat(Rgb::BLACK, 0.12));
            }
        }
        if self.hem {
            pen.line(outline.hem_line(), 1.8, look.trim);
        }
    }
}

/// How far knee and ankle are ahead, as a sum of columns.
fn leg_advance(leg: &[Bone; 3]) -> f32 {
    leg[1].at.0 + leg[2].at.0
}
