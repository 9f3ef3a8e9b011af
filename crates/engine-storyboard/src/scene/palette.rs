//! The colours of a scene, from hour, weather and the prompt's colour words.
//! It holds no opinion on shapes.

use crate::lexicon::{ColourTint, Hour, Mood, Place, Reading, Season, Weather};
use crate::raster::colour::Rgb;
use crate::rng::Rng;

/// The colours that a scene is painted with.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Palette {
    pub(crate) sky_top: Rgb,
    pub(crate) sky_middle: Rgb,
    pub(crate) sky_low: Rgb,
    /// The disc of sun or moon.
    pub(crate) orb: Rgb,
    pub(crate) glow: Rgb,
    /// Colour into which distant things fade.
    pub(crate) haze: Rgb,
    /// Colour of the light on things; white at noon.
    pub(crate) light: Rgb,
    pub(crate) cloud: Rgb,
    pub(crate) cloud_shade: Rgb,
    /// Grass before light falls on it.
    pub(crate) ground: Rgb,
    /// Leaves of trees and bushes, and the blossoms or other leaves among them.
    pub(crate) leaf: Rgb,
    pub(crate) blossom: Rgb,
    pub(crate) rock: Rgb,
    pub(crate) sand: Rgb,
    pub(crate) wall: Rgb,
    pub(crate) water: Rgb,
    pub(crate) accent: Rgb,
    pub(crate) second_accent: Rgb,
    /// Lit windows and lamps.
    pub(crate) lamp: Rgb,
    pub(crate) hour: Hour,
}

/// The sky at its top, middle and low end; orb, glow, haze and light; a cloud and its shade.
const fn sky_colours(hour: Hour) -> [u32; 9] {
    match hour {
        Hour::Dawn => [
            0x4a_6493, 0xb9_9db8, 0xf9_d3b4, 0xff_f0cf, 0xff_c59a, 0xdc_bfc0, 0xd8_bfc2, 0xfb_dfd0,
            0xa9_93b4,
        ],
        Hour::Day => [
            0x3a_7cc0, 0x86_bade, 0xd9_ebee, 0xff_fbe8, 0xff_f3cf, 0xb9_d5e3, 0xff_fbf2, 0xfd_fdfb,
            0xb4_c8da,
        ],
        Hour::Golden => [
            0x4c_5f97, 0xdf_9a7d, 0xff_d48d, 0xff_f4cf, 0xff_b765, 0xec_b288, 0xe0_a583, 0xff_d3a0,
            0x9a_718e,
        ],
        Hour::Dusk => [
            0x1d_2352, 0x6c_4984, 0xee_8c72, 0xff_d2a6, 0xf0_7f6a, 0x93_628c, 0x7d_688f, 0xc8_7c8e,
            0x4c_3c70,
        ],
        Hour::Night => [
            0x06_0b22, 0x11_2250, 0x2f_4a7a, 0xf3_f4ff, 0x6f_8fd0, 0x2b_4270, 0x50_6294, 0x3c_5284,
            0x1a_2850,
        ],
    }
}

impl Palette {
    pub(crate) fn new(reading: &Reading, hour: Hour, rng: &mut Rng) -> Self {
        let [
            sky_top,
            sky_middle,
            sky_low,
            orb,
            glow,
            haze,
            light,
            cloud,
            cloud_shade,
        ] = sky_colours(hour).map(Rgb::hex);
        let turn = rng.signed() * 0.04;
        let hex = Rgb::hex;
        let mut palette = Self {
            sky_top: sky_top.lift(turn),
            sky_middle: sky_middle.lift(turn * 0.6),
            sky_low,
            orb,
            glow,
            haze,
            light,
            cloud,
            cloud_shade,
            ground: hex([0x5d_8a4a, 0x6f_9150, 0x4d_8052, 0x7a_9a4e][rng.below(4)]),
            // Set by `season`, from the ground's colour.
            leaf: Rgb::BLACK,
            blossom: Rgb::BLACK,
            rock: hex([0x6d_7488, 0x7a_7280, 0x66_7a86][rng.below(3)]),
            sand: hex([0xdc_b477, 0xd9_a66a, 0xe3_c08c][rng.below(3)]),
            wall: hex([0x56_6480, 0x6a_6074, 0x50_6a78][rng.below(3)]),
            water: hex([0x2d_6f92, 0x2b_7d8c, 0x34_6aa0][rng.below(3)]),
            accent: hex([0xd8_523f, 0xe0_8a34, 0xc8_4a6a, 0x2f_8f8f][rng.below(4)]),
            second_accent: hex([0xf2_c14e, 0xf0_e3c8, 0x4f_8fc0][rng.below(3)]),
            lamp: hex(0xff_d27a),
            hour,
        };
        // In this order: the season paints leaves and grass, weather and mood dim what is there,
        // and the words for colours come last and win.
        palette.season(reading);
        palette.weather(reading);
        palette.mood(reading.mood);
        palette.tint(reading);
        palette
    }

    fn skies(&mut self, change: impl Fn(Rgb) -> Rgb) {
        let all = [
            &mut self.sky_top,
            &mut self.sky_middle,
            &mut self.sky_low,
            &mut self.haze,
            &mut self.cloud,
            &mut self.cloud_shade,
        ];
        for colour in all {
            *colour = change(*colour);
        }
    }

    /// Grass and leaves by the season: fresh, full, turning.
    fn season(&mut self, reading: &Reading) {
        let hex = Rgb::hex;
        self.leaf = self.ground.lift(-0.06);
        self.blossom = self.leaf.lift(0.05);
        match reading.season {
            Some(Season::Spring) => {
                self.ground = self.ground.mix(hex(0x8c_b850), 0.55);
                self.leaf = hex(0x86_b04e);
                self.blossom = hex(0xf4_bccc);
            }
            Some(Season::Autumn) => {
                self.ground = self.ground.mix(hex(0xb0_9448), 0.6);
                self.leaf = hex(0xc8_7428);
                self.blossom = hex(0xd8_a838);
            }
            Some(Season::Winter) => self.leaf = hex(0x6c_6a62),
            Some(Season::Summer) | None => {}
        }
    }

    fn weather(&mut self, reading: &Reading) {
        if reading.has_weather(Weather::Storm) {
            // A night is dark already; a whole storm on it would leave nothing to see.
            let dim = if self.hour == Hour::Night { 0.03 } else { 0.14 };
            self.skies(|colour| colour.saturate(0.5).lift(-dim));
            self.light = self.light.saturate(0.6).lift(-dim);
            self.glow = self.glow.mix(self.sky_low, 0.7);
        } else if reading.has_weather(Weather::Rain) {
            self.skies(|colour| colour.saturate(0.55).lift(-0.09));
            self.light = self.light.saturate(0.7).lift(-0.08);
            self.glow = self.glow.mix(self.sky_low, 0.5);
        } else if reading.has_weather(Weather::Clouds) {
            self.skies(|colour| colour.saturate(0.75));
        }
        if reading.has_weather(Weather::Fog) {
            let fog = self.sky_low.mix(self.haze, 0.5).saturate(0.6);
            self.haze = fog;
            self.sky_middle = self.sky_middle.mix(fog, 0.6);
            self.sky_low = self.sky_low.mix(fog, 0.6);
            self.sky_top = self.sky_top.mix(fog, 0.35);
        }
        if reading.is_snowy() {
            let white = Rgb::hex(0xe9_f0f6);
            self.ground = self.ground.mix(white, 0.86);
            self.sand = self.sand.mix(white, 0.8);
            self.skies(|colour| colour.saturate(0.85));
        }
    }

    fn mood(&mut self, mood: Option<Mood>) {
        match mood {
            Some(Mood::Sad) => self.skies(|colour| colour.saturate(0.7).lift(-0.03)),
            Some(Mood::Tense) => self.skies(|colour| colour.saturate(0.9).lift(-0.07)),
            Some(Mood::Joyful) => self.skies(|colour| colour.saturate(1.15).lift(0.02)),
            Some(Mood::Dreamy) => {
                self.skies(|colour| colour.tinted(Rgb::hex(0xb0_7ad0), 0.25));
            }
            Some(Mood::Calm) | None => {}
        }
    }

    /// Tints the whole picture first, so that parts with a colour of their own keep it.
    fn tint(&mut self, reading: &Reading) {
        let is_whole = |tint: &ColourTint| match *tint {
            ColourTint::Whole(colour) => Some(colour),
            ColourTint::Place(colour) if matches!(reading.place, None | Some(Place::Abstract)) => {
                Some(colour)
            }
            _ => None,
        };
        let whole: Vec<Rgb> = reading.tints.iter().filter_map(is_whole).collect();
        self.tint_whole(&whole);
        for tint in reading.tints.iter().filter(|tint| is_whole(tint).is_none()) {
            self.tint_part(tint, reading.place);
        }
    }

    fn tint_part(&mut self, tint: &ColourTint, place: Option<Place>) {
        match *tint {
            ColourTint::Heaven(colour) => self.tint_sky(colour, 0.7),
            ColourTint::Ground(colour) => self.tint_ground(colour, 0.85),
            ColourTint::Place(colour) if place == Some(Place::Space) => self.tint_sky(colour, 0.6),
            ColourTint::Place(colour) => {
                self.tint_ground(colour, 0.7);
                self.water = self.water.tinted(colour, 0.7);
            }
            ColourTint::Whole(_) => {}
        }
    }

    fn tint_whole(&mut self, whole: &[Rgb]) {
        match whole {
            [] => {}
            [only] => {
                self.tint_sky(*only, 0.5);
                self.tint_ground(*only, 0.45);
                self.water = self.water.tinted(*only, 0.5);
                self.accent = *only;
            }
            [first, second, ..] => {
                self.sky_top = self.sky_top.tinted(*first, 0.75);
                self.sky_middle = self.sky_middle.tinted(first.mix(*second, 0.5), 0.6);
                self.sky_low = self.sky_low.tinted(*second, 0.75);
                self.haze = self.haze.tinted(*second, 0.45);
                self.glow = self.glow.tinted(*second, 0.7);
                self.tint_ground(*first, 0.6);
                self.water = self.water.tinted(*first, 0.75);
                self.cloud = self.cloud.tinted(*second, 0.5);
                self.cloud_shade = self.cloud_shade.tinted(*first, 0.6);
                self.accent = *second;
                self.second_accent = whole.get(2).copied().unwrap_or(*first);
            }
        }
    }

    fn tint_sky(&mut self, colour: Rgb, share: f32) {
        self.skies(|sky| sky.tinted(colour, share));
        self.glow = self.glow.tinted(colour, share * 0.5);
    }

    fn tint_ground(&mut self, colour: Rgb, share: f32) {
        for ground in [
            &mut self.ground,
            &mut self.leaf,
            &mut self.blossom,
            &mut self.rock,
            &mut self.sand,
            &mut self.wall,
        ] {
            *ground = ground.tinted(colour, share);
        }
    }

    /// A surface of `colour` at `distance` (0.0 near to 1.0 far) in this light and air.
    pub(crate) fn lit(&self, colour: Rgb, distance: f32) -> Rgb {
        colour
            .under(self.light)
            // Aerial perspective. Even the farthest thing keeps a trace of its own colour.
            .mix(self.haze, (distance * 0.92).clamp(0.0, 0.96))
    }

    pub(crate) fn is_dark(&self) -> bool {
        matches!(self.hour, Hour::Night | Hour::Dusk)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lexicon::read;

    fn palette(text: &str) -> Palette {
        let reading = read(text, "");
        let hour = reading.hour.unwrap_or(Hour::Day);
        Palette::new(&reading, hour, &mut Rng::new(3))
    }

    fn apart(a: Rgb, b: Rgb) -> f32 {
        let turn = (a.hue() - b.hue()).abs();
        turn.min(360.0 - turn)
    }

    #[test]
    fn colour_words_set_the_hue() {
        let purple = Rgb::hex(0x80_48b8);
        assert!(apart(palette("a purple sky").sky_top, purple) < 25.0);
        assert!(apart(palette("a clear sky").sky_top, purple) > 40.0);
        let film = palette("a street, teal and orange");
        assert!(apart(film.sky_top, Rgb::hex(0x1f_a3a3)) < 40.0);
        assert!(apart(film.sky_low, Rgb::hex(0xf0_8228)) < 40.0);
        // What a balloon is coloured, curtains are not.
        assert_eq!(palette("a red balloon").accent, palette("a balloon").accent);
    }

    #[test]
    fn leaves_follow_the_season() {
        let in_season = |season| {
            let reading = Reading {
                season: Some(season),
                ..Reading::default()
            };
            Palette::new(&reading, Hour::Day, &mut Rng::new(3))
        };
        let summer = in_season(Season::Summer);
        let autumn = in_season(Season::Autumn);
        assert!(apart(autumn.leaf, Rgb::hex(0xf0_8228)) < 20.0);
        assert!(apart(summer.leaf, Rgb::hex(0x40_a040)) < 40.0);
        assert!(apart(in_season(Season::Spring).blossom, Rgb::hex(0xf0_a0b8)) < 30.0);
        let winter = in_season(Season::Winter).ground.lab();
        assert!(winter.l > 0.85 && winter.a.abs() < 0.04 && winter.b.abs() < 0.05);
    }

    #[test]
    fn night_is_darker_than_day() {
        let lightness = |text: &str| {
            let palette = palette(text);
            palette.sky_top.lab().l + palette.sky_low.lab().l + palette.light.lab().l
        };
        assert!(lightness("night") < 0.6 * lightness("noon"));
        assert!(lightness("a storm at noon") < lightness("noon"));
    }
}
