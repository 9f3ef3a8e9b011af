//! Turns what the server prints into one fraction that never decreases. The server shows loaded
//! weights, denoising steps and decoded tiles by bars of the same kind; its log lines and the bars'
//! units tell which is which. The fraction moves only for what the server counts.

use std::ops::Range;

/// A bar of the server: `  |====>    | 3/20 - 2.10s/it`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ProgressBar {
    step: u32,
    of: u32,
    /// Whether it counts rounds of work, and not weights, which have a rate in bytes.
    is_work: bool,
}

impl ProgressBar {
    /// Reads a bar (`pretty_progress` and `pretty_bytes_progress` in `util.cpp`).
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let (_, count) = text.trim_start().strip_prefix('|')?.rsplit_once('|')?;
        let (count, rate) = count.split_once(" - ")?;
        let (step, of) = count.trim().split_once('/')?;
        Some(Self {
            step: step.parse().ok()?,
            of: of.parse().ok()?,
            is_work: rate.ends_with("s/it") || rate.ends_with("it/s"),
        })
    }
}

/// The current work of the server.
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
    /// The fraction done, 0.0 to 1.0, where 1.0 includes delivery. It never decreases.
    pub(crate) fraction: f64,
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

    /// Completed denoising steps.
    fn steps_done(&self) -> u32 {
        self.before + self.pass.map_or(0, |(_, done)| done)
    }

    /// Interprets a line of the server's log, as `generate_video` writes it.
    pub(crate) fn log(&mut self, line: &str) {
        for (end, phase, fraction) in [
            ("get_learned_condition", Phase::Sampling, SAMPLING.start),
            ("generating latent video", Phase::Decoding, SAMPLING.end),
            ("decode_first_stage", Phase::Decoding, DECODED),
        ] {
            if line.contains(&format!("{end} completed")) {
                self.phase = phase;
                self.advance(fraction);
            }
        }
    }

    fn advance(&mut self, fraction: f64) {
        self.fraction = self.fraction.max(fraction);
    }

    /// Interprets a bar.
    pub(crate) fn count(&mut self, bar: ProgressBar) {
        match self.phase {
            Phase::Sampling if bar.is_work => self.sample(bar.step, bar.of),
            // Tiles of frames; decoding in one piece has none.
            Phase::Decoding if bar.is_work && bar.of > 0 => {
                let share = f64::from(bar.step.min(bar.of)) / f64::from(bar.of);
                self.advance(SAMPLING.end + share * (DECODED - SAMPLING.end));
            }
            _ => {}
        }
    }

    /// A pass begins with its first step, if no other pass is under way and there are as many steps
    /// left. A model of two experts has two passes: 1/4 ... 4/4 and 1/6 ... 6/6.
    fn sample(&mut self, step: u32, of: u32) {
        let over = self.pass.is_none_or(|(all, done)| done >= all);
        if step == 1 && over && of <= self.steps - self.steps_done() {
            self.before = self.steps_done();
            self.pass = Some((of, 0));
        }
        if let Some((all, done)) = &mut self.pass
            && *all == of
            && step == *done + 1
        {
            *done = step;
            tracing::debug!(step = self.steps_done(), "denoising step done");
            let share = f64::from(self.steps_done()) / f64::from(self.steps);
            self.advance(SAMPLING.start + share * (SAMPLING.end - SAMPLING.start));
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

    fn work(step: u32, of: u32) -> ProgressBar {
        ProgressBar {
            step,
            of,
            is_work: true,
        }
    }

    fn weights(step: u32, of: u32) -> ProgressBar {
        ProgressBar {
            is_work: false,
            ..work(step, of)
        }
    }

    #[test]
    fn bars_are_read_as_they_are_printed() {
        let read = ProgressBar::parse;
        assert_eq!(read("  |===>      | 3/20 - 2.10s/it"), Some(work(3, 20)));
        assert_eq!(read("  |==========| 20/20 - 4.00it/s"), Some(work(20, 20)));
        assert_eq!(read("  |###  | 9/825 - 1.20GB/s"), Some(weights(9, 825)));
        for other in ["", "|", "||", "a | 1/2 - 3s/it", "| 1/x - 3s/it", "|=| 1/2"] {
            assert_eq!(read(other), None, "{other}");
        }
    }

    #[test]
    fn one_pass_counts_its_steps_and_not_its_weights() {
        let mut way = Tracker::new(4);
        way.count(weights(900, 900));
        assert!(way.fraction < 1e-9, "weights of the text encoder");
        way.log(CONDITION);
        way.count(weights(1, 4));
        way.count(weights(4, 4));
        assert_eq!(way.steps_done(), 0, "weights of the transformer");
        for step in 1..=4 {
            way.count(work(step, 4));
            assert_eq!(way.steps_done(), step);
        }
        assert!((way.fraction - SAMPLING.end).abs() < 1e-9);
        way.log(LATENT);
        way.count(work(5, 10));
        way.log(DECODE);
        assert!((way.fraction - DECODED).abs() < 1e-9);
    }

    #[test]
    fn two_passes_are_one_row_of_steps() {
        let mut way = Tracker::new(10);
        way.log(CONDITION);
        let mut seen = Vec::new();
        for of in [4, 6] {
            for step in 1..=of {
                way.count(work(step, of));
                seen.push(way.steps_done());
            }
        }
        assert_eq!(seen, (1..=10).collect::<Vec<u32>>());
        // A pass that is longer than what is left is none.
        way.count(work(1, u32::MAX));
        assert_eq!(way.steps_done(), 10);
    }

    #[test]
    fn two_equal_passes_are_told_apart() {
        let mut way = Tracker::new(2);
        way.log(CONDITION);
        way.count(work(1, 1));
        way.count(work(1, 1));
        assert_eq!(way.steps_done(), 2);
    }

    proptest! {
        #[test]
        fn whatever_is_printed_the_fraction_never_falls(
            steps in 1_u32..50,
            bars in proptest::collection::vec((0_u8..4, 0_u32..60, 0_u32..60), 0..200),
        ) {
            let mut way = Tracker::new(steps);
            let mut last = 0.0;
            for (kind, step, of) in bars {
                match kind {
                    0 => way.log(CONDITION),
                    1 => way.log(LATENT),
                    2 => way.count(weights(step, of)),
                    _ => way.count(work(step, of)),
                }
                prop_assert!(way.fraction >= last && way.fraction <= 1.0);
                prop_assert!(way.steps_done() <= steps);
                last = way.fraction;
            }
        }
    }
}
