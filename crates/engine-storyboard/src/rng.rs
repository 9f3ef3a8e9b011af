//! The one source of chance: a small generator whose stream is fixed by its seed and a label.
//! It is not for secrets.

/// A stream of numbers by `SplitMix64` (Steele, Lea and Flood, "Fast splittable pseudorandom
/// number generators", OOPSLA 2014).
#[derive(Clone, Debug)]
pub(crate) struct Rng {
    state: u64,
    /// State at the start, before any number was drawn.
    origin: u64,
}

impl Rng {
    fn from(origin: u64) -> Self {
        let state = origin;
        Self { state, origin }
    }

    pub(crate) fn new(seed: u64) -> Self {
        // `kinora` in ASCII, and 1: a seed of 0 is no state of zeros.
        Self::from(seed ^ 0x6b69_6e6f_7261_0001)
    }

    /// Independent stream for `label`: a part that draws more numbers does not move any other part.
    pub(crate) fn fork(&self, label: &str) -> Self {
        // From the state and not the origin: forks of one label at two points differ. `switch_to` is for
        // numbers that must not depend on what was drawn before.
        Self::from(hash(label.as_bytes()) ^ self.state.rotate_left(17))
    }

    /// Continues with the numbers of the part `label`, or of the one at `which` if there are
    /// several. They are the same regardless of what was drawn before, so that a part that is
    /// missing from a picture moves nothing else in it.
    pub(crate) fn switch_to(&mut self, label: &str, which: f32) {
        let part = hash(label.as_bytes()) ^ mix(u64::from(which.to_bits()));
        self.state = part ^ self.origin.rotate_left(17);
    }

    pub(crate) fn next(&mut self) -> u64 {
        // 2^64 divided by the golden ratio, the step of SplitMix64.
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        mix(self.state)
    }

    /// Number in 0.0..1.0.
    pub(crate) fn unit(&mut self) -> f32 {
        // 24 bits are all that a float holds exactly; with more, rounding could give 1.0.
        (self.next() >> 40) as f32 / (1u64 << 24) as f32
    }

    /// Number in `low..high`.
    pub(crate) fn range(&mut self, low: f32, high: f32) -> f32 {
        low + (high - low) * self.unit()
    }

    /// Number in -1.0..1.0.
    pub(crate) fn signed(&mut self) -> f32 {
        self.range(-1.0, 1.0)
    }

    /// An index below `count`; 0 when there is nothing to choose from.
    pub(crate) fn below(&mut self, count: usize) -> usize {
        // The bias of the modulus is below `count` in 2^64.
        (self.next() % count.max(1) as u64) as usize
    }

    /// True with probability `share`.
    pub(crate) fn chance(&mut self, share: f32) -> bool {
        self.unit() < share
    }
}

fn mix(mut z: u64) -> u64 {
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// FNV-1a with a final mix; the same on every machine.
pub(crate) fn hash(bytes: &[u8]) -> u64 {
    let start = 0xcbf2_9ce4_8422_2325_u64;
    let sum = bytes.iter().fold(start, |sum, byte| {
        (sum ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3)
    });
    mix(sum)
}

/// A number from 0.0 up to 1.0 fixed by a point of the integer lattice.
pub(crate) fn lattice(seed: u64, x: i32, y: i32) -> f32 {
    let key = u64::from(x.cast_unsigned()) << 32 | u64::from(y.cast_unsigned());
    (mix(key ^ mix(seed)) >> 40) as f32 / (1u64 << 24) as f32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_is_the_same_whatever_was_drawn_before() {
        let part = |drawn: usize, label: &str, which: f32| {
            let mut rng = Rng::new(7);
            for _ in 0..drawn {
                rng.next();
            }
            rng.switch_to(label, which);
            rng.next()
        };
        assert_eq!(part(0, "hills", 0.5), part(9, "hills", 0.5));
        assert_ne!(part(0, "hills", 0.5), part(0, "hills", 0.6));
        assert_ne!(part(0, "hills", 0.5), part(0, "sky", 0.5));
    }
}
