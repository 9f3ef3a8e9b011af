//! Animals on four legs, snakes and snails: their drawings, and how the parts move.

mod acts;
mod dragon;
mod figure;
pub(super) mod gait;
mod habit;
pub(super) mod legs;
mod slow;
#[cfg(test)]
mod tests;

use super::rig::Rig;
use super::{Look, Moment};
use crate::pen::Pen;
use crate::subject::Subject;
use figure::Frame;

pub(super) fn draw(pen: &mut Pen, subject: Subject, look: &Look, m: &Moment) {
    let Some(rig) = Rig::named(&super::drawing(subject)) else {
        return;
    };
    match Frame::of(rig) {
        Some(frame) => {
            let figure = acts::figure(subject, &frame, m);
            rig.draw(pen, look, &figure.poses(&frame));
        }
        None => rig.draw(pen, look, &|name| slow::pose(name, m)),
    }
}
