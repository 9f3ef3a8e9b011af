//! Clips whose length the engine decides.

use std::sync::Arc;

use crate::bench::{Bench, Running};
use crate::engines::{Act, Puppet, grey_of};

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
        for (file, frame) in [(&made.first_frame, 0), (&made.last_frame, frames - 1)] {
            let jpeg = bench.bytes_of(&file.as_ref().unwrap().key).await;
            let shown = kinora_media_decode::image_of(&jpeg, 4096).unwrap();
            assert_eq!((shown.width, shown.height), (64, 64));
            let grey = grey_of(frame);
            let off = shown.rgb.iter().map(|value| value.abs_diff(grey)).max();
            assert!(off < Some(4), "frame {frame}: {off:?} off");
        }
        running.drained().await;
    }
}
