//! Every noun that the storyboard can draw, each with its picture and its name, as one PNG for
//! the documentation. It draws no scenes.
//!
//! ```sh
//! cargo run --release -p kinora-engine-storyboard --example noun_sheet -- \
//!     --out nouns.png [--side 96] [--columns 14] [--list true]
//! ```
#![allow(clippy::print_stdout)]

#[path = "shared/page.rs"]
mod page;

use std::error::Error;
use std::path::PathBuf;

use kinora_contract::Size;
use page::Page;

/// Height of the line under a picture.
const LABEL: u32 = 18;
const GAP: u32 = 6;
/// The instant of its life at which a thing is drawn, seconds: legs are apart, wings are out.
const TIME_S: f32 = 0.6;

fn argument(name: &str) -> Option<String> {
    let mut words = std::env::args().skip_while(|word| *word != format!("--{name}"));
    words.nth(1)
}

/// How many times larger a thing is drawn than shown, since some fill a small part of a portrait.
const FINE: u32 = 8;
/// Empty share of a picture around its thing, each side.
const MARGIN: f32 = 0.06;

/// The picture of `noun`, `[side][side][3] u8`: the square around its drawing, scaled to fit.
fn picture(noun: &str, side: u32) -> Option<Vec<u8>> {
    let large = side * FINE;
    let drawn = kinora_engine_storyboard::portrait(noun, None, large, TIME_S)?;
    let ground = [drawn[0], drawn[1], drawn[2]];
    let at = |x: u32, y: u32| {
        let start = ((y * large + x) * 3) as usize;
        [drawn[start], drawn[start + 1], drawn[start + 2]]
    };
    let (mut left, mut top, mut right, mut bottom) = (large, large, 0, 0);
    for y in 0..large {
        for x in (0..large).filter(|x| at(*x, y) != ground) {
            (left, right) = (left.min(x), right.max(x + 1));
            (top, bottom) = (top.min(y), bottom.max(y + 1));
        }
    }
    let reach = right
        .saturating_sub(left)
        .max(bottom.saturating_sub(top))
        .max(side) as f32;
    let step = reach * (1.0 + 2.0 * MARGIN) / side as f32;
    let corner = |low: u32, high: u32| (low + high) as f32 * 0.5 - step * side as f32 * 0.5;
    let (across, down) = (corner(left, right), corner(top, bottom));
    let mean = |x: u32, y: u32| {
        // The mean of 4 x 4 places.
        let mut sum = [0_u32; 3];
        for nth in 0..16 {
            let part = |place: u32, nth: u32, start: f32| {
                start + (place as f32 + (nth as f32 + 0.5) * 0.25) * step
            };
            let (x, y) = (part(x, nth % 4, across), part(y, nth / 4, down));
            let inside = |place: f32| (0.0..large as f32).contains(&place);
            let pixel = if inside(x) && inside(y) {
                at(x as u32, y as u32)
            } else {
                ground
            };
            for (sum, part) in sum.iter_mut().zip(pixel) {
                *sum += u32::from(part);
            }
        }
        sum.map(|sum| (sum / 16) as u8)
    };
    let places = (0..side).flat_map(|y| (0..side).map(move |x| (x, y)));
    Some(places.flat_map(|(x, y)| mean(x, y)).collect())
}

fn main() -> Result<(), Box<dyn Error>> {
    let number = |name: &str, usual: u32| argument(name).map_or(Ok(usual), |text| text.parse());
    let (side, columns) = (number("side", 96)?, number("columns", 14)?.max(1));
    let nouns = kinora_engine_storyboard::nouns();
    if argument("list").is_some() {
        println!("{}", nouns.join(", "));
    }
    let (wide, tall) = (side + GAP, side + LABEL + GAP);
    let rows = (nouns.len() as u32).div_ceil(columns);
    let mut page = Page::new(Size::new(columns * wide + GAP, rows * tall + GAP))?;
    for (nth, noun) in (0..).zip(nouns) {
        let (left, top) = (GAP + nth % columns * wide, GAP + nth / columns * tall);
        let picture = picture(noun, side).ok_or_else(|| format!("no picture of {noun}"))?;
        page.paste(&picture, Size::new(side, side), (left, top));
        page.write(noun, (left, top + side + 1), 13.0, left + wide);
    }
    let path = argument("out").map_or("nouns.png".into(), PathBuf::from);
    page.save(&path)
}
