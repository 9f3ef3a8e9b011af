//! The proportions of people: one skeleton at rest, scaled by age and build. It poses nobody.

/// Positions at rest in the square, of a standing adult.
pub(super) const PELVIS: (f32, f32) = (50.0, 60.0);
pub(super) const SHOULDERS: [(f32, f32); 2] = [(44.2, 36.5), (55.4, 36.5)];
/// The near limb's joints; the sheets of garments use them.
pub(super) const SHOULDER: (f32, f32) = (44.2, 36.8);
pub(super) const ELBOW: (f32, f32) = (44.2, 49.0);
pub(super) const WRIST: (f32, f32) = (44.2, 60.0);
pub(super) const HIP: (f32, f32) = (47.6, 61.0);
pub(super) const KNEE: (f32, f32) = (47.6, 78.5);
pub(super) const ANKLE: (f32, f32) = (47.6, 95.0);
pub(super) const NECK: (f32, f32) = (50.4, 30.0);

const UPPER_ARM: f32 = 12.2;
/// To the middle of the hand.
const FOREARM: f32 = 13.0;
const THIGH: f32 = 17.5;
const SHIN: f32 = 16.5;
/// From the ankle down to the sole.
const FOOT: f32 = 3.0;
pub(super) const GROUND: f32 = 98.0;
/// Half of the distance between the hips, which the view from the side shortens.
const HIPS: f32 = 2.4;

/// The differences of a body from the adult one. All but `stoop` are factors.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Build {
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

impl Build {
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
        head: 1.0,
        stoop: 0.0,
    };
    pub(super) const BABY: Self = Self {
        whole: 1.42,
        leg: 0.46,
        arm: 0.5,
        torso: 0.54,
        girth: 0.76,
        head: 1.04,
        stoop: 0.0,
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

    pub(super) fn arm_lengths(&self) -> (f32, f32) {
        (UPPER_ARM * self.arm, FOREARM * self.arm)
    }

    pub(super) fn leg_lengths(&self) -> (f32, f32) {
        (THIGH * self.leg, SHIN * self.leg)
    }

    pub(super) fn foot(&self) -> f32 {
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
