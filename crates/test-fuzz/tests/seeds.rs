//! Every check on every seed, and on damaged copies of it.
#![allow(clippy::unwrap_used, reason = "these are tests")]

use std::fs;
use std::path::PathBuf;

use kinora_test_fuzz::{NAMES, check};

/// Damaged copies of a seed, in bytes: small seeds have more of them.
const BYTES: usize = 4_000_000;
/// Most damaged copies of one seed.
const COPIES_MAX: usize = 20_000;

/// A generator of our own (xorshift64*, Vigna 2016), so that a failure shows again.
struct Seeded(u64);

impl Seeded {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }

    fn below(&mut self, bound: usize) -> usize {
        (self.next() >> 16) as usize % bound.max(1)
    }
}

/// A copy with up to six bytes, or runs of bytes, changed, doubled, left out, or taken from `other`.
fn damaged(seed: &[u8], other: &[u8], dice: &mut Seeded) -> Vec<u8> {
    let mut copy = seed.to_vec();
    for _ in 0..=dice.below(6) {
        let at = dice.below(copy.len() + 1);
        let end = (at + dice.below(12)).min(copy.len());
        match dice.below(6) {
            0 if at < copy.len() => copy[at] ^= 1 << dice.below(8),
            1 if at < copy.len() => copy[at] = dice.next() as u8,
            2 => drop(copy.splice(at..end, [])),
            3 => {
                let run = copy[at..end].to_vec();
                copy.splice(at..at, run);
            }
            4 => {
                let from = dice.below(other.len() + 1);
                let run = &other[from..(from + dice.below(24)).min(other.len())];
                copy.splice(at..end, run.iter().copied());
            }
            _ => copy.truncate(at.max(1)),
        }
    }
    copy
}

fn seeds(name: &str) -> Vec<Vec<u8>> {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR"));
    let folder = folder.join("../../fuzz/seeds").join(name);
    let mut files: Vec<_> = fs::read_dir(folder)
        .unwrap()
        .map(|file| file.unwrap().path())
        .collect();
    files.sort();
    files
        .into_iter()
        .map(|file| fs::read(file).unwrap())
        .collect()
}

fn hold(name: &str) {
    let seeds = seeds(name);
    assert!(!seeds.is_empty(), "{name} has no seeds");
    let mut dice = Seeded(0x6b69_6e6f_7261);
    for seed in &seeds {
        check(name, seed);
        let copies = (BYTES / seed.len().max(1)).clamp(16, COPIES_MAX);
        for _ in 0..copies {
            let other = &seeds[dice.below(seeds.len())];
            check(name, &damaged(seed, other, &mut dice));
        }
    }
}

macro_rules! tests {
    ($($name:ident)*) => {
        $(
            #[test]
            fn $name() {
                hold(stringify!($name));
            }
        )*

        #[test]
        fn every_check_is_a_test_and_a_target() {
            assert_eq!([$(stringify!($name)),*], NAMES);
            let targets = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/targets");
            let mut files: Vec<_> = fs::read_dir(targets).unwrap().map(|file| file.unwrap().path()).collect();
            files.sort();
            let names = files.iter().map(|file| file.file_stem().unwrap().to_str().unwrap());
            // The listener's own tests have what `framing` tries.
            let names = names.filter(|name| *name != "framing");
            assert_eq!(names.collect::<Vec<_>>(), NAMES);
        }
    };
}

tests!(address film form ids image json reference_url signature sound);
