//! Patches of one colour in a frame: where something of that colour is, as far as a picture can
//! tell. What touches the edge of the frame is sky or ground and no thing, and is left out.

use kinora_contract::Size;

/// Least saturation and value (of HSV, 0.0 to 1.0) of a pixel that has a colour to speak of.
const VIVID: f64 = 0.38;
const LIT: f64 = 0.25;

/// Hues from one to another in degrees: red 0, yellow 60, green 120, blue 240. It may pass 360.
pub(crate) type Hues = (f64, f64);

pub(crate) const RED: Hues = (345.0, 372.0);
pub(crate) const YELLOW: Hues = (40.0, 64.0);
pub(crate) const GREEN: Hues = (85.0, 165.0);
pub(crate) const BLUE: Hues = (205.0, 250.0);

/// A connected patch.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Blob {
    /// Share of the frame's pixels.
    pub(crate) share: f64,
    /// The mean place of its pixels, shares of the width and of the height.
    pub(crate) at: (f64, f64),
}

fn has(pixel: &[u8], hues: Hues) -> bool {
    let [r, g, b] = [0, 1, 2].map(|part: usize| f64::from(pixel[part]) / 255.0);
    let (most, least) = (r.max(g).max(b), r.min(g).min(b));
    let span = most - least;
    if most < LIT || span < VIVID * most {
        return false;
    }
    let sixth = if most <= r {
        (g - b) / span
    } else if most <= g {
        2.0 + (b - r) / span
    } else {
        4.0 + (r - g) / span
    };
    let hue = (sixth * 60.0).rem_euclid(360.0);
    (hues.0..=hues.1).contains(&hue) || (hues.0..=hues.1).contains(&(hue + 360.0))
}

/// The share of all pixels that have the colour, whatever they belong to.
pub(crate) fn share(frame: &[u8], hues: Hues) -> f64 {
    let pixels = frame.chunks_exact(3);
    let count = pixels.len() as f64;
    pixels.filter(|pixel| has(pixel, hues)).count() as f64 / count
}

/// Every patch of the colour that touches no edge of the frame, the largest first.
pub(crate) fn blobs(frame: &[u8], size: Size, hues: Hues) -> Vec<Blob> {
    let (width, height) = (size.width as usize, size.height as usize);
    let mut open: Vec<bool> = frame.chunks_exact(3).map(|p| has(p, hues)).collect();
    let mut blobs = Vec::new();
    for start in 0..open.len() {
        if !open[start] {
            continue;
        }
        let (mut queue, mut found, mut inside) = (vec![start], Vec::new(), true);
        open[start] = false;
        while let Some(at) = queue.pop() {
            found.push(at);
            let (x, y) = (at % width, at / width);
            if x == 0 || y == 0 || x + 1 == width || y + 1 == height {
                inside = false;
                continue;
            }
            for next in [at - 1, at + 1, at - width, at + width] {
                if std::mem::take(&mut open[next]) {
                    queue.push(next);
                }
            }
        }
        if inside {
            blobs.push(blob(&found, width, height));
        }
    }
    blobs.sort_by(|a, b| b.share.total_cmp(&a.share));
    blobs
}

fn blob(pixels: &[usize], width: usize, height: usize) -> Blob {
    let count = pixels.len() as f64;
    let mean = |of: &dyn Fn(usize) -> usize| {
        pixels.iter().map(|at| of(*at) as f64 + 0.5).sum::<f64>() / count
    };
    Blob {
        share: count / (width * height) as f64,
        at: (
            mean(&|at| at % width) / width as f64,
            mean(&|at| at / width) / height as f64,
        ),
    }
}

/// The share of the frame that the largest patch takes; 0.0 without one.
pub(crate) fn largest(frame: &[u8], size: Size, hues: Hues) -> f64 {
    blobs(frame, size, hues)
        .first()
        .map_or(0.0, |blob| blob.share)
}

#[cfg(test)]
mod tests {
    use super::super::support::SMALL;
    use super::*;

    #[test]
    fn patches_are_found_apart_from_what_reaches_the_edge() {
        let mut frame = Vec::new();
        for index in 0..SMALL.pixels() as usize {
            let (x, y) = (index % 320, index / 320);
            let sky = y < 20;
            let square = (100..132).contains(&x) && (90..108).contains(&y);
            let other = (200..210).contains(&x) && (90..108).contains(&y);
            frame.extend_from_slice(match (sky || square || other, x) {
                (true, _) => &[20, 60, 220],
                _ => &[90, 90, 90],
            });
        }
        let found = blobs(&frame, SMALL, BLUE);
        assert_eq!(found.len(), 2);
        assert!((found[0].share - 0.01).abs() < 1e-9, "{found:?}");
        assert!((found[0].at.0 - 116.0 / 320.0).abs() < 1e-9, "{found:?}");
        assert!((found[0].at.1 - 99.0 / 180.0).abs() < 1e-9, "{found:?}");
        assert!(blobs(&frame, SMALL, RED).is_empty());
        assert!(share(&frame, BLUE) > 0.11);
    }
}
