//! Turns the library's call-backs into one fraction that never decreases. The library reports
//! loaded tensors, decoded tiles and denoising steps through the same call-back; its log lines tell
//! which is which. The fraction moves only for what the library counts.

use std::ops::Range;

/// The current work of the library.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    /// Encodes given pictures to latents and words to embeddings.
    Encoding,
    /// Denoising steps of one or two experts.
    Sampling,
    /// Decodes latents to sound and pixels.
    Decoding,
}

/// Share of each phase in a typical clip; the rest is for delivering frames.
const SAMPLING: Range<f64> = 0.05..0.90;
const DECODED: f64 = 0.97;

/// The share of delivering frames.
#[cfg(feature = "native")]
pub(crate) const HANDING_OVER: Range<f64> = DECODED..1.0;

/// The progress of one clip.
#[derive(Debug)]
pub(crate) struct Tracker {
    phase: Phase,
    /// Total number of denoising steps in all passes.
    steps: u32,
    /// Steps of earlier passes.
    before: u32,
    /// Total and completed steps of the current pass, once it has begun.
    pass: Option<(u32, u32)>,
    fraction: f64,
}

impl Tracker {
    /// A clip with `steps` denoising steps, not begun.
    pub(crate) fn new(steps: u32) -> Self {
        Self {
            phase: Phase::Encoding,
            steps: steps.max(1),
            before: 0,
            pass: None,
            fraction: 0.0,
        }
    }

    /// The fraction done, 0.0 to 1.0, where 1.0 includes delivery.
    pub(crate) fn fraction(&self) -> f64 {
        self.fraction
    }

    /// Completed denoising steps.
    pub(crate) fn steps_done(&self) -> u32 {
        self.before + self.pass.map_or(0, |(_, done)| done)
    }

    /// Interprets a line of the library's log, as written by `generate_video` in the pinned
    /// version.
    pub(crate) fn log(&mut self, line: &str) {
        if line.contains("get_learned_condition completed") {
            self.enter(Phase::Sampling, SAMPLING.start);
        } else if line.contains("generating latent video completed") {
            self.enter(Phase::Decoding, SAMPLING.end);
        } else if line.contains("decode_first_stage completed") {
            self.enter(Phase::Decoding, DECODED);
        }
    }

    fn enter(&mut self, phase: Phase, fraction: f64) {
        self.phase = phase;
        self.fraction = self.fraction.max(fraction);
    }

    /// Interprets a call-back: `step` of `of` is done.
    pub(crate) fn count(&mut self, step: u32, of: u32) {
        match self.phase {
            Phase::Encoding => {}
            Phase::Sampling => self.sample(step, of),
            Phase::Decoding => self.decode(step, of),
        }
    }

    /// A pass begins with step 0. A count that exceeds the remaining steps, or did not begin like
    /// this, is about weights being loaded for the first step.
    fn sample(&mut self, step: u32, of: u32) {
        // Example of 4 steps with weights loaded at the first: (0, 4) begins the pass, (1, 825)
        // ... (825, 825) load tensors, (1, 4) is the first step. A model of two experts has two
        // passes, (0, 4) ... (4, 4) and (0, 6) ... (6, 6).
        let over = self.pass.is_none_or(|(all, done)| done >= all);
        if step == 0 && over && of > 0 && self.steps_done() + of <= self.steps {
            self.before = self.steps_done();
            self.pass = Some((of, 0));
        }
        if let Some((all, done)) = &mut self.pass
            && *all == of
            && step == *done + 1
        {
            *done = step;
            let share = f64::from(self.steps_done()) / f64::from(self.steps);
            let within = SAMPLING.start + share * (SAMPLING.end - SAMPLING.start);
            self.fraction = self.fraction.max(within);
        }
    }

    /// Counts tiles of frames; sound has none, nor does decoding in one piece.
    fn decode(&mut self, step: u32, of: u32) {
        if of > 0 {
            let share = f64::from(step.min(of)) / f64::from(of);
            // Loading weights is counted too, and the tiles restart after it: half each.
            let within = SAMPLING.end + share * 0.5 * (DECODED - SAMPLING.end);
            self.fraction = self.fraction.max(within);
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const CONDITION: &str = "get_learned_condition completed, taking 3.00s";
    const LATENT: &str = "generating latent video completed, taking 9.00s";
    const DECODE: &str = "decode_first_stage completed, taking 1.00s";

    #[test]
    fn one_pass_counts_its_steps_and_not_its_weights() {
        let mut way = Tracker::new(4);
        way.count(0, 900);
        way.count(900, 900);
        assert!(way.fraction() < 1e-9, "weights of the text encoder");
        way.log(CONDITION);
        way.count(0, 4);
        way.count(1, 825);
        way.count(825, 825);
        assert_eq!(way.steps_done(), 0, "weights of the transformer");
        for step in 1..=4 {
            way.count(step, 4);
            assert_eq!(way.steps_done(), step);
        }
        assert!((way.fraction() - SAMPLING.end).abs() < 1e-9);
        way.log(LATENT);
        way.count(5, 10);
        way.log(DECODE);
        assert!((way.fraction() - DECODED).abs() < 1e-9);
    }

    #[test]
    fn two_passes_are_one_row_of_steps() {
        let mut way = Tracker::new(10);
        way.log(CONDITION);
        let mut seen = Vec::new();
        for of in [4, 6] {
            way.count(0, of);
            for step in 1..=of {
                way.count(step, of);
                seen.push(way.steps_done());
            }
        }
        assert_eq!(seen, (1..=10).collect::<Vec<u32>>());
    }

    #[test]
    fn two_equal_passes_are_told_apart() {
        let mut way = Tracker::new(2);
        way.log(CONDITION);
        for call in [(0, 1), (1, 1), (0, 1), (1, 1)] {
            way.count(call.0, call.1);
        }
        assert_eq!(way.steps_done(), 2);
    }

    proptest! {
        #[test]
        fn whatever_is_called_back_the_fraction_never_falls(
            steps in 1_u32..50,
            calls in proptest::collection::vec((0_u8..4, 0_u32..60, 0_u32..60), 0..200),
        ) {
            let mut way = Tracker::new(steps);
            let mut last = 0.0;
            for (kind, step, of) in calls {
                match kind {
                    0 => way.log(CONDITION),
                    1 => way.log(LATENT),
                    _ => way.count(step, of),
                }
                prop_assert!(way.fraction() >= last && way.fraction() <= 1.0);
                prop_assert!(way.steps_done() <= steps);
                last = way.fraction();
            }
        }
    }
}
