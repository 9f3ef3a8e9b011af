//! The marks themselves: soft dots, dashes and lines at places between pixels. Each has its size
//! in frame pixels; one smaller than a pixel keeps the sum of its light, so that every
//! resolution of a clip shows the same. It knows no weather.

use super::canvas::Canvas;
use super::colour::Rgb;

/// Minimum radius or half width of a drawn mark, pixels.
const LEAST: f32 = 1.0;

/// Blends `goal` over a pixel.
fn tint(pixel: &mut [u16; 4], goal: [u16; 4], alpha: f32) {
    if alpha <= 0.002 {
        return;
    }
    let share = (alpha.min(1.0) * 32_768.0) as i32;
    for (out, goal) in pixel[..3].iter_mut().zip(goal) {
        let own = i32::from(*out);
        *out = (own + (((i32::from(goal) - own) * share) >> 15)) as u16;
    }
}

/// The side that is drawn for one of `own` pixels, and the share of light that this leaves.
fn held(own: f32) -> (f32, f32) {
    (own.max(LEAST), (own / LEAST).min(1.0))
}

/// A soft round mark of `radius` pixels; `pixel` is the length of a stage pixel in them.
pub(crate) fn dot(
    canvas: &mut Canvas,
    (x, y): (f32, f32),
    radius: f32,
    pixel: f32,
    colour: Rgb,
    alpha: f32,
) {
    // Smaller than a pixel of the stage: the light spreads, its sum stays.
    let (soft, alpha) = if radius < 0.7 * pixel {
        (0.7 * pixel, alpha * (radius / (0.7 * pixel)).powi(2))
    } else {
        (radius, alpha)
    };
    let (reach, kept) = held(soft + 0.5 * pixel);
    let (alpha, goal) = (alpha * kept * kept, colour.fixed());
    if alpha <= 0.002 {
        return;
    }
    let columns = span(x - reach, x + reach, canvas.width);
    for py in span(y - reach, y + reach, canvas.height) {
        let v = (py as f32 + 0.5 - y) / reach;
        let from = (py * canvas.width + columns.start) * 4;
        let Some(run) = canvas.pixels.get_mut(from..from + columns.len() * 4) else {
            continue;
        };
        for (pixel, px) in run.as_chunks_mut::<4>().0.iter_mut().zip(columns.clone()) {
            let h = (px as f32 + 0.5 - x) / reach;
            tint(pixel, goal, alpha * (1.0 - h * h - v * v).max(0.0));
        }
    }
}

/// A flat soft mark, as light on water, of half `sides` across and down.
pub(crate) fn dash(
    canvas: &mut Canvas,
    (x, y): (f32, f32),
    sides: (f32, f32),
    pixel: f32,
    colour: Rgb,
    alpha: f32,
) {
    let (across, thin) = held(sides.0.max(pixel));
    let (down, flat) = held(sides.1.max(0.6 * pixel) + 0.5 * pixel);
    let (alpha, goal) = (alpha * thin * flat, colour.fixed());
    let columns = span(x - across, x + across, canvas.width);
    for py in span(y - down, y + down, canvas.height) {
        let v = (py as f32 + 0.5 - y) / down;
        let row = (1.0 - v * v).max(0.0) * alpha;
        let from = (py * canvas.width + columns.start) * 4;
        let Some(run) = canvas.pixels.get_mut(from..from + columns.len() * 4) else {
            continue;
        };
        if row <= 0.004 {
            continue;
        }
        for (pixel, px) in run.as_chunks_mut::<4>().0.iter_mut().zip(columns.clone()) {
            let h = (px as f32 + 0.5 - x) / across;
            tint(pixel, goal, row * (1.0 - h * h).max(0.0));
        }
    }
}

/// A soft line `width` pixels wide, brightest in the middle of its length.
pub(crate) fn line(
    canvas: &mut Canvas,
    from: (f32, f32),
    to: (f32, f32),
    width: f32,
    colour: Rgb,
    alpha: f32,
) {
    let (half, kept) = held(width);
    let (alpha, goal) = (alpha * kept, colour.fixed());
    let (dx, dy) = (to.0 - from.0, to.1 - from.1);
    let long = dx.hypot(dy).max(0.001);
    let (ux, uy) = (dx / long, dy / long);
    let (left, right) = (from.0.min(to.0) - half, from.0.max(to.0) + half);
    let rows = span(
        from.1.min(to.1) - half,
        from.1.max(to.1) + half,
        canvas.height,
    );
    // One pixel to the right goes so far along the line and away from its middle.
    let (along_step, away_step) = (ux / long, uy / half);
    for py in rows {
        let y = py as f32 + 0.5 - from.1;
        // The pixels of this row that the line's band crosses.
        let (low, high) = if uy.abs() > 0.02 {
            let (middle, wide) = (from.0 + y / uy * ux, half / uy.abs());
            ((middle - wide).max(left), (middle + wide).min(right))
        } else {
            (left, right)
        };
        let columns = span(low, high, canvas.width);
        let x = columns.start as f32 + 0.5 - from.0;
        let mut along = (x * ux + y * uy) / long;
        let mut away = (x * uy - y * ux) / half;
        let from = (py * canvas.width + columns.start) * 4;
        let Some(run) = canvas.pixels.get_mut(from..from + columns.len() * 4) else {
            continue;
        };
        for pixel in run.as_chunks_mut::<4>().0 {
            let share = (1.0 - away * away).max(0.0) * (along * (1.0 - along) * 4.0).max(0.0);
            tint(pixel, goal, alpha * share);
            along += along_step;
            away += away_step;
        }
    }
}

/// The pixels between two places of a side of `most` pixels, those that are cut included.
fn span(low: f32, high: f32, most: usize) -> std::ops::Range<usize> {
    // A cast drops what follows the point and holds the rest at 0.
    let from = ((low - 0.5) as usize).min(most);
    from..((high + 1.5) as usize).clamp(from, most)
}

#[cfg(test)]
mod tests {
    use super::*;

    type Draw<'a> = &'a dyn Fn(&mut Canvas, f32);

    /// All light on a black canvas of `side` by `side`, as a share of its area.
    fn light(side: usize, draw: impl Fn(&mut Canvas, f32)) -> f64 {
        let mut canvas = Canvas::new(side, side);
        draw(&mut canvas, side as f32 / 96.0);
        let sum: f64 = canvas.pixels.iter().map(|part| f64::from(*part)).sum();
        sum / (side * side) as f64
    }

    #[test]
    fn a_mark_has_as_much_light_in_every_resolution() {
        let white = Rgb::WHITE;
        for size in [0.3, 0.8, 1.5, 4.0] {
            let marks: [Draw<'_>; 3] = [
                &|canvas, k| dot(canvas, (48.3 * k, 47.8 * k), size * k, k, white, 0.6),
                &|canvas, k| {
                    let sides = (size * 6.0 * k, size * k);
                    dash(canvas, (48.3 * k, 47.8 * k), sides, k, white, 0.6);
                },
                &|canvas, k| {
                    let ends = ((40.0 * k, 20.0 * k), (52.0 * k, 70.0 * k));
                    line(canvas, ends.0, ends.1, size * k, white, 0.6);
                },
            ];
            for (nth, draw) in marks.into_iter().enumerate() {
                let whole = light(96, draw);
                for side in [48, 64, 144] {
                    let ratio = light(side, draw) / whole;
                    assert!(
                        (0.75..1.3).contains(&ratio),
                        "mark {nth} of {size} at {side}: {ratio:.2}"
                    );
                }
            }
        }
    }
}
