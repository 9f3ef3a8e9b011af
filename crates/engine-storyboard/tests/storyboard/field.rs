//! How the picture moves from one frame to another: blocks of the first are searched in the
//! second, and one shift and one scale are fitted to all of them. Captions and the slate, which
//! stand still, are left out; so are blocks that could slide along their own edges.

use kinora_contract::Size;

/// Side of a block, pixels.
const BLOCK: usize = 16;
/// How far a block is searched, pixels each way.
const REACH: isize = 9;
/// Least smaller eigenvalue of a block's structure tensor, per pixel (Shi and Tomasi, "Good
/// features to track", 1994): below it a block has no corner that would hold it in place.
const CORNER: f64 = 12.0;
/// Most that a block may differ from its place in the other frame, summed over its pixels.
const STRANGE: i32 = 6 * 256;
/// The rows between the slate and the captions, shares of the height.
const ROWS: (f64, f64) = (0.1, 0.72);

/// What the content of a picture did: moved right and down in pixels, and grew.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Moved {
    pub(crate) right: f64,
    pub(crate) down: f64,
    pub(crate) scale: f64,
}

/// Where a block stands from the middle of the picture, and where it went.
#[derive(Clone, Copy, Debug)]
struct Step {
    at: (f64, f64),
    by: (f64, f64),
}

struct Grey {
    width: usize,
    height: usize,
    luma: Vec<i32>,
}

impl Grey {
    fn new(rgb: &[u8], size: Size) -> Self {
        let luma = |p: &[u8]| (i32::from(p[0]) * 2 + i32::from(p[1]) * 5 + i32::from(p[2])) / 8;
        Self {
            width: size.width as usize,
            height: size.height as usize,
            luma: rgb.chunks_exact(3).map(luma).collect(),
        }
    }

    fn at(&self, x: usize, y: usize) -> i32 {
        self.luma[y * self.width + x]
    }

    /// Whether the block has structure in both directions.
    fn holds(&self, left: usize, top: usize) -> bool {
        let (mut xx, mut xy, mut yy) = (0.0, 0.0, 0.0);
        for y in top..top + BLOCK - 1 {
            for x in left..left + BLOCK - 1 {
                let here = self.at(x, y);
                let (dx, dy) = (self.at(x + 1, y) - here, self.at(x, y + 1) - here);
                xx += f64::from(dx * dx);
                xy += f64::from(dx * dy);
                yy += f64::from(dy * dy);
            }
        }
        let smaller = f64::midpoint(xx, yy) - ((xx - yy) * 0.5).hypot(xy);
        smaller > CORNER * (BLOCK * BLOCK) as f64
    }

    /// The sum of absolute differences of a block and its place in `other`, moved.
    fn apart(&self, other: &Self, (left, top): (usize, usize), by: (isize, isize)) -> Option<i32> {
        let (x, y) = (
            left.checked_add_signed(by.0)?,
            top.checked_add_signed(by.1)?,
        );
        if x + BLOCK > other.width || y + BLOCK > other.height {
            return None;
        }
        let rows = (0..BLOCK).map(|row| {
            let own = &self.luma[(top + row) * self.width + left..][..BLOCK];
            let its = &other.luma[(y + row) * other.width + x..][..BLOCK];
            own.iter().zip(its).map(|(a, b)| (a - b).abs()).sum::<i32>()
        });
        Some(rows.sum())
    }

    /// Where the block went, to a part of a pixel: the vertex of the parabola through the best
    /// place and its neighbours.
    fn follow(&self, other: &Self, block: (usize, usize)) -> Option<(f64, f64)> {
        let apart = |by: (isize, isize)| self.apart(other, block, by);
        let places = (-REACH..=REACH).flat_map(|y| (-REACH..=REACH).map(move |x| (x, y)));
        let (least, best) = places.filter_map(|by| Some((apart(by)?, by))).min()?;
        if best.0.abs() == REACH || best.1.abs() == REACH || least > STRANGE {
            return None;
        }
        let vertex = |before: i32, after: i32| {
            let bend = f64::from(before + after - 2 * least);
            if bend > 0.0 {
                0.5 * f64::from(before - after) / bend
            } else {
                0.0
            }
        };
        let across = vertex(apart((best.0 - 1, best.1))?, apart((best.0 + 1, best.1))?);
        let along = vertex(apart((best.0, best.1 - 1))?, apart((best.0, best.1 + 1))?);
        Some((best.0 as f64 + across, best.1 as f64 + along))
    }
}

fn steps(a: &Grey, b: &Grey) -> Vec<Step> {
    let rows = (ROWS.0 * a.height as f64) as usize..(ROWS.1 * a.height as f64) as usize - BLOCK;
    let mut steps = Vec::new();
    for top in rows.step_by(BLOCK) {
        for left in (0..=a.width - BLOCK).step_by(BLOCK) {
            if !a.holds(left, top) {
                continue;
            }
            let middle =
                |start: usize, length: usize| (start + BLOCK / 2) as f64 - length as f64 * 0.5;
            let at = (middle(left, a.width), middle(top, a.height));
            steps.extend(a.follow(b, (left, top)).map(|by| Step { at, by }));
        }
    }
    steps
}

/// The shift and scale that fit `steps` best: least squares, with the third of the steps that
/// fits worst left out at each of four rounds, since things also move by themselves.
fn fit(steps: &[Step]) -> Moved {
    let mut kept = steps.to_vec();
    let mut moved = least_squares(&kept);
    for _ in 0..4 {
        let off = |step: &Step| {
            let x = moved.right + (moved.scale - 1.0) * step.at.0 - step.by.0;
            let y = moved.down + (moved.scale - 1.0) * step.at.1 - step.by.1;
            x.hypot(y)
        };
        kept = steps.to_vec();
        kept.sort_by(|a, b| off(a).total_cmp(&off(b)));
        kept.truncate((steps.len() * 2).div_ceil(3));
        moved = least_squares(&kept);
    }
    moved
}

fn least_squares(steps: &[Step]) -> Moved {
    let count = steps.len() as f64;
    let mean = |of: fn(&Step) -> f64| steps.iter().map(of).sum::<f64>() / count;
    let (x, y) = (mean(|step| step.at.0), mean(|step| step.at.1));
    let (right, down) = (mean(|step| step.by.0), mean(|step| step.by.1));
    let (mut with, mut own) = (0.0, 0.0);
    for step in steps {
        let (dx, dy) = (step.at.0 - x, step.at.1 - y);
        with += dx * (step.by.0 - right) + dy * (step.by.1 - down);
        own += dx * dx + dy * dy;
    }
    let grown = with / own.max(1.0);
    Moved {
        right: right - grown * x,
        down: down - grown * y,
        scale: 1.0 + grown,
    }
}

/// How the content of `frames`, each a small step after the one before, moved from the first to
/// the last.
pub(crate) fn moved(frames: &[&[u8]], size: Size) -> Moved {
    let greys: Vec<Grey> = frames.iter().map(|rgb| Grey::new(rgb, size)).collect();
    let mut all = Moved {
        right: 0.0,
        down: 0.0,
        scale: 1.0,
    };
    for pair in greys.windows(2) {
        let steps = steps(&pair[0], &pair[1]);
        assert!(steps.len() >= 8, "only {} blocks to follow", steps.len());
        let one = fit(&steps);
        all.right += one.right;
        all.down += one.down;
        all.scale *= one.scale;
    }
    all
}

#[cfg(test)]
mod tests {
    use super::super::support::*;
    use super::*;

    /// A window of a larger picture, from `left` and `top` on, magnified.
    fn window(left: f64, top: f64, scale: f64) -> Vec<u8> {
        let large = Size::new(640, 360);
        let picture = picture(large, 0.3);
        let sizes = (0..SMALL.height).flat_map(|y| (0..SMALL.width).map(move |x| (x, y)));
        let pixel = |(x, y): (u32, u32)| {
            let from = |at: u32, length: u32, start: f64| {
                let middle = f64::from(length) * 0.5;
                ((f64::from(at) - middle) / scale + middle + start).round() as usize
            };
            let (x, y) = (from(x, SMALL.width, left), from(y, SMALL.height, top));
            let at = (y * large.width as usize + x) * 3;
            [0, 1, 2].map(|part: usize| picture.rgb[at + part])
        };
        sizes.flat_map(pixel).collect()
    }

    #[test]
    fn a_known_shift_is_measured() {
        let (a, b) = (window(100.0, 100.0, 1.0), window(95.0, 103.0, 1.0));
        let Moved { right, down, scale } = moved(&[&a, &b], SMALL);
        assert!((right - 5.0).abs() < 0.3, "{right}");
        assert!((down + 3.0).abs() < 0.3, "{down}");
        assert!((scale - 1.0).abs() < 0.003, "{scale}");
    }

    #[test]
    fn a_known_scale_is_measured() {
        let (a, b) = (window(100.0, 100.0, 1.0), window(100.0, 100.0, 1.04));
        let Moved { right, down, scale } = moved(&[&a, &b], SMALL);
        assert!((scale - 1.04).abs() < 0.006, "{scale}");
        assert!(right.abs() < 0.5 && down.abs() < 0.5, "{right} {down}");
    }
}
