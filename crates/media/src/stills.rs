//! The poster, the spritesheet and the first and last frame, sampled as the frames pass, and
//! previews of unfinished videos. Stores one scaled picture, at most 25 small cells and two frames
//! as JPEG.

use jpeg_encoder::{ColorType, Encoder as JpegEncoder};
use kinora_media_resize::SizeMismatch;
use webp::WebPConfig;

use crate::{ClipFormat, MediaError};

const POSTER_SIDE_MAX: u32 = 1280;
const PREVIEW_SIDE_MAX: u32 = 320;
const WEBP_QUALITY: f32 = 80.0;
const CELL_SIDE_MAX: u32 = 320;
const GRID_SIDE_MAX: u32 = 5;
const SPRITESHEET_QUALITY: u8 = 80;
/// A client may make its next video from a frame: its errors must stay below those of the video.
/// From 90 on, the encoder keeps the full colour resolution (4:4:4).
const FRAME_QUALITY: u8 = 95;

/// A way of [`kinora_media_resize`].
type ResizeFn = fn(&[u8], (u32, u32), (u32, u32)) -> Result<Vec<u8>, SizeMismatch>;

/// Collects pictures for the stills from passing frames.
pub(crate) struct StillCollector {
    format: ClipFormat,
    poster: Option<StillPicture>,
    sheet: CellSheet,
    first_frame_jpeg: Option<Vec<u8>>,
    last_frame_jpeg: Option<Vec<u8>>,
}

/// `[height][width][3] u8` RGB.
struct StillPicture {
    width: u32,
    height: u32,
    rgb: Vec<u8>,
}

/// A grid of cells, filled from left to right and top to bottom.
struct CellSheet {
    picture: StillPicture,
    cell_width: u32,
    cell_height: u32,
    columns: u32,
    cells: u32,
    filled: u32,
}

impl StillCollector {
    pub(crate) fn new(format: &ClipFormat) -> Self {
        // The smallest square grid that holds all cells: 25 from 25 frames on, fewer for shorter
        // clips (5 frames: 3 columns, 2 rows).
        let cells = format.frames.min(GRID_SIDE_MAX * GRID_SIDE_MAX);
        let columns = (1..GRID_SIDE_MAX).find(|side| side * side >= cells);
        let columns = columns.unwrap_or(GRID_SIDE_MAX);
        let (cell_width, cell_height) = fit_within(format.width, format.height, CELL_SIDE_MAX);
        let (width, height) = (cell_width * columns, cell_height * cells.div_ceil(columns));
        let rgb = vec![0; (width * height * 3) as usize];
        Self {
            format: *format,
            poster: None,
            sheet: CellSheet {
                picture: StillPicture { width, height, rgb },
                cell_width,
                cell_height,
                columns,
                cells,
                filled: 0,
            },
            first_frame_jpeg: None,
            last_frame_jpeg: None,
        }
    }

    /// Samples frame `index`; `rgb` is `[height][width][3] u8`.
    pub(crate) fn sample(&mut self, index: u32, rgb: &[u8]) -> Result<(), MediaError> {
        // One third in: after a fade from black, before an ending.
        if index == self.format.frames / 3 {
            self.poster =
                Some(self.scaled(rgb, POSTER_SIDE_MAX, kinora_media_resize::resize_lanczos)?);
        }
        let sheet = &self.sheet;
        if sheet.filled < sheet.cells && index == self.cell_frame(sheet.filled) {
            let cell = self.scaled(rgb, CELL_SIDE_MAX, kinora_media_resize::resize_fast)?;
            self.sheet.fill_next(&cell.rgb);
        }
        // Encoded as they pass: a whole frame would be several times as large in memory.
        if index == 0 {
            self.first_frame_jpeg = Some(self.frame_jpeg(rgb)?);
        }
        if index + 1 == self.format.frames {
            self.last_frame_jpeg = Some(self.frame_jpeg(rgb)?);
        }
        Ok(())
    }

    fn frame_jpeg(&self, rgb: &[u8]) -> Result<Vec<u8>, MediaError> {
        jpeg(self.format.width, self.format.height, rgb, FRAME_QUALITY)
    }

    /// The frame in the middle of this cell's share of the clip.
    fn cell_frame(&self, cell: u32) -> u32 {
        // (cell + 1/2) / cells of the clip, in integers.
        let middle = (2 * u64::from(cell) + 1) * u64::from(self.format.frames);
        (middle / (2 * u64::from(self.sheet.cells))) as u32
    }

    fn scaled(
        &self,
        rgb: &[u8],
        side_max: u32,
        resize: ResizeFn,
    ) -> Result<StillPicture, MediaError> {
        StillPicture::scaled(self.format.width, self.format.height, rgb, side_max, resize)
    }

    /// The poster as lossy WebP.
    pub(crate) fn poster_webp(&self) -> Result<Vec<u8>, MediaError> {
        self.poster
            .as_ref()
            .ok_or_else(|| MediaError::Picture("there is no poster".into()))?
            .webp()
    }

    /// The spritesheet as JPEG.
    pub(crate) fn spritesheet_jpeg(&self) -> Result<Vec<u8>, MediaError> {
        let StillPicture { width, height, rgb } = &self.sheet.picture;
        jpeg(*width, *height, rgb, SPRITESHEET_QUALITY)
    }

    /// The first and the last frame as JPEG, in full size.
    pub(crate) fn into_frame_jpegs(self) -> [Option<Vec<u8>>; 2] {
        [self.first_frame_jpeg, self.last_frame_jpeg]
    }
}

/// A preview of an unfinished video: lossy WebP, the longest side at most 320 pixels. `rgb` is
/// `[height][width][3] u8`.
///
/// # Errors
/// [`MediaError::Picture`] for an empty picture, or one that does not match its size.
pub fn preview(width: u32, height: u32, rgb: &[u8]) -> Result<Vec<u8>, MediaError> {
    let pixels = u64::from(width) * u64::from(height);
    if pixels == 0 || pixels.checked_mul(3) != Some(rgb.len() as u64) {
        return Err(MediaError::Picture(
            "a preview does not match its size".into(),
        ));
    }
    StillPicture::scaled(
        width,
        height,
        rgb,
        PREVIEW_SIDE_MAX,
        kinora_media_resize::resize_fast,
    )?
    .webp()
}

impl StillPicture {
    /// Copies `rgb`, scaled down if its longest side exceeds `side_max`.
    fn scaled(
        width: u32,
        height: u32,
        rgb: &[u8],
        side_max: u32,
        resize: ResizeFn,
    ) -> Result<Self, MediaError> {
        let to = fit_within(width, height, side_max);
        let rgb = if to == (width, height) {
            rgb.to_vec()
        } else {
            resize(rgb, (width, height), to)
                .map_err(|cause| MediaError::Picture(cause.to_string()))?
        };
        Ok(Self {
            width: to.0,
            height: to.1,
            rgb,
        })
    }

    fn webp(&self) -> Result<Vec<u8>, MediaError> {
        let mut config = WebPConfig::new().map_err(|()| webp_failed())?;
        config.quality = WEBP_QUALITY;
        // Half the time of the default method 4, for a file 5 % larger.
        config.method = 2;
        let webp = webp::Encoder::from_rgb(&self.rgb, self.width, self.height)
            .encode_advanced(&config)
            .map_err(|_| webp_failed())?;
        Ok(webp.to_vec())
    }
}

/// `rgb [height][width][3] u8` as JPEG.
fn jpeg(width: u32, height: u32, rgb: &[u8], quality: u8) -> Result<Vec<u8>, MediaError> {
    let mut jpeg = Vec::new();
    JpegEncoder::new(&mut jpeg, quality)
        .encode(rgb, jpeg_side(width)?, jpeg_side(height)?, ColorType::Rgb)
        .map_err(|cause| MediaError::Picture(cause.to_string()))?;
    Ok(jpeg)
}

fn jpeg_side(pixels: u32) -> Result<u16, MediaError> {
    u16::try_from(pixels).map_err(|cause| MediaError::Picture(cause.to_string()))
}

fn webp_failed() -> MediaError {
    MediaError::Picture("a picture could not be encoded".into())
}

impl CellSheet {
    /// Copies `cell`, `[cell_height][cell_width][3] u8`, into the next free cell.
    fn fill_next(&mut self, cell: &[u8]) {
        let (column, row) = (self.filled % self.columns, self.filled / self.columns);
        let row_bytes = self.cell_width as usize * 3;
        let sheet_row_bytes = self.picture.width as usize * 3;
        let first_row = (row * self.cell_height) as usize;
        let rows = self
            .picture
            .rgb
            .chunks_exact_mut(sheet_row_bytes)
            .skip(first_row);
        for (target, source) in rows.zip(cell.chunks_exact(row_bytes)) {
            let left = column as usize * row_bytes;
            target[left..left + row_bytes].copy_from_slice(source);
        }
        self.filled += 1;
    }
}

/// The picture's size scaled down, never up, to a longest side of at most `side_max`.
fn fit_within(width: u32, height: u32, side_max: u32) -> (u32, u32) {
    let longest = width.max(height);
    if longest <= side_max {
        return (width, height);
    }
    [width, height]
        .map(|side| {
            let rounded = u64::from(side) * u64::from(side_max) + u64::from(longest / 2);
            // Cannot exceed `side_max`.
            ((rounded / u64::from(longest)) as u32).max(1)
        })
        .into()
}
