//! The measures of a body, and its skeleton: the joints of a posture, and the bones that turn the drawings of its
//! parts. It knows no clothes.

use tiny_skia::{Point, Transform};

/// The pose of an arm or a leg.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum LimbPose {
    /// Angle forward of straight down, and bend of the elbow or knee, degrees.
    Turn(f32, f32),
    /// The point of the hand or the ankle in the square.
    To(f32, f32),
}

/// The expression of the face.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Mouth {
    Smile,
    Open,
    Oh,
}

/// The posture of a body. The near limb comes first.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Posture {
    /// Offset of the pelvis from its place in a straight stance.
    pub(super) hip: (f32, f32),
    /// Forward lean of the back, degrees.
    pub(super) lean: f32,
    /// Forward bend of the head, degrees.
    pub(super) nod: f32,
    pub(super) arms: [LimbPose; 2],
    pub(super) legs: [LimbPose; 2],
    /// Angle of the toes, degrees up.
    pub(super) feet: [f32; 2],
    /// Forward turn of the whole body about its pelvis, degrees.
    pub(super) tip: f32,
    /// Width of the whole body, -1.0 to 1.0, when it turns around.
    pub(super) turn: f32,
    pub(super) asleep: bool,
    pub(super) mouth: Mouth,
    /// Swelling of the chest, -1.0 to 1.0.
    pub(super) breath: f32,
}

/// The position and angle of a bone, for the garments on it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Bone {
    pub(super) at: (f32, f32),
    /// Clockwise.
    pub(super) degrees: f32,
    scale: (f32, f32),
    rest: (f32, f32),
}

impl Bone {
    pub(super) fn onto(&self) -> Transform {
        Transform::from_translate(self.at.0, self.at.1)
            .pre_concat(Transform::from_rotate(self.degrees))
            .pre_scale(self.scale.0, self.scale.1)
            .pre_translate(-self.rest.0, -self.rest.1)
    }

    /// The position of a point of the garment's drawing.
    pub(super) fn point(&self, x: f32, y: f32) -> (f32, f32) {
        let mut point = Point::from_xy(x, y);
        self.onto().map_point(&mut point);
        (point.x, point.y)
    }
}

/// All bones of a posed body. Of two limbs, the near one comes first.
#[derive(Clone, Copy, Debug)]
pub(super) struct Skeleton {
    /// Transform from the body's coordinates into the square.
    pub(super) whole: Transform,
    pub(super) pelvis: (f32, f32),
    pub(super) torso: Bone,
    pub(super) head: Bone,
    /// Upper arm, forearm, hand.
    pub(super) arms: [[Bone; 3]; 2],
    /// Thigh, shin, foot.
    pub(super) legs: [[Bone; 3]; 2],
}

/// The point at `length` from `from`, `degrees` forward of straight down.
fn along(from: (f32, f32), degrees: f32, length: f32) -> (f32, f32) {
    let (sin, cos) = degrees.to_radians().sin_cos();
    (from.0 + sin * length, from.1 + cos * length)
}

/// The angles of two bones from `from` to `to`: of the first, forward of straight down, and the bend between them (law
/// of cosines). They point at a point out of reach.
fn bend_to(from: (f32, f32), to: (f32, f32), first: f32, second: f32) -> (f32, f32, f32) {
    let (right, down) = (to.0 - from.0, to.1 - from.1);
    let least = (first - second).abs() + 0.01;
    let far = (right * right + down * down)
        .sqrt()
        .clamp(least, first + second - 0.01);
    let straight = right.atan2(down).to_degrees();
    (
        straight,
        corner_degrees(first, far, second),
        180.0 - corner_degrees(first, second, far),
    )
}

/// Angle between sides `a` and `b` of a triangle, degrees (law of cosines).
fn corner_degrees(a: f32, b: f32, c: f32) -> f32 {
    let cos = (a * a + b * b - c * c) / (2.0 * a * b);
    cos.clamp(-1.0, 1.0).acos().to_degrees()
}

impl Skeleton {
    pub(super) fn new(build: &BodyBuild, posture: &Posture) -> Self {
        let pelvis = (50.0 + posture.hip.0, build.pelvis_row() + posture.hip.1);
        let lean = posture.lean + build.stoop;
        let swell = 1.0 + 0.012 * posture.breath;
        let torso = Bone {
            at: pelvis,
            degrees: lean,
            scale: (
                build.girth * (1.0 + 0.006 * posture.breath),
                build.torso * swell,
            ),
            rest: PELVIS,
        };
        let neck = torso.point(NECK.0, NECK.1);
        let head = Bone {
            at: neck,
            degrees: lean * 0.35 + posture.nod,
            scale: (build.head, build.head),
            rest: NECK,
        };
        let arms = [0, 1].map(|side| {
            let rest = SHOULDERS[side];
            arm(build, torso.point(rest.0, rest.1), posture.arms[side])
        });
        let legs = [0, 1].map(|side| {
            let hip = (
                pelvis.0 + (if side == 0 { -1.0 } else { 1.0 }) * build.hips(),
                pelvis.1 + 1.0,
            );
            leg(build, hip, posture.legs[side], posture.feet[side])
        });
        // Seen edge-on a flat figure would vanish for a frame.
        let across = if posture.turn.abs() < 0.06 {
            0.06_f32.copysign(posture.turn)
        } else {
            posture.turn
        };
        let whole = Transform::from_translate(50.0, GROUND)
            .pre_scale(build.whole * across, build.whole)
            .pre_translate(-50.0, -GROUND)
            .pre_concat(Transform::from_rotate_at(posture.tip, pelvis.0, pelvis.1));
        Self {
            whole,
            pelvis,
            torso,
            head,
            arms,
            legs,
        }
    }

    /// The middle of a hand.
    pub(super) fn hand(&self, side: usize) -> (f32, f32) {
        self.arms[side][2].point(44.2, 62.0)
    }

    /// The box of the head in the square: left, top, right, bottom.
    pub(super) fn head_box(&self) -> [f32; 4] {
        let corners = [(39.0, 3.0), (63.0, 3.0), (39.0, 31.0), (63.0, 31.0)];
        let none = [f32::MAX, f32::MAX, f32::MIN, f32::MIN];
        corners.into_iter().fold(none, |held, (x, y)| {
            let (x, y) = self.head.point(x, y);
            let mut point = Point::from_xy(x, y);
            self.whole.map_point(&mut point);
            [
                held[0].min(point.x),
                held[1].min(point.y),
                held[2].max(point.x),
                held[3].max(point.y),
            ]
        })
    }
}

fn arm(build: &BodyBuild, shoulder: (f32, f32), held: LimbPose) -> [Bone; 3] {
    let (first, second) = build.arm_lengths();
    let (upper, elbow) = match held {
        LimbPose::Turn(forward, bent) => (forward, bent),
        LimbPose::To(x, y) => {
            let (straight, aside, bent) = bend_to(shoulder, (x, y), first, second);
            (straight - aside, bent)
        }
    };
    let scale = (build.thickness(), build.arm);
    let at = along(shoulder, upper, first);
    let lower = upper + elbow;
    // The forearm is measured to the middle of the hand, 13 units; its drawing ends at the wrist,
    // at 11.
    let wrist = along(at, lower, second * (11.0 / 13.0));
    let hand = 0.5 + 0.5 * build.arm;
    [
        Bone {
            at: shoulder,
            degrees: -upper,
            scale,
            rest: SHOULDER,
        },
        Bone {
            at,
            degrees: -lower,
            scale,
            rest: ELBOW,
        },
        Bone {
            at: wrist,
            degrees: -lower,
            scale: (hand, hand),
            rest: WRIST,
        },
    ]
}

fn leg(build: &BodyBuild, hip: (f32, f32), held: LimbPose, pitch: f32) -> [Bone; 3] {
    let (first, second) = build.leg_lengths();
    let (thigh, knee) = match held {
        LimbPose::Turn(forward, bent) => (forward, bent),
        LimbPose::To(x, y) => {
            let (straight, aside, bent) = bend_to(hip, (x, y), first, second);
            (straight + aside, bent)
        }
    };
    let scale = (build.thickness(), build.leg);
    let at = along(hip, thigh, first);
    let shin = thigh - knee;
    let ankle = along(at, shin, second);
    [
        Bone {
            at: hip,
            degrees: -thigh,
            scale,
            rest: HIP,
        },
        Bone {
            at,
            degrees: -shin,
            scale,
            rest: KNEE,
        },
        Bone {
            at: ankle,
            degrees: -pitch,
            scale: (build.foot(), build.foot()),
            rest: ANKLE,
        },
    ]
}

// The proportions of people: one skeleton at rest, scaled by age and build. It poses nobody.

/// Positions at rest in the square, of a standing adult.
const PELVIS: (f32, f32) = (50.0, 60.0);
const SHOULDERS: [(f32, f32); 2] = [(44.2, 36.5), (55.4, 36.5)];
/// The near limb's joints; the sheets of garments use them.
const SHOULDER: (f32, f32) = (44.2, 36.8);
const ELBOW: (f32, f32) = (44.2, 49.0);
const WRIST: (f32, f32) = (44.2, 60.0);
const HIP: (f32, f32) = (47.6, 61.0);
const KNEE: (f32, f32) = (47.6, 78.5);
const ANKLE: (f32, f32) = (47.6, 95.0);
const NECK: (f32, f32) = (50.4, 30.0);

const UPPER_ARM: f32 = 12.2;
/// To the middle of the hand.
const FOREARM: f32 = 13.0;
const THIGH: f32 = 17.5;
const SHIN: f32 = 16.5;
/// Height of the ankle above the sole.
const FOOT: f32 = 3.0;
const GROUND: f32 = 98.0;
/// Half of the distance between the hips, which the view from the side shortens.
const HIPS: f32 = 2.4;

/// The differences of a body from the adult one. All but `stoop` are factors.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct BodyBuild {
    /// Scale of the whole figure, about its feet.
    pub(super) whole: f32,
    pub(super) leg: f32,
    pub(super) arm: f32,
    pub(super) torso: f32,
    pub(super) girth: f32,
    pub(super) head: f32,
    /// Forward bend of the back, degrees.
    pub(super) stoop: f32,
}

impl BodyBuild {
    pub(super) const MAN: Self = Self {
        whole: 1.0,
        leg: 1.0,
        arm: 1.0,
        torso: 1.0,
        girth: 1.0,
        head: 1.0,
        stoop: 0.0,
    };
    pub(super) const WOMAN: Self = Self {
        girth: 0.86,
        torso: 0.96,
        arm: 0.95,
        ..Self::MAN
    };
    pub(super) const TALL: Self = Self {
        leg: 1.08,
        torso: 1.03,
        girth: 0.92,
        head: 0.94,
        whole: 0.98,
        ..Self::MAN
    };
    pub(super) const STOUT: Self = Self {
        girth: 1.24,
        leg: 0.9,
        torso: 1.02,
        ..Self::MAN
    };
    pub(super) const CHILD: Self = Self {
        whole: 1.24,
        leg: 0.66,
        arm: 0.7,
        torso: 0.7,
        girth: 0.78,
        ..Self::MAN
    };
    pub(super) const BABY: Self = Self {
        whole: 1.42,
        leg: 0.46,
        arm: 0.5,
        torso: 0.54,
        girth: 0.76,
        head: 1.04,
        ..Self::MAN
    };
    pub(super) const OLD: Self = Self {
        whole: 1.02,
        leg: 0.9,
        torso: 0.95,
        stoop: 13.0,
        ..Self::MAN
    };
    pub(super) const HEAVY: Self = Self {
        girth: 1.12,
        ..Self::MAN
    };

    fn arm_lengths(&self) -> (f32, f32) {
        (UPPER_ARM * self.arm, FOREARM * self.arm)
    }

    fn leg_lengths(&self) -> (f32, f32) {
        (THIGH * self.leg, SHIN * self.leg)
    }

    fn foot(&self) -> f32 {
        0.4 + 0.6 * self.leg
    }

    /// Thickness of the limbs.
    pub(super) fn thickness(&self) -> f32 {
        0.45 + 0.55 * self.girth
    }

    /// The row of the ankles of standing feet.
    pub(super) fn ankle_row(&self) -> f32 {
        GROUND - FOOT * self.foot()
    }

    /// The row of the pelvis in a straight stance.
    pub(super) fn pelvis_row(&self) -> f32 {
        // A touch less than the length of the bones, so that a standing leg is not at the limit of
        // `bend_to`.
        self.ankle_row() - (THIGH + SHIN) * self.leg * 0.997 - 1.0
    }

    /// Distance of a hip from the middle.
    pub(super) fn hips(&self) -> f32 {
        HIPS * self.girth
    }

    /// The position of a point of the drawn chest in a straight stance.
    pub(super) fn chest(&self, x: f32, y: f32) -> (f32, f32) {
        (
            50.0 + (x - PELVIS.0) * self.girth,
            self.pelvis_row() + (y - PELVIS.1) * self.torso,
        )
    }
}
