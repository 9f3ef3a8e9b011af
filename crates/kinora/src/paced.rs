//! Long clips that take their time without work, in test builds only: while one is made, a test has the machine to
//! itself. The variable `LONG_CLIP_FRAME_MS` is the pause after each frame of a clip of ten seconds or more.

use std::sync::Arc;
use std::thread;
use std::time::Duration;

use kinora_contract::{VideoSpec, Warning};
use kinora_engine::{
    Clip, Control, Description, Engine, EngineError, Job, Materials, Planner, Sink,
};
use kinora_worker::Maker;

const LONG_SECONDS: u32 = 10;

/// The same engine, paced where the variable asks for it.
pub(crate) fn around(maker: Maker) -> Maker {
    let pause = std::env::var("LONG_CLIP_FRAME_MS").ok();
    match (maker, pause.and_then(|ms| ms.parse().ok())) {
        (Maker::Frames(engine), Some(ms)) => Maker::Frames(Arc::new(Paced {
            engine,
            pause: Duration::from_millis(ms),
        })),
        (maker, _) => maker,
    }
}

struct Paced {
    engine: Arc<dyn Engine>,
    pause: Duration,
}

impl Planner for Paced {
    fn describe(&self) -> &Description {
        self.engine.describe()
    }

    fn plan(&self, spec: &VideoSpec, materials: &Materials) -> Result<Clip, EngineError> {
        self.engine.plan(spec, materials)
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
        if job.clip.frames < LONG_SECONDS * job.clip.fps {
            return self.engine.generate(job, sink, control);
        }
        let pause = self.pause;
        self.engine
            .generate(job, &mut Pausing { sink, pause }, control)
    }
}

struct Pausing<'s> {
    sink: &'s mut dyn Sink,
    pause: Duration,
}

impl Sink for Pausing<'_> {
    fn frame(&mut self, rgb: &[u8]) -> Result<(), EngineError> {
        self.sink.frame(rgb)?;
        thread::sleep(self.pause);
        Ok(())
    }

    fn audio(&mut self, pcm: &[f32]) -> Result<(), EngineError> {
        self.sink.audio(pcm)
    }
}
