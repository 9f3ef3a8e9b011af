//! Clips whose length the engine decides.

use std::sync::Arc;

use crate::bench::{Bench, Running};
use crate::engines::{Act, Puppet};

#[tokio::test(flavor = "multi_thread")]
async fn a_clip_has_the_length_that_the_engine_decides() {
    let bench = Bench::new();
    // The longest one has four frames.
    for frames in [2, 4] {
        let engine = Arc::new(Puppet::new(Act::Decides(frames)));
        let running = Running::start(bench.worker(&engine));
        let made = bench.completes(bench.submit().await).await;
        assert_eq!(made.frames, frames);
        assert!((made.duration_seconds - f64::from(frames) / 8.0).abs() < 0.05);
        running.drained().await;
    }
}
