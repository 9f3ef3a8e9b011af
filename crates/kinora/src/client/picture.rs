//! Pictures in terminals, for previews of an unfinished video: kitty's graphics protocol
//! (<https://sw.kovidgoyal.net/kitty/graphics-protocol/>), iTerm2's inline images
//! (<https://iterm2.com/documentation-images.html>), or sixels. The terminal is identified by its
//! variables, since a query would take over the keyboard for a moment.

use std::io::Cursor;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use image_webp::WebPDecoder;
use rustix::termios::tcgetwinsize;

use super::sixel;
use crate::cli::PreviewMode;

/// Columns of a picture, if the terminal scales.
const COLUMNS: u32 = 40;
/// Bytes of base64 in one escape sequence of kitty's protocol.
const CHUNK: usize = 4096;
/// No side of a preview exceeds 320 pixels; our services send nothing larger.
const SIDE_MAX: u32 = 1024;
/// Height of a cell in pixels, if the terminal does not report it.
const CELL_HEIGHT: u32 = 20;

/// A picture protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Protocol {
    Kitty,
    Iterm,
    Sixel,
}

/// A picture as escape sequences.
#[derive(Debug)]
pub(super) struct Frame {
    pub(super) text: String,
    /// Number of rows that it covers.
    pub(super) rows: u16,
}

impl Protocol {
    /// The terminal's protocol, or the requested one.
    pub(super) fn of(mode: PreviewMode) -> Option<Self> {
        match mode {
            PreviewMode::Auto => known(|name| std::env::var(name).ok()),
            PreviewMode::Kitty => Some(Self::Kitty),
            PreviewMode::Iterm => Some(Self::Iterm),
            PreviewMode::Sixel => Some(Self::Sixel),
            PreviewMode::None => None,
        }
    }

    /// Encodes a WebP picture; `None` if it cannot be decoded.
    pub(super) fn frame(self, webp: &[u8]) -> Option<Frame> {
        let picture = Picture::read(webp)?;
        let scaled = picture.rows_of_cells();
        let rows = match self {
            Self::Sixel => picture.height.div_ceil(cell_height()),
            _ => scaled,
        };
        let text = match self {
            Self::Kitty => kitty(&picture.png()?, scaled),
            Self::Iterm => iterm(&picture.png()?, scaled),
            Self::Sixel => sixel::encode(&picture.rgb, picture.width as usize),
        };
        Some(Frame {
            text,
            rows: u16::try_from(rows).ok()?,
        })
    }
}

/// The protocol of a terminal that identifies itself. Multiplexers do not pass pictures on.
fn known(variable: impl Fn(&str) -> Option<String>) -> Option<Protocol> {
    let says = |name: &str| variable(name).unwrap_or_default();
    if !says("TMUX").is_empty() || says("TERM").starts_with("screen") {
        return None;
    }
    let (term, program) = (says("TERM"), says("TERM_PROGRAM"));
    let is_kitty = !says("KITTY_WINDOW_ID").is_empty() || term.contains("kitty");
    if is_kitty || term.contains("ghostty") || program == "ghostty" {
        return Some(Protocol::Kitty);
    }
    if matches!(program.as_str(), "iTerm.app" | "WezTerm") {
        return Some(Protocol::Iterm);
    }
    let has_sixels = ["foot", "mlterm", "contour", "yaft"];
    let has_sixels = has_sixels.iter().any(|name| term.starts_with(name));
    has_sixels.then_some(Protocol::Sixel)
}

/// RGB of 8 bits.
struct Picture {
    width: u32,
    height: u32,
    /// `[height][width][3] u8`
    rgb: Vec<u8>,
}

impl Picture {
    fn read(webp: &[u8]) -> Option<Self> {
        let mut decoder = WebPDecoder::new(Cursor::new(webp)).ok()?;
        let (width, height) = decoder.dimensions();
        if width.max(height) > SIDE_MAX {
            return None;
        }
        let mut pixels = vec![0; decoder.output_buffer_size()?];
        decoder.read_image(&mut pixels).ok()?;
        if decoder.has_alpha() {
            pixels = pixels
                .chunks_exact(4)
                .flat_map(|rgba| rgba.first_chunk::<3>().copied().unwrap_or_default())
                .collect();
        }
        Some(Self {
            width,
            height,
            rgb: pixels,
        })
    }

    /// Number of rows at the usual number of columns; a cell is about twice as high as wide.
    const fn rows_of_cells(&self) -> u32 {
        let rows = (COLUMNS * self.height).div_ceil(2 * self.width);
        if rows == 0 { 1 } else { rows }
    }

    fn png(&self) -> Option<Vec<u8>> {
        let mut bytes = Vec::new();
        let mut encoder = png::Encoder::new(&mut bytes, self.width, self.height);
        encoder.set_color(png::ColorType::Rgb);
        encoder.set_depth(png::BitDepth::Eight);
        encoder.set_compression(png::Compression::Fast);
        encoder
            .write_header()
            .ok()?
            .write_image_data(&self.rgb)
            .ok()?;
        Some(bytes)
    }
}

/// Transmits and shows image 1, which replaces the previous one, without a response and without
/// moving the cursor.
fn kitty(png: &[u8], rows: u32) -> String {
    let data = STANDARD.encode(png);
    let mut text = String::with_capacity(data.len() + 256);
    let mut keys = format!("a=T,f=100,i=1,p=1,q=2,C=1,c={COLUMNS},r={rows},");
    let mut rest = data.as_str();
    loop {
        let (chunk, more) = rest.split_at(rest.len().min(CHUNK));
        let has_more = u8::from(!more.is_empty());
        text.push_str(&format!("\x1b_G{keys}m={has_more};{chunk}\x1b\\"));
        if more.is_empty() {
            return text;
        }
        keys.clear();
        rest = more;
    }
}

fn iterm(png: &[u8], rows: u32) -> String {
    let (size, data) = (png.len(), STANDARD.encode(png));
    format!(
        "\x1b]1337;File=inline=1;size={size};width={COLUMNS};height={rows};preserveAspectRatio=1;doNotMoveCursor=1:{data}\x07"
    )
}

fn cell_height() -> u32 {
    let size = tcgetwinsize(std::io::stderr()).ok();
    let height = size.and_then(|size| size.ws_ypixel.checked_div(size.ws_row));
    height
        .filter(|pixels| *pixels > 0)
        .map_or(CELL_HEIGHT, u32::from)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn terminals_are_known_by_their_variables() {
        let of = |pairs: &[(&str, &str)]| {
            known(|name| {
                let found = pairs.iter().find(|(one, _)| *one == name);
                found.map(|(_, value)| (*value).to_owned())
            })
        };
        assert_eq!(of(&[("TERM", "xterm-kitty")]), Some(Protocol::Kitty));
        for program in ["iTerm.app", "WezTerm"] {
            assert_eq!(of(&[("TERM_PROGRAM", program)]), Some(Protocol::Iterm));
        }
        assert_eq!(of(&[("TERM", "foot-extra")]), Some(Protocol::Sixel));
        assert_eq!(of(&[("TERM", "xterm-256color")]), None);
        assert_eq!(of(&[("TERM", "xterm-kitty"), ("TMUX", "/tmp/x")]), None);
        assert_eq!(of(&[]), None);
    }

    #[test]
    fn kitty_gets_the_picture_in_pieces_that_it_takes() {
        let png: Vec<u8> = (0..10_000_u32).map(|n| (n % 251) as u8).collect();
        let text = kitty(&png, 11);
        let mut data = String::new();
        let pieces: Vec<&str> = text.split_terminator("\x1b\\").collect();
        for (number, piece) in pieces.iter().enumerate() {
            let (keys, chunk) = piece
                .strip_prefix("\x1b_G")
                .unwrap()
                .split_once(';')
                .unwrap();
            assert!(chunk.len() <= CHUNK);
            let is_last = number + 1 == pieces.len();
            assert!(
                keys.ends_with(if is_last { "m=0" } else { "m=1" }),
                "{keys}"
            );
            assert_eq!(keys.contains("a=T"), number == 0);
            data.push_str(chunk);
        }
        assert_eq!(STANDARD.decode(data).unwrap(), png);
    }

    #[test]
    fn iterm_gets_the_picture_with_its_size_in_one_piece() {
        let png: Vec<u8> = (0..10_000_u32).map(|n| (n % 251) as u8).collect();
        let text = iterm(&png, 11);
        let file = text.strip_prefix("\x1b]1337;File=").unwrap();
        let (arguments, data) = file.strip_suffix('\x07').unwrap().split_once(':').unwrap();
        let arguments: Vec<&str> = arguments.split(';').collect();
        // Without `inline` it would be saved to a file.
        for wanted in ["inline=1", "size=10000", "width=40", "height=11"] {
            assert!(arguments.contains(&wanted), "{wanted}: {arguments:?}");
        }
        assert_eq!(STANDARD.decode(data).unwrap(), png);
    }

    #[test]
    fn what_is_no_picture_is_not_shown() {
        for protocol in [Protocol::Kitty, Protocol::Iterm, Protocol::Sixel] {
            assert!(protocol.frame(b"RIFF0000WEBPVP8 nonsense").is_none());
        }
    }
}
