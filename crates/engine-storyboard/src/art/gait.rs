//! Gaits: the position of each of four feet at a distance covered, and the angles of two-boned legs that put a foot there.
//! A foot on the ground moves back exactly as fast as the body moves forward, so that it does not slide.

use super::rig::Rig;

/// The rhythm of four feet.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct FootGait {
    /// When each foot comes down, as a share of the cycle: hind near, front near, hind far, front far.
    pub(super) turns: [f32; 4],
    /// Share of the cycle in which a foot stands.
    pub(super) duty: f32,
    /// Distance that a standing foot moves back, in lengths of the leg.
    pub(super) reach: f32,
    /// How high a foot is lifted, in lengths of the leg.
    pub(super) lift: f32,
    /// How far the body rises and falls, in lengths of the leg, and how often in a cycle.
    pub(super) bob: (f32, f32),
    /// How far the body rocks fore and aft, degrees.
    pub(super) pitch: f32,
}

pub(super) const WALK: FootGait = FootGait {
    turns: [0.0, 0.75, 0.5, 0.25],
    duty: 0.64,
    reach: 0.5,
    lift: 0.14,
    bob: (0.012, 2.0),
    pitch: 0.6,
};
pub(super) const TROT: FootGait = FootGait {
    turns: [0.0, 0.5, 0.5, 0.0],
    duty: 0.46,
    reach: 0.56,
    lift: 0.2,
    bob: (0.05, 2.0),
    pitch: 1.0,
};
pub(super) const GALLOP: FootGait = FootGait {
    turns: [0.12, 0.58, 0.0, 0.44],
    duty: 0.4,
    reach: 0.6,
    lift: 0.26,
    bob: (0.07, 1.0),
    pitch: 4.5,
};
/// Both hind feet together, then both front feet.
pub(super) const BOUND: FootGait = FootGait {
    turns: [0.04, 0.6, 0.0, 0.54],
    duty: 0.36,
    reach: 0.6,
    lift: 0.3,
    bob: (0.3, 1.0),
    pitch: 9.0,
};
/// Hind feet only; the front feet never come down.
pub(super) const HOP: FootGait = FootGait {
    turns: [0.02, 0.02, 0.0, 0.0],
    duty: 0.42,
    reach: 0.6,
    lift: 0.2,
    bob: (0.3, 1.0),
    pitch: 6.0,
};

/// Position of a foot relative to its place below the hip.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct FootStep {
    /// In lengths of the leg, to the right and up.
    pub(super) ahead: f32,
    pub(super) up: f32,
    /// How far the toe points down, 0.0 to 1.0.
    pub(super) tip: f32,
}

impl FootGait {
    /// Distance that the body covers in a cycle, in lengths of the leg.
    pub(super) fn stride(&self) -> f32 {
        self.reach / self.duty
    }

    /// The position of foot `nth` after `cycles`.
    pub(super) fn step(&self, nth: usize, cycles: f32) -> FootStep {
        let turn = self.turns.get(nth).copied().unwrap_or_default();
        let phase = (cycles - turn).rem_euclid(1.0);
        if phase < self.duty {
            return FootStep {
                ahead: self.reach * (0.5 - phase / self.duty),
                up: 0.0,
                tip: 0.0,
            };
        }
        let air = (phase - self.duty) / (1.0 - self.duty);
        // A Hermite curve: the foot leaves and meets the ground going back.
        let speed = -self.stride() * (1.0 - self.duty);
        let (from, to) = (-self.reach * 0.5, self.reach * 0.5);
        let (square, cube) = (air * air, air * air * air);
        let ahead = (2.0 * cube - 3.0 * square + 1.0) * from
            + (3.0 * square - 2.0 * cube) * to
            + (2.0 * cube - 3.0 * square + air + (cube - square)) * speed * 0.6;
        let arc = (air * std::f32::consts::PI).sin();
        FootStep {
            ahead,
            up: self.lift * arc * (1.0 - 0.3 * air),
            tip: arc * (1.0 - air),
        }
    }

    /// Lift of the body, in lengths of the leg, and its pitch, degrees nose down.
    pub(super) fn sway(&self, cycles: f32) -> (f32, f32) {
        let turn = cycles * std::f32::consts::TAU;
        // Highest when the fewest feet stand.
        let late = if self.bob.1 > 1.5 { 3.4 } else { -1.26 };
        let rise = 0.5 - 0.5 * (turn * self.bob.1 + late).cos();
        (self.bob.0 * rise, -self.pitch * turn.sin())
    }
}

pub(super) type Point = (f32, f32);

/// One leg of a drawing at rest.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct TwoBoneLeg {
    pub(super) hip: Point,
    pub(super) knee: Point,
    pub(super) foot: Point,
}

/// The angles of a leg's parts, degrees, each about its joint and relative to the part before.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct LegBend {
    pub(super) leg: f32,
    pub(super) shin: f32,
    pub(super) foot: f32,
}

/// The legs of a quadruped, by the names of their parts.
pub(super) const NAMES: [&str; 4] = ["hind-near", "front-near", "hind-far", "front-far"];

impl TwoBoneLeg {
    /// The leg whose parts are `leg-…`, `shin-…` and `foot-…`.
    pub(super) fn from_rig(rig: &Rig, name: &str) -> Option<Self> {
        Some(Self {
            hip: rig.joint(&format!("leg-{name}"))?,
            knee: rig.joint(&format!("shin-{name}"))?,
            foot: rig.joint(&format!("foot-{name}"))?,
        })
    }

    pub(super) fn upper(&self) -> f32 {
        distance(self.hip, self.knee)
    }

    fn lower(&self) -> f32 {
        distance(self.knee, self.foot)
    }

    pub(super) fn length(&self) -> f32 {
        self.upper() + self.lower()
    }

    /// Bends so that the foot reaches `to` with the hip at `hip`, or as near as the bones allow. The knee stays on its
    /// side of the leg, or on the other if `flipped`. The foot stays level.
    pub(super) fn reach(&self, hip: Point, to: Point, flipped: bool) -> LegBend {
        let (upper, lower) = (self.upper().max(0.1), self.lower().max(0.1));
        let least = (upper - lower).abs() + 0.05;
        // Never quite straight: near full length a small step of the foot is a large one of the
        // knee.
        let most = (upper + lower) * 0.9995;
        let far = distance(hip, to).clamp(least.min(most), most);
        let straight = angle(hip, to);
        // The law of cosines.
        // Of the angle at the hip in the triangle of hip, knee and foot.
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
    pub(super) fn fold(&self, hip: Point, ground: f32) -> LegBend {
        let upper = self.upper();
        let down = (ground - hip.1).clamp(-upper, upper);
        let back = (upper * upper - down * down).max(0.0).sqrt();
        self.bend(down.atan2(-back), 0.0)
    }

    /// The turns from the leg at rest to the angles `thigh` and `shin`, radians.
    fn bend(&self, thigh: f32, shin: f32) -> LegBend {
        let leg = turn(thigh - angle(self.hip, self.knee));
        let whole = turn(shin - angle(self.knee, self.foot));
        LegBend {
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
