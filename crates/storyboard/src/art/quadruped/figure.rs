//! The pose of a four-legged figure at an instant: the positions of body and feet, and the angles of its parts.
//! `acts` fills it in; this file turns it into poses of parts.

use super::legs::{Bend, Leg, NAMES, Point};
use crate::art::rig::{Pose, Rig};

/// The joints of the drawing at rest, as far as acts need them.
#[derive(Clone, Copy, Debug)]
pub(super) struct Frame {
    pub(super) legs: [Leg; 4],
    /// The pivot of the trunk.
    pub(super) seat: Point,
    /// The lowest point of the trunk.
    pub(super) belly: Point,
    pub(super) neck: Point,
    pub(super) head: Point,
    pub(super) mouth: Point,
    /// The head's joint in the curled sleeping pose.
    pub(super) pillow: Option<Point>,
    /// The root of the near wing, which hangs beside the trunk.
    pub(super) wing: Option<Point>,
    /// Whether the tail hangs down.
    pub(super) hanging: bool,
    /// Whether it has a trunk.
    pub(super) nosed: bool,
}

/// The row of the ground.
pub(super) const GROUND: f32 = 98.0;

impl Frame {
    pub(super) fn of(rig: &Rig) -> Option<Self> {
        let leg = |nth: usize| Leg::of(rig, NAMES.get(nth)?);
        Some(Self {
            legs: [leg(0)?, leg(1)?, leg(2)?, leg(3)?],
            seat: rig.joint("body")?,
            belly: rig.joint("belly")?,
            neck: rig.joint("neck")?,
            head: rig.joint("head")?,
            mouth: rig.joint("mouth")?,
            pillow: rig.joint("pillow"),
            wing: rig.joint("wing-near"),
            nosed: rig.joint("nose").is_some(),
            hanging: match (rig.joint("tail"), rig.joint("tail-tip")) {
                (Some(tail), Some(tip)) => tip.1 > tail.1 + 4.0,
                _ => false,
            },
        })
    }

    /// Length of the longer pair of legs.
    pub(super) fn leg(&self) -> f32 {
        self.legs[0].length().max(self.legs[1].length())
    }
}

/// The position of a foot.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Foot {
    /// On the ground: offset from its place at rest, and angle of the toe, degrees down.
    At(f32, f32, f32),
    /// On the ground at this offset, with the knee bent to the other side.
    Squat(f32, f32),
    /// Folded on the ground.
    Folded,
    /// In the air: angles of thigh and shin, degrees.
    Free(f32, f32),
}

/// The pose of the whole figure.
#[derive(Clone, Copy, Debug)]
pub(super) struct Figure {
    /// Offset of the whole figure.
    pub(super) shift: Point,
    /// Offset of the trunk and the parts on it.
    pub(super) sunk: f32,
    pub(super) ahead: f32,
    /// Nose down, degrees.
    pub(super) pitch: f32,
    /// Breath: the trunk's height.
    pub(super) breath: f32,
    pub(super) feet: [Foot; 4],
    pub(super) neck: f32,
    /// Offset of the neck from its place at rest.
    pub(super) laid: Point,
    pub(super) head: f32,
    pub(super) tail: f32,
    pub(super) tip: f32,
    pub(super) ears: f32,
    pub(super) jaw: f32,
    pub(super) trunk: f32,
    pub(super) wings: f32,
    /// Height of the open eye, 0.0 to 1.0.
    pub(super) eye: f32,
    pub(super) asleep: bool,
    /// Whether the part `curl` replaces trunk and legs.
    pub(super) curled: bool,
    /// Whether it shows the thing that it holds.
    pub(super) holds: bool,
}

impl Figure {
    pub(super) const REST: Self = Self {
        shift: (0.0, 0.0),
        sunk: 0.0,
        ahead: 0.0,
        pitch: 0.0,
        breath: 1.0,
        feet: [Foot::At(0.0, 0.0, 0.0); 4],
        neck: 0.0,
        laid: (0.0, 0.0),
        head: 0.0,
        tail: 0.0,
        tip: 0.0,
        ears: 0.0,
        jaw: 0.0,
        trunk: 0.0,
        wings: 0.0,
        eye: 1.0,
        asleep: false,
        curled: false,
        holds: false,
    };

    /// The position of `point` of the trunk.
    pub(super) fn carried(&self, frame: &Frame, point: Point) -> Point {
        let at = turned(point, frame.seat, self.pitch);
        (at.0 + self.ahead, at.1 + self.sunk)
    }

    /// The position of the mouth if the neck turns by `neck` and the head by `head` degrees.
    pub(super) fn mouth(&self, frame: &Frame, neck: f32, head: f32) -> Point {
        let mouth = turned(frame.mouth, frame.head, head);
        self.carried(frame, turned(mouth, frame.neck, neck))
    }

    /// The poses of leg `nth`: thigh, shin, foot.
    fn leg(&self, frame: &Frame, nth: usize) -> [Pose; 3] {
        let leg = &frame.legs[nth];
        let hip = self.carried(frame, leg.hip);
        let (bend, tip) = match self.feet[nth] {
            Foot::At(right, down, tip) => {
                let to = (leg.foot.0 + right, leg.foot.1 + down);
                (leg.reach(hip, to, false), tip)
            }
            Foot::Squat(right, down) => {
                let to = (leg.foot.0 + right, leg.foot.1 + down);
                (leg.reach(hip, to, true), 0.0)
            }
            Foot::Folded => (leg.fold(hip, leg.foot.1), 0.0),
            Foot::Free(thigh, shin) => {
                let bend = Bend {
                    leg: self.pitch + thigh,
                    shin,
                    foot: 0.0,
                };
                (bend, 0.0)
            }
        };
        let mut thigh = Pose::turned(bend.leg);
        thigh.shift = (hip.0 - leg.hip.0, hip.1 - leg.hip.1);
        thigh.hidden = self.curled;
        [
            thigh,
            Pose::turned(bend.shin),
            Pose::turned(bend.foot + tip),
        ]
    }

    /// The pose of each part.
    pub(super) fn poses(&self, frame: &Frame) -> impl Fn(&str) -> Pose + use<> {
        let legs = [0, 1, 2, 3].map(|nth| self.leg(frame, nth));
        let own = *self;
        let root = frame.wing.unwrap_or_default();
        let carried = self.carried(frame, root);
        let wing = Pose {
            degrees: self.pitch,
            shift: (carried.0 - root.0, carried.1 - root.1),
            scale: (1.0, self.wings.cos()),
            hidden: false,
        };
        move |name| {
            let mut words = name.splitn(2, '-');
            let (first, rest) = (words.next().unwrap_or_default(), words.next());
            let nth = NAMES.iter().position(|one| Some(*one) == rest);
            match (first, nth) {
                ("leg", Some(nth)) => legs[nth][0],
                ("shin", Some(nth)) => legs[nth][1],
                ("foot", Some(nth)) => legs[nth][2],
                _ if name == "wing-near" => wing,
                _ => own.part(name),
            }
        }
    }

    fn part(&self, name: &str) -> Pose {
        let shown = |shown: bool| if shown { Pose::REST } else { Pose::HIDDEN };
        match name {
            "figure" => Pose::shifted(self.shift.0, self.shift.1),
            "body" => Pose {
                degrees: self.pitch,
                shift: (self.ahead, self.sunk),
                ..Pose::REST
            },
            "trunk" if self.curled => Pose::HIDDEN,
            "trunk" => Pose::scaled(1.0, self.breath),
            "curl" if self.curled => Pose::scaled(1.0, 2.0 * self.breath - 1.0),
            "curl" => Pose::HIDDEN,
            "tail" | "mane-back" if self.curled => Pose::HIDDEN,
            "tail" => Pose::turned(self.tail),
            "tail-tip" => Pose::turned(self.tip),
            "neck" => Pose {
                degrees: self.neck,
                shift: self.laid,
                ..Pose::REST
            },
            "head" => Pose::turned(self.head),
            "ear-near" => Pose::turned(self.ears),
            "ear-far" => Pose::turned(self.ears * 0.7),
            "jaw" => Pose::turned(self.jaw),
            "nose" => Pose::turned(self.trunk),
            "nose-mid" => Pose::turned(self.trunk * 1.2),
            "nose-tip" => Pose::turned(self.trunk * 1.5),
            "wing-far" => Pose::scaled(1.0, self.wings.cos()),

            "eye" if self.asleep => Pose::HIDDEN,
            "eye" => Pose::scaled(1.0, self.eye),
            "lid" => shown(self.asleep),
            "held" => shown(self.holds),
            _ => Pose::REST,
        }
    }
}

/// `point` turned about `joint` by `degrees`.
pub(super) fn turned(point: Point, joint: Point, degrees: f32) -> Point {
    let (sin, cos) = degrees.to_radians().sin_cos();
    let (x, y) = (point.0 - joint.0, point.1 - joint.1);
    (joint.0 + x * cos - y * sin, joint.1 + x * sin + y * cos)
}
