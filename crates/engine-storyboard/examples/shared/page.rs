//! A page that an example fills with frames and labels and writes as PNG.

use std::error::Error;
use std::fs::File;
use std::io::BufWriter;
use std::path::Path;

use kinora_contract::Size;

const PAPER: u8 = 246;
const INK: u8 = 24;

/// `rgb: [height][width][3] u8` on light paper.
pub(crate) struct Page {
    size: Size,
    rgb: Vec<u8>,
}

impl Page {
    /// An empty page.
    pub(crate) fn new(size: Size) -> Result<Self, Box<dyn Error>> {
        Ok(Self {
            size,
            rgb: vec![PAPER; size.pixels() as usize * 3],
        })
    }

    /// Puts a frame down with its upper left corner at `at`; what passes the edge is cut.
    pub(crate) fn paste(&mut self, frame: &[u8], size: Size, at: (u32, u32)) {
        let wide = size.width.min(self.size.width.saturating_sub(at.0)) as usize * 3;
        let lines = frame.chunks_exact(size.width as usize * 3);
        for (row, line) in (at.1..self.size.height).zip(lines) {
            let start = (row * self.size.width + at.0) as usize * 3;
            self.rgb[start..start + wide].copy_from_slice(&line[..wide]);
        }
    }

    /// Writes one line whose letters hang from `at`, `height` pixels high, until `right`.
    pub(crate) fn write(&mut self, text: &str, at: (u32, u32), height: f32, right: u32) {
        let Some((wide, _, cover)) = kinora_engine_storyboard::label(text, height * 0.75) else {
            return;
        };
        for (row, line) in (at.1..self.size.height).zip(cover.chunks_exact(wide)) {
            for (x, share) in (at.0..right.min(self.size.width)).zip(line) {
                let start = (row * self.size.width + x) as usize * 3;
                for part in &mut self.rgb[start..start + 3] {
                    let mixed = f32::from(*part) * (1.0 - share) + f32::from(INK) * share;
                    *part = mixed as u8;
                }
            }
        }
    }

    /// Writes the page as a PNG file.
    pub(crate) fn save(&self, path: &Path) -> Result<(), Box<dyn Error>> {
        let writer = BufWriter::new(File::create(path)?);
        let mut encoder = png::Encoder::new(writer, self.size.width, self.size.height);
        encoder.set_color(png::ColorType::Rgb);
        encoder.write_header()?.write_image_data(&self.rgb)?;
        Ok(())
    }
}
