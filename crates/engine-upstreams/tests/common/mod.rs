//! What the tests of every kind of server need: times, requests and a film.

#![allow(dead_code, reason = "each program of tests needs a part of it")]

use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use async_trait::async_trait;
use kinora_contract::{
    Clock, FrameSize, RunningClock, SPEC_VERSION, Size, VideoInputs, VideoLength, VideoSpec,
};
use kinora_engine_upstreams::dialects::WaitTimer;

pub(crate) const MP4: &[u8] = b"\0\0\0\x18ftypisom";
pub(crate) const PROMPT: &str = "A boat \"on\" a lake";

/// Passes in real time.
pub(crate) fn clock() -> Arc<dyn Clock> {
    let begun = Instant::now();
    Arc::new(RunningClock::at(0, move || begun.elapsed()))
}

/// A timer on which every wait is over at once, and noted.
#[derive(Debug, Default)]
pub(crate) struct JumpTimer(Mutex<(Duration, Vec<Duration>)>);

impl JumpTimer {
    pub(crate) fn waits(&self) -> Vec<Duration> {
        self.0.lock().unwrap().1.clone()
    }

    pub(crate) fn advance(&self, by: Duration) {
        self.0.lock().unwrap().0 += by;
    }
}

#[async_trait]
impl WaitTimer for JumpTimer {
    fn now(&self) -> Duration {
        self.0.lock().unwrap().0
    }

    async fn sleep(&self, duration: Duration) {
        {
            let mut state = self.0.lock().unwrap();
            state.0 += duration;
            state.1.push(duration);
        }
        tokio::task::yield_now().await;
    }
}

/// A request of 5 seconds in 1280x720.
pub(crate) fn spec(inputs: VideoInputs) -> VideoSpec {
    VideoSpec {
        version: SPEC_VERSION,
        model: "kinora-a1".to_owned(),
        prompt: PROMPT.to_owned(),
        negative_prompt: None,
        seconds: VideoLength::Fixed(5),
        frame: FrameSize::Fixed(Size::new(1280, 720)),
        seed: 7,
        generate_audio: false,
        inputs,
        draft: false,
        final_of: None,
        edit: None,
    }
}

pub(crate) fn frames(first: &str, last: Option<&str>) -> VideoInputs {
    VideoInputs::Frames {
        first: first.to_owned(),
        last: last.map(str::to_owned),
    }
}

pub(crate) fn references(images: &[&str], audios: &[&str]) -> VideoInputs {
    let owned = |urls: &[&str]| urls.iter().map(|url| (*url).to_owned()).collect();
    VideoInputs::References {
        images: owned(images),
        audios: owned(audios),
    }
}
