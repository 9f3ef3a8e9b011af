//! The dragon's flight: the only four-legged figure that flies.

use super::figure::{Figure, Foot};
use crate::art::Moment;
use crate::subject::Act;

/// Beats its wings with trailing legs; lands with flared wings and folds them at the end.
pub(super) fn fly(figure: &mut Figure, m: &Moment, act: Act) {
    let beat = m.t * 4.6;
    let share = m.share.clamp(0.0, 1.0);
    let flown = match act {
        Act::Land => 1.0 - smooth(share, 0.75, 1.0),
        _ => 1.0,
    };
    let rate = if act == Act::Fall { 0.15 } else { 1.0 };
    figure.wings = (1.25 - 1.25 * beat.sin() * rate) * flown;
    figure.shift.1 = -2.6 * (beat + 0.9).sin() * flown;
    figure.pitch = match act {
        Act::Rise => -22.0,
        Act::Fall => 18.0,
        Act::Land => -14.0 * flown,
        _ => -3.0 + 1.5 * beat.cos(),
    };
    figure.neck -= figure.pitch * 0.4;
    figure.tail += 5.0 * (beat - 0.8).sin();
    let trail = 3.0 * (beat - 0.5).sin();
    let reach = if act == Act::Land { -30.0 } else { 34.0 };
    if flown > 0.02 {
        for (nth, foot) in figure.feet.iter_mut().enumerate() {
            let front = nth % 2 == 1;
            let thigh = if front { reach * 0.6 } else { reach };
            *foot = Foot::Free(
                (thigh + trail) * flown,
                if front { 40.0 } else { 24.0 } * flown,
            );
        }
    }
}

fn smooth(value: f32, low: f32, high: f32) -> f32 {
    crate::colour::smooth(low, high, value)
}
