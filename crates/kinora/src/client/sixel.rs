//! RGB pictures as sixel graphics (DEC STD 070, "sixel"; see also
//! <https://en.wikipedia.org/wiki/Sixel>): six rows of pixels at a time, one pass per colour,
//! run-length encoded. Colours form a cube of 6 by 6 by 6.

use std::fmt::Write;

/// Steps of each channel.
const STEPS: usize = 6;
const COLOURS: usize = STEPS * STEPS * STEPS;
const BAND: usize = 6;

/// `rgb` is `[height][width][3] u8`.
pub(super) fn encode(rgb: &[u8], width: usize) -> String {
    let indices: Vec<usize> = rgb.chunks_exact(3).map(index).collect();
    let height = indices.len() / width.max(1);
    let mut text = format!("\x1bPq\"1;1;{width};{height}");
    for colour in 0..COLOURS {
        let [red, green, blue] = [colour / 36, colour / 6 % 6, colour % 6].map(|step| step * 20);
        let _ = write!(text, "#{colour};2;{red};{green};{blue}");
    }
    for band in indices.chunks(BAND * width.max(1)) {
        write_band(&mut text, band, width);
        text.push('-');
    }
    text.push_str("\x1b\\");
    text
}

/// The nearest colour in the cube.
fn index(rgb: &[u8]) -> usize {
    rgb.iter().fold(0, |index, channel| {
        index * STEPS + ((usize::from(*channel) * (STEPS - 1) + 127) / 255)
    })
}

/// Writes up to six rows: one line of sixels per colour, drawn over each other.
fn write_band(text: &mut String, band: &[usize], width: usize) {
    let mut masks = vec![Vec::new(); COLOURS];
    for (at, colour) in band.iter().enumerate() {
        let (row, column) = (at / width, at % width);
        if let Some(mask) = masks.get_mut(*colour) {
            mask.resize(width, 0_u8);
            if let Some(bits) = mask.get_mut(column) {
                *bits |= 1 << row;
            }
        }
    }
    for (colour, mask) in masks
        .iter()
        .enumerate()
        .filter(|(_, mask)| !mask.is_empty())
    {
        let _ = write!(text, "#{colour}");
        for run in mask.chunk_by(|a, b| a == b) {
            let sixel = char::from(b'?' + run.first().copied().unwrap_or_default());
            match run.len() {
                1..=3 => text.extend(std::iter::repeat_n(sixel, run.len())),
                length => {
                    let _ = write!(text, "!{length}{sixel}");
                }
            }
        }
        text.push('$');
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Paints what `encode` wrote, as a terminal does: the colour of each pixel.
    fn paint(text: &str, width: usize, height: usize) -> Vec<Option<usize>> {
        let body = text
            .strip_prefix("\x1bPq\"")
            .unwrap()
            .strip_suffix("\x1b\\")
            .unwrap();
        let body = &body[body.find('#').unwrap()..];
        let mut pixels = vec![None; width * height];
        let (mut x, mut band, mut colour, mut repeat) = (0, 0, 0, 1);
        let mut rest = body;
        while let Some(c) = rest.chars().next() {
            rest = &rest[1..];
            let number = |rest: &mut &str| -> usize {
                let end = rest
                    .find(|c: char| !c.is_ascii_digit())
                    .unwrap_or(rest.len());
                let (digits, after) = rest.split_at(end);
                *rest = after;
                digits.parse().unwrap()
            };
            match c {
                '#' => {
                    colour = number(&mut rest);
                    while let Some(after) = rest.strip_prefix(';') {
                        rest = after;
                        number(&mut rest);
                    }
                }
                '!' => repeat = number(&mut rest),
                '$' => x = 0,
                '-' => (x, band) = (0, band + 1),
                sixel => {
                    let bits = sixel as u8 - b'?';
                    for _ in 0..std::mem::replace(&mut repeat, 1) {
                        for row in (0..BAND).filter(|row| bits >> row & 1 == 1) {
                            pixels[(band * BAND + row) * width + x] = Some(colour);
                        }
                        x += 1;
                    }
                }
            }
        }
        pixels
    }

    #[test]
    fn a_terminal_paints_the_picture_that_was_encoded() {
        let (width, height) = (17, 13);
        let rgb: Vec<u8> = (0..width * height * 3)
            .map(|n| (n * 37 % 256) as u8)
            .collect();
        let painted = paint(&encode(&rgb, width), width, height);
        let expected: Vec<_> = rgb
            .chunks_exact(3)
            .map(|pixel| Some(index(pixel)))
            .collect();
        assert_eq!(painted, expected);
    }

    #[test]
    fn colours_are_the_nearest_of_the_cube() {
        assert_eq!(index(&[0, 0, 0]), 0);
        assert_eq!(index(&[255, 255, 255]), COLOURS - 1);
        assert_eq!(index(&[255, 0, 51]), 5 * 36 + 1);
    }
}
