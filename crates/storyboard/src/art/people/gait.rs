//! Steps: the positions of the feet at a distance covered. A standing foot does not slide.

use std::f32::consts::{PI, TAU};

use super::skeleton::Build;
use super::skeleton::Limb;

/// A gait.
#[derive(Clone, Copy, Debug)]
pub(super) struct Gait {
    /// Length of a stride of both feet, in the square's units.
    stride: f32,
    /// Share of the stride in which a foot stands.
    stands: f32,
    /// How high a foot is lifted.
    lift: f32,
    /// Distance that a foot swings beyond its standing range.
    swing: f32,
}

pub(super) const WALK: Gait = Gait {
    stride: 27.0,
    stands: 0.58,
    lift: 2.8,
    swing: 0.8,
};
pub(super) const RUN: Gait = Gait {
    stride: 40.0,
    stands: 0.34,
    lift: 11.0,
    swing: 7.0,
};

/// A horse's gaits. It bends its knees instead of lifting feet.
pub(super) const HORSE_WALK: Gait = Gait {
    stride: 38.0,
    stands: 0.6,
    lift: 0.0,
    swing: 1.0,
};
pub(super) const GALLOP: Gait = Gait {
    stride: 52.0,
    stands: 0.42,
    lift: 0.0,
    swing: 9.0,
};

impl Gait {
    /// The gait for legs of another length.
    pub(super) fn of(self, build: &Build) -> Self {
        Self {
            stride: self.stride * build.leg,
            lift: self.lift * build.leg,
            swing: self.swing * build.leg,
            ..self
        }
    }

    /// The share of a stride that is over, after `gone` units.
    pub(super) fn phase(&self, gone: f32) -> f32 {
        (gone / self.stride).rem_euclid(1.0)
    }

    /// Distance of a foot in front of its hip at its own phase, and the share of its swing that is over; `None`
    /// while it stands.
    pub(super) fn step(&self, phase: f32) -> (f32, Option<f32>) {
        let phase = phase.rem_euclid(1.0);
        let half = self.stride * self.stands * 0.5;
        if phase < self.stands {
            return (half - phase * self.stride, None);
        }
        let share = (phase - self.stands) / (1.0 - self.stands);
        let eased = share * share * (3.0 - 2.0 * share);
        // It trails at first and reaches out at the end.
        let beyond = -self.swing * (share * TAU).sin();
        (2.0 * half * eased - half + beyond, Some(share))
    }

    /// Ankle and pitch of a person's foot at its own phase, under a body at `x`.
    pub(super) fn foot(&self, build: &Build, x: f32, phase: f32) -> (Limb, f32) {
        let (before, swing) = self.step(phase);
        let (lift, pitch) = swing.map_or((0.0, 0.0), |share| {
            let high = (share * PI).sin();
            (
                self.lift * high * (1.35 - 0.7 * share),
                high * (52.0 * share - 34.0),
            )
        });
        (Limb::To(x + before, build.ankle_row() - lift), pitch)
    }
}
