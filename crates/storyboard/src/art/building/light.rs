//! The beam of a lighthouse. By day there is none.

use crate::art::Look;
use crate::pen::{Ink, Pen};

/// The lamp, and how far its beam reaches.
const LAMP: (f32, f32) = (50.0, 14.6);
const REACH: f32 = 215.0;

/// Two beams that sweep around. From the side, they lengthen, shorten and change sides.
pub(super) fn beam(pen: &mut Pen, look: &Look, t: f32) {
    let sweep = (t * 0.8).cos();
    for side in [1.0, -1.0] {
        let along = sweep * side;
        // The beam that points away from the viewer is dimmer.
        let near = (t * 0.8).sin() * side;
        let bright = 0.5 * along.abs().sqrt() * (0.8 + 0.2 * near);
        let end = LAMP.0 + REACH * along;
        let spread = 16.0 * along.abs() + 2.0;
        let fade = [
            (LAMP.0, LAMP.1, look.lamp, bright),
            (end, LAMP.1, look.lamp, 0.0),
        ];
        let cone = [
            (LAMP.0, LAMP.1 - 1.5),
            (end, LAMP.1 - spread),
            (end, LAMP.1 + spread),
            (LAMP.0, LAMP.1 + 1.5),
        ];
        if along.abs() > 0.02 {
            pen.shape(&cone, Ink::Line(fade));
        }
    }
    // Once per turn the lamp points at the viewer.
    let flare = (t * 0.8).sin().max(0.0).powi(12);
    pen.glow(LAMP.0, LAMP.1, 22.0 + 26.0 * flare, look.lamp, 0.8);
}
