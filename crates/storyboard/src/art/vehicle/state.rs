//! The state of a vehicle at a moment.

use crate::art::Moment;
use crate::art::rig::Pose;
use crate::subject::Act;

/// Whether it is under way, and not parked, moored or hovering.
pub(super) fn under_way(m: &Moment) -> bool {
    m.gone > 0.0 || matches!(m.act, Act::Move | Act::Run | Act::Fly | Act::Rise)
}

pub(super) fn shown(shown: bool) -> Pose {
    if shown { Pose::REST } else { Pose::HIDDEN }
}
