//! The state of a vehicle at a moment.

use super::super::super::subject::Act;
use super::super::Moment;
use super::super::rig::Pose;

/// Whether it is under way, and not parked, moored or hovering.
pub(super) fn under_way(m: &Moment) -> bool {
    m.gone > 0.0 || matches!(m.act, Act::Move | Act::Run | Act::Fly | Act::Rise)
}

pub(super) fn shown(shown: bool) -> Pose {
    if shown { Pose::REST } else { Pose::HIDDEN }
}
