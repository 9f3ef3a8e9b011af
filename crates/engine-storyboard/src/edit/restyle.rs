//! A source that this engine cannot make again, under the words of an edit: other light, other colours, weather in
//! front of it, and no captions of an earlier version. Every shape stays where it was; nothing is painted into it.

use std::sync::Arc;

use kinora_contract::VideoSpec;
use kinora_engine::ClipPlan;

use crate::caption::{Caption, CaptionText};
use crate::lexicon::{Hour, Mood, Reading, Weather};
use crate::raster::canvas::{Canvas, FULL};
use crate::raster::colour::Rgb;
use crate::raster::resample::RowScratch;
use crate::rng::Rng;
use crate::scene::Scene;
use crate::scene::camera::FramePulse;
use crate::scene::palette::Palette;
use crate::script::{avoided, merge_lines, shots};

/// Share of the new colours in the light; the rest of it stays white.
const TINT: f32 = 0.75;
/// Minimum and maximum factor of one change of light.
const GAIN: (f32, f32) = (0.32, 2.4);

/// The light and weather that an edit puts over its source.
#[derive(Debug)]
pub(crate) struct Restyle {
    /// The new colour of each level of light; `None` leaves all unchanged.
    grade: Option<Vec<LightLevel>>,
    /// Rain, snow and fog.
    weather: Option<Scene>,
    /// The letters in the source.
    letters: Arc<OldLetters>,
    /// Strength of the style over the source, 0.0 to 1.0.
    strength: f32,
}

/// The new colour of one level of light.
#[derive(Clone, Copy, Debug)]
struct LightLevel {
    /// Components of a grey of this level, in 15 bits.
    grey: [f32; 3],
    /// Gains of what a colour differs from its grey by.
    chroma: [f32; 3],
}

/// Whether anything falls or drifts in this weather.
pub(crate) fn has_visible_weather(air: &Reading) -> bool {
    [
        Weather::Rain,
        Weather::Storm,
        Weather::Snowfall,
        Weather::Fog,
    ]
    .iter()
    .any(|one| air.has_weather(*one))
}

impl Restyle {
    /// The style that `air` asks for, over a source whose mean light is `mean` (0.0 to 1.0), with the
    /// painted `weather` before it and without its `letters`.
    pub(crate) fn new(
        air: &Reading,
        mean: f32,
        weather: Option<Scene>,
        letters: &Arc<OldLetters>,
        strength: f32,
    ) -> Self {
        Self {
            grade: (*air != Reading::default()).then(|| levels(air, mean)),
            weather,
            letters: Arc::clone(letters),
            strength,
        }
    }

    /// Draws the source's frame number `frame`, `rgb: [height][width][3] u8`, `time_s` into its
    /// take.
    pub(crate) fn draw(
        &self,
        (frame, rgb): (u32, &[u8]),
        time_s: f32,
        canvas: &mut Canvas,
        second: &mut Canvas,
        scratch: &mut RowScratch,
    ) {
        if self.strength <= 0.0 {
            return copy_frame(rgb, canvas);
        }
        self.apply_grade(rgb, canvas);
        self.letters.erase(frame, canvas, second);
        if let Some(weather) = &self.weather {
            weather.draw(time_s, FramePulse::CALM, canvas, scratch);
        }
        if self.strength < 1.0 {
            copy_frame(rgb, second);
            canvas.dissolve(second, 1.0 - self.strength);
        }
    }

    fn apply_grade(&self, rgb: &[u8], canvas: &mut Canvas) {
        match &self.grade {
            None => copy_frame(rgb, canvas),
            Some(levels) => {
                let pixels = canvas.pixels.as_chunks_mut::<4>().0.iter_mut();
                for (out, rgb) in pixels.zip(rgb.as_chunks::<3>().0) {
                    let own = luma(*rgb);
                    let level = &levels[usize::from(own)];
                    for lane in 0..3 {
                        let apart = f32::from(rgb[lane]) - f32::from(own);
                        let value = level.grey[lane] + apart * level.chroma[lane];
                        out[lane] = value.clamp(0.0, 32_640.0) as u16;
                    }
                }
            }
        }
    }
}

/// Rec. 709 luma.
fn luma([r, g, b]: [u8; 3]) -> u8 {
    ((u32::from(r) * 54 + u32::from(g) * 183 + u32::from(b) * 19) >> 8) as u8
}

/// A frame as it is.
fn copy_frame(rgb: &[u8], canvas: &mut Canvas) {
    let pixels = canvas.pixels.as_chunks_mut::<4>().0.iter_mut();
    for (out, rgb) in pixels.zip(rgb.as_chunks::<3>().0) {
        for lane in 0..3 {
            // One more than the level: so the last step down to 8 bits gives the level again.
            out[lane] = u16::from(rgb[lane]) * 128 + u16::from(rgb[lane] > 0);
        }
    }
}

/// Average brightness of pictures of an hour, and the share of colour that they keep.
fn exposure(hour: Hour) -> (f32, f32) {
    match hour {
        Hour::Dawn => (0.44, 0.8),
        Hour::Day => (0.55, 1.0),
        Hour::Golden => (0.47, 0.95),
        Hour::Dusk => (0.3, 0.75),
        Hour::Night => (0.17, 0.5),
    }
}

/// The new colour of each level of light under `air`.
fn levels(air: &Reading, mean: f32) -> Vec<LightLevel> {
    let (mut gain, mut colour) = (1.0, 1.0);
    if let Some(hour) = air.hour {
        let (goal, keeps) = exposure(hour);
        gain = (goal / mean.clamp(0.05, 1.0)).clamp(GAIN.0, GAIN.1);
        // Bright footage is no brighter by day, dark footage no darker by night.
        gain = match hour {
            Hour::Day => gain.max(1.0),
            Hour::Dusk | Hour::Night => gain.min(1.0),
            Hour::Dawn | Hour::Golden => gain,
        };
        colour = keeps;
    }
    for (weather, light, keeps) in [
        (Weather::Storm, 0.72, 0.6),
        (Weather::Rain, 0.84, 0.7),
        (Weather::Clouds, 0.92, 0.8),
        (Weather::Fog, 1.0, 0.65),
        (Weather::Snow, 1.15, 0.6),
        (Weather::Clear, 1.05, 1.1),
    ] {
        if air.has_weather(weather) {
            gain *= light;
            colour *= keeps;
        }
    }
    colour *= match air.mood {
        Some(Mood::Joyful) => 1.15,
        Some(Mood::Sad | Mood::Tense) => 0.75,
        Some(Mood::Dreamy | Mood::Calm) | None => 1.0,
    };
    let tints = tints(air);
    // A table by luma: the mathematics of colour runs 256 times for a take, not for every pixel.
    (0_u8..=255)
        .zip(tints)
        .map(|(level, tint)| {
            let own = f32::from(level) / 255.0;
            let lit = apply_gain(own, gain);
            // Around a grey, colours grow and fade as the light does.
            let slope = if gain > 1.0 { 1.0 } else { gain };
            LightLevel {
                grey: tint.map(|part| (lit * part).min(1.0) * 32_640.0),
                chroma: tint.map(|part| part * colour * slope * 128.0),
            }
        })
        .collect()
}

/// A level of light, 0.0 to 1.0, under a gain; bright ones are held below white.
fn apply_gain(level: f32, gain: f32) -> f32 {
    if gain > 1.0 {
        // A factor would clip the bright parts. This curve keeps black and white and has the slope
        // `gain` at black.
        1.0 - (1.0 - level).powf(gain)
    } else {
        level * gain
    }
}

/// The colours of each level of light, of luma 1.0: by how much the palette of the words leaves
/// that of a plain day.
fn tints(air: &Reading) -> Vec<[f32; 3]> {
    let new = palette_at(air, air.hour.unwrap_or(Hour::Day));
    let plain = palette_at(&Reading::default(), Hour::Day);
    (0..=255)
        .map(|level: u8| {
            let share = f32::from(level) / 255.0;
            let (new, plain) = (hue(&new, share), hue(&plain, share));
            let mut tint = [0, 1, 2].map(|lane: usize| (new[lane] / plain[lane]).clamp(0.4, 2.5));
            // At luma 1.0: the gain alone decides how bright the picture is, the tint only its hue.
            let luma = tint[0] * 0.2126 + tint[1] * 0.7152 + tint[2] * 0.0722;
            for part in &mut tint {
                *part = 1.0 + (*part / luma - 1.0) * TINT;
            }
            tint
        })
        .collect()
}

/// The palette of `reading` at `hour`, without chance.
fn palette_at(reading: &Reading, hour: Hour) -> Palette {
    Palette::new(reading, hour, &mut Rng::new(0))
}

/// The palette's colour for brightness `share`, with luma 1.0.
fn hue(palette: &Palette, share: f32) -> [f32; 3] {
    let dark = palette.sky_top.mix(Rgb::BLACK, 0.3);
    let middle = palette.haze;
    let bright = palette.sky_low.mix(Rgb::WHITE, 0.35);
    let hue = if share < 0.5 {
        dark.mix(middle, share * 2.0)
    } else {
        middle.mix(bright, share * 2.0 - 1.0)
    };
    let luma = hue.r * 0.2126 + hue.g * 0.7152 + hue.b * 0.0722;
    // Near black the hue of a colour runs wild; it is held.
    [hue.r, hue.g, hue.b].map(|part| (part / luma.max(0.02)).clamp(0.2, 3.0))
}

/// The least light of a letter, on black.
const LETTER_MIN: u16 = FULL / 40;
/// Width of the dark rim of letters, as a share of the frame's shorter side.
const RIM: f32 = 0.008;

/// The captions that a source shows.
#[derive(Debug)]
pub(crate) struct OldLetters(Vec<Caption>);

impl OldLetters {
    /// The captions of all links of `script`, each of which may still be visible.
    pub(crate) fn from_script(
        script: &[Arc<VideoSpec>],
        clip: ClipPlan,
        system_fonts: bool,
    ) -> Self {
        let lines = script.iter().flat_map(|link| {
            merge_lines(shots(&link.prompt, avoided(link), &[clip.frames], clip.fps))
        });
        Self(
            lines
                .map(|line| {
                    let words = CaptionText {
                        text: &line.text,
                        span: (line.start, line.end),
                        avoid: &[],
                        below: 0,
                        system_fonts,
                    };
                    Caption::new(&words, clip.size, clip.fps)
                })
                .collect(),
        )
    }

    /// Removes the letters of `frame` from `canvas`; `mask` is working memory.
    fn erase(&self, frame: u32, canvas: &mut Canvas, mask: &mut Canvas) {
        if self.0.is_empty() {
            return;
        }
        mask.pixels.fill(0);
        for caption in &self.0 {
            caption.draw(frame, 1.0, mask);
        }
        let (width, height) = (canvas.width, canvas.height);
        let covered = covered(mask, (width.min(height) as f32 * RIM).ceil() as usize);
        let Some(first) = covered.iter().position(|is| *is) else {
            return;
        };
        for x in 0..width {
            let mut y = first / width;
            while y < height {
                let run = (y..height).take_while(|y| covered[y * width + x]).count();
                if run > 0 {
                    fill(canvas, x, y, run);
                }
                y += run + 1;
            }
        }
    }
}

/// Whether a letter or its rim covers each pixel.
fn covered(mask: &Canvas, rim: usize) -> Vec<bool> {
    let (width, height) = (mask.width, mask.height);
    let mut covered = vec![false; width * height];
    for (at, pixel) in mask.pixels.as_chunks::<4>().0.iter().enumerate() {
        // Captions are white on a black mask: any lane tells how much of a letter is here.
        if pixel[0] < LETTER_MIN {
            continue;
        }
        let (x, y) = (at % width, at / width);
        for row in y.saturating_sub(rim)..=(y + rim).min(height - 1) {
            let (from, to) = (x.saturating_sub(rim), (x + rim).min(width - 1));
            covered[row * width + from..=row * width + to].fill(true);
        }
    }
    covered
}

/// Fills `run` pixels of column `x` from row `y` on between the ones above and below.
fn fill(canvas: &mut Canvas, x: usize, y: usize, run: usize) {
    let (width, height) = (canvas.width, canvas.height);
    let ends = [y.checked_sub(1), (y + run < height).then_some(y + run)].map(|row| {
        let at = (row? * width + x) * 4;
        Some([0, 1, 2].map(|lane| f32::from(canvas.pixels[at + lane])))
    });
    let (above, below) = match ends {
        [Some(above), Some(below)] => (above, below),
        [Some(one), None] | [None, Some(one)] => (one, one),
        [None, None] => return,
    };
    for step in 0..run {
        let share = (step + 1) as f32 / (run + 1) as f32;
        let at = ((y + step) * width + x) * 4;
        for lane in 0..3 {
            let value = above[lane] + (below[lane] - above[lane]) * share;
            canvas.pixels[at + lane] = value as u16;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lexicon::read;

    #[test]
    fn a_frame_that_is_only_shown_stays_the_same() {
        let rgb: Vec<u8> = (0..=255).cycle().take(64 * 48 * 3).collect();
        let (mut canvas, mut shown) = (Canvas::new(64, 48), Vec::new());
        copy_frame(&rgb, &mut canvas);
        canvas.finish(0.0, 1.0, &mut shown);
        assert!(shown == rgb);
    }

    #[test]
    fn brighter_stays_brighter_under_every_light() {
        for text in [
            "at night",
            "noon",
            "golden hour, rain",
            "in deep snow",
            "fog at dusk",
        ] {
            for mean in [0.1, 0.5, 0.9] {
                let levels = levels(&read(text, ""), mean);
                let greys = levels.iter().map(|level| level.grey.iter().sum::<f32>());
                assert!(greys.is_sorted(), "{text}");
            }
        }
    }
}
