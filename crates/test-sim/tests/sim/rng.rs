//! The one source of chance of a simulated life: equal seeds give equal lives.

use std::sync::{Mutex, PoisonError};

use kinora_contract::{EntropySource, NoEntropy};

/// SplitMix64: Steele, Lea and Flood, "Fast splittable pseudorandom number generators", 2014.
#[derive(Debug)]
pub(crate) struct Rng(u64);

impl Rng {
    pub(crate) const fn seeded(seed: u64) -> Self {
        Self(seed)
    }

    pub(crate) const fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A number from 0 to below `end`.
    pub(crate) const fn below(&mut self, end: u64) -> u64 {
        self.next() % end
    }

    /// True so many times in a hundred.
    pub(crate) const fn percent(&mut self, chance: u64) -> bool {
        self.below(100) < chance
    }

    /// One of `all`, or `None` of none.
    pub(crate) fn pick<T: Clone>(&mut self, all: &[T]) -> Option<T> {
        let count = all.len() as u64;
        (count > 0).then(|| all[self.below(count) as usize].clone())
    }
}

/// Random bytes for the API, from the same seed.
#[derive(Debug)]
pub(crate) struct SeededEntropy(Mutex<Rng>);

impl SeededEntropy {
    pub(crate) const fn seeded(seed: u64) -> Self {
        Self(Mutex::new(Rng::seeded(seed)))
    }
}

impl EntropySource for SeededEntropy {
    fn fill(&self, bytes: &mut [u8]) -> Result<(), NoEntropy> {
        let mut rng = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        for byte in bytes {
            *byte = (rng.next() >> 56) as u8;
        }
        Ok(())
    }
}
