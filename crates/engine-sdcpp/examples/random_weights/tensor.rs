//! One tensor: its name, shape and type, and how its random contents are spread so that
//! activations stay of order one through all layers.

use std::io::{self, Write};

/// Seeded random bits: splitmix64 (<https://prng.di.unimi.it/splitmix64.c>). Not for secrets.
struct Random(u64);

impl Random {
    fn word(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let word = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let word = (word ^ (word >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        word ^ (word >> 31)
    }

    /// Evenly in -1.0 to 1.0.
    fn even(&mut self) -> f32 {
        (self.word() >> 40) as f32 / (1 << 23) as f32 - 1.0
    }
}

/// How numbers are laid down; the blocks are those of ggml (`ggml-common.h`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    F32,
    F16,
    /// 32 numbers: a scale in `f16` and 16 bytes of two numbers of -8 to 7.
    Q4_0,
    /// 32 numbers: a scale in `f16` and 32 bytes of one number of -128 to 127.
    Q8_0,
}

impl Kind {
    /// Its number in `enum ggml_type`.
    pub(crate) const fn number(self) -> u32 {
        match self {
            Self::F32 => 0,
            Self::F16 => 1,
            Self::Q4_0 => 2,
            Self::Q8_0 => 8,
        }
    }

    /// Its name in safetensors, which holds no quantised numbers.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::F16 => "F16",
            Self::F32 | Self::Q4_0 | Self::Q8_0 => "F32",
        }
    }

    /// Numbers and bytes of a block.
    const fn block(self) -> (u64, u64) {
        match self {
            Self::F32 => (1, 4),
            Self::F16 => (1, 2),
            Self::Q4_0 => (32, 18),
            Self::Q8_0 => (32, 34),
        }
    }
}

/// A tensor to be written.
#[derive(Clone, Debug)]
pub(crate) struct Tensor {
    pub name: String,
    /// Outermost dimension first.
    pub shape: Vec<u64>,
    pub kind: Kind,
    /// The middle of the numbers: 1.0 for what scales, 0.0 for all else.
    pub mean: f32,
    /// Their standard deviation.
    pub deviation: f32,
}

impl Tensor {
    /// Weights of `shape: [out][in]...`: the deviation keeps the size of what passes through.
    pub(crate) fn weight(name: impl Into<String>, shape: &[u64], kind: Kind) -> Self {
        let inputs: u64 = shape.iter().skip(1).product();
        Self {
            name: name.into(),
            shape: shape.to_vec(),
            kind,
            mean: 0.0,
            deviation: 1.0 / (inputs.max(1) as f32).sqrt(),
        }
    }

    /// Small numbers around 0.0, as biases are.
    pub(crate) fn bias(name: impl Into<String>, shape: &[u64]) -> Self {
        Self {
            name: name.into(),
            shape: shape.to_vec(),
            kind: Kind::F32,
            mean: 0.0,
            deviation: 0.02,
        }
    }

    /// Numbers around 1.0, as the scales of norms are.
    pub(crate) fn scale(name: impl Into<String>, shape: &[u64]) -> Self {
        Self {
            mean: 1.0,
            ..Self::bias(name, shape)
        }
    }

    fn elements(&self) -> u64 {
        self.shape.iter().product()
    }

    pub(crate) fn bytes(&self) -> u64 {
        let (numbers, bytes) = self.kind.block();
        self.elements().div_ceil(numbers) * bytes
    }

    /// Writes its random contents, the same for the same `seed` and name.
    pub(crate) fn write(&self, out: &mut impl Write, seed: u64) -> io::Result<()> {
        let name = self
            .name
            .bytes()
            .fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
                (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
            });
        let mut random = Random(seed ^ name);
        let (numbers, _) = self.kind.block();
        for _ in 0..self.elements().div_ceil(numbers) {
            self.block(out, &mut random)?;
        }
        Ok(())
    }

    fn block(&self, out: &mut impl Write, random: &mut Random) -> io::Result<()> {
        // An even spread over -1.0 to 1.0 deviates by 1 / sqrt(3).
        let even = self.deviation * 3.0_f32.sqrt();
        match self.kind {
            Kind::F32 => out.write_all(&(self.mean + even * random.even()).to_le_bytes()),
            Kind::F16 => out.write_all(&f16(self.mean + even * random.even()).to_le_bytes()),
            // Sixteen values one apart deviate by sqrt((16^2 - 1) / 12).
            Kind::Q4_0 => {
                out.write_all(&f16(self.deviation / 4.61).to_le_bytes())?;
                out.write_all(&random.word().to_le_bytes())?;
                out.write_all(&random.word().to_le_bytes())
            }
            // 256 of them by sqrt((256^2 - 1) / 12).
            Kind::Q8_0 => {
                out.write_all(&f16(self.deviation / 73.9).to_le_bytes())?;
                (0..4).try_for_each(|_| out.write_all(&random.word().to_le_bytes()))
            }
        }
    }
}

/// `value` in IEEE 754 binary16, rounded towards zero; too small becomes 0, too large the largest.
fn f16(value: f32) -> u16 {
    let bits = value.to_bits();
    let sign = (bits >> 16 & 0x8000) as u16;
    let exponent = (bits >> 23 & 0xff).cast_signed() - 127;
    let fraction = (bits >> 13 & 0x3ff) as u16;
    match exponent {
        16.. => sign | 0x7bff,
        -14..=15 => sign | ((exponent + 15) as u16) << 10 | fraction,
        // Subnormal: the leading one becomes part of the fraction.
        -24..=-15 => sign | (fraction | 0x400) >> (-14 - exponent),
        _ => sign,
    }
}
