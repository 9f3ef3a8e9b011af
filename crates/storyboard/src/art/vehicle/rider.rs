//! The rider of a bicycle, whose legs follow the pedals. A standing bicycle has no rider.

use crate::art::Look;
use crate::pen::Pen;

const HIP: (f32, f32) = (37.0, 41.0);
const SHOULDER: (f32, f32) = (53.0, 19.0);
const GRIP: (f32, f32) = (72.0, 40.0);
/// The crank's axle and the length of its arms, as in the drawing.
const AXLE: (f32, f32) = (48.0, 79.0);
const CRANK: f32 = 8.0;
/// Length of thigh and shin.
const BONE: f32 = 24.5;

/// The position of the knee, in front of the line from hip to foot (law of cosines).
fn knee(foot: (f32, f32)) -> (f32, f32) {
    let (across, down) = (foot.0 - HIP.0, foot.1 - HIP.1);
    let span = across.hypot(down).clamp(1.0, 2.0 * BONE - 0.1);
    let ahead = (BONE * BONE - span * span * 0.25).sqrt() / span;
    (
        HIP.0 + across * 0.5 + down * ahead,
        HIP.1 + down * 0.5 - across * ahead,
    )
}

/// A foot on the pedal of a crank that has turned by `degrees`; the `near` one starts below.
fn foot(degrees: f32, near: bool) -> (f32, f32) {
    let (sin, cos) = degrees.to_radians().sin_cos();
    let arm = if near { CRANK } else { -CRANK };
    (AXLE.0 - arm * sin, AXLE.1 + arm * cos)
}

fn leg(pen: &mut Pen, look: &Look, foot: (f32, f32), lift: f32) {
    let cloth = look.dark.lift(0.12 + lift);
    pen.stroke(&[HIP, knee(foot), (foot.0, foot.1 - 4.0)], 5.6, cloth);
    let shoe = [(foot.0 - 2.4, foot.1 - 1.6), (foot.0 + 4.0, foot.1 - 1.0)];
    pen.stroke(&shoe, 3.2, look.trim.lift(lift - 0.1));
}

/// Draws the leg behind the bicycle.
pub(super) fn behind(pen: &mut Pen, look: &Look, degrees: f32) {
    leg(pen, look, foot(degrees, false), -0.06);
}

/// Draws the rest of the rider.
pub(super) fn before(pen: &mut Pen, look: &Look, degrees: f32) {
    leg(pen, look, foot(degrees, true), 0.0);
    let back = [HIP, (41.0, 29.0), SHOULDER];
    pen.stroke(&back, 10.0, look.trim);
    pen.circle(HIP.0 + 0.6, HIP.1 + 0.6, 4.6, look.dark.lift(0.12));
    let elbow = (61.0, 33.0);
    pen.stroke(&[SHOULDER, elbow, GRIP], 4.0, look.trim.lift(-0.07));
    pen.circle(GRIP.0, GRIP.1, 2.4, look.skin);
    let head = (58.6, 10.4);
    pen.stroke(&[SHOULDER, head], 4.0, look.skin);
    pen.circle(head.0, head.1, 6.6, look.skin);
    let helmet = [
        (head.0 - 7.0, head.1 - 0.4),
        (head.0 - 6.0, head.1 - 6.0),
        (head.0, head.1 - 8.6),
        (head.0 + 6.0, head.1 - 5.6),
        (head.0 + 7.2, head.1 - 1.8),
    ];
    pen.shape(&helmet, look.main);
    pen.circle(head.0 + 3.6, head.1 + 0.6, 0.9, look.dark);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_bones_keep_their_length_all_the_way_round() {
        for degrees in 0..360 {
            for near in [true, false] {
                let foot = foot(degrees as f32, near);
                let knee = knee(foot);
                let thigh = (knee.0 - HIP.0).hypot(knee.1 - HIP.1);
                let shin = (knee.0 - foot.0).hypot(knee.1 - foot.1);
                assert!((thigh - BONE).abs() < 0.1, "{degrees}: thigh {thigh}");
                assert!((shin - BONE).abs() < 0.1, "{degrees}: shin {shin}");
                assert!(knee.0 > (HIP.0 + foot.0) * 0.5, "a knee bends forward");
            }
        }
    }
}
