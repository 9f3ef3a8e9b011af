//! The track under a train: it reaches past the frame on both sides, and its sleepers stay where they lie.

use tiny_skia::{PathBuilder, Rect};

use super::super::super::colour::Rgb;
use super::super::super::pen::Pen;
use super::super::Look;

/// From one end to the other, in the coordinates of the train.
const ENDS: (f32, f32) = (-250.0, 350.0);
/// From sleeper to sleeper.
const STEP: f32 = 6.0;

/// Rails, sleepers and their bed. The train has come `gone` sides of its square: the sleepers have gone
/// by as far.
pub(super) fn rails(pen: &mut Pen, look: &Look, gone: f32) {
    let (left, right) = ENDS;
    let bed = [(left, 100.6), (left, 98.4), (right, 98.4), (right, 100.6)];
    pen.shape(&bed, look.shown(Rgb::hex(0x7c_7268)));
    let first = left - (gone * 100.0) % STEP;
    let mut sleepers = PathBuilder::new();
    for nth in 0..=((right - left) / STEP) as u32 {
        if let Some(sleeper) = Rect::from_xywh(first + nth as f32 * STEP, 98.0, 3.0, 1.2) {
            sleepers.push_rect(sleeper);
        }
    }
    pen.fill(sleepers.finish(), look.shown(Rgb::hex(0x4a_3a30)));
    pen.rect(
        left,
        97.2,
        right - left,
        0.9,
        look.shown(Rgb::hex(0x9a_a0a8)),
    );
}
