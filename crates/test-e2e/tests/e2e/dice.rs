//! Chance that a seed repeats. It is for tests that try many things, and for nothing secret.

/// xorshift64*: Marsaglia, "Xorshift RNGs" (2003), with Vigna's multiplier. The seed is not zero.
pub(crate) struct Dice(pub(crate) u64);

impl Dice {
    /// A number under `bound`, which is not zero.
    pub(crate) fn below(&mut self, bound: u64) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        (self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 16) % bound
    }

    /// A place among `count`; the first where there is none.
    pub(crate) fn index(&mut self, count: usize) -> usize {
        self.below(count.max(1) as u64) as usize
    }
}
