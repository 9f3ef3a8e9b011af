//! The number of figures that a scene draws of each role. The layout and the warnings both count here, so that a
//! figure is either drawn or reported.

use super::seat::{Group, group};
use crate::scenes::lexicon::{Place, Role};
use crate::scenes::subject::Subject;

/// Maximum number of figures of one kind.
const KIND_MAX: u32 = 12;
/// Maximum number of figures of one group: more would be too small to recognise.
const GROUP_MAX: u32 = 36;

/// A subject of which a scene draws fewer figures than asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Shortage {
    pub(crate) subject: Subject,
    pub(crate) asked: u32,
    /// Fewer than `asked`.
    pub(crate) drawn: u32,
}

/// Whether the sky draws `role`, which then has no place among the figures.
pub(super) fn is_orb(role: &Role) -> bool {
    matches!(role.subject, Subject::Sun | Subject::Moon)
}

/// The number of places that each of `roles` gets in `place`, in the same order. A role that an edit removed keeps
/// one empty place, if there is room.
pub(super) fn places(place: Place, roles: &[Role]) -> Vec<u32> {
    let mut left = [Group::Air, Group::Ground, Group::Water].map(|group| (group, GROUP_MAX));
    let mut give = |role: &Role| {
        let wanted = role.count.clamp(1, KIND_MAX);
        let ours = group(place, role);
        let room = left.iter_mut().find(|(group, _)| *group == ours);
        room.map_or(0, |(_, room)| {
            let given = wanted.min(*room);
            *room -= given;
            given
        })
    };
    let given = roles.iter().map(|role| {
        if is_orb(role) {
            role.count.min(1)
        } else {
            give(role)
        }
    });
    given.collect()
}

/// The subjects of `roles` of which a scene in `place` draws fewer figures than its own shot asks for.
pub(crate) fn shortages(place: Place, roles: &[Role]) -> Vec<Shortage> {
    let mut all: Vec<Shortage> = Vec::new();
    let own = roles.iter().zip(places(place, roles));
    for (role, drawn) in own.filter(|(role, _)| !role.inherited) {
        let (subject, asked) = (role.subject, role.count);
        let drawn = drawn.min(asked);
        match all.iter_mut().find(|one| one.subject == subject) {
            Some(one) => {
                one.asked = one.asked.saturating_add(asked);
                one.drawn += drawn;
            }
            None => all.push(Shortage {
                subject,
                asked,
                drawn,
            }),
        }
    }
    all.retain(|one| one.drawn < one.asked);
    all
}
