//! One-pole low-pass filters in a row. Nothing else is filtered with.

use std::f32::consts::TAU;

use kinora_engine::SAMPLE_RATE_HZ;

/// Two poles at one frequency; one state per use and channel.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Low([f32; 2]);

impl Low {
    /// The next sample of `input`, low-passed at `hz`.
    pub(super) fn pass(&mut self, input: f32, hz: f32) -> f32 {
        let share = 1.0 - (-TAU * hz / SAMPLE_RATE_HZ as f32).exp();
        self.0[0] += (input - self.0[0]) * share;
        self.0[1] += (self.0[0] - self.0[1]) * share;
        self.0[1]
    }
}
