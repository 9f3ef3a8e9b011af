//! The track under a train. It extends past the frame on both sides, and its sleepers do not move on the ground.

use tiny_skia::{PathBuilder, Rect};

use crate::art::Look;
use crate::colour::Rgb;
use crate::pen::Pen;

/// Its ends, in the coordinates of the train.
const ENDS: (f32, f32) = (-250.0, 350.0);
/// Distance between two sleepers.
const STEP: f32 = 6.0;

/// Draws rails, sleepers and their bed, after the train has covered `gone` sides of its square.
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
