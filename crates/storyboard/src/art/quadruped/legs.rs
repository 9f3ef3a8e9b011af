//! Legs of two bones: their joints in a drawing, and the angles that put a foot at a given position. It knows no
//! gait.

use crate::art::rig::Rig;

pub(in crate::art) type Point = (f32, f32);

/// One leg of a drawing at rest.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(in crate::art) struct Leg {
    pub(in crate::art) hip: Point,
    pub(in crate::art) knee: Point,
    pub(in crate::art) foot: Point,
}

/// The angles of a leg's parts, degrees, each about its joint and relative to the part before.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(in crate::art) struct Bend {
    pub(in crate::art) leg: f32,
    pub(in crate::art) shin: f32,
    pub(in crate::art) foot: f32,
}

/// The legs of a quadruped, by the names of their parts.
pub(in crate::art) const NAMES: [&str; 4] = ["hind-near", "front-near", "hind-far", "front-far"];

impl Leg {
    /// The leg whose parts are `leg-…`, `shin-…` and `foot-…`.
    pub(in crate::art) fn of(rig: &Rig, name: &str) -> Option<Self> {
        Some(Self {
            hip: rig.joint(&format!("leg-{name}"))?,
            knee: rig.joint(&format!("shin-{name}"))?,
            foot: rig.joint(&format!("foot-{name}"))?,
        })
    }

    pub(in crate::art) fn upper(&self) -> f32 {
        distance(self.hip, self.knee)
    }

    pub(in crate::art) fn lower(&self) -> f32 {
        distance(self.knee, self.foot)
    }

    pub(in crate::art) fn length(&self) -> f32 {
        self.upper() + self.lower()
    }

    /// Bends so that the foot reaches `to` with the hip at `hip`, or as near as the bones allow. The knee stays on its
    /// side of the leg, or on the other if `flipped`. The foot stays level.
    pub(in crate::art) fn reach(&self, hip: Point, to: Point, flipped: bool) -> Bend {
        let (upper, lower) = (self.upper().max(0.1), self.lower().max(0.1));
        let least = (upper - lower).abs() + 0.05;
        let most = (upper + lower) * 0.9995;
        let far = distance(hip, to).clamp(least.min(most), most);
        let straight = angle(hip, to);
        // The law of cosines.
        let cosine = (upper * upper + far * far - lower * lower) / (2.0 * upper * far);
        let side = if (angle(self.hip, self.knee) - angle(self.hip, self.foot)).sin() < 0.0 {
            -1.0
        } else {
            1.0
        };
        let side = if flipped { -side } else { side };
        let thigh = straight + side * cosine.clamp(-1.0, 1.0).acos();
        let knee = (hip.0 + upper * thigh.cos(), hip.1 + upper * thigh.sin());
        self.bend(thigh, angle(knee, to))
    }

    /// Folds the leg along the ground: the knee behind the hip on row `ground`, the foot before it.
    pub(in crate::art) fn fold(&self, hip: Point, ground: f32) -> Bend {
        let upper = self.upper();
        let down = (ground - hip.1).clamp(-upper, upper);
        let back = (upper * upper - down * down).max(0.0).sqrt();
        self.bend(down.atan2(-back), 0.0)
    }

    /// The turns from the leg at rest to the angles `thigh` and `shin`, radians.
    fn bend(&self, thigh: f32, shin: f32) -> Bend {
        let leg = turn(thigh - angle(self.hip, self.knee));
        let whole = turn(shin - angle(self.knee, self.foot));
        Bend {
            leg,
            shin: whole - leg,
            foot: -whole,
        }
    }
}

fn distance(a: Point, b: Point) -> f32 {
    (b.0 - a.0).hypot(b.1 - a.1)
}

fn angle(from: Point, to: Point) -> f32 {
    (to.1 - from.1).atan2(to.0 - from.0)
}

/// Radians as degrees between -180 and 180.
fn turn(radians: f32) -> f32 {
    (radians.to_degrees() + 180.0).rem_euclid(360.0) - 180.0
}
