//! Colours: sRGB for pixels, OKLab for every mixture, so that blends stay clean and even. It knows
//! no scenes.

/// An sRGB colour, components 0.0 to 1.0.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Rgb {
    pub(crate) r: f32,
    pub(crate) g: f32,
    pub(crate) b: f32,
}

/// A colour in OKLab (Björn Ottosson, "A perceptual color space for image processing", 2020).
#[derive(Clone, Copy, Debug)]
pub(crate) struct OkLab {
    pub(crate) l: f32,
    pub(crate) a: f32,
    pub(crate) b: f32,
}

impl OkLab {
    fn rgb(self) -> Rgb {
        let l = (self.l + 0.396_337_78 * self.a + 0.215_803_76 * self.b).powi(3);
        let m = (self.l - 0.105_561_346 * self.a - 0.063_854_17 * self.b).powi(3);
        let s = (self.l - 0.089_484_18 * self.a - 1.291_485_5 * self.b).powi(3);
        Rgb {
            r: encode(4.076_741_7 * l - 3.307_711_6 * m + 0.230_969_94 * s),
            g: encode(-1.268_438 * l + 2.609_757_4 * m - 0.341_319_4 * s),
            b: encode(-0.004_196_086 * l - 0.703_418_6 * m + 1.707_614_7 * s),
        }
    }
}

/// sRGB transfer function, linear light to signal (IEC 61966-2-1).
fn encode(linear: f32) -> f32 {
    let linear = linear.clamp(0.0, 1.0);
    if linear <= 0.003_130_8 {
        linear * 12.92
    } else {
        1.055 * linear.powf(1.0 / 2.4) - 0.055
    }
}

fn decode(signal: f32) -> f32 {
    if signal <= 0.040_45 {
        signal / 12.92
    } else {
        ((signal + 0.055) / 1.055).powf(2.4)
    }
}

impl Rgb {
    pub(crate) const WHITE: Self = Self::hex(0xff_ffff);
    pub(crate) const BLACK: Self = Self::hex(0);

    pub(crate) const fn hex(code: u32) -> Self {
        Self {
            r: ((code >> 16) & 255) as f32 / 255.0,
            g: ((code >> 8) & 255) as f32 / 255.0,
            b: (code & 255) as f32 / 255.0,
        }
    }

    pub(crate) fn lab(self) -> OkLab {
        let (r, g, b) = (decode(self.r), decode(self.g), decode(self.b));
        // Linear sRGB to cone responses, and their cube roots to lightness and two opponent axes;
        // the matrices are Ottosson's.
        let l = (0.412_221_46 * r + 0.536_332_55 * g + 0.051_445_995 * b).cbrt();
        let m = (0.211_903_5 * r + 0.680_699_5 * g + 0.107_396_96 * b).cbrt();
        let s = (0.088_302_46 * r + 0.281_718_85 * g + 0.629_978_7 * b).cbrt();
        OkLab {
            l: 0.210_454_26 * l + 0.793_617_8 * m - 0.004_072_047 * s,
            a: 1.977_998_5 * l - 2.428_592_2 * m + 0.450_593_7 * s,
            b: 0.025_904_037 * l + 0.782_771_77 * m - 0.808_675_77 * s,
        }
    }

    /// `self` at 0.0, `other` at 1.0.
    pub(crate) fn mix(self, other: Self, share: f32) -> Self {
        let (a, b) = (self.lab(), other.lab());
        OkLab {
            l: lerp(a.l, b.l, share),
            a: lerp(a.a, b.a, share),
            b: lerp(a.b, b.b, share),
        }
        .rgb()
    }

    /// Like [`Rgb::mix`], but linear between the sRGB signals: cheap enough for every row of every
    /// frame.
    pub(crate) fn mix_plain(self, other: Self, share: f32) -> Self {
        Self {
            r: lerp(self.r, other.r, share),
            g: lerp(self.g, other.g, share),
            b: lerp(self.b, other.b, share),
        }
    }

    /// Lighter by `amount` of OKLab lightness; darker when negative.
    pub(crate) fn lift(self, amount: f32) -> Self {
        let lab = self.lab();
        OkLab {
            l: (lab.l + amount).clamp(0.0, 1.0),
            ..lab
        }
        .rgb()
    }

    /// Colourfulness times `factor`.
    pub(crate) fn saturate(self, factor: f32) -> Self {
        let lab = self.lab();
        OkLab {
            l: lab.l,
            a: lab.a * factor,
            b: lab.b * factor,
        }
        .rgb()
    }

    /// Its own lightness, nudged, with the hue of `tint`.
    pub(crate) fn tinted(self, tint: Self, share: f32) -> Self {
        let (own, goal) = (self.lab(), tint.lab());
        // A third of the lightness only: a blue meadow at night stays as dark as it was.
        let l = lerp(own.l, own.l + (goal.l - own.l) * 0.35, share);
        OkLab {
            l,
            a: lerp(own.a, goal.a, share),
            b: lerp(own.b, goal.b, share),
        }
        .rgb()
    }

    /// Component-wise product: a surface of this colour under light of the other.
    pub(crate) fn under(self, light: Self) -> Self {
        Self {
            r: self.r * light.r,
            g: self.g * light.g,
            b: self.b * light.b,
        }
    }

    /// Each component times `factor`.
    pub(crate) fn scaled(self, factor: f32) -> Self {
        Self {
            r: self.r * factor,
            g: self.g * factor,
            b: self.b * factor,
        }
    }

    /// Hue angle in OKLab, degrees 0 to 360.
    #[cfg(test)]
    pub(crate) fn hue(self) -> f32 {
        let lab = self.lab();
        lab.b.atan2(lab.a).to_degrees().rem_euclid(360.0)
    }

    /// Components as 15-bit numbers, 255 being 32,640.
    pub(crate) fn fixed(self) -> [u16; 4] {
        [
            fixed_part(self.r),
            fixed_part(self.g),
            fixed_part(self.b),
            0,
        ]
    }
}

/// A component with 15 bits.
fn fixed_part(c: f32) -> u16 {
    (c.clamp(0.0, 1.0) * 32_640.0) as u16
}

/// `a` at share 0.0, `b` at 1.0.
pub(crate) fn lerp(a: f32, b: f32, share: f32) -> f32 {
    a + (b - a) * share
}

/// Smooth step from 0 at `low` to 1 at `high`.
pub(crate) fn smooth(low: f32, high: f32, value: f32) -> f32 {
    let t = ((value - low) / (high - low)).clamp(0.0, 1.0);
    t * t * (3.0 - 2.0 * t)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn oklab_there_and_back_keeps_a_colour() {
        for code in [0xff_0000, 0x12_3456, 0xab_cdef, 0x00_ff00, 0xff_ffff] {
            let colour = Rgb::hex(code);
            let back = colour.lab().rgb();
            assert!((colour.r - back.r).abs() < 0.004, "{code:x}");
            assert!((colour.g - back.g).abs() < 0.004, "{code:x}");
            assert!((colour.b - back.b).abs() < 0.004, "{code:x}");
        }
    }

    #[test]
    fn a_tint_gives_its_hue() {
        let sky = Rgb::hex(0x3b_7fc4).tinted(Rgb::hex(0xd0_3030), 1.0);
        assert!((sky.hue() - Rgb::hex(0xd0_3030).hue()).abs() < 12.0);
    }
}
