//! Pictures in memory, and files of them by public encoders.

/// `N` channels: 1 grey, 2 grey and alpha, 3 RGB, 4 RGB and alpha.
#[derive(Clone)]
pub(crate) struct Picture<const N: usize> {
    pub(crate) width: u32,
    pub(crate) height: u32,
    /// Row by row.
    pub(crate) pixels: Vec<[u8; N]>,
}

impl<const N: usize> Picture<N> {
    /// `colour(x, y)` everywhere.
    pub(crate) fn from_fn(width: u32, height: u32, colour: impl Fn(u32, u32) -> [u8; N]) -> Self {
        let places = (0..height).flat_map(|y| (0..width).map(move |x| (x, y)));
        Self {
            width,
            height,
            pixels: places.map(|(x, y)| colour(x, y)).collect(),
        }
    }

    pub(crate) fn filled(width: u32, height: u32, colour: [u8; N]) -> Self {
        Self::from_fn(width, height, |_, _| colour)
    }

    pub(crate) fn at(&self, x: u32, y: u32) -> [u8; N] {
        self.pixels[(y * self.width + x) as usize]
    }

    pub(crate) fn map<const M: usize>(&self, colour: impl Fn([u8; N]) -> [u8; M]) -> Picture<M> {
        Picture {
            width: self.width,
            height: self.height,
            pixels: self.pixels.iter().copied().map(colour).collect(),
        }
    }

    pub(crate) fn bytes(&self) -> &[u8] {
        self.pixels.as_flattened()
    }

    pub(crate) fn png(&self) -> Vec<u8> {
        self.png_of(png::BitDepth::Eight, self.bytes())
    }

    /// Every sample widened, so that the best 8 bits of it are those that it had.
    pub(crate) fn png_of_16_bits(&self) -> Vec<u8> {
        let widened: Vec<u8> = self.bytes().iter().flat_map(|&byte| [byte; 2]).collect();
        self.png_of(png::BitDepth::Sixteen, &widened)
    }

    fn png_of(&self, depth: png::BitDepth, samples: &[u8]) -> Vec<u8> {
        let mut file = Vec::new();
        let mut encoder = png::Encoder::new(&mut file, self.width, self.height);
        encoder.set_depth(depth);
        encoder.set_compression(png::Compression::Fast);
        encoder.set_color(match N {
            1 => png::ColorType::Grayscale,
            2 => png::ColorType::GrayscaleAlpha,
            3 => png::ColorType::Rgb,
            _ => png::ColorType::Rgba,
        });
        let mut writer = encoder.write_header().unwrap();
        writer.write_image_data(samples).unwrap();
        writer.finish().unwrap();
        file
    }

    /// Lossless; of 3 or 4 channels.
    pub(crate) fn webp(&self) -> Vec<u8> {
        let color = match N {
            3 => image_webp::ColorType::Rgb8,
            _ => image_webp::ColorType::Rgba8,
        };
        let mut file = Vec::new();
        image_webp::WebPEncoder::new(&mut file)
            .encode(self.bytes(), self.width, self.height, color)
            .unwrap();
        file
    }
}

/// A GIF of `frames`, all of the first one's size, in colours of six levels a channel.
pub(crate) fn gif(frames: &[Picture<4>]) -> Vec<u8> {
    const LEVELS: u8 = 6;
    const STEP: u8 = 255 / (LEVELS - 1);
    const CLEAR: u8 = LEVELS * LEVELS * LEVELS;
    let level = |value: u8| value.saturating_add(STEP / 2) / STEP;
    let palette: Vec<u8> = (0..=CLEAR)
        .flat_map(|index| [index / 36, index / 6, index].map(|digit| digit % LEVELS * STEP))
        .collect();
    let side = |pixels: u32| u16::try_from(pixels).unwrap();
    let (width, height) = (side(frames[0].width), side(frames[0].height));
    let mut file = Vec::new();
    let mut encoder = gif::Encoder::new(&mut file, width, height, &palette).unwrap();
    for frame in frames {
        let indices = frame.map(|[red, green, blue, alpha]| {
            let colour = (level(red) * LEVELS + level(green)) * LEVELS + level(blue);
            [if alpha == 0 { CLEAR } else { colour }]
        });
        let frame = gif::Frame {
            width,
            height,
            transparent: Some(CLEAR),
            buffer: indices.bytes().to_vec().into(),
            ..gif::Frame::default()
        };
        encoder.write_frame(&frame).unwrap();
    }
    drop(encoder);
    file
}
