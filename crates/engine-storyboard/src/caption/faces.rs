//! Finds possible faces in a picture that the caller gave: compact areas of skin colour. It guesses from colour and
//! shape and is no detector: it misses faces in odd light and mistakes warm wood or sand for one. Moving a caption
//! without need does no harm, so it guesses generously.

use crate::raster::canvas::Canvas;

/// Cells along the short side of the frame.
const CELLS: usize = 36;
/// Minimum and maximum area of a face, as shares of the frame.
const AREA: (f32, f32) = (0.004, 0.4);
/// Minimum and maximum ratio of width to height of a face's box.
const SHAPE: (f32, f32) = (0.45, 1.7);
/// Minimum share of its box that a face fills; an ellipse fills 0.79.
const FILLED: f32 = 0.5;

/// Boxes that may be faces: left, top, right and bottom as shares of the frame.
pub(crate) fn likely(canvas: &Canvas) -> Vec<[f32; 4]> {
    let step = (canvas.width.min(canvas.height) / CELLS).max(1);
    let (columns, rows) = (canvas.width / step, canvas.height / step);
    let mut skin: Vec<bool> = (0..columns * rows)
        .map(|cell| {
            is_skin(middle(
                canvas,
                cell % columns * step,
                cell / columns * step,
                step,
            ))
        })
        .collect();
    let mut boxes = Vec::new();
    for cell in 0..skin.len() {
        if skin.get(cell) == Some(&true) {
            boxes.extend(patch(&mut skin, cell, columns, rows));
        }
    }
    boxes
}

/// The mean colour of some pixels of a cell, 0.0 to 255.0.
fn middle(canvas: &Canvas, x: usize, y: usize, step: usize) -> [f32; 3] {
    // Five pixels stand for the cell: hair or a highlight under one of them changes little.
    let spots = [(1, 1), (3, 1), (2, 2), (1, 3), (3, 3)];
    let mut sum = [0.0; 3];
    for (across, down) in spots {
        let at = (y + down * step / 4) * canvas.width + x + across * step / 4;
        let pixel = canvas.pixels.get(at * 4..at * 4 + 3).unwrap_or(&[0; 3]);
        for (sum, part) in sum.iter_mut().zip(pixel) {
            *sum += f32::from(*part) / 128.0 / spots.len() as f32;
        }
    }
    sum
}

/// The skin cluster of `CbCr` (Chai and Ngan 1999: Cb 77 to 127, Cr 133 to 173), without near-black.
fn is_skin([r, g, b]: [f32; 3]) -> bool {
    let luma = 0.299 * r + 0.587 * g + 0.114 * b;
    let (cb, cr) = (128.0 + 0.564 * (b - luma), 128.0 + 0.713 * (r - luma));
    luma > 40.0 && (77.0..=127.0).contains(&cb) && (133.0..=173.0).contains(&cr)
}

/// Clears the area of skin around `cell` and returns its box if it may be a face.
fn patch(skin: &mut [bool], cell: usize, columns: usize, rows: usize) -> Option<[f32; 4]> {
    // A flood fill with a stack of its own; by recursion a wall of skin colour would go a thousand
    // calls deep.
    let (mut open, mut count) = (vec![cell], 0_usize);
    let (mut left, mut top, mut right, mut bottom) = (columns, rows, 0, 0);
    while let Some(cell) = open.pop() {
        let Some(spot) = skin.get_mut(cell).filter(|spot| **spot) else {
            continue;
        };
        *spot = false;
        count += 1;
        let (x, y) = (cell % columns, cell / columns);
        (left, right) = (left.min(x), right.max(x + 1));
        (top, bottom) = (top.min(y), bottom.max(y + 1));
        open.extend((x > 0).then(|| cell - 1));
        open.extend((x + 1 < columns).then_some(cell + 1));
        open.extend((y > 0).then(|| cell.wrapping_sub(columns)));
        // May lie below the last row: `get_mut` above then ends that way.
        open.push(cell + columns);
    }
    let (across, down) = ((right - left) as f32, (bottom - top) as f32);
    let area = count as f32 / (columns * rows) as f32;
    let is_face = (AREA.0..=AREA.1).contains(&area)
        && (SHAPE.0..=SHAPE.1).contains(&(across / down))
        && count as f32 >= FILLED * across * down;
    is_face.then(|| {
        [
            ratio(left, columns),
            ratio(top, rows),
            ratio(right, columns),
            ratio(bottom, rows),
        ]
    })
}

/// `at` as a share of `of`.
fn ratio(at: usize, of: usize) -> f32 {
    at as f32 / of as f32
}

#[cfg(test)]
mod tests {
    use super::*;

    fn canvas(paint: impl Fn(f32, f32) -> [u16; 3]) -> Canvas {
        let mut canvas = Canvas::new(320, 180);
        for y in 0..180 {
            for (x, pixel) in canvas.row(y).chunks_exact_mut(4).enumerate() {
                let colour = paint(x as f32 / 320.0, y as f32 / 180.0);
                for (out, part) in pixel.iter_mut().zip(colour) {
                    *out = part * 128;
                }
            }
        }
        canvas
    }

    #[test]
    fn an_oval_of_skin_is_found_and_a_band_of_it_is_not() {
        for skin in [[224, 172, 140], [141, 85, 60], [88, 54, 40]] {
            let oval = canvas(|x, y| {
                let inside = ((x - 0.5) / 0.09).hypot((y - 0.75) / 0.2) < 1.0;
                if inside { skin } else { [70, 120, 180] }
            });
            let found = likely(&oval);
            assert_eq!(found.len(), 1, "{skin:?}");
            let [left, top, right, bottom] = found[0];
            assert!((0.36..0.44).contains(&left) && (0.56..0.64).contains(&right));
            assert!((0.5..0.6).contains(&top) && (0.9..1.0).contains(&bottom));
            let band = canvas(|_, y| if y > 0.7 { skin } else { [70, 120, 180] });
            assert!(likely(&band).is_empty());
        }
        assert!(likely(&canvas(|_, _| [60, 140, 60])).is_empty());
    }
}
