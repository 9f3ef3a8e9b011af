//! Cheap clips, in test builds only. The variable `LONG_CLIP_FRAME_MS` is the pause after each
//! frame of a clip of ten seconds or more, so that tests have the machine to themselves meanwhile.
//! With `PLAIN_CLIPS`, clips are painted in one colour that depends on the seed, for tests that
//! make many clips and look at none.

use std::sync::Arc;
use std::thread;
use std::time::Duration;

use kinora_contract::{VideoSpec, Warning};
use kinora_engine::{
    CHANNELS, Clip, Control, Description, Engine, EngineError, Job, Materials, Planner,
    SAMPLE_RATE_HZ, Sink, Stage,
};
use kinora_worker::Maker;

const LONG_SECONDS: u32 = 10;

/// The same engine, paced and plain as the variables ask. An engine in a separate process is never
/// plain: its process would have nothing to do.
pub(crate) fn around(maker: Maker, is_hosted: bool) -> Maker {
    let Maker::Frames(engine) = maker else {
        return maker;
    };
    let pause = std::env::var("LONG_CLIP_FRAME_MS").ok();
    let pause = pause.and_then(|ms| ms.parse().ok());
    let is_plain = !is_hosted && std::env::var_os("PLAIN_CLIPS").is_some();
    if pause.is_none() && !is_plain {
        return Maker::Frames(engine);
    }
    Maker::Frames(Arc::new(Paced {
        engine,
        pause: Duration::from_millis(pause.unwrap_or(0)),
        is_plain,
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
        match self.is_plain {
            true => plain(job, sink, control),
            false => self.engine.generate(job, sink, control),
        }
    }

    fn unload(&self) {
        self.engine.unload();
    }
}

/// The clip in one colour, with silence.
fn plain(job: &Job<'_>, sink: &mut dyn Sink, control: &Control) -> Result<(), EngineError> {
    let clip = job.clip;
    let [red, green, blue, _] = job.spec.seed.to_le_bytes();
    let frame = [red, green, blue].repeat(clip.size.width as usize * clip.size.height as usize);
    let samples = clip.frames * SAMPLE_RATE_HZ / clip.fps * u32::from(CHANNELS);
    if clip.audio {
        sink.audio(&vec![0.0; samples as usize])?;
    }
    for number in 0..clip.frames {
        control.report(
            Stage::Generating,
            f64::from(number) / f64::from(clip.frames),
        )?;
        sink.frame(&frame)?;
    }
    Ok(())
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
