//! Draws subjects on a plain ground, side by side, as PNG: all of them, or those that are named. With
//! `--times` each is drawn at several instants, so that its movement can be judged.
//!
//! ```sh
//! cargo run --release -p kinora-engine-storyboard --example portraits -- \
//!     --out nouns.png [--nouns cat,dog] [--act run] [--times 4] [--side 160] [--columns 10]
//! ```
#![allow(clippy::print_stdout)]

use std::error::Error;
use std::fs::File;
use std::io::BufWriter;

fn argument(name: &str) -> Option<String> {
    let mut words = std::env::args().skip_while(|word| *word != format!("--{name}"));
    words.nth(1)
}

fn main() -> Result<(), Box<dyn Error>> {
    let number = |name: &str, usual: usize| argument(name).map_or(Ok(usual), |text| text.parse());
    let (side, times) = (number("side", 160)?, number("times", 1)?);
    let columns = number("columns", if times > 1 { times } else { 10 })?;
    let all = kinora_engine_storyboard::nouns().join(",");
    let nouns = argument("nouns").unwrap_or(all);
    let act = argument("act");
    let mut pictures = Vec::new();
    for noun in nouns.split(',') {
        for nth in 0..times {
            let time_s = 0.35 + nth as f32 * 0.27;
            let picture =
                kinora_engine_storyboard::portrait(noun, act.as_deref(), side as u32, time_s);
            pictures.push(picture.ok_or_else(|| format!("unknown noun or act: {noun}"))?);
        }
    }
    let rows = pictures.len().div_ceil(columns);
    let mut page = vec![255_u8; columns * rows * side * side * 3];
    for (index, picture) in pictures.iter().enumerate() {
        let (left, top) = (index % columns * side, index / columns * side);
        for (row, line) in picture.chunks_exact(side * 3).enumerate() {
            let at = ((top + row) * columns * side + left) * 3;
            page[at..at + side * 3].copy_from_slice(line);
        }
    }
    let path = argument("out").unwrap_or("portraits.png".to_owned());
    let writer = BufWriter::new(File::create(&path)?);
    let mut encoder = png::Encoder::new(writer, (columns * side) as u32, (rows * side) as u32);
    encoder.set_color(png::ColorType::Rgb);
    encoder.write_header()?.write_image_data(&page)?;
    println!("{} pictures in {path}", pictures.len());
    Ok(())
}
