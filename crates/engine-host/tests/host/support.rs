//! A request, and a clock that runs.

use std::sync::Arc;
use std::time::Instant;

use kinora_contract::{
    Clock, FrameSize, RunningClock, SPEC_VERSION, Size, VideoInputs, VideoLength, VideoSpec,
};

/// A clip of two seconds from text.
pub(crate) fn spec(size: Size, generate_audio: bool) -> VideoSpec {
    VideoSpec {
        version: SPEC_VERSION,
        model: "model".to_owned(),
        prompt: "A kite over a beach".to_owned(),
        negative_prompt: None,
        seconds: VideoLength::Fixed(2),
        frame: FrameSize::Fixed(size),
        seed: 11,
        generate_audio,
        inputs: VideoInputs::Text,
        draft: false,
        final_of: None,
        edit: None,
    }
}

pub(crate) fn clock() -> Arc<dyn Clock> {
    let begun = Instant::now();
    Arc::new(RunningClock::at(0, move || begun.elapsed()))
}
