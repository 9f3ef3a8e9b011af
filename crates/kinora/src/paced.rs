//! Cheap and slow clips, in test builds only: coloured bars in the place of what an engine paints, and pauses after
//! the frames of long clips.

use std::sync::Arc;
use std::thread;
use std::time::Duration;

use kinora_contract::{VideoSpec, Warning};
use kinora_engine::places::Places;
use kinora_engine::{
    Clip, Control, Description, Engine, EngineError, Job, Materials, Planner, Sink,
};
use kinora_worker::Maker;

use crate::faults::TestOptions;

const LONG_SECONDS: u32 = 10;

/// The same engine, paced and plain as a test wants. An engine in a separate process is never
/// plain: its process would have nothing to do.
pub(crate) fn around(options: &TestOptions, maker: Maker, is_hosted: bool) -> Maker {
    let Maker::Frames(engine) = maker else {
        return maker;
    };
    Maker::Frames(Arc::new(Paced {
        engine,
        pause: Duration::from_millis(options.long_clip_frame_ms),
        is_plain: options.has_plain_clips && !is_hosted,
    }))
}

struct Paced {
    engine: Arc<dyn Engine>,
    pause: Duration,
    is_plain: bool,
}

impl Planner for Paced {
    fn describe(&self) -> &Description {
        self.engine.describe()
    }

    fn plan(&self, spec: &VideoSpec, materials: &Materials) -> Result<Clip, EngineError> {
        self.engine.plan(spec, materials)
    }

    fn decides_length(&self, spec: &VideoSpec) -> bool {
        self.engine.decides_length(spec)
    }

    fn warnings(&self, spec: &VideoSpec, materials: &Materials) -> Vec<Warning> {
        self.engine.warnings(spec, materials)
    }
}

impl Engine for Paced {
    fn generate(
        &self,
        job: &Job<'_>,
        sink: &mut dyn Sink,
        control: &Control,
    ) -> Result<(), EngineError> {
        let is_long = job.clip.frames >= LONG_SECONDS * job.clip.fps;
        let pause = if is_long { self.pause } else { Duration::ZERO };
        let sink = &mut Pausing { sink, pause };
        if self.is_plain {
            kinora_test_engine::generate(job, sink, control)
        } else {
            self.engine.generate(job, sink, control)
        }
    }

    fn places(&self) -> Option<&Arc<Places>> {
        self.engine.places()
    }

    fn warm_up(&self, control: &Control) {
        self.engine.warm_up(control);
    }

    fn unload(&self) {
        self.engine.unload();
    }
}

struct Pausing<'s> {
    sink: &'s mut dyn Sink,
    pause: Duration,
}

impl Sink for Pausing<'_> {
    fn decide(&mut self, frames: u32) -> Result<(), EngineError> {
        self.sink.decide(frames)
    }

    fn frame(&mut self, rgb: &[u8]) -> Result<(), EngineError> {
        self.sink.frame(rgb)?;
        thread::sleep(self.pause);
        Ok(())
    }

    fn audio(&mut self, pcm: &[f32]) -> Result<(), EngineError> {
        self.sink.audio(pcm)
    }
}
