//! Pictures of another size: against the filter's definition, and against what a picture must keep.

use std::f64::consts::PI;

use kinora_media_resize::{SizeMismatch, crop_and_resize, resize_fast, resize_lanczos};
use proptest::prelude::*;

const LOBES: f64 = 3.0;

/// The definition, in full: every pixel of the result is the sum over all pixels of the picture,
/// each weighted by the filter of its distance across times that of its distance down.
fn by_definition(rgb: &[u8], from: (u32, u32), to: (u32, u32)) -> Vec<u8> {
    let mut result = Vec::new();
    for y in 0..to.1 {
        let down = weights(y, from.1, to.1);
        for x in 0..to.0 {
            let across = weights(x, from.0, to.0);
            for channel in 0..3 {
                let (mut sum, mut all) = (0.0, 0.0);
                for (row, down) in down.iter().enumerate() {
                    for (column, across) in across.iter().enumerate() {
                        let at = (row * from.0 as usize + column) * 3 + channel;
                        sum += down * across * f64::from(rgb[at]);
                        all += down * across;
                    }
                }
                result.push((sum / all).round().clamp(0.0, 255.0) as u8);
            }
        }
    }
    result
}

fn weights(pixel: u32, from: u32, to: u32) -> Vec<f64> {
    let step = f64::from(from) / f64::from(to);
    let centre = (f64::from(pixel) + 0.5) * step;
    let sinc = |x: f64| {
        if x == 0.0 {
            1.0
        } else {
            (PI * x).sin() / (PI * x)
        }
    };
    let filter = |x: f64| {
        if x.abs() < LOBES {
            sinc(x) * sinc(x / LOBES)
        } else {
            0.0
        }
    };
    (0..from)
        .map(|at| filter((f64::from(at) + 0.5 - centre) / step.max(1.0)))
        .collect()
}

/// `[height][width][3]` of `colour(x, y)`.
fn painted((width, height): (u32, u32), colour: impl Fn(u32, u32) -> [u8; 3]) -> Vec<u8> {
    (0..height)
        .flat_map(|y| (0..width).map(move |x| (x, y)))
        .flat_map(|(x, y)| colour(x, y))
        .collect()
}

fn furthest(left: &[u8], right: &[u8]) -> u8 {
    assert_eq!(left.len(), right.len());
    let pairs = left.iter().zip(right);
    pairs.map(|(&a, &b)| a.abs_diff(b)).max().unwrap_or(0)
}

fn some_picture() -> impl Strategy<Value = ((u32, u32), Vec<u8>)> {
    (1..24_u32, 1..24_u32).prop_flat_map(|size| {
        let bytes = (size.0 * size.1 * 3) as usize;
        (Just(size), proptest::collection::vec(any::<u8>(), bytes))
    })
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    /// Two roundings, one each way. Colours keep away from the ends of the range, where the row
    /// between both ways is cut off and the definition is not.
    #[test]
    fn every_sample_is_within_two_levels_of_the_definition(
        (from, rgb) in some_picture(),
        to in (1..40_u32, 1..40_u32),
    ) {
        let rgb: Vec<u8> = rgb.into_iter().map(|value| 64 + value / 2).collect();
        let scaled = resize_lanczos(&rgb, from, to).unwrap();
        prop_assert!(furthest(&scaled, &by_definition(&rgb, from, to)) <= 2);
    }

    #[test]
    fn one_colour_stays_that_colour(
        colour in any::<[u8; 3]>(),
        from in (1..40_u32, 1..40_u32),
        to in (1..40_u32, 1..40_u32),
    ) {
        let rgb = painted(from, |_, _| colour);
        let wanted = painted(to, |_, _| colour);
        prop_assert_eq!(resize_lanczos(&rgb, from, to).unwrap(), wanted.clone());
        prop_assert_eq!(crop_and_resize(&rgb, from, to).unwrap(), wanted);
    }

    #[test]
    fn of_the_same_shape_the_middle_is_the_whole(
        (from, rgb) in some_picture(),
        times in 1..4_u32,
    ) {
        let to = (from.0 * times, from.1 * times);
        let whole = resize_lanczos(&rgb, from, to).unwrap();
        prop_assert_eq!(crop_and_resize(&rgb, from, to).unwrap(), whole);
    }
}

#[test]
fn a_picture_of_its_own_size_stays_as_it_is() {
    let rgb = painted((37, 21), |x, y| {
        [(x * 7) as u8, (y * 11) as u8, (x * y) as u8]
    });
    assert_eq!(resize_lanczos(&rgb, (37, 21), (37, 21)).unwrap(), rgb);
}

/// Stripes finer than the result can show must become grey; a filter that is too narrow would make
/// coarse stripes of them.
#[test]
fn stripes_that_are_too_fine_turn_grey() {
    let rgb = painted((800, 60), |x, _| [if x % 2 == 0 { 0 } else { 255 }; 3]);
    let scaled = resize_lanczos(&rgb, (800, 60), (190, 60)).unwrap();
    // At the edges there are fewer stripes to weigh.
    for row in scaled.chunks_exact(190 * 3) {
        let middle = &row[4 * 3..186 * 3];
        let spread = furthest(middle, &vec![127; middle.len()]);
        assert!(spread <= 3, "{spread} levels from grey");
    }
}

#[test]
fn of_another_shape_the_middle_is_taken() {
    let thirds = |at: u32| match at / 30 {
        0 => [255, 0, 0],
        1 => [0, 255, 0],
        _ => [0, 0, 255],
    };
    let wide = painted((90, 30), |x, _| thirds(x));
    let tall = painted((30, 90), |_, y| thirds(y));
    for (rgb, from) in [(wide, (90, 30)), (tall, (30, 90))] {
        let square = crop_and_resize(&rgb, from, (10, 10)).unwrap();
        // Three pixels from the edges of the green part, nothing else is in reach.
        for y in 3..7 {
            for x in 3..7 {
                let at = (y * 10 + x) * 3;
                assert_eq!(square[at..at + 3], [0, 255, 0], "{from:?} at {x}, {y}");
            }
        }
    }
}

#[test]
fn pixels_that_do_not_fill_their_size_are_refused() {
    for (size, bytes) in [
        ((4, 4), 0),
        ((4, 4), 47),
        ((4, 4), 49),
        ((0, 4), 0),
        ((0, 0), 0),
    ] {
        let refused = SizeMismatch { size, bytes };
        assert_eq!(resize_lanczos(&vec![0; bytes], size, (2, 2)), Err(refused));
        assert_eq!(crop_and_resize(&vec![0; bytes], size, (2, 2)), Err(refused));
    }
}

/// The mean structural similarity of two pictures over windows of 8 x 8 (Wang et al., "Image quality assessment: from
/// error visibility to structural similarity", 2004), of their green.
fn ssim(one: &[u8], other: &[u8], (width, height): (u32, u32)) -> f64 {
    const STEADY: [f64; 2] = [6.5025, 58.5225];
    let (width, height) = (width as usize, height as usize);
    let (mut sum, mut windows) = (0.0, 0.0);
    for top in (0..height - 7).step_by(4) {
        for left in (0..width - 7).step_by(4) {
            let places = (0..64).map(|at| ((top + at / 8) * width + left + at % 8) * 3 + 1);
            let pairs: Vec<(f64, f64)> = places
                .map(|at| (f64::from(one[at]), f64::from(other[at])))
                .collect();
            let mean = |of: &dyn Fn(&(f64, f64)) -> f64| pairs.iter().map(of).sum::<f64>() / 64.0;
            let (a, b) = (mean(&|pair| pair.0), mean(&|pair| pair.1));
            let own = mean(&|pair| pair.0 * pair.0) - a * a;
            let others = mean(&|pair| pair.1 * pair.1) - b * b;
            let common = mean(&|pair| pair.0 * pair.1) - a * b;
            let light = (2.0 * a * b + STEADY[0]) / (a * a + b * b + STEADY[0]);
            sum += light * (2.0 * common + STEADY[1]) / (own + others + STEADY[1]);
            windows += 1.0;
        }
    }
    sum / windows
}

#[test]
fn a_thumbnail_looks_like_that_of_the_wider_filter() {
    // Slopes, waves of several lengths, and hard edges.
    let colour = |x: u32, y: u32| {
        let (across, down) = (f64::from(x), f64::from(y));
        let waves =
            (across / 5.0).sin() * 30.0 + (across / 60.0).sin() * 40.0 + (down / 25.0).cos() * 50.0;
        let edge = if (x / 37 + y / 23).is_multiple_of(2) {
            30.0
        } else {
            -30.0
        };
        let grey = (128.0 + waves + edge).clamp(0.0, 255.0) as u8;
        [grey, grey, (x / 8) as u8]
    };
    for (from, to) in [
        ((854, 480), (320, 180)),
        ((480, 854), (180, 320)),
        ((720, 720), (320, 320)),
        ((1280, 720), (320, 180)),
        ((1920, 1080), (320, 180)),
    ] {
        let picture = painted(from, colour);
        let wide = resize_lanczos(&picture, from, to).unwrap();
        let quick = resize_fast(&picture, from, to).unwrap();
        let likeness = ssim(&wide, &quick, to);
        assert!(likeness > 0.98, "{from:?}: {likeness:.4}");
    }
}
